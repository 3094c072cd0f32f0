"""Checkpoints of a run: tensors as safetensors, other values as JSON, written atomically.

RUN/state/00001200/     checkpoint after step 1200, to resume from; `latest.json` names the newest complete one
RUN/model.safetensors   the best model so far by validation
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from kglm.errors import DataError, KglmError, VersionError
from kglm.files import atomic_directory, read_json, reading, sync_directory, umask, write_json, writing

FORMAT = 2


def save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors by name; the file is replaced atomically."""
    temporary = path.with_name(f".{path.name}.tmp")
    with writing(path):
        _write(temporary, tensors)
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.chmod(0o666 & ~umask())  # safetensors makes the file readable by its owner only
        temporary.replace(path)
        sync_directory(path.parent)


def _write(path: Path, tensors: Mapping[str, Tensor]) -> None:
    try:
        save_file({name: tensor.detach().contiguous() for name, tensor in tensors.items()}, path)
    except SafetensorError as error:  # raised for errors of the file system too
        raise KglmError(
            f"could not be written ({error})",
            place=path,
            remedy="free disk space or check the permissions, then resume",
        ) from error


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a file by name."""
    with reading(path):
        try:
            return load_file(path)
        except SafetensorError as error:
            raise DataError(f"is not a complete safetensors file ({error})", place=path) from error


RENAMED = {
    "latent.type_head.": "latent.types.head.",
    "latent.type_feature": "latent.types.state_QC",
    "latent.type_cue_3C": "latent.types.cue_3C",
    "latent.type_cue_H3C": "latent.types.cue_H3C",
    "latent.type_cue_DC": "latent.types.relation_DC",
    "latent.relation_RD": "latent.relations.vector_RD",
    "latent.text_2HD": "latent.relations.name_2HD",
    "latent.tail_HD": "latent.tails.query_HD",
    "latent.cue_HQ": "latent.cues.context_HQ",
    "latent.cue": "latent.cues.weight_Q",
    "latent.frequency": "latent.new_entities.frequency_Q",
    "latent.entity_bias_E": "latent.new_entities.bias_E",
    "latent.parent_bias.": "latent.parents.",
}
"""Parameters by their names in runs of format 2, and since."""
OPTIONAL = ("latent.types.cue_3C", "latent.types.cue_H3C", "latent.types.relation_DC")
"""Parameters that the first runs of format 2 lack. Their initial value, zero, has no effect."""


def renamed(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors of a run of any format under their present names."""

    def present(name: str) -> str:
        old = next((old for old in RENAMED if name == old or (old.endswith(".") and name.startswith(old))), None)
        return name if old is None else RENAMED[old] + name[len(old) :]

    return {present(name): tensor for name, tensor in tensors.items()}


def load_into(module: nn.Module, tensors: Mapping[str, Tensor], place: Path, *, grows: Collection[str] = ()) -> None:
    """Set all parameters of a module; an error names a tensor that is missing, unknown or of another shape.

    Tensors in `grows` may have fewer rows than the module's; the module keeps its own further rows.
    """
    own = module.state_dict()
    tensors = {**{name: tensor for name, tensor in own.items() if name.endswith(OPTIONAL)}, **renamed(tensors)}
    for name, tensor in own.items():
        if name not in tensors:
            raise DataError(f"has no tensor {name}", place=place, remedy="use the model and version that wrote it")
        rows = len(tensors[name]) if tensors[name].dim() else 0
        if name in grows and tensors[name].shape[1:] == tensor.shape[1:] and rows < len(tensor):
            tensors[name] = torch.cat([tensors[name], tensor[rows:].to(tensors[name])])
        if tensors[name].shape != tensor.shape:
            raise DataError(
                f"{name} has shape {tuple(tensors[name].shape)}; the model has shape {tuple(tensor.shape)}",
                place=place,
                remedy="use the configuration, vocabulary and graph it was trained with",
            )
    if extra := sorted(set(tensors) - set(own)):
        raise DataError(f"has a tensor {extra[0]} that the model does not have", place=place)
    module.load_state_dict(tensors)


class StateDirectory:
    """The checkpoints of a run; resuming starts from the newest complete one."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def save(self, step: int, parts: Mapping[str, Mapping[str, Tensor]], values: Mapping[str, Any]) -> None:
        """Write checkpoint `step`, mark it as the latest, and delete all others, complete or not."""
        target, number = self.home / f"{step:08d}", 0
        while target.exists():  # a step can be saved twice: at the end of an epoch, or after a kill
            number += 1
            target = self.home / f"{step:08d}-{number}"
        with atomic_directory(target) as directory:
            for name, tensors in parts.items():
                _write(directory / f"{name}.safetensors", tensors)
            write_json(directory / "state.json", {"format": FORMAT, "step": step, "parts": list(parts), **values})
        write_json(self.home / "latest.json", {"directory": target.name})
        for old in self.home.iterdir():
            if old.is_dir() and old != target:
                shutil.rmtree(old, ignore_errors=True)

    @property
    def latest(self) -> Path:
        """Directory of the latest checkpoint."""
        return self.home / str(read_json(self.home / "latest.json")["directory"])

    def load(self) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]] | None:
        """The latest checkpoint, or None if the run has none."""
        if not (self.home / "latest.json").exists():
            return None
        directory = self.latest
        values: dict[str, Any] = read_json(directory / "state.json")
        if values.get("format") != FORMAT:
            raise VersionError(
                f"has format {values.get('format')}; this version reads format {FORMAT}",
                place=directory,
                remedy="start a new run with --from this one: its best model is kept",
            )
        return {name: load_tensors(directory / f"{name}.safetensors") for name in values["parts"]}, values


def optimiser_tensors(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """State of an optimiser as named tensors."""
    return {
        f"{number}.{name}": value if isinstance(value, Tensor) else torch.tensor(value)
        for number, state in optimiser.state_dict()["state"].items()
        for name, value in state.items()
    }


def restore_optimiser(optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor], place: Path) -> None:
    """Restore the state saved by `optimiser_tensors`; the optimiser keeps its settings, e.g. the learning rate."""
    whole = optimiser.state_dict()
    whole["state"] = {}
    trained = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    for key, tensor in tensors.items():
        number, name = key.split(".", 1)
        if int(number) >= len(trained) or tensor.shape not in (trained[int(number)].shape, torch.Size()):
            raise DataError(
                f"{key} does not belong to a parameter of this model", place=place, remedy="start a new run"
            )
        whole["state"].setdefault(int(number), {})[name] = tensor
    optimiser.load_state_dict(whole)

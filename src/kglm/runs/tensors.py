"""Load the tensors of a run into a model, whatever version wrote them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from kglm.errors import DataError

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
OPTIONAL = (
    "latent.types.cue_3C",
    "latent.types.cue_H3C",
    "latent.types.relation_DC",
    "latent.tails.facts.weight_Q",
    "latent.tails.facts.context_HQ",
)
"""Parameters that runs of earlier versions lack. They are zero then, which has no effect."""


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
    unused = {name: torch.zeros_like(tensor) for name, tensor in own.items() if name.endswith(OPTIONAL)}
    tensors = {**unused, **renamed(tensors)}
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

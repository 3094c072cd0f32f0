"""Fixed vectors of relations, from the base's own reading of their labels: any relation of any graph has one."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from kglm.kg.graph import KnowledgeGraph
from kglm.pretrained.base import BaseModel
from kglm.progress import progress

CARRIERS = ("The {} of it is", "It is the {} of")
"""Texts whose last state stands for a relation, and for its reverse."""
BATCH = 64


def relation_keys(base: BaseModel, graph: KnowledgeGraph) -> Tensor:
    """Vectors of all relations and their reverses (R × D), of length 1."""
    labels = [graph.relation_label(2 * k) for k in range(graph.relation_count // 2)]
    texts = [carrier.format(label) for label in labels for carrier in CARRIERS]
    encoded = [[base.subwords.start, *ids] for ids in base.subwords.encode_many(texts)]
    rows = []
    with progress("reading the relations", len(encoded), "relations") as advance:
        for first in range(0, len(encoded), BATCH):
            part = encoded[first : first + BATCH]
            width = max(map(len, part))
            ids = torch.tensor([[*each, *([0] * (width - len(each)))] for each in part])
            last_BTD = base.model.hidden(ids).last_BTD.float()
            rows.append(last_BTD[torch.arange(len(part)), torch.tensor([len(each) - 1 for each in part])])
            advance(len(part))
    key_RD = torch.cat(rows) if rows else torch.zeros(0, base.model.config.hidden)
    key_RD = key_RD - key_RD.mean(0)
    return functional.normalize(key_RD, dim=-1)

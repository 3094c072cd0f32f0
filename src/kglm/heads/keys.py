"""Fixed vectors of relations, which any relation of any graph has: what the heads know of a relation.

    [ the base's state after "The (label) of it is" ; mean of the encoder's vectors of its names ; kinds of its tails ]

with "It is the (label) of" for the reverse. The base's part is centred by the mean over the well-known relations.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from xxhash import xxh3_128

from kglm.files.user_cache import cached_array
from kglm.heads.meanings import Meanings, RelationList
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.literal import is_date, is_literal, is_quantity
from kglm.pretrained.base import BaseModel
from kglm.progress import progress

CARRIERS = ("The {} of it is", "It is the {} of")
"""Texts whose last state stands for a relation, and for its reverse."""
BATCH = 64
KINDS = 4
"""Dates, quantities, texts, entities."""
SAMPLE = 4_000_000
"""Edges of a graph from which the kinds of tails are counted."""
ENCODED = 384
"""Size of the encoder's part; zeros if there is no encoder."""


def key_size(base: BaseModel) -> int:
    """Size of the vectors."""
    return base.model.config.hidden + ENCODED + KINDS


def relation_keys(base: BaseModel, relations: RelationList, meanings: Meanings | None) -> Tensor:
    """Vectors of all relations and their reverses (R × D)."""
    labels = [relations.names(k)[0] for k in range(len(relations))]
    own = relations.graph.relation_count // 2
    state_RD = torch.cat([_states(base, part) for part in (labels[:own], labels[own:])])
    state_RD = functional.normalize(state_RD - _centre(base), dim=-1)
    encoded_KC = torch.zeros(len(labels), ENCODED) if meanings is None else meanings.mean_KC
    kind_RC = torch.zeros(2 * len(labels), KINDS)
    kind_RC[: 2 * own] = tail_kinds(relations.graph)
    return torch.cat([state_RD, encoded_KC.repeat_interleave(2, 0), kind_RC], -1)


_CENTRE = ("date of birth", "country", "author", "population", "part of", "employer", "capital", "color", "parent")
"""Labels whose mean state is subtracted: what all carriers have in common."""


def _centre(base: BaseModel) -> Tensor:
    return _states(base, list(_CENTRE)).mean(0)


def _states(base: BaseModel, labels: list[str]) -> Tensor:
    """States after the carriers of labels (2 N × D); those of the same list are kept in the user's cache folder."""
    if not labels:
        return torch.zeros(0, base.model.config.hidden)
    digest = xxh3_128("\0".join([base.digest, str(base.model.dtype), *CARRIERS, *labels]).encode()).hexdigest()
    state_RD = cached_array(
        f"relations/{digest}", "states", 2 * len(labels), lambda: np.asarray(_compute(base, labels).numpy(), np.float32)
    )
    return torch.from_numpy(state_RD.copy())


def _compute(base: BaseModel, labels: list[str]) -> Tensor:
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
    return torch.cat(rows)


def tail_kinds(graph: KnowledgeGraph) -> Tensor:
    """For each relation of a graph and its reverse, the shares of dates, quantities, texts and entities (R × 4)."""
    base = graph.overlay.base
    relation_Y = np.asarray(base.edge_relation[:SAMPLE], np.int64)
    first = base.id_bytes[base.id_offsets[np.asarray(base.edge_tail[:SAMPLE], np.int64)]]
    count_RC = np.zeros((graph.relation_count, KINDS))
    for column, letter in enumerate("TVS"):
        chosen = relation_Y[first == ord(letter)]
        count_RC[:, column] = np.bincount(chosen, minlength=graph.relation_count)[: graph.relation_count]
    total_R = np.bincount(relation_Y, minlength=graph.relation_count)[: graph.relation_count]
    count_RC[:, 3] = total_R - count_RC[:, :3].sum(1)
    for change in graph.pending:
        relation = graph.find_relation(change.relation) if change.relation else None
        if change.action == "add" and relation is not None and not total_R[relation]:
            count_RC[relation, _kind(change.tail)] += 1
            count_RC[relation ^ 1, 3] += 1
    return torch.from_numpy(count_RC / np.maximum(count_RC.sum(1, keepdims=True), 1)).float()


def _kind(id: str) -> int:
    if not is_literal(id):
        return 3
    return 0 if is_date(id) else 1 if is_quantity(id) else 2

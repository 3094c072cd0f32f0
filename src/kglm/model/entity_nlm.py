"""EntityNLM (Ji et al., 2017): a language model that tracks entities by vectors, without a knowledge graph.

Every entity of a text has a vector that changes as it is mentioned. With h_t after the words before x_t:

    mention?     p(r_t) = softmax(W_r h_t), unless a mention is running
    entity       p(e_t) ∝ exp(h_t · W_e v_e + b_distance) over those mentioned before, and one that is new (v_new)
    length       p(l_t) = softmax(W_l [h_t ; v_e]), up to `LONGEST` words
    word         p(x_t) = softmax(W (h_t + W_v v) + b), with v of the entity, or of the last one that was mentioned

    after a word of e:    v_e ← (δ v_e + (1 − δ) h) / ‖·‖,    δ = σ(h · W_δ v_e)

What differs from the original: the softmax over words is not cut into classes, a new entity begins with v_new itself
and not with a draw around it, and the distance (true, in words, also beyond a chunk) has a bias for each log-bucket.
Mentions are given as for the other models; dates and quantities are plain words.

Each word of a mention makes a new version of the entity's vector; all versions of a chunk are rows of one table. The
k-th version of an entity depends on its (k−1)-th only, so the k-th versions of all entities are computed together.

Letters: see `kglm.model`; P are the entities of a document in order of first mention, X versions, U updated vectors, L
lengths of mentions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Generator, Tensor, nn

from kglm.model.base import ChunkModel, Scores, seeded
from kglm.model.buckets import BUCKETS
from kglm.model.chunk import Chunk
from kglm.model.encoders.awd_lstm import EncoderConfig
from kglm.model.encoders.encoder import EncoderState
from kglm.model.types import Type

LONGEST = 25
"""Largest number of words of a mention. A longer one is scored as one of this length, and counted as unexplained."""
NONE, NEW = 0, 1
"""First rows of the table of versions: zero (no entity), and v_new. Then vectors carried over from earlier chunks."""
TRACKED = "entities"
"""Name of the vectors in a checkpoint."""
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TrackingState:
    """The state of the encoder, and the vectors of the entities mentioned so far, end to end."""

    encoder: EncoderState
    vector_BX: Tensor

    def select(self, row_B: Tensor) -> TrackingState:
        return TrackingState(self.encoder.select(row_B), self.vector_BX[row_B])

    def detach(self) -> TrackingState:
        return TrackingState(self.encoder.detach(), self.vector_BX.detach())

    def tensors(self) -> dict[str, Tensor]:
        return {**self.encoder.tensors(), TRACKED: self.vector_BX}


class EntityNlm(ChunkModel):
    """The generative model."""

    generates_words = True

    def __init__(
        self, config: EncoderConfig, vocabulary_size: int, *, generator: Generator, longest: int = LONGEST
    ) -> None:
        super().__init__()
        size = config.embedding
        self.encoder = config.for_words().build(vocabulary_size, generator=generator)
        with seeded(generator):
            self.mention_head = nn.Linear(size, 2)
            self.length_head = nn.Linear(2 * size, longest)
            self.entity_HH = nn.Parameter(torch.randn(size, size) / size)
            self.change_HH = nn.Parameter(torch.randn(size, size) / size)
            self.word_HH = nn.Parameter(torch.randn(size, size) / size)
            self.new_H = nn.Parameter(torch.randn(size))
        self.new_bias = nn.Parameter(torch.zeros(()))
        self.distance_Q = nn.Parameter(torch.zeros(BUCKETS))
        self.word_bias_V = nn.Parameter(torch.zeros(vocabulary_size))

    def zero_state(self, rows: int) -> TrackingState:
        return TrackingState(self.encoder.zero_state(rows), self.new_H.new_zeros(rows, 0))

    def state_from(self, tensors: Mapping[str, Tensor]) -> TrackingState:
        encoder = {name: tensor for name, tensor in tensors.items() if name != TRACKED}
        return TrackingState(self.encoder.state_from(encoder), tensors[TRACKED])

    # The distributions

    @property
    def new_vector(self) -> Tensor:
        return nn.functional.normalize(self.new_H, dim=0)

    def changed(self, vector_UH: Tensor, h_UH: Tensor) -> Tensor:
        """Vectors after a word of their entities, which h has read."""
        kept_U1 = torch.sigmoid(((h_UH @ self.change_HH) * vector_UH).sum(-1, keepdim=True))
        return nn.functional.normalize(kept_U1 * vector_UH + (1 - kept_U1) * h_UH, dim=-1)

    def entity_log_probs(self, score_MP: Tensor, new_M: Tensor, bucket_MP: Tensor, known_MP: Tensor) -> Tensor:
        """log p of each entity mentioned before, and of a new one in the last column, from the scores h · W_e v."""
        score_MP = (score_MP + self.distance_Q[bucket_MP]).masked_fill(~known_MP, -torch.inf)
        return torch.cat([score_MP, (new_M + self.new_bias)[:, None]], -1).log_softmax(-1)

    def length_log_probs(self, h_MH: Tensor, vector_MH: Tensor) -> Tensor:
        """log p of each length of a mention, from 1."""
        log_p_ML: Tensor = self.length_head(torch.cat([h_MH, vector_MH], -1)).log_softmax(-1)
        return log_p_ML

    # A chunk

    def forward(self, chunk: Chunk, state: EncoderState | None = None, *, generator: Generator | None = None) -> Scores:
        assert state is None or isinstance(state, TrackingState)
        before = None if state is None else state.encoder
        chunk = self.hide(chunk, generator)
        output = self.read(chunk, before, generator)
        h_FH = output.h_BTD.flatten(0, 1)
        carried_BPH = self._carried(state, h_FH, len(chunk.words.reset_B))
        versions = _versions(chunk, carried_BPH.shape[1])
        vector_XH = self._vectors(versions, carried_BPH, h_FH)

        start_F = ((chunk.types.type_BT != Type.NONE) & (chunk.types.type_BT != Type.CONTINUE)).flatten()
        decided_F = (chunk.words.real_BT & (chunk.types.type_BT != Type.CONTINUE)).flatten()
        mention_F2 = self.mention_head(h_FH).log_softmax(-1)
        type_F = mention_F2.gather(1, start_F.long()[:, None])[:, 0].masked_fill(~decided_F, 0.0)
        at_M = chunk.starts.position_M
        entity_M, length_M = self._starts(h_FH[at_M], vector_XH, versions, chunk)
        type_F = type_F.index_add(0, at_M, length_M)
        entity_F = torch.zeros_like(type_F).index_copy(0, at_M, entity_M)
        is_new_F = torch.zeros_like(start_F).index_copy(0, at_M, versions.column_M == chunk.starts.entity_count_M)
        word_F, unknown_F = self._words(h_FH, vector_XH[versions.version_F], chunk)

        shape = chunk.words.real_BT.shape
        last_BPH = vector_XH[versions.last_BP]
        return Scores(
            type_F.view(shape),
            entity_F.masked_fill(~is_new_F, 0.0).view(shape),
            entity_F.masked_fill(is_new_F, 0.0).view(shape),
            torch.zeros_like(entity_F).view(shape),
            word_F.view(shape),
            unknown_F.view(shape),
            (chunk.starts.length_M > self.length_head.out_features).sum(),
            torch.zeros_like(entity_F).view(shape),
            self.encoder.regularisation(output, chunk.words.real_BT),
            TrackingState(output.state, last_BPH.flatten(1)),
        )

    def _carried(self, state: TrackingState | None, like_FH: Tensor, rows: int) -> Tensor:
        """Vectors carried over from earlier chunks (B × P × H)."""
        if state is None:
            return like_FH.new_zeros(rows, 0, like_FH.shape[1])
        return state.vector_BX.view(rows, -1, like_FH.shape[1])

    def _vectors(self, versions: _Versions, carried_BPH: Tensor, h_FH: Tensor) -> Tensor:
        """Table of all versions (X × H)."""
        first_XH = torch.cat([h_FH.new_zeros(1, h_FH.shape[1]), self.new_vector[None], carried_BPH.flatten(0, 1)])
        generations = [first_XH]
        for generation in versions.generations:
            vector_UH, h_UH = generations[-1][generation.source_U], h_FH[generation.position_U]
            generations.append(self.changed(vector_UH, h_UH))
        return torch.cat(generations)

    def _starts(self, h_MH: Tensor, vector_XH: Tensor, versions: _Versions, chunk: Chunk) -> tuple[Tensor, Tensor]:
        """log p of the entity and of the length of each mention."""
        query_MH = h_MH @ self.entity_HH
        score_MX = query_MH @ vector_XH.T  # one product is faster than one for each document
        log_p_MP = self.entity_log_probs(
            score_MX.gather(1, versions.candidate_MP),
            score_MX[:, NEW],
            chunk.starts.place_MP3[..., 0],
            versions.candidate_MP != NONE,
        )
        is_new_M = versions.column_M == chunk.starts.entity_count_M
        chosen_M = torch.where(is_new_M, log_p_MP.shape[1] - 1, versions.column_M)
        vector_MH = vector_XH[versions.version_F[chunk.starts.position_M]]
        length_ML = self.length_log_probs(h_MH, vector_MH)
        length_M = length_ML.gather(1, chunk.starts.length_M.clamp(max=length_ML.shape[1])[:, None] - 1)[:, 0]
        return log_p_MP.gather(1, chosen_M[:, None])[:, 0], length_M

    def _words(self, h_FH: Tensor, vector_FH: Tensor, chunk: Chunk) -> tuple[Tensor, Tensor]:
        real_F, target_F = chunk.words.real_BT.flatten(), chunk.words.target_BT.flatten()
        none_F = h_FH.new_zeros(len(target_F))
        if not self.generates_words:
            return none_F, none_F.bool()
        at_N = real_F.nonzero()[:, 0]
        h_NH = h_FH[at_N] + vector_FH[at_N] @ self.word_HH
        log_p_N = self.words.log_prob(h_NH, target_F[at_N])
        return none_F.index_copy(0, at_N, log_p_N), self.words.is_unknown(target_F) & real_F


class EntityNlmProposal(EntityNlm):
    """q(z | x): the same variables, after reading the word that they label. It does not score words."""

    ahead = 1
    generates_words = False

    def __init__(
        self, config: EncoderConfig, vocabulary_size: int, *, generator: Generator, longest: int = LONGEST
    ) -> None:
        super().__init__(config, vocabulary_size, generator=generator, longest=longest)
        for unused in (self.word_HH, self.word_bias_V):
            unused.requires_grad_(False)


class _Generation(NamedTuple):
    """Versions that are computed together, from those of the generation before."""

    source_U: Tensor
    position_U: Tensor


@dataclass(frozen=True)
class _Versions:
    """Rows of the table of versions that each position and mention start of a chunk uses."""

    generations: Sequence[_Generation]
    version_F: Tensor
    """For each position: the version of its entity, or else of the entity mentioned last."""
    candidate_MP: Tensor
    """For each start: the versions of all entities mentioned before, padded with `NONE`."""
    column_M: Tensor
    """Slot of the entity that is mentioned; the number of known entities if it is new."""
    last_BP: Tensor
    """After the chunk: the version of each entity; `NEW` for entities without an update."""


def _versions(chunk: Chunk, carried: int) -> _Versions:
    """Follow the mentions of each row. A version is (generation, index in it) until all generations are complete."""
    column_BT, current_BT, after_mention_BT = (
        x.tolist() for x in (chunk.tracking.slot_BT, chunk.tracking.current_BT, chunk.tracking.after_mention_BT)
    )
    rows, width = chunk.words.real_BT.shape
    made: list[list[tuple[int, int]]] = []
    used, last = list[tuple[int, int]](), list[list[tuple[int, int]]]()
    candidates: list[list[tuple[int, int]]] = []
    starts = dict(zip(chunk.starts.position_M.tolist(), chunk.starts.entity_count_M.tolist(), strict=True))
    new, none = (0, NEW), (0, NONE)
    for row, seen in enumerate(chunk.tracking.entity_count_B.tolist()):
        version = {column: (0, 2 + row * carried + column) for column in range(seen)}
        for t in range(width):
            position, current, column = row * width + t, current_BT[row][t], column_BT[row][t]
            if after_mention_BT[row][t]:
                generation, source = version.get(current, new)
                if generation == len(made):
                    made.append([])
                version[current] = (generation + 1, len(made[generation]))
                made[generation].append((source, position))
            of = column if column >= 0 else current
            used.append(version.get(of, new) if of >= 0 else none)
            if (known := starts.get(position)) is not None:
                candidates.append([version[each] for each in range(known)])
        last.append([version.get(column, new) for column in range(max(version, default=-1) + 1)])
    first = np.cumsum([0, 2 + rows * carried, *(len(each) for each in made)])

    def places(lists: Sequence[Sequence[tuple[int, int]]], fill: int) -> Tensor:
        result = np.full((len(lists), max(map(len, lists), default=0)), fill, np.int64)
        for row, found in enumerate(lists):
            result[row, : len(found)] = [first[generation] + place for generation, place in found]
        return torch.from_numpy(result).to(device)

    device = chunk.words.real_BT.device
    generations = [_Generation(*torch.tensor(each, device=device).T) for each in made]
    column_M = chunk.tracking.slot_BT.flatten()[chunk.starts.position_M]
    wide = chunk.starts.place_MP3.shape[1]
    candidate_MP = nn.functional.pad(found := places(candidates, NONE), (0, wide - found.shape[1]))
    return _Versions(generations, places([used], NONE)[0], candidate_MP, column_M, places(last, NEW))

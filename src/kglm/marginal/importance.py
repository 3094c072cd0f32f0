"""Importance sampling, the paper's estimator: draw annotations from the proposal q(z | x) and weight them by p / q.

    log p̂(x) = logsumexp_s(log p(x, z_s) − log q(z_s | x)) − log S

p and q are densities over the same variables: the start, the entity and the end of each mention; both sum over the
facts that lead to an entity. Each sample has its own random stream, so samples do not depend on the block size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from kglm.errors import DataError
from kglm.marginal.draws import draw_columns, draw_related
from kglm.marginal.prepared_text import PreparedText
from kglm.model.arrays import Floats, Ints
from kglm.model.histories import CONTINUE, FIRST, NONE
from kglm.model.latent import TextLatent
from kglm.model.proposal import Proposal
from kglm.model.text import hidden_states
from kglm.model.types import Type

LIKELY = 0.15
"""Expected mention starts at a position over all samples, above which the sum over all entities there is computed in
advance, together with other positions: five times as fast as alone."""
FOR_TYPE, FOR_NEW, FOR_PARENT = range(3)
"""Uses of the five random numbers of a step; those for the relation and the tail follow the parent's."""


@dataclass(frozen=True)
class Drawn:
    """Sampled annotations with their log-probabilities; `z_TS` is -2 none, -1 continue, or the entity that starts."""

    z_TS: Ints
    log_p_TS: Floats
    log_q_TS: Floats
    unknown_penalty_TS: Floats
    """Decrease of log p if unknown words are penalised."""


def proposal_latent(
    prepared: PreparedText, proposal: Proposal, *, temperature: float = 1.0, peek: bool = True
) -> TextLatent:
    """Score tables of the proposal for the text; with `peek`, it sees the word it labels."""
    for what, of in (
        ("vocabulary", lambda model: len(model.words)),
        ("graph", lambda model: (len(model.entities.row_N), len(model.entities.relation_RD))),
    ):
        if of(proposal) != of(prepared.model):
            raise DataError(f"the proposal has another {what} than the model", remedy="train both on the same data")
    with torch.no_grad():
        h_TD = hidden_states(proposal, prepared.text, ahead=int(peek))
        return proposal.text_latent(h_TD, prepared.cues, temperature=temperature)


def draw(
    prepared: PreparedText, proposal: TextLatent, samples: int, *, block: int, seed: int, penalty: float = 0.0
) -> Iterator[Drawn]:
    """Draw all samples in blocks, which bounds the memory. `penalty` is the extra cost of unknown words."""
    for start in range(0, samples, block):
        numbers = range(start, min(start + block, samples))
        streams = [np.random.default_rng([seed, number]).random((5, len(prepared))) for number in numbers]
        yield _draw_block(prepared, proposal, np.stack(streams, -1), penalty)


def _draw_block(prepared: PreparedText, proposal: TextLatent, uniform_5TS: Floats, penalty: float) -> Drawn:
    _, length, count = uniform_5TS.shape
    histories = prepared.histories(count)
    likely = proposal.types.likely_starts(LIKELY / count)
    prepared.latent.new_entities.prepare(likely)
    proposal.new_entities.prepare(likely)
    z_TS = np.full((length, count), -2)
    node_TS, begun_TS = np.full((length, count), -1), np.full((length, count), -1)
    log_p_TS, log_q_TS = np.empty((length, count)), np.empty((length, count))
    for t in range(length):
        type_p, type_q = histories.types(t, prepared.latent, proposal)
        type_S = draw_columns(np.exp(type_q), uniform_5TS[FOR_TYPE, t])
        column_S = np.where(type_S == Type.CONTINUE, CONTINUE, NONE)
        rows = np.arange(count)
        log_p_TS[t], log_q_TS[t] = type_p[rows, type_S], type_q[rows, type_S]
        z_TS[t, type_S == Type.CONTINUE] = -1
        starting = np.flatnonzero((type_S == Type.NEW) | (type_S == Type.RELATED))
        nodes: list[int] = []
        if len(starting):
            of_S = np.full(count, -1)
            fresh = np.flatnonzero(type_S == Type.NEW)
            of_S[fresh] = proposal.new_entities.draw(t, uniform_5TS[FOR_NEW, t, fresh])
            related = np.flatnonzero(type_S == Type.RELATED)
            if len(related):
                uniform_3S = uniform_5TS[FOR_PARENT:, t, related]
                of_S[related] = draw_related(t, histories.select(related), proposal, uniform_3S)
            nodes = sorted(set(of_S[starting].tolist()))
            place_S = np.searchsorted(nodes, of_S[starting])
            few = histories.select(starting)
            at = np.arange(len(starting))
            models = [(prepared.latent, type_p[starting]), (proposal, type_q[starting])]
            start_p, start_q = few.starts(t, nodes, *models)
            log_p_TS[t, starting], log_q_TS[t, starting] = start_p[at, place_S], start_q[at, place_S]
            column_S[starting] = FIRST + place_S
            z_TS[t, starting] = of_S[starting]
        histories.advance(t, column_S, nodes)
        node_TS[t], begun_TS[t] = histories.running_S, histories.begun_S
    word_TS, unknown_penalty_TS = prepared.words.of(node_TS, begun_TS, penalty)
    return Drawn(z_TS, log_p_TS + word_TS, log_q_TS, unknown_penalty_TS)

"""Importance sampling, the paper's estimator: draw annotations from the proposal q(z | x) and weight them by p / q.

    log p̂(x) = logsumexp_s(log p(x, z_s) − log q(z_s | x)) − log S

p and q are densities over the same variables: the start, the entity and the end of each mention; both sum over the
facts that lead to an entity. Each sample has its own random stream, so samples do not depend on the block size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from kglm.errors import DataError
from kglm.marginal.draws import draw_columns, draw_related
from kglm.marginal.prepared_text import PreparedText
from kglm.marginal.windows import HiddenWindows, LatentWindows
from kglm.model.arrays import Floats, Ints
from kglm.model.histories import CONTINUE, FIRST, NONE, Histories
from kglm.model.latent import TextLatent
from kglm.model.proposal import Proposal
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
) -> LatentWindows:
    """Score tables of the proposal for the text; with `peek`, it sees the word it labels."""
    for what, of in (
        ("vocabulary", lambda model: len(model.words)),
        ("graph", lambda model: (len(model.entities.row_N), len(model.entities.relation_RD))),
    ):
        if of(proposal) != of(prepared.model):
            raise DataError(f"the proposal has another {what} than the model", remedy="train both on the same data")
    hidden = HiddenWindows(proposal, prepared.text, ahead=int(peek), length=prepared.hidden.length)
    return LatentWindows(proposal, hidden, prepared.cues, prepared.text, temperature=temperature)


def draw(
    prepared: PreparedText, proposal: LatentWindows, samples: int, *, block: int, seed: int, penalty: float = 0.0
) -> Iterator[Drawn]:
    """Draw all samples along the whole text, in blocks. `penalty` is the extra cost of unknown words."""
    for sampler in samplers(prepared, proposal, samples, block=block, seed=seed, penalty=penalty):
        windows = [sampler.read(stop) for stop in prepared.hidden.ends()] or [sampler.read(0)]
        yield Drawn(*(np.concatenate([getattr(each, name.name) for each in windows]) for name in fields(Drawn)))


def samplers(
    prepared: PreparedText, proposal: LatentWindows, samples: int, *, block: int, seed: int, penalty: float = 0.0
) -> list[Sampler]:
    """Samplers of all samples, in blocks."""
    blocks = [range(start, min(start + block, samples)) for start in range(0, samples, block)]
    return [Sampler(prepared, proposal, numbers, seed=seed, penalty=penalty) for numbers in blocks]


class _Uniform:
    """Random numbers of one sample: `random((5, length))` of its generator, read in windows."""

    def __init__(self, seed: int, number: int, length: int) -> None:
        self._generators = []
        for row in range(5):
            bits = np.random.PCG64(np.random.SeedSequence([seed, number]))
            self._generators.append(np.random.Generator(bits.advance(row * length)))

    def read(self, count: int) -> Floats:
        return np.stack([generator.random(count) for generator in self._generators])


class Sampler:
    """Draws some samples along a text, one window after the other."""

    def __init__(
        self, prepared: PreparedText, proposal: LatentWindows, numbers: range, *, seed: int, penalty: float = 0.0
    ) -> None:
        self._prepared, self._proposal, self._penalty = prepared, proposal, penalty
        self._uniform = [_Uniform(seed, number, len(prepared)) for number in numbers]
        self._histories = prepared.histories(len(numbers))
        self._t = 0

    def read(self, stop: int) -> Drawn:
        """Draw the latent variables up to position `stop`, which is not beyond the end of the window."""
        start, self._t = self._t, stop
        count, length = len(self._uniform), stop - start
        uniform_5TS = np.stack([each.read(length) for each in self._uniform], -1)
        z_TS = np.full((length, count), -2)
        node_TS, begun_TS = np.full((length, count), -1), np.full((length, count), -1)
        log_p_TS, log_q_TS = np.empty((length, count)), np.empty((length, count))
        if not length:
            return Drawn(z_TS, log_p_TS, log_q_TS, log_p_TS)
        latent, proposal, histories = self._prepared.latent.at(start), self._proposal.at(start), self._histories
        likely = proposal.types.likely_starts(LIKELY / count)
        latent.new_entities.prepare(likely)
        proposal.new_entities.prepare(likely)
        for row, t in enumerate(range(start, stop)):
            uniform_5S = uniform_5TS[:, row]
            type_p, type_q = histories.types(t, latent, proposal)
            type_S = draw_columns(np.exp(type_q), uniform_5S[FOR_TYPE])
            column_S = np.where(type_S == Type.CONTINUE, CONTINUE, NONE)
            rows = np.arange(count)
            log_p_TS[row], log_q_TS[row] = type_p[rows, type_S], type_q[rows, type_S]
            z_TS[row, type_S == Type.CONTINUE] = -1
            starting = np.flatnonzero((type_S == Type.NEW) | (type_S == Type.RELATED))
            nodes: list[int] = []
            if len(starting):
                of_S = _draw_entities(t, type_S, histories, proposal, uniform_5S)
                nodes = sorted(set(of_S[starting].tolist()))
                place_S = np.searchsorted(nodes, of_S[starting])
                few = histories.select(starting)
                at = np.arange(len(starting))
                models = [(latent, type_p[starting]), (proposal, type_q[starting])]
                start_p, start_q = few.starts(t, nodes, *models)
                log_p_TS[row, starting], log_q_TS[row, starting] = start_p[at, place_S], start_q[at, place_S]
                column_S[starting] = FIRST + place_S
                z_TS[row, starting] = of_S[starting]
            histories.advance(t, column_S, nodes)
            node_TS[row], begun_TS[row] = histories.running_S, histories.begun_S
        word_TS, unknown_penalty_TS = self._prepared.words.of(start, node_TS, begun_TS, self._penalty)
        return Drawn(z_TS, log_p_TS + word_TS, log_q_TS, unknown_penalty_TS)


def _draw_entities(t: int, type_S: Ints, histories: Histories, proposal: TextLatent, uniform_5S: Floats) -> Ints:
    """Draw the entity of each sample in which a mention starts; -1 for the others."""
    of_S = np.full(len(type_S), -1)
    fresh, related = np.flatnonzero(type_S == Type.NEW), np.flatnonzero(type_S == Type.RELATED)
    of_S[fresh] = proposal.new_entities.draw(t, uniform_5S[FOR_NEW, fresh])
    if len(related):
        uniform_3S = uniform_5S[FOR_PARENT:, related]
        of_S[related] = draw_related(t, histories.select(related), proposal, uniform_3S)
    return of_S

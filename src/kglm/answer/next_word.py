"""The distribution of the next word, with the reasons for each: by enumeration, not by sampling.

    p(x_t) = p(none) p(x_t | none) + p(continue) p(x_t | e)
             + Σ_e p(new, e) p(x_t | e) + Σ_(p,r,e) p(related, p, r, e) p(x_t | e)

Every term is a way to come to the word; a word's reasons are its terms. Where a text has several histories, their
distributions are averaged by weight. Two kinds of ways are cut off, and their probability is named as the rest: new
entities beyond the most probable, and facts beyond the most probable.

Legend: K histories, C slots (entities mentioned), P ways, U speakers: distinct (entity, words of its mention so far), V
vocabulary, J alias slots, W words: the vocabulary and those that are only copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch

from kglm.answer.reading import Reading
from kglm.errors import ConfigError
from kglm.model.annotation import Type
from kglm.model.chunk import FIRST_WORD, LATER_WORD
from kglm.model.text_scores import Floats, Ints, array


@dataclass(frozen=True)
class NextWordConfig:
    """How much is enumerated."""

    max_new: int = 64
    """New entities; the rest of their probability is lumped."""
    max_related: int = 256
    """Entities that facts of the mentioned ones lead to; the rest is lumped."""

    def __post_init__(self) -> None:
        if self.max_new < 0 or self.max_related < 0:
            raise ConfigError(f"{min(self.max_new, self.max_related)} entities", remedy="give at least 0")


class Derivation(NamedTuple):
    """A way to come to a word, and how much of the word's probability comes by it. Nodes and relations are numbers."""

    p: float
    type: Type
    entity: int = -1
    parent: int = -1
    relation: int = -1
    copied: bool = False
    """Whether the word is a copy of one in a name, or generated."""


class Ways(NamedTuple):
    """Ways to come to a speaker, with their probabilities."""

    type_P: Ints
    speaker_P: Ints
    parent_P: Ints
    relation_P: Ints
    mass_P: Floats


@dataclass(frozen=True, eq=False)
class NextWords:
    """p(x_t) of every word, and what it consists of."""

    words: Sequence[str]
    """The vocabulary, then the words that can only be copied."""
    p_W: Floats
    rest: dict[str, float]
    """What was not enumerated: `new`, `related`. Together with `p_W` it sums to 1."""
    ways: Ways
    nodes_U: Sequence[int]
    plain_V: Floats
    """p(none) p(x | none)."""
    generated_UV: torch.Tensor
    """log p of generating each word, given the speaker."""
    copied: dict[str, dict[int, float]]
    """For each word, p of copying it, given the speaker."""

    @cached_property
    def _index(self) -> dict[str, int]:
        return {word: index for index, word in enumerate(self.words)}

    def index(self, word: str) -> int | None:
        """The place of a word, if it can be said."""
        return self._index.get(word)

    def __getitem__(self, word: str) -> float:
        """The probability of a word; 0 for one that cannot be said."""
        index = self._index.get(word)
        return 0.0 if index is None else float(self.p_W[index])

    def top(self, count: int) -> list[tuple[str, float]]:
        """The most probable words; ties in the order of the vocabulary."""
        count = min(count, len(self.words))
        best = np.argpartition(-self.p_W, count - 1)[:count] if count else np.empty(0, np.int64)
        order = best[np.lexsort((best, -self.p_W[best]))]
        return [(self.words[index], float(self.p_W[index])) for index in order.tolist()]

    def derivations(self, word: str) -> list[Derivation]:
        """All ways to a word, the most probable first; they sum to its probability."""
        index = self._index.get(word)
        if index is None:
            return []
        found = []
        if index < len(self.plain_V):
            found.append(Derivation(float(self.plain_V[index]), Type.NONE))
            generated_U = np.exp(array(self.generated_UV[:, index]))
            found += self._by_way(generated_U, copied=False)
        if word in self.copied:
            copied_U = np.zeros(len(self.nodes_U))
            for speaker, p in self.copied[word].items():
                copied_U[speaker] = p
            found += self._by_way(copied_U, copied=True)
        return sorted(found, key=lambda reason: -reason.p)

    def _by_way(self, p_U: Floats, *, copied: bool) -> Iterator[Derivation]:
        ways = self.ways
        p_P = ways.mass_P * p_U[ways.speaker_P]
        for place in np.flatnonzero(p_P).tolist():
            yield Derivation(
                float(p_P[place]),
                Type(int(ways.type_P[place])),
                self.nodes_U[int(ways.speaker_P[place])],
                int(ways.parent_P[place]),
                int(ways.relation_P[place]),
                copied,
            )


def next_words(reading: Reading, config: NextWordConfig | None = None) -> NextWords:
    """The distribution of the word after a text."""
    with torch.no_grad():
        return _Enumeration(reading, config or NextWordConfig()).result()


class _Enumeration:
    """Collects the ways, speaker by speaker."""

    def __init__(self, reading: Reading, config: NextWordConfig) -> None:
        self._reading = reading
        self._config = config
        self._tables = reading.tables()
        [type_KC] = reading.histories.types(reading.t, self._tables)
        self._p_KC = reading.weight_K[:, None] * np.exp(type_KC)
        self._speakers: dict[tuple[int, tuple[str, ...]], int] = {}
        self._rows: list[tuple[int, int, int, int, float]] = []
        self._rest: dict[str, float] = {}

    def _speaker(self, node: int, said: tuple[str, ...] = ()) -> int:
        return self._speakers.setdefault((node, said), len(self._speakers))

    def _add_continued(self) -> None:
        mass: dict[int, float] = {}
        for k in np.flatnonzero(self._p_KC[:, Type.CONTINUE]).tolist():
            speaker = self._speaker(int(self._reading.histories.running_K[k]), self._reading.said(k))
            mass[speaker] = mass.get(speaker, 0.0) + float(self._p_KC[k, Type.CONTINUE])
        self._rows += [(Type.CONTINUE, speaker, -1, -1, p) for speaker, p in mass.items()]

    def _add_new(self) -> None:
        total = float(self._p_KC[:, Type.NEW].sum())
        nodes, p_N = self._tables.most_probable_new(self._reading.t, self._config.max_new)
        for node, p in zip(nodes.tolist(), (total * p_N).tolist(), strict=True):
            self._rows.append((Type.NEW, self._speaker(node), -1, -1, p))
        self._rest["new"] = max(total * (1 - float(p_N.sum())), 0.0)

    def _add_related(self) -> None:
        self._rest["related"] = 0.0
        related_K = self._p_KC[:, Type.RELATED]
        if not related_K.any():
            return
        histories, t, cast = self._reading.histories, self._reading.t, self._reading.histories.cast
        mass_C = related_K @ np.exp(histories.parents(t, self._tables))
        log_z_C = self._tables.relations_log_z(t, cast.node_C)
        slots, relations, tails, masses = [], [], [], []
        for slot in np.flatnonzero(mass_C).tolist():
            fan = cast.fan(slot)
            mass = mass_C[slot] * np.exp(self._tables.relations(t, fan.relation) - log_z_C[slot])
            slots.append(np.full(len(fan.tail), slot))
            relations.append(np.repeat(fan.relation, fan.size))
            tails.append(fan.tail)
            masses.append(np.repeat(mass, fan.size) * self._tables.tail_shares(t, fan))
        slot_P, relation_P = np.concatenate(slots), np.concatenate(relations)
        tail_P, mass_P = np.concatenate(tails), np.concatenate(masses)
        distinct, which_P = np.unique(tail_P, return_inverse=True)
        mass_N = np.bincount(which_P, mass_P)
        kept = np.zeros(len(distinct), np.bool_)
        kept[np.argsort(-mass_N, kind="stable")[: self._config.max_related]] = True
        for place in np.flatnonzero(kept[which_P]).tolist():
            parent, relation = cast.nodes[int(slot_P[place])], int(relation_P[place])
            speaker = self._speaker(int(tail_P[place]))
            self._rows.append((Type.RELATED, speaker, parent, relation, float(mass_P[place])))
        self._rest["related"] = float(mass_N[~kept].sum())

    def result(self) -> NextWords:
        self._add_continued()
        self._add_related()
        self._add_new()
        reading, model = self._reading, self._reading.model
        h_x_H = model.hidden(reading.h_D).x
        plain_V = float(self._p_KC[:, Type.NONE].sum()) * array(model.plain_words(h_x_H[None])[0].exp())
        *columns, mass = zip(*self._rows, strict=True) if self._rows else ((),) * 5
        kind_P, speaker_P, parent_P, relation_P = (np.array(column, np.int64) for column in columns)
        ways = Ways(kind_P, speaker_P, parent_P, relation_P, np.array(mass, np.float64))
        mass_U = np.bincount(ways.speaker_P, ways.mass_P, len(self._speakers))
        nodes = [node for node, _ in self._speakers]
        generated_UV, copied_UJ = self._spoken(h_x_H, nodes)
        p_V = plain_V + array(torch.from_numpy(mass_U).to(generated_UV) @ generated_UV.exp())
        copied: dict[str, dict[int, float]] = {}
        for speaker, node in enumerate(nodes):
            for slot, word in enumerate(reading.parts.aliases[node].surface):
                if word is not None:
                    known = copied.setdefault(word, {})
                    known[speaker] = known.get(speaker, 0.0) + float(copied_UJ[speaker, slot])
        vocabulary = reading.parts.vocabulary
        extra = {word: place for place, word in enumerate(word for word in copied if word not in vocabulary)}
        p_W = np.concatenate([p_V, np.zeros(len(extra))])
        for word, by_speaker in copied.items():
            place = len(p_V) + extra[word] if word in extra else vocabulary.index[word]
            p_W[place] += sum(mass_U[speaker] * p for speaker, p in by_speaker.items())
        words = (*vocabulary.words, *extra)
        return NextWords(words, p_W, self._rest, ways, nodes, plain_V, generated_UV, copied)

    def _spoken(self, h_x_H: torch.Tensor, nodes: Sequence[int]) -> tuple[torch.Tensor, Floats]:
        """log p of generating each word and p of copying each slot, given each speaker."""
        aliases, device = self._reading.parts.aliases, h_x_H.device
        words = [aliases[node].words_AL for node in nodes]
        alias_UAL = np.stack(words) if words else np.zeros((0, *aliases.shape), np.int64)
        order_UJ = torch.zeros(len(nodes), aliases.slots, dtype=torch.int64)
        for row, (node, said) in enumerate(self._speakers):
            order_UJ[row, aliases[node].next_slots(said)] = LATER_WORD if said else FIRST_WORD
        generated_UV, copied_UJ = self._reading.model.every_word(
            h_x_H,
            torch.tensor(nodes, dtype=torch.int64, device=device),
            torch.from_numpy(alias_UAL).to(device),
            order_UJ.to(device),
        )
        return generated_UV, array(copied_UJ.exp())

"""The distribution of the next word, and the explanations of each word: by enumeration, not by sampling.

    p(x_t) = (p(none) + Σ_(p,r) p(related, p, r missing)) p(x_t | none) + p(continue) p(x_t | e)
             + Σ_e p(new, e) p(x_t | e) + Σ_(p,r,e) p(related, p, r, e) p(x_t | e)

Every term is an explanation of the word. Several histories of a text are averaged by weight. The least probable new
entities and facts are not enumerated; their total probability is reported as the rest. Nor are the facts of a relation
with very many tails (`max_tails`): among n tails that are not scored each has the probability 1/n, so a single one says
nothing, and the whole relation, Σ_e p(related, p, r, e) = p(related) p(p) p(r | p), belongs to the rest. Missing facts
beyond the most probable ones (`max_missing`) are explained as plain words of no fact.

Letters: see `kglm.model`. Here U are distinct mentions (an entity, and the words of its mention so far), W
explanations, and N words: the vocabulary, then words that can only be copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import torch

from kglm.answer.reading import Reading
from kglm.errors import ConfigError
from kglm.model.arrays import Bools, Floats, Ints, array
from kglm.model.chunk import FIRST_WORD, LATER_WORD
from kglm.model.types import Type

TYPES = tuple(Type)
MAX_TAILS = 10_000
"""Tails of one relation up to which its facts are enumerated."""

ODDS = 0.15
"""Least ratio of the probability that a fact is missing to that of all facts, if the answer is that one is missing.

Below 1, because training hides only a fifth of the facts; chosen on the development half of `benchmarks/missing.py`."""


@dataclass(frozen=True)
class NextWordConfig:
    """Limits of the enumeration."""

    max_new: int = 64
    """New entities."""
    max_related: int = 256
    """Entities that facts of mentioned entities lead to."""
    max_tails: int = MAX_TAILS
    """Tails of one relation of a mentioned entity; facts of a relation with more are not enumerated."""
    max_missing: int = 32
    """Missing facts that are listed."""

    def __post_init__(self) -> None:
        least = min(self.max_new, self.max_related, self.max_tails, self.max_missing)
        if least < 0:
            raise ConfigError(f"{least} entities", remedy="give at least 0")


class Derivation(NamedTuple):
    """An explanation of a word, and its part of the word's probability. Nodes and relations are numbers.

    The type `none` with a parent and a relation is a plain word where the text asks for this fact, which is missing.
    """

    p: float
    type: Type
    entity: int = -1
    parent: int = -1
    relation: int = -1
    copied: bool | None = False
    """True if the word is copied from a name, False if it is generated; None if it explains more than one word."""


class MissingFact(NamedTuple):
    """The text asks for a relation that the parent lacks in the graph, with this probability."""

    p: float
    parent: int
    relation: int


class Explanations(NamedTuple):
    """Latent variables that can produce the next word, with their probabilities."""

    type_W: Ints
    mention_W: Ints
    parent_W: Ints
    relation_W: Ints
    mass_W: Floats


class FactMass(NamedTuple):
    """A fact by node numbers, and the probability that the next word comes from it."""

    p: float
    parent: int
    relation: int
    entity: int


class Distribution(Protocol):
    """A distribution of the next word."""

    @property
    def missing(self) -> Sequence[MissingFact]:
        """Facts that the text asks for and the graph lacks, the most probable first."""
        ...

    @property
    def p_facts(self) -> float:
        """Probability that a fact of the graph leads to the next word."""
        ...

    @property
    def missing_odds(self) -> float:
        """Least ratio of the probability that a fact is missing to `p_facts` if the answer is that one is missing."""
        ...

    @property
    def rest(self) -> dict[str, float]:
        """Probability of what was not enumerated: `new`, `related`."""
        ...

    def top(self, count: int) -> list[tuple[str, float]]:
        """The most probable words."""
        ...

    def derivations(self, word: str) -> list[Derivation]:
        """All explanations of a word, the most probable first."""
        ...

    def facts(self) -> list[FactMass]:
        """The facts that lead to the next word, the most probable first."""
        ...


@dataclass(frozen=True, eq=False)
class NextWords:
    """p(x_t) of every word, and its explanations."""

    words: Sequence[str]
    """The vocabulary, then words that can only be copied."""
    p_N: Floats
    rest: dict[str, float]
    """Probability of what was not enumerated: `new`, `related`. Together with `p_N` it sums to 1."""
    explanations: Explanations
    nodes_U: Sequence[int]
    said_U: Sequence[tuple[str, ...]]
    """Words of the mention so far; none if it begins now."""
    plain_V: Floats
    """p(x and no mention)."""
    generated_UV: torch.Tensor
    """log p of generating each word, given the mention."""
    copied: dict[str, dict[int, float]]
    """For each word, p of copying it, given the mention."""
    missing: tuple[MissingFact, ...] = ()
    """Facts that the text asks for and the graph lacks, the most probable first; their words are plain words."""
    p_plain: float = 1.0
    """p(no mention), with all missing facts."""

    @property
    def missing_odds(self) -> float:
        """See `ODDS`."""
        return ODDS

    @property
    def p_facts(self) -> float:
        """Probability that a fact of the graph leads to the next word."""
        reasons = self.explanations
        return float(reasons.mass_W[reasons.type_W == Type.RELATED].sum()) + self.rest["related"]

    def facts(self) -> list[FactMass]:
        """The facts that lead to the next word, the most probable first."""
        reasons = self.explanations
        related_W = np.flatnonzero(reasons.type_W == Type.RELATED)
        order = related_W[np.argsort(-reasons.mass_W[related_W], kind="stable")]
        columns = (
            column[order].tolist()
            for column in (reasons.mass_W, reasons.parent_W, reasons.relation_W, reasons.mention_W)
        )
        return [
            FactMass(p, parent, relation, int(self.nodes_U[mention]))
            for p, parent, relation, mention in zip(*columns, strict=True)
        ]

    @cached_property
    def _index(self) -> dict[str, int]:
        return {word: index for index, word in enumerate(self.words)}

    def index(self, word: str) -> int | None:
        """Index of a word; None if it has probability 0."""
        return self._index.get(word)

    def __getitem__(self, word: str) -> float:
        """Probability of a word."""
        index = self._index.get(word)
        return 0.0 if index is None else float(self.p_N[index])

    def top(self, count: int) -> list[tuple[str, float]]:
        """The most probable words; ties in the order of the vocabulary."""
        return [(self.words[index], float(self.p_N[index])) for index in most_probable(self.p_N, count).tolist()]

    def derivations(self, word: str) -> list[Derivation]:
        """All explanations of a word, the most probable first; they sum to its probability."""
        index = self._index.get(word)
        if index is None:
            return []
        found = []
        if index < len(self.plain_V):
            plain, shares = float(self.plain_V[index]), [(m.p / self.p_plain, m) for m in self.missing]
            found.append(Derivation(plain * max(1 - sum(share for share, _ in shares), 0.0), Type.NONE))
            found += [Derivation(plain * share, Type.NONE, -1, m.parent, m.relation) for share, m in shares]
            generated_U = np.exp(array(self.generated_UV[:, index]))
            found += self._explained(generated_U, copied=False)
        if word in self.copied:
            copied_U = np.zeros(len(self.nodes_U))
            for mention, p in self.copied[word].items():
                copied_U[mention] = p
            found += self._explained(copied_U, copied=True)
        return sorted(found, key=lambda reason: -reason.p)

    def _explained(self, p_U: Floats, *, copied: bool) -> Iterator[Derivation]:
        each = self.explanations
        p_W = each.mass_W * p_U[each.mention_W]
        at = np.flatnonzero(p_W)
        columns = (p_W, each.type_W, each.mention_W, each.parent_W, each.relation_W)
        for p, kind, mention, parent, relation in zip(*(column[at].tolist() for column in columns), strict=True):
            yield Derivation(p, TYPES[kind], self.nodes_U[mention], parent, relation, copied)


def next_words(reading: Reading, config: NextWordConfig | None = None) -> NextWords:
    """Distribution of the word after a text."""
    with torch.no_grad():
        return _Enumeration(reading, config or NextWordConfig()).result()


class _Enumeration:
    """Collects the explanations."""

    def __init__(self, reading: Reading, config: NextWordConfig) -> None:
        self._reading = reading
        self._config = config
        self._latent = reading.latent
        [type_SC] = reading.histories.types(reading.t, self._latent)
        self._p_SC = reading.weight_S[:, None] * np.exp(type_SC)
        self._mentions: dict[tuple[int, tuple[str, ...]], int] = {}
        self._rows: list[tuple[int, int, int, int, float]] = []
        self._rest: dict[str, float] = {}

    def _mention(self, node: int, words: tuple[str, ...] = ()) -> int:
        return self._mentions.setdefault((node, words), len(self._mentions))

    def _add_continued(self) -> None:
        mass: dict[int, float] = {}
        for s in np.flatnonzero(self._p_SC[:, Type.CONTINUE]).tolist():
            mention = self._mention(int(self._reading.histories.running_S[s]), self._reading.running_words(s))
            mass[mention] = mass.get(mention, 0.0) + float(self._p_SC[s, Type.CONTINUE])
        self._rows += [(Type.CONTINUE, mention, -1, -1, p) for mention, p in mass.items()]

    def _add_new(self) -> None:
        total = float(self._p_SC[:, Type.NEW].sum())
        nodes, p_N = self._latent.new_entities.most_probable(self._reading.t, self._config.max_new)
        for node, p in zip(nodes.tolist(), (total * p_N).tolist(), strict=True):
            self._rows.append((Type.NEW, self._mention(node), -1, -1, p))
        self._rest["new"] = max(total * (1 - float(p_N.sum())), 0.0)

    def _add_related(self) -> None:
        self._rest["related"] = 0.0
        related_S = self._p_SC[:, Type.RELATED]
        if not related_S.any():
            return
        histories, t, mentioned = self._reading.histories, self._reading.t, self._reading.histories.mentioned
        mass_P = related_S @ np.exp(histories.parents(t, self._latent))
        log_z_P = self._latent.relations.log_z(t, mentioned.node_P)
        slots, relations, tails, masses = [], [], [], []
        unlisted = 0.0
        for slot in np.flatnonzero(mass_P).tolist():
            edges = mentioned.edges(slot)
            mass_R = mass_P[slot] * np.exp(self._latent.relations.log_probs(t, edges.relation, log_z_P[slot]))
            few_R = edges.size <= self._config.max_tails
            unlisted += float(mass_R[~few_R].sum())
            edges, mass_R = edges.with_at_most(self._config.max_tails), mass_R[few_R]
            slots.append(np.full(len(edges.tail), slot))
            relations.append(np.repeat(edges.relation, edges.size))
            tails.append(edges.tail)
            masses.append(np.repeat(mass_R, edges.size) * self._latent.tails.of_edges(t, edges))
        slot_W, relation_W = np.concatenate(slots), np.concatenate(relations)
        tail_W, mass_W = np.concatenate(tails), np.concatenate(masses)
        _, which_W = np.unique(tail_W, return_inverse=True)
        mass_N: Floats = np.bincount(which_W, mass_W).astype(np.float64, copy=False)
        kept = _largest(mass_N, self._config.max_related)
        for place in np.flatnonzero(kept[which_W]).tolist():
            parent, relation = mentioned.nodes[int(slot_W[place])], int(relation_W[place])
            mention = self._mention(int(tail_W[place]))
            self._rows.append((Type.RELATED, mention, parent, relation, float(mass_W[place])))
        self._rest["related"] = unlisted + float(mass_N[~kept].sum())

    def _missing(self) -> tuple[MissingFact, ...]:
        """The most probable missing facts."""
        latent, histories, t = self._latent, self._reading.histories, self._reading.t
        if latent.missing is None or not self._p_SC[:, Type.RELATED].any():
            return ()
        mass_P, limit = self._reading.weight_S @ histories.missing(t, latent), self._config.max_missing
        slots = np.flatnonzero(_largest(mass_P, limit) & (mass_P > 0)).tolist()
        nodes = [histories.mentioned.nodes[slot] for slot in slots]
        found: list[MissingFact] = []
        for node, mass in zip(nodes, mass_P[slots].tolist(), strict=True):
            mass_R = mass * latent.missing.of_parent(t, node)
            relations = np.flatnonzero(_largest(mass_R, limit) & (mass_R > 0)).tolist()
            found += [MissingFact(float(mass_R[relation]), node, relation) for relation in relations]
        return tuple(sorted(found, key=lambda fact: -fact.p)[:limit])

    def result(self) -> NextWords:
        self._add_continued()
        self._add_related()
        self._add_new()
        reading, model = self._reading, self._reading.model
        h_x_H = model.hidden(reading.h_D).x
        p_plain = float(self._p_SC[:, Type.NONE].sum())
        plain_V = p_plain * array(model.plain_words(h_x_H[None])[0].exp())
        *columns, mass = zip(*self._rows, strict=True) if self._rows else ((),) * 5
        kind_W, mention_W, parent_W, relation_W = (np.array(column, np.int64) for column in columns)
        explanations = Explanations(kind_W, mention_W, parent_W, relation_W, np.array(mass, np.float64))
        mass_U = np.bincount(explanations.mention_W, explanations.mass_W, len(self._mentions))
        nodes, said = [node for node, _ in self._mentions], [words for _, words in self._mentions]
        generated_UV, copied_UJ = self._word_probabilities(h_x_H, nodes)
        p_V = plain_V + array(torch.from_numpy(mass_U).to(generated_UV) @ generated_UV.exp())
        copied: dict[str, dict[int, float]] = {}
        for mention, (node, p_J) in enumerate(zip(nodes, copied_UJ.tolist(), strict=True)):
            for word, p in zip(reading.components.features.aliases[node].surface, p_J, strict=False):
                if word is not None:
                    copy_probs = copied.setdefault(word, {})
                    copy_probs[mention] = copy_probs.get(mention, 0.0) + p
        vocabulary = reading.components.vocabulary
        extra = {word: place for place, word in enumerate(word for word in copied if word not in vocabulary)}
        p_N = np.concatenate([p_V, np.zeros(len(extra))])
        for word, by_mention in copied.items():
            place = len(p_V) + extra[word] if word in extra else vocabulary.index[word]
            p_N[place] += sum(mass_U[mention] * p for mention, p in by_mention.items())
        words = (*vocabulary.words, *extra)
        missing = self._missing()
        return NextWords(
            words, p_N, self._rest, explanations, nodes, said, plain_V, generated_UV, copied, missing, p_plain
        )

    def _word_probabilities(self, h_x_H: torch.Tensor, nodes: Sequence[int]) -> tuple[torch.Tensor, Floats]:
        """log p of generating each word and p of copying each alias slot, given each mention."""
        aliases, device = self._reading.components.features.aliases, h_x_H.device
        alias_UAL = aliases.stack(nodes)
        order_UJ = np.zeros((len(nodes), alias_UAL.shape[1] * alias_UAL.shape[2]), np.int64)
        for row, (node, words) in enumerate(self._mentions):
            order_UJ[row, aliases[node].next_slots(words)] = LATER_WORD if words else FIRST_WORD
        generated_UV, copied_UJ = self._reading.model.every_word(
            h_x_H,
            torch.tensor(nodes, dtype=torch.int64, device=device),
            torch.from_numpy(alias_UAL).to(device),
            torch.from_numpy(order_UJ).to(device),
        )
        return generated_UV, array(copied_UJ.exp())


def most_probable(p_N: Floats, count: int) -> Ints:
    """Indices of the `count` largest values, the largest first; without sorting all of them."""
    count = min(count, len(p_N))
    best = np.argpartition(-p_N, count - 1)[:count] if count else np.empty(0, np.int64)
    order: Ints = best[np.lexsort((best, -p_N[best]))]
    return order


def _largest(mass_N: Floats, count: int) -> Bools:
    """Mask of the `count` largest values, the first of equals; without sorting all of them."""
    if count >= len(mass_N):
        return np.ones(len(mass_N), np.bool_)
    if count == 0:
        return np.zeros(len(mass_N), np.bool_)
    least = np.partition(mass_N, len(mass_N) - count)[len(mass_N) - count]
    kept: Bools = mass_N > least
    kept[np.flatnonzero(mass_N == least)[: count - int(kept.sum())]] = True
    return kept

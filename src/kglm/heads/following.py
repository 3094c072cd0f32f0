"""The distribution of the next subword, and the facts that can be said next.

    p(s) = c p_B(s) + p(begun) p(s | a name that has begun goes on)
           + Σ_m p(m, continue) p(s | m) + Σ_(p, r, e) p(p, r, e) p(s | e)

over the running mentions m and the facts of the local graph, with

    p(p, r, e) = p(related) π(p) π(r | p) π(e | p, r),
    c = p(plain) + p(related) Σ_p π(p) (mass of the relations that p lacks, and of those with very many tails).

All terms together sum to 1.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from kglm.heads.model import Type
from kglm.heads.reading import Reading
from kglm.heads.scoring import Fact, Running, State
from kglm.heads.tails import TailGroup, is_scored
from kglm.model.arrays import Floats, Ints, array
from kglm.model.logsums import segment_logsumexp

SURE = 0.9
"""p(related) from which even fluent text takes a fact."""


class MissingMass(NamedTuple):
    """The text asks for a relation that the parent lacks in the graph; p is part of p(related)."""

    p: float
    parent: int
    relation: int


class FactMasses(NamedTuple):
    """Facts that can be said next, with their probabilities."""

    p_F: Floats
    parent_F: Ints
    relation_F: Ints
    tail_F: Ints


class Derivation(NamedTuple):
    """A way to a subword, its part of the subword's probability, and the running mention after it."""

    p: float
    kind: Type
    after: State
    before: State = None
    parent: int = -1
    relation: int = -1


class Claims(NamedTuple):
    """Subwords that begin a name, a date or a number, the factor of their probabilities, and that of all others."""

    mask_V: Tensor
    factor: float
    others: float


_NO_FACTS = FactMasses(np.zeros(0), *(np.zeros(0, np.int64) for _ in range(3)))


class _FirstSubwords(NamedTuple):
    """Distinct tails of the facts, and the first subwords of their names."""

    node_U: Ints
    mass_U: Floats
    owner_Y: Ints
    subword_Y: Ints
    p_Y: Floats


@dataclass(frozen=True, eq=False)
class Following:
    """What can follow a text."""

    reading: Reading
    plain: float
    """c: probability of a subword of the base."""
    related: float
    """p(related), missing and very large relations included."""
    begun: float
    """Probability that a name that the base has begun goes on by the graph's names."""
    running: list[tuple[Running, float]]
    """Running mentions, each with the probability that it goes on."""
    facts: FactMasses
    claims: Claims | None = None
    """Factors of the base's subwords in fluent text (see `in_text`)."""

    @classmethod
    def of(cls, reading: Reading) -> Following:
        """Enumerate what can follow."""
        scores = reading.scores
        plain = related = begun = 0.0
        running: list[tuple[Running, float]] = []
        for state, weight in reading.weights.items():
            p_3 = scores.types(0, state)
            plain += weight * float(p_3[Type.PLAIN])
            related += weight * float(p_3[Type.RELATED])
            if state is None:
                begun += weight * float(p_3[Type.CONTINUE])
            elif p_3[Type.CONTINUE] > 0:
                running.append((state, weight * float(p_3[Type.CONTINUE])))
        plain += related * float(scores.plain_share_T[0])
        return cls(reading, plain, related, begun, running, _fact_masses(reading, related))

    def in_text(self, claim_V: Tensor, trust: float, said: Collection[int] = ()) -> Following:
        """What can follow in fluent text: the base decides whether a claim is made here, the graph which one.

        Claims are the subwords of the base that begin a name, a date or a number. With C their probability, and F that
        of the facts whose names begin so, F / (F + C) of the base's own probability of a claim goes to the facts,
        `trust` added to its log odds. Facts that lead to an entity of `said`, or to a name in small letters, are left
        out. Where the text asks for a fact with a probability of at least `SURE`, nothing is changed.
        """
        facts = self.facts
        if self.related >= SURE and trust > -math.inf:
            return self
        if len(facts.p_F):
            first = self._first
            owner_Y = first.owner_Y[claim_V.numpy()[first.subword_Y]]
            tails = set(first.node_U[owner_Y].tolist()).difference(said)
            facts = FactMasses(*(column[np.isin(facts.tail_F, list(tails))] for column in facts))
        outside_V, base_V = self.outside_V, self.reading.log_p_V.exp()
        p_facts, p_claims = float(facts.p_F.sum()), float(outside_V[claim_V].sum())
        total = float(outside_V.sum()) + float(self.facts.p_F.sum())
        claimed = float(base_V[claim_V].sum())
        share = 1 / (1 + p_claims / p_facts * math.exp(-trust)) if p_facts and trust > -math.inf else 0.0
        facts = facts._replace(p_F=facts.p_F * (total * claimed * share / p_facts)) if share else _NO_FACTS
        plain = total * (1 - claimed) / max(float(outside_V.sum()) - p_claims, 1e-30)
        claims = Claims(claim_V, total * claimed * (1 - share) / max(p_claims, 1e-30), plain)
        return replace(self, facts=facts, claims=claims)

    # Facts

    @property
    def missing(self) -> list[MissingMass]:
        """Relations that the linked entities lack, the most probable first."""
        return self._relations_of_base(lacking=True)

    @property
    def large(self) -> list[MissingMass]:
        """Relations with very many tails, which are not enumerated."""
        return self._relations_of_base(lacking=False)

    def _relations_of_base(self, *, lacking: bool, most: int = 16, least: float = 1e-6) -> list[MissingMass]:
        scores, linked = self.reading.scores, self.reading.linked
        found = []
        if lacking and not scores.heads.config.missing:
            return []
        for slot, parent in enumerate(linked.local.mentioned.nodes):
            p = self.related * float(scores.parent_TP[0, slot])
            if p < least:
                continue
            score_R = scores.relation_TR[0] - scores.log_z_TP[0, slot]
            if lacking:
                mass_R = p * np.exp(score_R + scores.handicap_T[0] + scores.lacking_PR[slot])
            else:
                mass_R = np.where(array(linked.large_PR[slot] == 1), p * np.exp(score_R), 0.0)
            best = np.argsort(-mass_R, kind="stable")[:most]
            found += [MissingMass(float(mass_R[r]), parent, int(r)) for r in best.tolist() if mass_R[r] >= least]
        return sorted(found, key=lambda each: -each.p)

    @cached_property
    def p_facts(self) -> float:
        """Probability that a fact of the graph is said next, or the name of one goes on."""
        return float(self.facts.p_F.sum()) + sum(p for _, p in self.running)

    @cached_property
    def _first(self) -> _FirstSubwords:
        names = self.reading.reader.tables.names
        node_U, which_F = np.unique(self.facts.tail_F, return_inverse=True)
        mass_U = np.bincount(which_F, self.facts.p_F, len(node_U)).astype(np.float64)
        children = [names.children(int(node), ()).kinds for node in node_U]
        owner_Y = np.repeat(np.arange(len(node_U)), [len(each) for each in children])
        subword_Y = np.array([subword for each in children for subword in each], np.int64)
        kind_Y = torch.tensor([int(kind) for each in children for kind in each.values()], dtype=torch.int64)
        with torch.no_grad():
            base_Y = self.reading.log_p_V[torch.from_numpy(subword_Y)]
            score_Y = self.reading.scores.heads.name_scores(base_Y, kind_Y)
            owner = torch.from_numpy(owner_Y)
            log_p_Y = score_Y - segment_logsumexp(score_Y, owner, len(node_U))[owner]
        return _FirstSubwords(node_U, mass_U, owner_Y, subword_Y, array(log_p_Y.exp()))

    def first_subwords(self, node: int) -> dict[int, float]:
        """p(first subword | e) of an entity that can be said next."""
        first = self._first
        at = first.owner_Y == int(np.searchsorted(first.node_U, node))
        return dict(zip(first.subword_Y[at].tolist(), first.p_Y[at].tolist(), strict=True))

    def facts_of(self, node: int) -> list[Fact]:
        """The facts that lead to an entity, the most probable first."""
        facts = self.facts
        at = np.flatnonzero(facts.tail_F == node)
        found = [Fact(float(facts.p_F[k]), int(facts.parent_F[k]), int(facts.relation_F[k]), node) for k in at.tolist()]
        return sorted(found, key=lambda fact: -fact.p)

    def next_of(self, running: Running) -> dict[int, float]:
        """p(next subword | the running mention goes on)."""
        return self.reading.scores.name_probs(0, self.reading.reader.tables.names.children(*running))

    @cached_property
    def begun_next(self) -> dict[int, float]:
        """p(next subword | a name that the base has begun goes on)."""
        return self.reading.scores.begun_probs(0) if self.begun else {}

    # Subwords

    @cached_property
    def outside_V(self) -> Tensor:
        """p(s, no mention): words of the base, and names that it has begun."""
        p_V = self.plain * self.reading.log_p_V.exp()
        for subword, p in self.begun_next.items():
            p_V[subword] += self.begun * p
        if self.claims is not None:
            p_V = p_V * torch.where(self.claims.mask_V, self.claims.factor, self.claims.others)
        return p_V

    @cached_property
    def p_V(self) -> Tensor:
        """p(s) of each subword."""
        p_V = self.outside_V.clone()
        for running, p in self.running:
            for subword, share in self.next_of(running).items():
                p_V[subword] += p * share
        if len(self.facts.p_F):
            first = self._first
            mass_Y = torch.from_numpy(first.mass_U[first.owner_Y] * first.p_Y).to(p_V.dtype)
            p_V.index_add_(0, torch.from_numpy(first.subword_Y), mass_Y)
        return p_V

    def derivations(self, subword: int) -> list[Derivation]:
        """The ways to a subword, the most probable first; they sum to its probability."""
        found = [Derivation(float(self.outside_V[subword]), Type.PLAIN, None)]
        for running, p in self.running:
            if share := self.next_of(running).get(subword):
                after = Running(running.node, (*running.prefix, subword))
                found.append(Derivation(p * share, Type.CONTINUE, after, running))
        if len(self.facts.p_F):
            first, facts = self._first, self.facts
            share_of = {
                int(first.node_U[first.owner_Y[y]]): float(first.p_Y[y])
                for y in np.flatnonzero(first.subword_Y == subword).tolist()
            }
            for k in np.flatnonzero(np.isin(facts.tail_F, list(share_of))).tolist():
                tail = int(facts.tail_F[k])
                p, after = float(facts.p_F[k]) * share_of[tail], Running(tail, (subword,))
                found.append(Derivation(p, Type.RELATED, after, None, int(facts.parent_F[k]), int(facts.relation_F[k])))
        return sorted((each for each in found if each.p > 0), key=lambda each: -each.p)


def _fact_masses(reading: Reading, related: float) -> FactMasses:
    """All facts of the local graph with p(related) π(p) π(r | p) π(e | p, r)."""
    scores = reading.scores
    if not related:
        return _NO_FACTS
    rows = list(_relation_masses(reading, related))
    groups = [
        TailGroup(0, row.parent, row.relation) for row in rows if row.p >= reading.reader.least_scored and row.scored
    ]
    scores.score_tails(groups)
    scored = set(groups)
    p, parents, relations, tails = [], [], [], []
    for row in rows:
        group = TailGroup(0, row.parent, row.relation)
        if group in scored:
            share = scores.tails[group]
            p.append(row.p * np.array([share[tail] for tail in row.tails.tolist()]))
        else:
            p.append(np.full(len(row.tails), row.p / len(row.tails)))
        parents.append(np.full(len(row.tails), row.parent))
        relations.append(np.full(len(row.tails), row.relation))
        tails.append(row.tails)
    if not p:
        return _NO_FACTS
    return FactMasses(*(np.concatenate(column) for column in (p, parents, relations, tails)))


class _RelationMass(NamedTuple):
    p: float
    parent: int
    relation: int
    tails: Ints

    @property
    def scored(self) -> bool:
        return bool(is_scored(len(self.tails)))


def _relation_masses(reading: Reading, related: float) -> Iterator[_RelationMass]:
    """The relations of the linked entities whose facts are enumerated, each with p(related) π(p) π(r | p)."""
    scores, mentioned = reading.scores, reading.linked.local.mentioned
    for slot, parent in enumerate(mentioned.nodes):
        p = related * float(scores.parent_TP[0, slot])
        if not p:
            continue
        edges = mentioned.edges(slot).with_at_most(scores.prepared.max_tails)
        for relation, first, size in zip(
            edges.relation.tolist(), edges.first.tolist(), edges.size.tolist(), strict=True
        ):
            log_relation = float(scores.relation_TR[0, relation] - scores.log_z_TP[0, slot])
            yield _RelationMass(
                p * math.exp(log_relation), parent, relation, edges.tail[first : first + size].astype(np.int64)
            )

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
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from kglm.heads.model import Type
from kglm.heads.reading import Reading
from kglm.heads.scoring import Fact, Running, State
from kglm.heads.tails import TailGroup
from kglm.kg.tail_features import MAX_TAILS
from kglm.model.arrays import Floats, Ints, array

SURE = 0.9
"""Probability of facts from which even fluent text takes one."""


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
    p_F: Floats
    """Probabilities of the facts of the linked entities, in their order; empty if none can be said."""
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
        p_F = _fact_masses(reading, related) if related else np.zeros(0)
        return cls(reading, plain, related, begun, running, p_F)

    def in_text(self, claim_V: Tensor, trust: float, said: Collection[int] = ()) -> Following:
        """What can follow in fluent text: the base decides whether a claim is made here, the graph which one.

        Claims are the subwords of the base that begin a name, a date or a number. With C their probability, and F that
        of the facts whose names begin so, F / (F + C) of the base's own probability of a claim goes to the facts, with
        `trust` added to its log odds. Facts that lead to an entity of `said`, or to a name in small letters, are left
        out. Where the other facts have a probability of at least `SURE`, they keep it, whatever the base says.
        """
        p_F = self.p_F
        if len(p_F):
            facts = self.reading.linked.facts
            new_U = ~np.isin(facts.node_U, list(said))
            p_F = np.where(new_U[facts.which_F], p_F, 0.0)
            if trust > -math.inf and 0 < p_F.sum() >= SURE:
                return replace(self, p_F=p_F * (self.p_F.sum() / p_F.sum()))
            claims_U = np.bincount(facts.owner_Y, claim_V.numpy()[facts.subword_Y], len(facts.node_U)) > 0
            p_F = np.where(claims_U[facts.which_F], p_F, 0.0)
        outside_V, base_V = self.outside_V, self.reading.log_p_V.exp()
        p_facts, p_claims = float(p_F.sum()), float(outside_V[claim_V].sum())
        total = float(outside_V.sum()) + float(self.p_F.sum())
        claimed = float(base_V[claim_V].sum())
        share = 1 / (1 + p_claims / p_facts * math.exp(-trust)) if p_facts and trust > -math.inf else 0.0
        p_F = p_F * (total * claimed * share / p_facts) if share else np.zeros_like(p_F)
        plain = total * (1 - claimed) / max(float(outside_V.sum()) - p_claims, 1e-30)
        claims = Claims(claim_V, total * claimed * (1 - share) / max(p_claims, 1e-30), plain)
        return replace(self, p_F=p_F, claims=claims)

    # Facts

    @cached_property
    def facts(self) -> FactMasses:
        """The facts that can be said next."""
        facts = self.reading.linked.facts
        at = np.flatnonzero(self.p_F)
        group = facts.group_F[at]
        parent_P = np.array(self.reading.linked.local.mentioned.nodes, np.int64)
        return FactMasses(self.p_F[at], parent_P[facts.slot_G[group]], facts.relation_G[group], facts.tail_F[at])

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
        return float(self.p_F.sum()) + sum(p for _, p in self.running)

    @cached_property
    def _first_Y(self) -> Floats:
        """p(first subword | e) of the tails of the facts, in the order of their first subwords."""
        facts = self.reading.linked.facts
        with torch.no_grad():
            base_Y = self.reading.log_p_V[torch.from_numpy(facts.subword_Y)]
            score_Y = array(self.reading.scores.heads.name_scores(base_Y, facts.kind_Y))
        p_Y = np.exp(score_Y - score_Y.max(initial=-math.inf))
        return np.asarray(p_Y / np.bincount(facts.owner_Y, p_Y, len(facts.node_U))[facts.owner_Y])

    def first_subwords(self, node: int) -> dict[int, float]:
        """p(first subword | e) of an entity that can be said next."""
        facts = self.reading.linked.facts
        at = facts.owner_Y == int(np.flatnonzero(facts.node_U == node)[0])
        return dict(zip(facts.subword_Y[at].tolist(), self._first_Y[at].tolist(), strict=True))

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
        p_V = self.plain * self.reading.base_V
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
        if len(self.p_F):
            facts = self.reading.linked.facts
            mass_U = np.bincount(facts.which_F, self.p_F, len(facts.node_U))
            mass_Y = torch.from_numpy(mass_U[facts.owner_Y] * self._first_Y).to(p_V.dtype)
            p_V.index_add_(0, torch.from_numpy(facts.subword_Y), mass_Y)
        return p_V

    def derivations(self, subword: int) -> list[Derivation]:
        """The ways to a subword, the most probable first; they sum to its probability."""
        found = [Derivation(float(self.outside_V[subword]), Type.PLAIN, None)]
        for running, p in self.running:
            if share := self.next_of(running).get(subword):
                after = Running(running.node, (*running.prefix, subword))
                found.append(Derivation(p * share, Type.CONTINUE, after, running))
        if len(self.p_F):
            facts = self.reading.linked.facts
            said = facts.subword_Y == subword
            share_U = np.bincount(facts.owner_Y[said], self._first_Y[said], len(facts.node_U))
            p_F = self.p_F * share_U[facts.which_F]
            for k in np.flatnonzero(p_F).tolist():
                group, after = int(facts.group_F[k]), Running(int(facts.tail_F[k]), (subword,))
                parent = self.reading.linked.local.mentioned.nodes[int(facts.slot_G[group])]
                way = Derivation(float(p_F[k]), Type.RELATED, after, None, parent, int(facts.relation_G[group]))
                found.append(way)
        return sorted((each for each in found if each.p > 0), key=lambda each: -each.p)


def _fact_masses(reading: Reading, related: float) -> Floats:
    """p(related) π(p) π(r | p) π(e | p, r) of all facts of the local graph."""
    scores, facts, local = reading.scores, reading.linked.facts, reading.linked.local
    log_relation_G = scores.relation_TR[0, facts.relation_G] - scores.log_z_TP[0, facts.slot_G]
    p_G = related * scores.parent_TP[0, facts.slot_G] * np.exp(log_relation_G)
    p_F: Floats = (p_G / facts.size_G)[facts.group_F]
    scored_G = np.flatnonzero((facts.size_G > 1) & (facts.size_G <= MAX_TAILS) & (p_G > 0))
    scored_G = scored_G[p_G[scored_G] >= reading.reader.least_scored]
    groups = [
        TailGroup(0, local.mentioned.nodes[slot], relation)
        for slot, relation in zip(facts.slot_G[scored_G].tolist(), facts.relation_G[scored_G].tolist(), strict=True)
    ]
    scores.score_tails(groups)
    for g, group in zip(scored_G.tolist(), groups, strict=True):
        part = slice(*np.searchsorted(facts.group_F, [g, g + 1]).tolist())
        share = scores.tails[group]
        p_F[part] = p_G[g] * np.array([share[tail] for tail in facts.tail_F[part].tolist()])
    return p_F

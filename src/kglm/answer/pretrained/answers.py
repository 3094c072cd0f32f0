"""Whole answers of a pretrained model: entities with their facts, and plain words of the base.

    p(e) = Σ_(p, r) p(related) π(p) π(r | p) π(e | p, r)  +  p(the mention of e that the text ends with goes on)
    p(x) = p(no mention) p(x | no mention)

As for the LSTM models, a function word ("the", "in") answers nothing by itself: those of the largest probability are
replaced by the answers after them. The first words of all answers give the table of next words; a plain word and the
first word of a name with the same text add up, and so do an entity and plain words that spell its name.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from functools import cached_property
from itertools import count
from typing import NamedTuple

import numpy as np

from kglm.answer.answers import MAX_LEADS, MIN_LEAD, RankedAnswer, merged
from kglm.answer.next_word import Derivation, FactMass, MissingFact
from kglm.answer.pretrained.names import answer_text
from kglm.answer.pretrained.plain import plain_words
from kglm.answer.pretrained.plausible import Plausibility
from kglm.answer.pretrained.steps import Step
from kglm.heads.reading import Reading
from kglm.heads.scoring import Running
from kglm.model.types import Type
from kglm.text.function_words import is_content
from kglm.text.tokenizer import tokenizer

MAX_FACTS = 64
"""Facts of an answer that are listed as reasons."""
MAX_MISSING = 32
ODDS = 1.0
"""The answer is that a fact is missing if that is more probable than all facts of the graph."""
SAME_NAME = 0.25
"""Of two entities that a name may refer to, the one that has the fact is meant if its probability is this share of the
other's: a person who asks for a fact means a thing that has it."""
PLAIN_WORDS = 24
"""Plain words of the table of next words."""
NAMED_TAILS = 64
"""Entities whose first words are in the table of next words."""


class _Entity(NamedTuple):
    """Ways to an entity: after which lead, and the running mention or facts."""

    p: float
    lead: Step
    running: Running | None


class SubwordAnswers:
    """The answers of a text, best first."""

    def __init__(self, reading: Reading) -> None:
        self.start = Step(reading)

    @cached_property
    def leads(self) -> list[Step]:
        """The text itself, and the function words that are replaced by the answers after them."""
        leads, order, queue = [self.start], count(), list[tuple[float, int, Step, int]]()

        def push(lead: Step) -> None:
            for id, p in _function_words(lead):
                heapq.heappush(queue, (-p, next(order), lead, id))

        push(self.start)
        while queue and len(leads) <= MAX_LEADS:
            _, _, lead, id = heapq.heappop(queue)
            leads.append(lead.after(id).as_prompt())
            push(leads[-1])
        return leads

    def top(self, count: int) -> list[RankedAnswer]:
        """The most probable answers; entities before plain words of equal probability."""
        if count == 0:
            return []
        plain = {answer.text: answer for answer in self._plain(count)}
        found = []
        for answer in self.entities(count):
            same = plain.pop(answer.text, None)  # the base says the same name
            found.append(answer if same is None else _together(answer, same))
        return sorted([*found, *plain.values()], key=lambda answer: (-answer.p, answer.node < 0))[:count]

    def entities(self, count: int) -> list[RankedAnswer]:
        """The most probable entities, each with its facts."""
        ways: dict[int, list[_Entity]] = {}
        for lead in self.leads:
            following = lead.following
            node_U, which_F = np.unique(following.facts.tail_F, return_inverse=True)
            mass_U = lead.p * np.bincount(which_F, following.facts.p_F, len(node_U))
            for place in np.argsort(-mass_U, kind="stable")[: 4 * count].tolist():
                way = _Entity(float(mass_U[place]), lead, None)
                ways.setdefault(int(node_U[place]), []).append(way)
            for running, p in following.running:
                ways.setdefault(running.node, []).append(_Entity(lead.p * p, lead, running))
        best = heapq.nsmallest(count, ways, key=lambda node: (-sum(way.p for way in ways[node]), node))
        return [self._entity(node, ways[node]) for node in best if sum(way.p for way in ways[node]) > 0]

    def _entity(self, node: int, ways: list[_Entity]) -> RankedAnswer:
        best = max(ways, key=lambda way: way.p)
        text = answer_text(best.lead.following, node, best.running)
        reasons = [reason for way in ways for reason in _reasons(node, way)]
        return RankedAnswer(sum(way.p for way in ways), text, node, tuple(merged(reasons)))

    def _plain(self, count: int) -> Iterator[RankedAnswer]:
        """Plain words after each lead, without those that are leads themselves."""
        leads = {lead.ids for lead in self.leads}
        mass: dict[str, float] = {}
        for lead in self.leads:
            for word in plain_words(lead, count + len(leads)):
                if (*lead.ids, *word.ids) not in leads:
                    text = f"{_text(lead, lead.ids)}{word.text}".strip()
                    mass[text] = mass.get(text, 0.0) + word.p
        for text, p in mass.items():
            yield RankedAnswer(p, text, -1, (Derivation(p, Type.NONE),))


class SubwordDistribution:
    """The distribution of the next word, from that of the next subword."""

    def __init__(self, answers: SubwordAnswers, plausibility: Plausibility) -> None:
        self._start, self._plausibility = answers.start, plausibility
        self._following = answers.start.following

    @cached_property
    def missing(self) -> tuple[MissingFact, ...]:
        """Facts that the text asks for and the graph lacks.

        Without those that no entity of that kind has, and those that the text does not mean because another entity has
        the fact: a more probable one, or one of the same name that is not much less probable.
        """
        found = self._following.missing[:MAX_MISSING]
        plausible, rivals = self._plausibility.is_plausible, self._rivals
        known: dict[int, float] = {}
        for (_, relation), p in self._mass_of_relations.items():
            known[relation] = max(p, known.get(relation, 0.0))
        return tuple(
            MissingFact(*each)
            for each in found
            if plausible(each.parent, each.relation)
            and each.p > known.get(each.relation // 2, 0.0)
            and all(
                self._mass_of_relations.get((rival, each.relation // 2), 0.0) < SAME_NAME * each.p
                for rival in rivals.get(each.parent, ())
            )
        )

    @cached_property
    def _rivals(self) -> dict[int, set[int]]:
        """The other candidates of the names of each linked entity."""
        candidates: dict[tuple[int, int], set[int]] = {}
        for link in self._following.reading.linked.links:
            candidates.setdefault((link.start, link.end), set()).add(link.node)
        rivals: dict[int, set[int]] = {}
        for nodes in candidates.values():
            for node in nodes:
                rivals.setdefault(node, set()).update(nodes - {node})
        return rivals

    @cached_property
    def _mass_of_relations(self) -> dict[tuple[int, int], float]:
        """Probability that a fact of each parent and relation is said next."""
        facts = self._following.facts
        mass: dict[tuple[int, int], float] = {}
        for p, parent, relation in zip(
            facts.p_F.tolist(), facts.parent_F.tolist(), facts.relation_F.tolist(), strict=True
        ):
            mass[parent, relation // 2] = mass.get((parent, relation // 2), 0.0) + p
        return mass

    @property
    def p_facts(self) -> float:
        """Probability that a fact of the graph leads to the next word, or a name goes on."""
        return self._following.p_facts

    @property
    def missing_odds(self) -> float:
        """See `ODDS`."""
        return ODDS

    @property
    def rest(self) -> dict[str, float]:
        """Nothing is left out: what is not listed is among the other words."""
        return {"new": 0.0, "related": 0.0}

    def facts(self) -> list[FactMass]:
        """The facts that lead to the next word, the most probable first."""
        facts = self._following.facts
        order = np.argsort(-facts.p_F, kind="stable")
        columns = (column[order].tolist() for column in facts)
        return [FactMass(*row) for row in zip(*columns, strict=True)]

    @cached_property
    def _words(self) -> dict[str, list[Derivation]]:
        """Explanations of the listed words."""
        found: dict[str, list[Derivation]] = {}
        for word in plain_words(self._start, PLAIN_WORDS, phrases=False):
            text = word.text.strip()
            found.setdefault(text, []).append(Derivation(word.p, Type.NONE))
        following = self._following
        for running, p in following.running:
            for text, share in self._first_words(running.node, following.next_of(running), running.prefix).items():
                found.setdefault(text, []).append(Derivation(p * share, Type.CONTINUE, running.node, copied=True))
        facts = following.facts
        for k in np.argsort(-facts.p_F, kind="stable")[:NAMED_TAILS].tolist():
            node, p = int(facts.tail_F[k]), float(facts.p_F[k])
            for text, share in self._first_words(node, following.first_subwords(node), ()).items():
                reason = Derivation(
                    p * share, Type.RELATED, node, int(facts.parent_F[k]), int(facts.relation_F[k]), copied=True
                )
                found.setdefault(text, []).append(reason)
        return {text: merged(reasons) for text, reasons in found.items()}

    def _first_words(self, node: int, p_of: dict[int, float], prefix: tuple[int, ...]) -> dict[str, float]:
        """p(next word | e): of the names through one subword, the words after it are equally probable."""
        tables = self._following.reading.reader.tables
        length, found = len(prefix), dict[str, float]()
        ways: dict[int, set[str]] = {}
        for name in tables.names.of(node):
            if len(name.ids) > length and name.ids[:length] == prefix:
                words = tokenizer().words(tables.base.subwords.decode(name.ids[length:]))
                ways.setdefault(name.ids[length], set()).add(words[0] if words else "")
        for subword, words_ in ways.items():
            for word in words_:
                found[word] = found.get(word, 0.0) + p_of.get(subword, 0.0) / len(words_)
        return found

    def top(self, count: int) -> list[tuple[str, float]]:
        """The most probable words."""
        mass = {text: sum(reason.p for reason in reasons) for text, reasons in self._words.items()}
        return sorted(mass.items(), key=lambda item: -item[1])[:count]

    def derivations(self, word: str) -> list[Derivation]:
        """All explanations of a word, the most probable first."""
        return self._words.get(word, [])


def _together(answer: RankedAnswer, plain: RankedAnswer) -> RankedAnswer:
    """An entity and the plain words of the same text as one answer."""
    reasons = merged([*answer.reasons, *plain.reasons])
    return RankedAnswer(answer.p + plain.p, answer.text, answer.node, tuple(reasons))


def _reasons(node: int, way: _Entity) -> list[Derivation]:
    """The facts behind a way to an entity; of a running mention, those that began it."""
    following, p = way.lead.following, way.lead.p
    if way.running is None:
        return [
            Derivation(p * fact.p, Type.RELATED, node, fact.parent, fact.relation, None)
            for fact in following.facts_of(node)[:MAX_FACTS]
        ]
    origin = following.reading.origin(way.running)
    if origin is None:
        return [Derivation(way.p, Type.CONTINUE, node, copied=None)]
    scores, t = origin
    began = [fact for fact in scores.offered(t, way.running.prefix[0]) if fact.tail == node]
    total = sum(fact.p for fact in began)
    return [
        Derivation(way.p * fact.p / total, Type.CONTINUE, node, fact.parent, fact.relation, None) for fact in began
    ] or [Derivation(way.p, Type.CONTINUE, node, copied=None)]


def _function_words(lead: Step) -> Iterator[tuple[int, float]]:
    """Function words that are probable enough to be replaced by the answers after them."""
    texts = lead.reading.reader.tables.base.subwords.texts
    plain_V = lead.p * lead.following.outside_V
    for id in (plain_V >= MIN_LEAD).nonzero()[:, 0].tolist():
        word = texts[id].strip()
        if word.isalpha() and texts[id][:1] == " " and not is_content(word):
            yield id, float(plain_V[id])


def _text(step: Step, ids: tuple[int, ...]) -> str:
    return step.reading.reader.tables.base.subwords.decode(ids) if ids else ""

"""How well a model follows edits of its graph, and how little else it changes.

A fact (X, r, Y) with only one tail is set to another tail Y' that r has elsewhere, on a fork; a sentence asks for it.

efficacy        after the edit, the first word of Y' is more probable than that of Y
paraphrase      the same after another wording
first           after the edit, the best word is a first word of Y'; before it, one of Y
neighbourhood   where X was mentioned before, the best word after a sentence about another with the same relation is
                what it was
locality        distributions of texts that have nothing to do with the fact are what they were, to 1e-9

Nothing is trained. What is compared are distributions of the next word, with the subject given.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from kglm.answer.model import FactAwareLM
from kglm.answer.next_word import NextWords, next_words
from kglm.answer.reading import Span, read
from kglm.kg.edits import FactEdit
from kglm.progress import progress
from kglm.text.document import END
from kglm.text.tokenizer import tokenizer
from kglm.writing.verbalise import Question, Verbaliser

EXACT = 1e-9
WORDINGS = 40
"""Of a fact that are tried before it is found to have none that ends in its tail."""
HUB = 2_000
"""Whoever has more facts is not edited: all their names would have to be looked through."""
ATTEMPTS = 400
"""Facts that are tried before a graph is found to have none that can be edited."""


@dataclass(frozen=True)
class Trial:
    """One edit and what came of it."""

    head: str
    relation: str
    old: str
    new: str
    question: str
    p_new_before: float
    p_old_before: float
    p_new: float
    p_old: float
    first: bool
    before: bool
    paraphrase: bool | None
    neighbourhood: bool | None
    difference: float | None
    """The greatest change of any probability in a text that has nothing to do with the fact, if there is one."""
    seconds: float
    """Of the edit and the completion after it."""

    @property
    def efficacy(self) -> bool:
        return self.p_new > self.p_old


def measure_edits(live: FactAwareLM, count: int, *, seed: int = 0) -> list[Trial]:
    """So many edits, each of the graph as it is stored."""
    rng = random.Random(seed)
    verbaliser = Verbaliser(live.graph)
    trials = []
    with progress("editing", count, "edits") as advance:
        for planned in _editable(live, verbaliser, rng, count):
            trials.append(_trial(live, verbaliser, rng, planned))
            advance()
    return trials


def summary(trials: list[Trial]) -> dict[str, Any]:
    """The measures in percent."""

    def share(values: list[bool]) -> float | None:
        return 100 * sum(values) / len(values) if values else None

    return {
        "edits": len(trials),
        "efficacy": share([trial.efficacy for trial in trials]),
        "first": share([trial.first for trial in trials]),
        "before": share([trial.before for trial in trials]),
        "paraphrase": share([trial.paraphrase for trial in trials if trial.paraphrase is not None]),
        "neighbourhood": share([trial.neighbourhood for trial in trials if trial.neighbourhood is not None]),
        "locality": share([trial.difference <= EXACT for trial in trials if trial.difference is not None]),
        "seconds_per_edit": float(np.median([trial.seconds for trial in trials])) if trials else None,
    }


def to_json(trial: Trial) -> dict[str, Any]:
    return asdict(trial) | {"efficacy": trial.efficacy}


Fact = tuple[int, int, int]


class _Edit(NamedTuple):
    """A fact, its new tail, and two sentences that ask for it."""

    fact: Fact
    other: int
    question: Question
    paraphrase: Question


def _editable(live: FactAwareLM, verbaliser: Verbaliser, rng: random.Random, count: int) -> Iterator[_Edit]:
    """Facts with one tail, and another tail that begins with another word; no other fact of the head says either."""
    found = 0
    for _ in range(ATTEMPTS * max(count, 1)):
        if found == count:
            return
        head, relation, tail = verbaliser.draw(rng)
        other = verbaliser.tail_of(rng, relation)
        if live.graph.tails(head, relation).tolist() != [tail] or other in (head, tail):
            continue
        old, new = _first_words(live, tail), _first_words(live, other)
        relations, tails = live.graph.edges(head)
        if len(tails) > HUB:
            continue
        elsewhere = set(tails[relations != relation].tolist())  # the head itself among them
        if old and new and not old & new and not {tail, other} & elsewhere:
            said = set[str]().union(*(_first_words(live, node) for node in elsewhere))
            fact = (head, relation, tail)
            question, again = (_question(verbaliser, rng, fact, other) for _ in range(2))
            if not (old | new) & said and question is not None and again is not None:
                found += 1
                yield _Edit(fact, other, question, again)


def _first_words(live: FactAwareLM, node: int) -> set[str]:
    return {words[0] for name in live.graph.aliases(node)[:4] if (words := tokenizer().words(name))}


def _said(words: NextWords, firsts: set[str]) -> float:
    return sum(words[word] for word in firsts)


def _answer(live: FactAwareLM, question: Question, node: int, after: tuple[int, list[str]] | None = None) -> NextWords:
    """What is said after a question about a node; `after` is who is named in a sentence before."""
    words, spans, shift = list(question.words), [], 0
    if after is not None:
        other, name = after
        words, spans, shift = [*name, ".", END, *words], [Span(0, len(name), other)], len(name) + 2
    spans.append(Span(question.start + shift, question.end + shift, node))
    return next_words(read(live.run, live.model, words, [(1.0, spans)]))


def _trial(live: FactAwareLM, verbaliser: Verbaliser, rng: random.Random, planned: _Edit) -> Trial:
    (head, relation, tail), other, question, again = planned
    graph = live.graph
    old, new = _first_words(live, tail), _first_words(live, other)
    before = _answer(live, question, head)
    started = time.perf_counter()
    edit = FactEdit("set", graph.id(head), graph.relation_id(relation), graph.id(other))
    edited = live.edited([edit])
    after = _answer(edited, question, head)
    seconds = time.perf_counter() - started
    second = _answer(edited, again, head)
    touched = {head, tail, other}
    same, difference = None, None
    if (neighbour := _elsewhere(verbaliser, rng, touched, relation)) is not None:
        about = verbaliser.name(head, rng)
        pair = [_answer(model, *neighbour, after=(head, about)).top(1)[0][0] for model in (live, edited)]
        same = pair[0] == pair[1]
    if (far := _elsewhere(verbaliser, rng, touched)) is not None:
        apart = [_answer(model, *far) for model in (live, edited)]
        words = set(apart[0].words) | set(apart[1].words)
        difference = max(abs(apart[0][word] - apart[1][word]) for word in words)
    return Trial(
        graph.id(head),
        graph.relation_id(relation),
        graph.id(tail),
        graph.id(other),
        " ".join(question.words),
        _said(before, new),
        _said(before, old),
        _said(after, new),
        _said(after, old),
        after.top(1)[0][0] in new,
        before.top(1)[0][0] in old,
        None if again.words == question.words else _said(second, new) > _said(second, old),
        same,
        difference,
        seconds,
    )


def _question(verbaliser: Verbaliser, rng: random.Random, fact: Fact, other: int) -> Question | None:
    """A sentence that asks for the tail of a fact, whether it is the old or the new one."""
    tries = (verbaliser.question(rng, fact, (other,)) for _ in range(WORDINGS))
    return next((found for found in tries if found is not None), None)


def _elsewhere(
    verbaliser: Verbaliser, rng: random.Random, touched: set[int], relation: int | None = None
) -> tuple[Question, int] | None:
    """A sentence about someone who has no part in the edit, by this relation or by any."""
    for _ in range(ATTEMPTS):
        fact = verbaliser.draw(rng, relation)
        if fact[0] not in touched and (found := verbaliser.question(rng, fact)) is not None:
            return found, fact[0]
    return None

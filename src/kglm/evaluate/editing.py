"""Measure how well a model follows edits of its graph, and whether unrelated predictions stay the same.

Each trial picks a fact (X, r, Y) whose only tail is Y, and sets the tail to Y', a tail of r elsewhere, on a fork of the
graph. A prompt asks for the tail; the subject's entity is given. Nothing is trained.

efficacy        after the edit, the first word of Y' is more probable than that of Y
paraphrase      the same for a second prompt in other words
first           after the edit, the most probable word is a first word of Y'
before          before the edit, the most probable word is a first word of Y
neighbourhood   a prompt with relation r about another entity, after a mention of X, keeps its most probable word
locality        a prompt about an unrelated fact keeps its distribution, to 1e-9
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
"""Greatest difference of probabilities that counts as the same."""
MAX_WORDINGS = 40
"""Wordings of a fact to try until one ends in its tail."""
MAX_FACTS = 2_000
"""Entities with more facts are not edited: comparing the names of all their tails would take too long."""
MAX_ATTEMPTS = 400
"""Facts to try until one can be edited."""


@dataclass(frozen=True)
class Trial:
    """One edit: probabilities of the old and the new tail before and after it, and the measures."""

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
    """Greatest change of a next-word probability after an unrelated prompt; None without such a prompt."""
    seconds: float
    """Duration of the edit and the completion after it."""

    @property
    def efficacy(self) -> bool:
        return self.p_new > self.p_old


def measure_edits(live: FactAwareLM, count: int, *, seed: int = 0) -> list[Trial]:
    """Run `count` trials, each with one edit of the stored graph."""
    rng = random.Random(seed)
    verbaliser = Verbaliser(live.graph)
    trials = []
    with progress("editing", count, "edits") as advance:
        for planned in _editable(live, verbaliser, rng, count):
            trials.append(_trial(live, verbaliser, rng, planned))
            advance()
    return trials


def summary(trials: list[Trial]) -> dict[str, Any]:
    """Measures over all trials in percent, and the median of the seconds per edit."""

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
    """A fact, its new tail, and two prompts that ask for the tail."""

    fact: Fact
    other: int
    question: Question
    paraphrase: Question


def _editable(live: FactAwareLM, verbaliser: Verbaliser, rng: random.Random, count: int) -> Iterator[_Edit]:
    """Draw edits of facts with one tail; first words of both tails must differ from each other and from the head's
    other facts, so that a predicted word identifies its fact."""
    found = 0
    for _ in range(MAX_ATTEMPTS * max(count, 1)):
        if found == count:
            return
        head, relation, tail = verbaliser.draw(rng)
        other = verbaliser.tail_of(rng, relation)
        if live.graph.tails(head, relation).tolist() != [tail] or other in (head, tail):
            continue
        old, new = _first_words(live, tail), _first_words(live, other)
        relations, tails = live.graph.edges(head)
        if len(tails) > MAX_FACTS:
            continue
        other_tails = set(tails[relations != relation].tolist())  # includes the head itself
        if old and new and not old & new and not {tail, other} & other_tails:
            other_words = set[str]().union(*(_first_words(live, node) for node in other_tails))
            fact = (head, relation, tail)
            question, paraphrase = (_question(verbaliser, rng, fact, other) for _ in range(2))
            if not (old | new) & other_words and question is not None and paraphrase is not None:
                found += 1
                yield _Edit(fact, other, question, paraphrase)


def _first_words(live: FactAwareLM, node: int) -> set[str]:
    return {words[0] for name in live.graph.aliases(node)[:4] if (words := tokenizer().words(name))}


def _p(words: NextWords, any_of: set[str]) -> float:
    return sum(words[word] for word in any_of)


def _predict(
    live: FactAwareLM, question: Question, node: int, context: tuple[int, list[str]] | None = None
) -> NextWords:
    """Next-word distribution after a prompt about a node; `context` is an entity named in a sentence before it."""
    words, spans, shift = list(question.words), [], 0
    if context is not None:
        other, name = context
        words, spans, shift = [*name, ".", END, *words], [Span(0, len(name), other)], len(name) + 2
    spans.append(Span(question.start + shift, question.end + shift, node))
    return next_words(read(live.run, live.model, words, [(1.0, spans)]))


def _trial(live: FactAwareLM, verbaliser: Verbaliser, rng: random.Random, planned: _Edit) -> Trial:
    (head, relation, tail), other, question, paraphrase = planned
    graph = live.graph
    old, new = _first_words(live, tail), _first_words(live, other)
    before = _predict(live, question, head)
    started = time.perf_counter()
    edit = FactEdit("set", graph.id(head), graph.relation_id(relation), graph.id(other))
    edited = live.edited([edit])
    after = _predict(edited, question, head)
    seconds = time.perf_counter() - started
    after_paraphrase = _predict(edited, paraphrase, head)
    touched = {head, tail, other}
    same_word, difference = None, None
    if (neighbour := _untouched_question(verbaliser, rng, touched, relation)) is not None:
        name = verbaliser.name(head, rng)
        best = [_predict(model, *neighbour, context=(head, name)).top(1)[0][0] for model in (live, edited)]
        same_word = best[0] == best[1]
    if (unrelated := _untouched_question(verbaliser, rng, touched)) is not None:
        first, second = (_predict(model, *unrelated) for model in (live, edited))
        difference = max(abs(first[word] - second[word]) for word in set(first.words) | set(second.words))
    return Trial(
        graph.id(head),
        graph.relation_id(relation),
        graph.id(tail),
        graph.id(other),
        " ".join(question.words),
        _p(before, new),
        _p(before, old),
        _p(after, new),
        _p(after, old),
        after.top(1)[0][0] in new,
        before.top(1)[0][0] in old,
        None if paraphrase.words == question.words else _p(after_paraphrase, new) > _p(after_paraphrase, old),
        same_word,
        difference,
        seconds,
    )


def _question(verbaliser: Verbaliser, rng: random.Random, fact: Fact, other: int) -> Question | None:
    """A prompt for the tail of a fact that fits the old and the new tail."""
    tries = (verbaliser.question(rng, fact, (other,)) for _ in range(MAX_WORDINGS))
    return next((found for found in tries if found is not None), None)


def _untouched_question(
    verbaliser: Verbaliser, rng: random.Random, touched: set[int], relation: int | None = None
) -> tuple[Question, int] | None:
    """A prompt about an entity that the edit does not involve (with its node), for one relation or for any."""
    for _ in range(MAX_ATTEMPTS):
        fact = verbaliser.draw(rng, relation)
        if fact[0] not in touched and (found := verbaliser.question(rng, fact)) is not None:
            return found, fact[0]
    return None

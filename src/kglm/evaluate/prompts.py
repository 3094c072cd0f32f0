"""Read fact completion prompts, and decide which words are right answers.

A file has one JSON object a line: `prefix` (words), `entity_indices` [start, end) and `entity_id` of the subject,
`expected_tail` (a name, or a date in quotes), and optionally candidate ids as `shortlist` or `nel`. A corrected id,
`entity_id_clean`, replaces `entity_id`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kglm.errors import DataError, KglmError
from kglm.files import read_lines
from kglm.files.records import Count, decode_record
from kglm.kg.arrays import is_fact
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.dates import DAY, MONTH, Date, render_date
from kglm.kg.literals.literal import is_date
from kglm.text.document import START
from kglm.text.function_words import is_content
from kglm.text.tokenizer import tokenizer

SCORERS = ("strict", "any-token", "date", "paper-like")
"""Words that each accepts: strict, the first word of a name of the tail; any-token, every content word of a name; date,
every part of the date (else as strict); paper-like, strict and date, and for a birthplace also the birth date."""
TEMPLATES = {
    "nation-capital": r"The capital of (?:the )?X is",
    "birthloc": r"X was born in",
    "birthdate": r"X was born on",
    "spouse": r"X is married to",
    "city-state": r"X is a city in the state of",
    "book-author": r"X is a book that was written by",
}
TEMPLATE_RELATIONS = {
    "nation-capital": "P36",
    "birthloc": "P19",
    "birthdate": "P569",
    "spouse": "P26",
    "city-state": "P131",
    "book-author": "P50",
}
"""Relation that each template asks for; another prompt may ask for any relation."""
BIRTH_DATE = "P569"
_DATE = re.compile(r'"?(-?)(\d{1,6})-(\d{2})-(\d{2})"?')


@dataclass(frozen=True)
class Prompt:
    """A prompt: its words, the span [start, end) and id of its subject, and the expected tail."""

    words: tuple[str, ...]
    start: int
    end: int
    id: str
    tail: str
    relation: str
    shortlist: tuple[str, ...] = ()

    @property
    def date(self) -> Date | None:
        """The expected tail as a date, or None; the year may have leading zeros."""
        match = _DATE.fullmatch(self.tail.strip())
        if match is None:
            return None
        year = int(match[2])
        return Date(DAY, -year if match[1] else year, int(match[3]), int(match[4]))


def read_prompts(path: str | Path) -> list[Prompt]:
    """Read the prompts of a file and tokenize them like the corpus."""
    found = []
    for number, line in read_lines(path):
        place = f"{path}, line {number}"
        try:
            found.append(_prompt(decode_record(line, _Row, place)))
        except (ValueError, KglmError) as error:
            raise DataError(
                f"is not a valid prompt: {error.what if isinstance(error, KglmError) else error}",
                place=place,
                remedy='give "prefix", "entity_indices", "entity_id" and "expected_tail"',
            ) from error
    if not found:
        raise DataError("has no prompts", place=path, remedy="give a file with one JSON object a line")
    return found


class _Row(msgspec.Struct):
    """A line of the file; other keys are ignored."""

    prefix: list[str]
    entity_indices: tuple[Count, Count]
    entity_id: str
    expected_tail: str
    entity_id_clean: str | None = None
    relation: str | None = None
    shortlist: list[str] | None = None
    nel: list[str] | None = None


def _prompt(row: _Row) -> Prompt:
    prefix = row.prefix
    start, end = row.entity_indices
    first = int(prefix[:1] == [START])
    if not first <= start < end <= len(prefix):
        raise ValueError(f"entity_indices {[start, end]} do not fit {len(prefix)} words")
    before, subject, after = (_tokenize(words) for words in (prefix[first:start], prefix[start:end], prefix[end:]))
    prompt = Prompt(
        (*before, *subject, *after),
        len(before),
        len(before) + len(subject),
        row.entity_id_clean or row.entity_id,
        row.expected_tail.strip(),
        row.relation or _relation(before, after),
        tuple(dict.fromkeys(row.shortlist or row.nel or ())),
    )
    _ = prompt.date  # raises an error now if the date is impossible
    return prompt


def _tokenize(words: Sequence[str]) -> list[str]:
    return tokenizer().words(" ".join(words))


def _relation(before: Sequence[str], after: Sequence[str]) -> str:
    """Name of the template that the prompt follows, or the prompt itself with X for its subject."""
    text = " ".join([*before, "X", *after])
    return next((name for name, template in TEMPLATES.items() if re.fullmatch(template, text)), text)


@dataclass(frozen=True)
class ExpectedAnswer:
    """The right next words by scorer, and the facts (relation, tail) that they express."""

    words: dict[str, frozenset[str]]
    facts: frozenset[tuple[int, int]]

    def accepts(self, scorer: str, words: Iterable[str]) -> bool:
        """True if any of the words is right."""
        return not self.words[scorer].isdisjoint(words)


def expected_answer(graph: KnowledgeGraph, prompt: Prompt) -> ExpectedAnswer:
    """Right answers to a prompt: the expected tail under any alias of the subject's tails that bear its name."""
    node = graph.find(prompt.id)
    facts = [] if node is None else _facts(graph, node)
    tails = sorted({tail for _, tail in facts})
    date = prompt.date
    if date is not None:
        names, right = render_date(date), {tail for tail in tails if tail == graph.find(date.id)}
    else:
        wanted = prompt.tail.casefold()
        right = {tail for tail in tails if wanted in (name.casefold() for name in graph.names(tail))}
        names = [prompt.tail, *(name for tail in sorted(right) for name in graph.names(tail))]
    relation = TEMPLATE_RELATIONS.get(prompt.relation)
    expected = frozenset((r, tail) for r, tail in facts if tail in right and relation in (None, graph.relation_id(r)))
    tokenized = [words for name in names if (words := tokenizer().words(name))]
    strict = {words[0] for words in tokenized}
    content = {word for words in tokenized for word in words if is_content(word)}
    dated = date_words(date) if date is not None else set[str]()
    birth = set[str]()
    if prompt.relation == "birthloc":
        birth = {word for tail in tails if is_date(graph.id(tail)) and _is_birth(graph, node, tail)
                 for word in date_words(Date.parse_id(graph.id(tail)))}  # fmt: skip
    sets = {"strict": strict, "any-token": content, "date": dated or strict, "paper-like": strict | dated | birth}
    return ExpectedAnswer({name: frozenset(words) for name, words in sets.items()}, expected)


def _facts(graph: KnowledgeGraph, node: int) -> list[tuple[int, int]]:
    """(relation, tail) of the facts with this entity as head; no reversed facts, no facts about itself."""
    relation, tail = graph.edges(node)
    forward = is_fact(relation) & (tail != node)
    return list(zip(relation[forward].tolist(), tail[forward].tolist(), strict=True))


def _is_birth(graph: KnowledgeGraph, node: int | None, tail: int) -> bool:
    relation = graph.find_relation(BIRTH_DATE)
    return node is not None and relation is not None and tail in graph.tails(node, relation)


def date_words(date: Date) -> set[str]:
    """Words for a part of a date: the month's name or abbreviation, the day, the year; and the ISO date."""
    found = {str(abs(date.year)), f"{abs(date.year):04d}"}
    if date.precision >= MONTH:
        spelled = render_date(Date(MONTH, date.year, date.month))
        name = next(word for text in spelled for word in text.split() if word.isalpha())
        found |= {name, name[:3], f"{name[:3]}."} | ({"Sept", "Sept."} if date.month == 9 else set())
    if date.precision == DAY:
        found |= {str(date.day), f"{date.day:02d}", f"{abs(date.year):04d}-{date.month:02d}-{date.day:02d}"}
    return found

"""Sets of fact completion prompts, and what counts as right.

A row is JSON: `prefix` (words), `entity_indices` [start, end) and `entity_id` of the subject, `expected_tail` (a name,
or a date in quotes), and where there are some `shortlist` or `nel` (ids). `entity_id_clean`, a corrected id, goes
before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kglm.errors import DataError, LiteralError
from kglm.files import read_lines
from kglm.kg.arrays import is_fact
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.dates import DAY, MONTH, Date, render_date
from kglm.kg.literals.literal import is_date
from kglm.text.document import START
from kglm.text.function_words import is_content
from kglm.text.tokenizer import tokenizer

SCORERS = ("strict", "any-token", "date", "paper-like")
TEMPLATES = {
    "nation-capital": r"The capital of (?:the )?X is",
    "birthloc": r"X was born in",
    "birthdate": r"X was born on",
    "spouse": r"X is married to",
    "city-state": r"X is a city in the state of",
    "book-author": r"X is a book that was written by",
}
ASKED = {
    "nation-capital": "P36",
    "birthloc": "P19",
    "birthdate": "P569",
    "spouse": "P26",
    "city-state": "P131",
    "book-author": "P50",
}
"""The relations that the usual prompts ask for; by another prompt, any relation may be meant."""
BIRTH = "P569"
_DATE = re.compile(r'"?(-?)(\d{1,6})-(\d{2})-(\d{2})"?')


@dataclass(frozen=True)
class Prompt:
    """Words, the place of the subject X in them, who it is, and what should come next."""

    words: tuple[str, ...]
    start: int
    end: int
    id: str
    tail: str
    relation: str
    shortlist: tuple[str, ...] = ()

    @property
    def date(self) -> Date | None:
        """The tail, if it is a date; the year 0354 is 354."""
        match = _DATE.fullmatch(self.tail.strip())
        if match is None:
            return None
        year = int(match[2])
        return Date(DAY, -year if match[1] else year, int(match[3]), int(match[4]))


def read_prompts(path: str | Path) -> list[Prompt]:
    """The prompts of a file, cut into words as the corpus is."""
    found = []
    for number, line in read_lines(path):
        place = f"{path}, line {number}"
        try:
            row = json.loads(line)
            found.append(_prompt(row))
        except (json.JSONDecodeError, KeyError, TypeError, ValueError, LiteralError) as error:
            raise DataError(
                f"is no prompt: {error or type(error).__name__}",
                place=place,
                remedy='it needs "prefix", "entity_indices", "entity_id" and "expected_tail"',
            ) from error
    if not found:
        raise DataError("has no prompts", place=path, remedy="give a file with one JSON object a line")
    return found


def _prompt(row: dict[str, Any]) -> Prompt:
    prefix = row["prefix"]
    if not isinstance(prefix, list) or not all(isinstance(word, str) for word in prefix):
        raise ValueError("prefix is no list of words")
    start, end = (int(place) for place in row["entity_indices"])
    first = int(prefix[:1] == [START])
    if not first <= start < end <= len(prefix):
        raise ValueError(f"entity_indices {[start, end]} of {len(prefix)} words")
    parts = [_cut(prefix[first:start]), _cut(prefix[start:end]), _cut(prefix[end:])]
    words = tuple(word for part in parts for word in part)
    at = len(parts[0])
    prompt = Prompt(
        words,
        at,
        at + len(parts[1]),
        str(row.get("entity_id_clean") or row["entity_id"]),
        str(row["expected_tail"]).strip(),
        str(row.get("relation") or _relation(parts)),
        tuple(dict.fromkeys(str(id) for id in row.get("shortlist") or row.get("nel") or ())),
    )
    _ = prompt.date  # a date that cannot be is told now
    return prompt


def _cut(words: Sequence[str]) -> list[str]:
    return tokenizer().words(" ".join(words))


def _relation(parts: Sequence[Sequence[str]]) -> str:
    text = " ".join([*parts[0], "X", *parts[2]])
    return next((name for name, template in TEMPLATES.items() if re.fullmatch(template, text)), text)


@dataclass(frozen=True)
class Answer:
    """The words that are right, by scorer, and the facts that would be said."""

    words: dict[str, frozenset[str]]
    facts: frozenset[tuple[int, int]]
    """(relation, tail)."""

    def right(self, scorer: str, said: Iterable[str]) -> bool:
        return not self.words[scorer].isdisjoint(said)


def answer(graph: KnowledgeGraph, prompt: Prompt) -> Answer:
    """What is right after a prompt: the tail, or a tail of the subject that has its name, by any of its aliases."""
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
    asked = ASKED.get(prompt.relation)
    meant = frozenset((r, tail) for r, tail in facts if tail in right and asked in (None, graph.relation_id(r)))
    cut = [words for name in names if (words := tokenizer().words(name))]
    strict = {words[0] for words in cut}
    spoken = {word for words in cut for word in words if is_content(word)}
    dated = date_words(date) if date is not None else set[str]()
    birth = set[str]()
    if prompt.relation == "birthloc":
        birth = {word for tail in tails if is_date(graph.id(tail)) and _is_birth(graph, node, tail)
                 for word in date_words(Date.parse_id(graph.id(tail)))}  # fmt: skip
    sets = {"strict": strict, "any-token": spoken, "date": dated or strict, "paper-like": strict | dated | birth}
    return Answer({name: frozenset(words) for name, words in sets.items()}, meant)


def _facts(graph: KnowledgeGraph, node: int) -> list[tuple[int, int]]:
    """(relation, tail) of an entity: what is said of it, not of others by it, and not itself."""
    relation, tail = graph.edges(node)
    forward = is_fact(relation) & (tail != node)
    return list(zip(relation[forward].tolist(), tail[forward].tolist(), strict=True))


def _is_birth(graph: KnowledgeGraph, node: int | None, tail: int) -> bool:
    relation = graph.find_relation(BIRTH)
    return node is not None and relation is not None and tail in graph.tails(node, relation)


def date_words(date: Date) -> set[str]:
    """The words that say a part of a date: month by name or short, day with or without zero, year, and all in one."""
    found = {str(abs(date.year)), f"{abs(date.year):04d}"}
    if date.precision >= MONTH:
        spelled = render_date(Date(MONTH, date.year, date.month))
        name = next(word for way in spelled for word in way.split() if word.isalpha())
        found |= {name, name[:3], f"{name[:3]}."} | ({"Sept", "Sept."} if date.month == 9 else set())
    if date.precision == DAY:
        found |= {str(date.day), f"{date.day:02d}", f"{abs(date.year):04d}-{date.month:02d}-{date.day:02d}"}
    return found

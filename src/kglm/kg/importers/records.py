"""What importers read from a source, before it becomes a graph. One parser a format fills one `Batch` a block."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace

from kglm.errors import LiteralError
from kglm.kg.ids import is_item_id, is_relation_id, mint, normalise_title
from kglm.kg.literals.dates import Date
from kglm.kg.literals.literal import canonical_literal, is_date, is_literal, literal_from_text

_ESCAPED = re.compile(r"\\u([0-9A-Fa-f]{4})")
_IN_BRACKETS = re.compile(r" \([^()]*\)$")
PROBLEMS_KEPT = 20
"""Problems of a block that are reported with their line; all are counted."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How sources are read."""

    language: str = "en"
    """Language of labels, aliases, descriptions and texts."""
    mint_ids: bool = False
    """Take terms that are no ids for names, and make ids of them (Q_…, P_…): for graphs without ids."""
    iso_years: bool = False
    """Years before Christ are counted as ISO 8601 and RDF do (0000 is 1 BC) and not as Wikidata's JSON does."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file to import and how to read it."""

    path: str
    format: str
    options: ImportOptions
    header: tuple[str, ...] = ()
    """Column names, for formats that have them."""
    header_line: int = 0
    """The line they are on."""


@dataclass(slots=True)
class Batch:
    """Records of one block of a source. Ids are texts; numbers come later."""

    entities: list[tuple[str, str | None, str | None]] = field(default_factory=list)
    """id, description, title"""
    names: list[tuple[str, int, str]] = field(default_factory=list)
    """id, 0 for a label, 1 for an alias, 2 for a name taken from an id; text"""
    facts: list[tuple[str, str, str, int, str | None]] = field(default_factory=list)
    """head, relation, tail, rank, and a key of the statement if it may have qualifiers"""
    qualifiers: list[tuple[str, str, str]] = field(default_factory=list)
    """key of the statement, property, value"""
    relations: list[tuple[str, str]] = field(default_factory=list)
    """id, label"""
    redirects: list[tuple[str, str]] = field(default_factory=list)
    """title, title it leads to"""
    skipped: Counter[str] = field(default_factory=Counter)
    problems: list[tuple[int, str]] = field(default_factory=list)
    """line, what is wrong with it"""

    def skip(self, reason: str) -> None:
        """Count something that is left out on purpose."""
        self.skipped[reason] += 1

    def problem(self, line: int, what: str, reason: str) -> None:
        """Count something that should not be there, and remember where it was."""
        self.skipped[reason] += 1
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append((line, what))

    def entity(self, id: str, label: str | None, aliases: object, *, description: str | None = None,
               title: str | None = None) -> None:  # fmt: skip
        """An entity with its names; empty and blank names are left out.

        The title of its article is one more name, and how that writes the label ("Henry I of England") goes before
        "henry i of england".
        """
        self.entities.append((id, description or None, normalise_title(title) if title else None))
        name = _title_name(title) if isinstance(title, str) else ""
        if isinstance(label, str) and label.casefold() == name.casefold() and not name[1:].islower():
            label = name
        self.name(id, label, 0)
        for alias in aliases if isinstance(aliases, list | tuple) else ():
            self.name(id, alias, 1)
        if name and name != label:
            self.name(id, name, 1)

    def name(self, id: str, text: object, kind: int) -> None:
        if text is None:
            return
        clean = " ".join(without_escapes(text).split()) if isinstance(text, str) else ""
        if clean:
            self.names.append((id, kind, without_surrogates(clean)))
        else:
            self.skip("empty name")

    def fact(self, head: str, relation: str, tail: str, *, rank: int = 0, statement: str | None = None) -> None:
        self.facts.append((head, relation, tail, rank, statement))


@dataclass(slots=True)
class TermReader:
    """Reads the terms of formats in which people write ids or names by hand; counts what is neither."""

    batch: Batch
    options: ImportOptions

    def item(self, term: str) -> str | None:
        """An entity that can be a head."""
        if is_item_id(term):
            return term
        if self.options.mint_ids and not is_literal(term) and term.strip():
            return self.minted(mint(term, "Q"), term)
        return None

    def minted(self, id: str, name: str) -> str:
        """An entity that has no id of its own; any other name that a source gives it goes before this one."""
        self.batch.entity(id, None, ())
        self.batch.name(id, name, 2)
        return id

    def relation(self, term: str) -> str | None:
        if is_relation_id(term):
            return term
        if self.options.mint_ids and term.strip():
            id = mint(term, "P")
            self.batch.relations.append((id, " ".join(term.split())))
            return id
        return None

    def tail(self, term: str) -> str | None:
        """An entity or a literal. Raises LiteralError for a malformed literal."""
        if is_literal(term):
            canonical = canonical_literal(term)  # it must make sense; the source's spelling is kept
            return historical(canonical) if self.options.iso_years and is_date(term) else term
        if is_item_id(term):
            return term
        if self.options.mint_ids:
            try:
                literal = literal_from_text(term)
            except LiteralError:
                literal = None
            return literal or self.item(term)
        return None

    def fact(self, line: int, head: str, relation: str, tail: str, *, rank: int = 0,
             statement: str | None = None) -> bool:  # fmt: skip
        """A fact by its terms; what is wrong with them is counted and reported."""
        try:
            parts = self.item(head), self.relation(relation), self.tail(tail)
        except LiteralError as error:
            self.batch.problem(line, str(error), "malformed literal")
            return False
        for part, term, kind in zip(parts, (head, relation, tail), ("head", "relation", "tail"), strict=True):
            if part is None:
                self.batch.problem(
                    line,
                    f"the {kind} {term[:60]!r} is not an id (for names use --mint-ids)",
                    f"{kind} is not an id",
                )
                return False
        known_head, known_relation, known_tail = parts
        assert known_head and known_relation and known_tail
        self.batch.fact(known_head, known_relation, known_tail, rank=rank, statement=statement)
        return True


def historical(id: str) -> str:
    """A date whose year BC is astronomical (-0043 is 44 BC) as Wikidata's JSON has it (-0044)."""
    date = Date.parse_id(id)
    return replace(date, year=date.year - 1).id if date.year < 0 else id


def _title_name(title: str) -> str:
    """A title without underscores, and without what tells it from others: "Bell (instrument)"."""
    return _IN_BRACKETS.sub("", title.replace("_", " ").strip())


def without_escapes(text: str) -> str:
    """Characters that were escaped twice on their way here ("\\u00C1vila"), as themselves."""
    if "\\u" not in text:
        return text
    found = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
    return found.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "")


def without_surrogates(text: str) -> str:
    """Lone surrogates cannot be written as UTF-8; they become the replacement character."""
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text

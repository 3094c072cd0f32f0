"""Records that importers read from a source. Each format has one parser; it returns one `Batch` for each block."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Literal

from kglm.errors import ConfigError, LiteralError
from kglm.kg.ids import is_item_id, is_relation_id, mint, normalise_title
from kglm.kg.literals.column_types import ColumnType
from kglm.kg.literals.dates import Date
from kglm.kg.literals.literal import canonical_literal, is_date, is_literal, is_text, literal_from_text
from kglm.kg.literals.texts import text_of

_ESCAPED = re.compile(r"\\u([0-9A-Fa-f]{4})")
_IN_BRACKETS = re.compile(r" \([^()]*\)$")
PROBLEMS_KEPT = 20
"""Problems per block that are reported with their line; all are counted."""


@dataclass(frozen=True, slots=True)
class OwnOptions:
    """Options for tables of one's own: what their content does not decide, or decides wrongly."""

    types: tuple[tuple[str, str], ...] = ()
    """Types of relations by name, as in ("height", "quantity:metre")."""
    header: bool | None = None
    """Whether the first row has the names of the columns."""
    delimiter: str | None = None
    decimal: Literal["point", "comma"] | None = None
    """Decimal mark of numbers that could be read with either."""
    split: str = ";"
    """What divides several values in a cell; empty if nothing does."""
    kinds: tuple[str, ...] = ()
    """What the entities of a file are instances of: "FILE=KIND", or "file-name" for the names of all files."""
    skip_bad_lines: bool = False
    """Import the lines that can be read, if others cannot; otherwise nothing is imported then."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options for reading sources."""

    language: str = "en"
    """Language of labels, aliases, descriptions and texts."""
    mint_ids: bool = False
    """Read terms that are not ids as names, and make ids from them (Q_…, P_…): for graphs without ids."""
    iso_years: bool = False
    """Years before Christ are numbered as in ISO 8601 and RDF (0000 is 1 BC), not as in Wikidata's JSON."""
    own: OwnOptions = OwnOptions()


@dataclass(frozen=True, slots=True)
class Source:
    """A file to import and how to read it."""

    path: str
    format: str
    options: ImportOptions
    header: tuple[str, ...] = ()
    """Column names, for formats that have them."""
    header_line: int = 0
    """Line number of the header."""


@dataclass(slots=True)
class Batch:
    """Records of one block of a source. Ids are strings; `staging` numbers them later."""

    entities: list[tuple[str, str | None, str | None]] = field(default_factory=list)
    """id, description, title"""
    names: list[tuple[str, int, str]] = field(default_factory=list)
    """id, kind (0 label, 1 alias, 2 name taken from a minted id), text"""
    facts: list[tuple[str, str, str, int, str | None]] = field(default_factory=list)
    """head, relation, tail, rank, and a statement key if it may have qualifiers"""
    qualifiers: list[tuple[str, str, str]] = field(default_factory=list)
    """statement key, property, value; "stated in" and "reference URL" become sources, not facts"""
    sources: list[tuple[str, str]] = field(default_factory=list)
    """statement key, source: the id of a work, an address, or a text"""
    relations: list[tuple[str, str]] = field(default_factory=list)
    """id, label"""
    redirects: list[tuple[str, str]] = field(default_factory=list)
    """title, target title"""
    datatypes: list[tuple[str, str]] = field(default_factory=list)
    """id of a relation, type of its values"""
    skipped: Counter[str] = field(default_factory=Counter)
    problems: list[tuple[int, str]] = field(default_factory=list)
    """line, description"""

    def skip(self, reason: str) -> None:
        """Count a record that is left out on purpose."""
        self.skipped[reason] += 1

    def problem(self, line: int, what: str, reason: str) -> None:
        """Count a malformed record, and report its line."""
        self.skipped[reason] += 1
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append((line, what))

    def entity(self, id: str, label: str | None, aliases: object, *, description: str | None = None,
               title: str | None = None) -> None:  # fmt: skip
        """Add an entity with its names; empty and blank names are left out.

        The article title is added as an alias. If it differs from the label only in case, its case wins: "Henry I of
        England" replaces "henry i of england".
        """
        description = " ".join(description.split()) if description else None
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

    def datatype(self, line: int, id: str, text: str) -> None:
        """Add the type of the values of a relation, as `ColumnType` writes it."""
        try:
            self.datatypes.append((id, str(ColumnType.parse(text))))
        except ConfigError as error:
            self.problem(line, str(error), "unknown type of values")

    def source(self, statement: str, text: str) -> None:
        """Add a source of a statement: the id of a work, an address, or a text, which may be given by its id."""
        clean = " ".join(without_surrogates(text_of(text) if is_text(text) else text).split())
        if clean:
            self.sources.append((statement, clean))


@dataclass(slots=True)
class TermReader:
    """Read hand-written terms, which may be ids or names; count those that are neither."""

    batch: Batch
    options: ImportOptions

    def item(self, term: str) -> str | None:
        """Id of an item or property, minted from a name if allowed; None for other terms."""
        if is_item_id(term):
            return term
        if self.options.mint_ids and not is_literal(term) and term.strip():
            return self.minted(mint(term, "Q"), term)
        return None

    def minted(self, id: str, name: str) -> str:
        """Add an entity with a minted id; `name` ranks after all other names that sources give it."""
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
        """Id of an entity or literal. Raises LiteralError for a malformed literal."""
        if is_literal(term):
            canonical = canonical_literal(term)  # validates the term; the source's spelling is stored
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
        """Add a fact given by its terms; malformed terms are reported. True if it was added."""
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
        head_id, relation_id, tail_id = parts
        assert head_id and relation_id and tail_id
        self.batch.fact(head_id, relation_id, tail_id, rank=rank, statement=statement)
        return True


def historical(id: str) -> str:
    """Convert a date from astronomical years BC (-0043 is 44 BC) to those of Wikidata's JSON (-0044)."""
    date = Date.parse_id(id)
    return replace(date, year=date.year - 1).id if date.year < 0 else id


def _title_name(title: str) -> str:
    """A title with blanks for underscores and without the bracketed part: "Bell" for "Bell_(instrument)"."""
    return _IN_BRACKETS.sub("", title.replace("_", " ").strip())


def without_escapes(text: str) -> str:
    """Decode characters that the source escaped twice ("\\u00C1vila")."""
    if "\\u" not in text:
        return text
    found = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
    return found.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "")


def without_surrogates(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode, by `?`."""
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text

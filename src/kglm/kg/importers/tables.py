"""Read tables of one's own: CSV and TSV, with or without a header.

Two shapes are recognised: triples, one fact per row (head, relation, tail, further columns), and wide tables, one
entity per row, whose first column is its name and whose other columns are relations. What was recognised, and how to
say otherwise, is a note of the import.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from kglm.errors import ConfigError, DataError, LiteralError
from kglm.files import reading as reading_file
from kglm.kg.importers.statements import NO_VALUE, Described, Place, Reading, Statement
from kglm.kg.literals.hints import label_of, words_of
from kglm.kg.literals.written import read_dates, read_number
from kglm.packed import open_binary

Shape = Literal["triples", "table"]
DELIMITERS = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "bar"}
SAMPLE_ROWS = 1000
HEADS = frozenset(["head", "subject", "entity", "node1", "s"])
RELATIONS = frozenset(["relation", "predicate", "property", "relationship", "attribute", "p"])
TAILS = frozenset(["tail", "object", "value", "target", "node2", "o"])
HEAD_RELATION_TAIL = (HEADS, RELATIONS, TAILS)
KEYS = frozenset(["id", "key", "identifier"])
NAMES = frozenset(["name", "label", "title", "entity"])
ALIASES = frozenset(["alias", "aliases", "also known as", "aka", "other names"])
COMMON_FIRST = NAMES | KEYS | frozenset(["person", "company", "place", "animal", "character", "book", "city"])


@dataclass(frozen=True, slots=True)
class TableOptions:
    """What the user says about tables; None where the content decides."""

    shape: Shape | None = None
    header: bool | None = None
    delimiter: str | None = None
    key: frozenset[str] = frozenset()
    """Names of columns that hold the id of the entity of a row."""
    kind: str | None = None
    """What the entities of this file are instances of."""

    def __post_init__(self) -> None:
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise ConfigError(f"the delimiter {self.delimiter!r} is not one character", remedy='give one, like ";"')


class Row(NamedTuple):
    line: int
    cells: list[str]


def read_text(path: str) -> str:
    """The content of a file in UTF-8, with or without a byte order mark; any other encoding is an error."""
    with reading_file(path), open_binary(path) as stream:
        data = stream.read()
    for mark, name in ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16")):
        if data.startswith(mark):
            raise DataError(f"is written in {name}", place=path, remedy="save it as UTF-8 (CSV UTF-8 in Excel)")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"is not UTF-8 (byte 0x{data[error.start]:02x})",
            place=f"{path}, line {line}",
            remedy=f"save it as UTF-8, or convert it: iconv -f WINDOWS-1252 -t UTF-8 {path}",
        ) from error


def read_table(path: str, options: TableOptions, into: Reading) -> None:
    """Add the statements of a table."""
    text = read_text(path)
    delimiter = options.delimiter or find_delimiter(text)
    if delimiter is None:
        raise DataError(
            "has one column, or rows of different lengths",
            place=path,
            remedy="separate the columns by tabs, commas or semicolons, or name the character with --delimiter",
        )
    rows = list(read_rows(text, delimiter, path, into))
    if not rows:
        raise DataError("has no rows", place=path, remedy="name a file with facts")
    shape, header = find_shape(rows, options)
    names = [" ".join(name.split()) for name in rows[0].cells] if header else []
    wanted = len(names) or Counter(len(row.cells) for row in rows).most_common(1)[0][0]
    into.notes.append(_note(path, delimiter, shape, names, wanted))
    if shape == "table" and not header:
        raise DataError("is a table without a header", place=path, remedy="add a first row with the names of relations")
    _check_header(names, Place(path, rows[0].line))
    good = []
    for row in rows[1:] if header else rows:
        if len(row.cells) == wanted:
            good.append(row)
        else:
            into.bad(
                Place(path, row.line),
                f"{len(row.cells)} columns where {wanted} are expected",
                "put a value that contains the delimiter in quotes, and keep empty cells",
            )
    if shape == "triples":
        _triples(path, good, names, into, options)
    else:
        _wide(path, good, names, into, options)


def _note(path: str, delimiter: str, shape: Shape, names: Sequence[str], width: int) -> str:
    if shape == "triples":
        what = "one fact per row" + (f" in the columns {', '.join(names)}" if names else ", no header")
        other = "--format table if each row is an entity" + ("" if names else ", --header if the first row has names")
    else:
        what = f"one entity per row, {width} columns: {', '.join(names)}"
        other = "--format triples if each row is a fact"
    mark = DELIMITERS.get(delimiter, repr(delimiter))
    return f"{path}: {what}; separated by {mark} (otherwise: {other}, --delimiter)"


def read_rows(text: str, delimiter: str, path: str, into: Reading) -> Iterator[Row]:
    """Rows with the line where they begin; blank rows and, in files with tabs, comments are left out."""
    lines = io.StringIO(text, newline="")
    if delimiter == "\t" and not _is_quoted(text):
        reader = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE, strict=True)
    else:
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
    line = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            into.bad(Place(path, line), f"the quotes are wrong ({error})", 'write a quote within quotes twice: ""')
            return
        start, line = line, reader.line_num + 1
        if not any(cell.strip() for cell in cells) or (delimiter == "\t" and cells[0].startswith("#")):
            continue
        yield Row(start, [cell.strip() for cell in cells])


def _is_quoted(text: str) -> bool:
    """True if quotes enclose cells in a file with tabs, where they may also be part of the text."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter="\t", strict=True)
    try:
        widths = {len(cells) for cells in reader if cells}
    except csv.Error:
        return False
    return len(widths) == 1


def find_delimiter(text: str) -> str | None:
    """The character that divides most rows in the same number of columns, else the first row in most columns."""
    best: tuple[float, int, str] | None = None
    for delimiter in DELIMITERS:
        widths: Counter[int] = Counter()
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        try:
            for cells in reader:
                if any(cell.strip() for cell in cells) and not cells[0].startswith("#"):
                    widths[len(cells)] += 1
                if widths.total() >= SAMPLE_ROWS:
                    break
        except csv.Error:
            pass
        if not widths:
            continue
        width, count = max(widths.items(), key=lambda item: (item[1], item[0]))
        share = count / widths.total()
        if width > 1 and share >= 0.5 and (best is None or (share, width) > best[:2]):
            best = (share, width, delimiter)
    if best is not None:
        return best[2]
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    count, delimiter = max((first.count(delimiter), delimiter) for delimiter in DELIMITERS)
    return delimiter if count else None


def find_shape(rows: Sequence[Row], options: TableOptions) -> tuple[Shape, bool]:
    """Shape of a table, and whether its first row is a header."""
    first = [" ".join(words_of(cell)) for cell in rows[0].cells]
    named = all(names.intersection(first) for names in HEAD_RELATION_TAIL)
    if options.shape == "table":
        return "table", options.header is not False
    if named and options.header is not False:
        return "triples", True
    if options.shape == "triples":
        return "triples", bool(options.header)
    if len(first) not in (3, 4):
        return "table", options.header is not False
    if options.header is not None:
        return ("table", True) if options.header else ("triples", False)
    whole = [row.cells for row in rows[:SAMPLE_ROWS] if len(row.cells) == len(first)]
    heads, relations = [cells[0] for cells in whole[1:]], [cells[1] for cells in whole]
    if first[0] in COMMON_FIRST or sum(map(_is_value, relations[1:])) * 2 > len(heads):
        return "table", True
    repeats = len(set(heads)) < len(heads) or len(set(relations)) < len(relations)
    return ("triples", False) if repeats or len(rows) < 3 else ("table", True)


def _is_value(cell: str) -> bool:
    """True for a number, a date or a sentence, which are no relations."""
    if cell[-1:] in (".", "!", "?", '"') or "\n" in cell:
        return True
    try:
        return read_number(cell) is not None or bool(read_dates(cell))
    except LiteralError:
        return True


def _check_header(names: Sequence[str], place: Place) -> None:
    for number, name in enumerate(names, 1):
        if not name:
            raise DataError(f"column {number} has no name", place=place, remedy="name it in the first row")
    for name, count in Counter(label_of(name).casefold() for name in names).items():
        if count > 1:
            raise DataError(f"{count} columns are called {name!r}", place=place, remedy="give them different names")


# Triples


def _triples(path: str, rows: Sequence[Row], names: Sequence[str], into: Reading, options: TableOptions) -> None:
    plain = [" ".join(words_of(name)) for name in names]
    columns = [next(k for k, name in enumerate(plain) if name in wanted) for wanted in HEAD_RELATION_TAIL if names]
    head, relation, tail = columns or (0, 1, 2)
    rank = plain.index("rank") if "rank" in plain else (3 if not names else None)
    extra = [k for k in range(len(names)) if k not in (head, relation, tail, rank)]
    for row in rows:
        place, cells = Place(path, row.line), row.cells
        if not names and len(cells) not in (3, 4):
            into.bad(place, f"{len(cells)} columns where 3 or 4 are expected", "name the columns in a first row")
            continue
        empty = [what for what, k in (("head", head), ("relation", relation)) if not cells[k]]
        if empty:
            into.bad(place, f"the {empty[0]} is empty", "write it, or delete the line")
            continue
        if cells[tail] in NO_VALUE:
            into.skipped["no value"] += 1
            continue
        statement = Statement(place, cells[head], cells[relation], cells[tail], is_cell=True)
        statement.rank = cells[rank] if rank is not None and rank < len(cells) else ""
        statement.qualifiers = [(names[k], cells[k]) for k in extra if cells[k] not in NO_VALUE]
        into.statements.append(statement)
        if options.kind:
            into.statements.append(Statement(place, cells[head], "instance of", options.kind))


# Wide tables


def _wide(path: str, rows: Sequence[Row], names: Sequence[str], into: Reading, options: TableOptions) -> None:
    plain = [" ".join(words_of(name)) for name in names]
    key = next((k for k, name in enumerate(plain) if name in options.key), None)
    name = next((k for k, each in enumerate(plain) if each in NAMES and k != key), None)
    if key is None and name is not None:
        key = next((k for k, each in enumerate(plain) if each in KEYS), None)
    if name is None:
        name = 0 if key != 0 else None
    head = key if key is not None else name
    assert head is not None
    aliases = [k for k, each in enumerate(plain) if each in ALIASES]
    relations = [k for k in range(len(names)) if k not in (key, name, *aliases)]
    first_line: dict[str, int] = {}
    for row in rows:
        place, cells = Place(path, row.line), row.cells
        if not cells[head]:
            into.bad(place, f"the column {names[head]!r} is empty", "name the entity, or delete the line")
            continue
        if cells[head] in first_line:
            into.notes.append(
                f"{place}: {cells[head]!r} has a row in line {first_line[cells[head]]} too; they are taken as one"
                " entity (if they are two, give each an id in a column id)"
            )
        first_line.setdefault(cells[head], row.line)
        entity = Described(place, cells[head], is_key=key is not None)
        entity.label = cells[name] if name is not None else ""
        entity.aliases = [part.strip() for k in aliases for part in cells[k].split(";") if part.strip()]
        into.entities.append(entity)
        if options.kind:
            into.statements.append(Statement(place, cells[head], "instance of", options.kind))
        for k in relations:
            if cells[k] in NO_VALUE:
                into.skipped["no value"] += 1
                continue
            into.statements.append(Statement(place, cells[head], names[k], cells[k], is_cell=True))

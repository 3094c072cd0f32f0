"""Import KGTK's TSV: edges `id node1 label node2`, with literals in KGTK's notation.

`^2001-12-31T00:00:00Z/11` a date, `+27[26,28]Q828224` a quantity, `'name'@en` a text, `"…"` a string. An edge whose
node1 is the id of another edge is its qualifier; qualifiers may be in a separate file.
"""

from __future__ import annotations

import re

from kglm.errors import LiteralError
from kglm.kg.ids import SOURCE_PROPERTIES, is_item_id, is_relation_id
from kglm.kg.importers.records import Batch, ImportOptions, Source, without_surrogates
from kglm.kg.importers.wikidata import NAMING_PROPERTIES, RANKS
from kglm.kg.literals.dates import Date
from kglm.kg.literals.quantities import Quantity

REQUIRED = ("node1", "label", "node2")
_QUANTITY = re.compile(r"([+-]?[\d.]+(?:[eE][+-]?\d+)?)(?:\[[^\]]*\])?(Q\d+)?\Z")
_TEXT = re.compile(r"'(.*)'@([\w-]+)\Z", re.DOTALL)
_DATE = re.compile(r"\^(.+)/(\d+)\Z")


def parse_kgtk(data: bytes, first_line: int, source: Source) -> Batch:
    """Parse edges, one per line; `source.header` names the columns."""
    batch = Batch()
    node1, label, node2 = (source.header.index(name) for name in REQUIRED)
    edge_id = source.header.index("id") if "id" in source.header else None
    rank_column = next((k for k, name in enumerate(source.header) if name in ("rank", "node1;rank")), None)
    for number, raw in enumerate(data.split(b"\n"), first_line):
        raw = raw.rstrip(b"\r")
        if not raw.strip() or number <= source.header_line:
            continue
        try:
            cells = raw.decode().split("\t")
        except UnicodeDecodeError:
            batch.problem(number, "invalid UTF-8", "invalid UTF-8")
            continue
        if len(cells) != len(source.header):
            batch.problem(
                number,
                f"{len(cells)} columns where {len(source.header)} are expected",
                "wrong number of columns",
            )
            continue
        rank = cells[rank_column] if rank_column is not None else ""
        if rank and rank not in RANKS:
            batch.skip(f"{rank} statement")
            continue
        _add_edge(
            cells[node1], cells[label], cells[node2], RANKS.get(rank, 0),
            cells[edge_id] if edge_id is not None else None, batch, source.options,
        )  # fmt: skip
    return batch


def _add_edge(
    head: str, label: str, value: str, rank: int, edge: str | None, batch: Batch, options: ImportOptions
) -> None:
    if label in ("label", "alias", "description"):
        text = _text(value, options)
        if not is_item_id(head):
            batch.skip("not an item or property")
        elif text is None:
            batch.skip("text in another language")
        elif label == "description":
            batch.entities.append((head, text, None))
        else:
            batch.name(head, text, int(label == "alias"))
        return
    if not is_relation_id(label):
        batch.skip("not a property")
        return
    if label in SOURCE_PROPERTIES and not is_item_id(head):
        batch.source(head, value if is_item_id(value) else _unescaped(value.strip('"')))
        return
    tail = _tail(head, label, value, batch, options)
    if tail is None:
        return
    if is_item_id(head):
        batch.fact(head, label, tail, rank=rank, statement=edge or None)
    else:
        batch.qualifiers.append((head, label, tail))


def _text(value: str, options: ImportOptions) -> str | None:
    match = _TEXT.match(value)
    if match is None:
        return _unescaped(value.strip('"'))
    return _unescaped(match[1]) if match[2] == options.language else None


def _unescaped(text: str) -> str:
    return without_surrogates(re.sub(r"\\(.)", r"\1", text))


def _tail(head: str, relation: str, value: str, batch: Batch, options: ImportOptions) -> str | None:
    try:
        if is_item_id(value):
            return value
        if match := _DATE.match(value):
            return Date.from_time(match[1], int(match[2])).id
        if match := _QUANTITY.match(value):
            return Quantity.from_amount(match[1], match[2] or "1").id
    except LiteralError:
        batch.skip("malformed literal")
        return None
    if value.startswith("'"):
        text = _text(value, options)
        if text is None:
            batch.skip("text in another language")
        elif relation in NAMING_PROPERTIES:
            batch.name(head, text, 1)
        else:
            batch.skip("text")
    else:
        kinds = {"@": "coordinate", '"': "string", "^": "date without precision"}
        batch.skip(kinds.get(value[:1], "unknown value"))
    return None

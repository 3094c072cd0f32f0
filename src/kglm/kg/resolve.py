"""Resolve what a person typed to ids of entities, relations, dates and quantities.

A fact is given by ids or by names: `Q76 P569 2013-03-21`, `Barack Obama date of birth 21 March 2013`,
`Barack Obama | date of birth | 21 March 2013`. An ambiguous or unknown name raises an error that lists the choices.
"""

from __future__ import annotations

import difflib
from collections import Counter
from typing import TYPE_CHECKING

from kglm.errors import GraphError, KglmError, LiteralError, UnknownIdError
from kglm.kg.ids import REFLEXIVE, REVERSE, is_entity_id, is_item_id, is_relation_id
from kglm.kg.literals.column_types import ColumnType
from kglm.kg.literals.hints import is_about_dates
from kglm.kg.literals.literal import (
    canonical_literal,
    is_date,
    is_literal,
    is_quantity,
    is_text,
    literal_from_text,
    quantity_unit,
)
from kglm.kg.literals.quantities import Quantity, normal_unit, parse_quantity, unit_spellings
from kglm.kg.literals.texts import text_id
from kglm.kg.literals.units import Unit
from kglm.kg.store import Found
from kglm.kg.suggest import suggest

if TYPE_CHECKING:
    from kglm.kg.graph import KnowledgeGraph

SAMPLES = 100
"""Tails of a relation that are read as examples, and as many of the head's own."""

FACT_WORDS = 200
"""Words of a fact that is not divided by `|`: each division into head, relation and tail is tried."""


def resolve_entity(graph: KnowledgeGraph, text: str) -> str:
    """Id of an entity given by id or name; a name shared by several entities raises an error that lists them."""
    text = " ".join(text.split())
    if is_entity_id(text):
        if is_literal(text):
            raise GraphError(f"{text!r} is a literal", remedy="give an entity here")
        return graph.id(graph.number(text))
    found = [hit for hit in graph.search(text, 50) if hit.match.casefold() == text.casefold()]
    found += _created_with_name(graph, text)
    exact = [hit for hit in found if hit.label == text] or [hit for hit in found if hit.match == text] or found
    if len(exact) == 1:
        return exact[0].id
    if exact:
        choices = ", ".join(
            f"{hit.id} ({hit.label}{', ' + hit.description if hit.description else ''})" for hit in exact[:5]
        )
        raise GraphError(f"{len(exact)} entities are called {text!r}", remedy=f"use an id: {choices}")
    same_start = [f"{hit.label} ({hit.id})" for hit in graph.search(text, 3)]
    close = " or ".join(same_start or map(str, suggest(graph, text)))
    raise UnknownIdError(
        f"no entity called {text!r}",
        place=graph.store.path,
        remedy=f"did you mean {close}?" if close else "search with: kglm kg find KG TEXT",
    )


def _created_with_name(graph: KnowledgeGraph, text: str) -> list[Found]:
    """Entities with this name that a fork created: the store's index does not contain them."""
    overlay = graph.overlay
    return [
        Found(graph.id(number), names[0], text, 0, None)
        for number, names in overlay.names.items()
        if text in names and not graph.store.rows("SELECT 1 FROM entity WHERE id = ?", (graph.id(number),))
    ]


def resolve_relation(graph: KnowledgeGraph, text: str) -> str:
    """Id of a relation given by id (`P26`, `R:P26`, `P54:P413`) or by label.

    An alias is only suggested in the error, because some aliases name the reverse relation ("wrote" for author).
    """
    text = " ".join(text.split())
    plain = text.removeprefix(REVERSE)
    if text == REFLEXIVE:
        raise GraphError("the reflexive relation cannot be edited", remedy="give another relation")
    if is_relation_id(plain):
        if graph.find_relation(plain) is None and plain not in graph:
            raise UnknownIdError(
                f"no relation {plain!r}",
                place=graph.store.path,
                remedy="list the relations of an entity with: kglm kg show KG ENTITY",
            )
        return text
    labels = _relation_labels(graph)
    ids = labels.get(plain.casefold(), [])
    if len(ids) == 1:
        return (REVERSE if text != plain else "") + ids[0]
    if ids:
        raise GraphError(f"{len(ids)} relations are called {plain!r}", remedy=f"use an id: {', '.join(ids[:8])}")
    raise UnknownIdError(
        f"no relation is called {text!r}",
        place=graph.store.path,
        remedy=_alias_remedy(graph, plain) or _similar_label_remedy(labels, plain),
    )


def _alias_remedy(graph: KnowledgeGraph, alias: str) -> str | None:
    """The labels to write instead of an alias, with an example fact that shows the direction of the relation."""
    ids = _relation_aliases(graph).get(alias.casefold(), [])
    if not ids:
        return None
    relations = " and ".join(f"{graph.relation_name(id)} ({id})" for id in ids[:5])
    label = graph.relation_name(ids[0])
    facts = graph.store.rows(
        "SELECT h.id, t.id FROM relation r JOIN fact f ON f.relation = r.number"
        " JOIN entity h ON h.number = f.head JOIN entity t ON t.number = f.tail WHERE r.id = ? LIMIT 1",
        (ids[0],),
    )
    example = "".join(
        f", as in {graph.label(graph.number(head))} | {label} | {graph.label(graph.number(tail))}"
        for head, tail in facts
    )
    return f"{relations} {'has' if len(ids) == 1 else 'have'} that alias: write HEAD {label} TAIL{example}"


def _similar_label_remedy(labels: dict[str, list[str]], text: str) -> str | None:
    close = difflib.get_close_matches(text.casefold(), labels, 3)
    return f"did you mean {' or '.join(f'{name} ({labels[name][0]})' for name in close)}?" if close else None


def relation_names(graph: KnowledgeGraph) -> dict[str, list[str]]:
    """Map case-folded names of the stored relations to ids; a label takes precedence over an equal alias."""
    return _relation_aliases(graph) | _relation_labels(graph)


def _relation_labels(graph: KnowledgeGraph) -> dict[str, list[str]]:
    labels: dict[str, list[str]] = {}
    for index in range(2, graph.relation_count, 2):
        labels.setdefault(graph.relation_label(index).casefold(), []).append(graph.relation_id(index))
    return labels


def _relation_aliases(graph: KnowledgeGraph) -> dict[str, list[str]]:
    aliases: dict[str, list[str]] = {}
    for index in range(2, graph.relation_count, 2):
        id = graph.relation_id(index)
        for name in graph.relation_names(id):
            ids = aliases.setdefault(name.casefold(), [])
            if id not in ids:
                ids.append(id)
    return aliases


def resolve_tail(graph: KnowledgeGraph, head: str, relation: str, text: str) -> str:
    """Id of a tail: an entity by id or name, or a date or quantity in words.

    The relation's other tails decide whether "1984" is a date or a quantity, and which unit a number has.
    """
    whole, text = text, " ".join(text.split())
    if is_literal(text):
        return _as_stored(graph, canonical_literal(text))
    if is_item_id(text):
        return graph.id(graph.number(text))
    if (declared := graph.datatype(relation)) and (literal := _declared(graph, declared, whole)):
        return literal
    samples = sample_tails(graph, head, relation)
    kinds = Counter(
        "date" if is_date(id) else "text" if is_text(id) else "quantity" if is_literal(id) else "entity"
        for id in samples
    )
    match kinds.most_common(1):
        case [("text", _)]:
            return _as_stored(graph, text_id(whole))
        case [("date", _)]:
            return _as_stored(graph, _typed_date(graph, text))
        case [("quantity", _)]:
            return _as_stored(graph, _typed_quantity(graph, text, samples))
    try:
        return resolve_entity(graph, text)
    except UnknownIdError as unknown:
        names = graph.relation_names(relation)
        literal = literal_from_text(text, "date" if any(map(is_about_dates, names)) else "quantity")
        if literal is None:
            raise unknown
        return _as_stored(graph, literal)


def _declared(graph: KnowledgeGraph, declared: str, text: str) -> str | None:
    """Id of a value of a relation whose type is stored; None for an entity."""
    units: list[Unit] = []
    literal = ColumnType.parse(declared).read(text, units.append)
    for unit in units:
        if unit.id not in graph:
            raise LiteralError(f"the graph has no unit {unit.names[0]!r}", remedy="edit it with: kglm kg edit --create")
    return literal and _as_stored(graph, literal)


def sample_tails(graph: KnowledgeGraph, head: str, relation: str) -> list[str]:
    """Some stored tails of a relation, those of `head` first, as examples of what a tail can be."""
    facts = graph.store.facts_with(head, relation, limit=SAMPLES)
    own = [fact.tail for fact in sorted(facts, key=lambda fact: -fact.rank)]
    rows = graph.store.rows(
        "SELECT t.id FROM relation r JOIN fact f ON f.relation = r.number JOIN entity t ON t.number = f.tail"
        " WHERE r.id = ? LIMIT ?",
        (relation, SAMPLES),
    )
    return own + [id for [id] in rows]


def _typed_date(graph: KnowledgeGraph, text: str) -> str:
    literal = literal_from_text(text, prefer="date")
    if literal is not None and is_date(literal):
        return literal
    try:
        return resolve_entity(graph, text)
    except UnknownIdError:
        raise LiteralError(f"{text!r} is not a date", remedy="write it like 21 March 2013 or 2013-03-21") from None


def _typed_quantity(graph: KnowledgeGraph, text: str, samples: list[str]) -> str:
    """A bare number gets the unit of the first quantity in `samples`; a typed unit must be one of theirs."""
    units = dict.fromkeys(quantity_unit(id) for id in samples if is_quantity(id))
    readings = parse_quantity(text)
    for amount, unit_text in readings:
        if not unit_text:
            return Quantity(amount, next(iter(units)) or "1").id
        for unit in filter(None, units):
            if normal_unit(unit_text) in unit_spellings(graph.unit_names(unit)):
                return Quantity(amount, unit).id
    if readings:
        raise LiteralError(
            f"the unit of {text!r} is not used by this relation",
            remedy=f"give only the number, or an id like {Quantity(readings[0][0], 'Q1').id}",
        )
    try:
        return resolve_entity(graph, text)
    except UnknownIdError:
        raise LiteralError(f"{text!r} is not a number", remedy="write it like 1,250 or 1250.5") from None


def _as_stored(graph: KnowledgeGraph, id: str) -> str:
    """The id under which the graph already stores this date or quantity, else `id`."""
    number = graph.find(id)
    return id if number is None else graph.id(number)


def parse_fact(graph: KnowledgeGraph, text: str) -> tuple[str, str, str]:
    """Split `HEAD RELATION TAIL`, where each part is an id or a name of one or more words. Returns ids."""
    for separator in ("|", "\t"):
        if separator in text:
            parts = [part.strip() for part in text.split(separator)]
            if len(parts) != 3 or not all(parts):
                raise GraphError(f"{text!r} has {len(parts)} parts", remedy="write HEAD | RELATION | TAIL")
            return _resolved(graph, *parts)
    words = text.split()
    if len(words) == 3:
        return _resolved(graph, *words)
    if len(words) > FACT_WORDS:
        raise GraphError(f"a fact of {len(words)} words", remedy="write HEAD | RELATION | TAIL, by ids or names")
    names = relation_names(graph)
    readings: dict[tuple[str, str, str], None] = {}
    problems: dict[int, KglmError] = {}  # number of words in the relation -> first error
    for i in range(1, len(words) - 1):
        for j in range(i + 1, len(words)):
            relation = " ".join(words[i:j])
            if not (relation.casefold() in names or is_relation_id(relation.removeprefix(REVERSE))):
                continue
            try:
                reading = _resolved(graph, " ".join(words[:i]), relation, " ".join(words[j:]))
            except (GraphError, LiteralError) as error:
                problems.setdefault(j - i, error)
            else:
                readings[reading] = None
    if len(readings) == 1:
        return next(iter(readings))
    if readings:
        raise GraphError(
            f"{text!r} has {len(readings)} possible readings", remedy="write HEAD | RELATION | TAIL, or use ids"
        )
    if problems:
        raise problems[max(problems)]
    raise GraphError(f"no relation is named in {text!r}", remedy="write HEAD | RELATION | TAIL, by ids or names")


def _resolved(graph: KnowledgeGraph, head: str, relation: str, tail: str) -> tuple[str, str, str]:
    relation = resolve_relation(graph, relation)
    if relation.startswith(REVERSE):  # facts are stored in the forward direction
        relation, head, tail = relation.removeprefix(REVERSE), tail, head
    head = resolve_entity(graph, head)
    return head, relation, resolve_tail(graph, head, relation, tail)

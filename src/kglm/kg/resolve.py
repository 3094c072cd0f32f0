"""Names to ids: how a person says which entity, relation, date or quantity is meant.

A fact is given by ids or by names: `Q76 P569 2013-03-21`, `Barack Obama date of birth 21 March 2013`,
`Barack Obama | date of birth | 21 March 2013`. What is ambiguous or unknown is refused with the choices there are.
"""

from __future__ import annotations

import difflib
from collections import Counter
from typing import TYPE_CHECKING

from kglm.errors import GraphError, KglmError, LiteralError, UnknownIdError
from kglm.kg.ids import REFLEXIVE, REVERSE, is_entity_id, is_item_id, is_relation_id
from kglm.kg.literals.literal import (
    canonical_literal,
    is_date,
    is_literal,
    is_quantity,
    literal_from_text,
    quantity_unit,
)
from kglm.kg.literals.quantities import Quantity, normal_unit, parse_quantity, unit_spellings
from kglm.kg.store import Found
from kglm.kg.suggest import suggest

if TYPE_CHECKING:
    from kglm.kg.graph import KnowledgeGraph


def resolve_entity(graph: KnowledgeGraph, text: str) -> str:
    """The id of an entity given by id or by name; a name that several share is refused with a list of them."""
    text = " ".join(text.split())
    if is_entity_id(text):
        if is_literal(text):
            raise GraphError(f"{text!r} is a date or quantity", remedy="a fact starts from an entity")
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
    begin_so = [f"{hit.label} ({hit.id})" for hit in graph.search(text, 3)]
    close = " or ".join(begin_so or map(str, suggest(graph, text)))
    raise UnknownIdError(
        f"no entity called {text!r}",
        place=graph.store.path,
        remedy=f"did you mean {close}?" if close else "look for it with: kglm kg find KG TEXT",
    )


def _created_with_name(graph: KnowledgeGraph, text: str) -> list[Found]:
    """Entities of this session's edits are not in the store's index yet."""
    overlay = graph.overlay
    return [
        Found(graph.id(number), names[0], text, 0, None)
        for number, names in overlay.names.items()
        if text in names and not graph.store.rows("SELECT 1 FROM entity WHERE id = ?", (graph.id(number),))
    ]


def resolve_relation(graph: KnowledgeGraph, text: str) -> str:
    """The id of a relation given by id (`P26`, `R:P26`, `P54:P413`) or by label.

    Aliases are only suggested: some say the relation from its other end ("wrote" of author, "father of" of father).
    """
    text = " ".join(text.split())
    plain = text.removeprefix(REVERSE)
    if text == REFLEXIVE:
        raise GraphError("the reflexive relation is derived", remedy="it cannot be edited")
    if is_relation_id(plain):
        if graph.find_relation(plain) is None and plain not in graph:
            raise UnknownIdError(
                f"no relation {plain!r}",
                place=graph.store.path,
                remedy="see the relations of an entity: kglm kg show KG ENTITY",
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
        remedy=_known_as(graph, plain) or _relation_like(labels, plain),
    )


def _known_as(graph: KnowledgeGraph, alias: str) -> str | None:
    """What to write instead of an alias, with a fact to show which way the relation runs."""
    ids = _relation_aliases(graph).get(alias.casefold(), [])
    if not ids:
        return None
    known = " and ".join(f"{graph.relation_name(id)} ({id})" for id in ids[:5])
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
    return f"{known} {'is' if len(ids) == 1 else 'are'} known by that name: write HEAD {label} TAIL{example}"


def _relation_like(labels: dict[str, list[str]], text: str) -> str | None:
    close = difflib.get_close_matches(text.casefold(), labels, 3)
    return f"did you mean {' or '.join(f'{name} ({labels[name][0]})' for name in close)}?" if close else None


def relation_names(graph: KnowledgeGraph) -> dict[str, list[str]]:
    """Case-folded names of the stored relations to their ids: by label, or if no label says so by alias."""
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
    """The id of a tail: an entity by id or name, or a date or quantity as one writes it.

    What a text like "1984" means depends on what the relation's other tails are, and so does the unit of a number.
    """
    text = " ".join(text.split())
    if is_literal(text):
        return _as_stored(graph, canonical_literal(text))
    if is_item_id(text):
        return graph.id(graph.number(text))
    samples = sample_tails(graph, head, relation)
    kinds = Counter("date" if is_date(id) else "quantity" if is_literal(id) else "entity" for id in samples)
    match kinds.most_common(1):
        case [("date", _)]:
            return _as_stored(graph, _typed_date(graph, text))
        case [("quantity", _)]:
            return _as_stored(graph, _typed_quantity(graph, text, samples))
    try:
        return resolve_entity(graph, text)
    except UnknownIdError as unknown:
        literal = literal_from_text(text)
        if literal is None:
            raise unknown
        return _as_stored(graph, literal)


def sample_tails(graph: KnowledgeGraph, head: str, relation: str) -> list[str]:
    """Some tails of a relation, those of `head` first: what a new one is likely to be like."""
    own = [fact.tail for fact in graph.store.facts_of(head) if fact.relation == relation]
    rows = graph.store.rows(
        "SELECT t.id FROM relation r JOIN fact f ON f.relation = r.number JOIN entity t ON t.number = f.tail"
        " WHERE r.id = ? LIMIT 100",
        (relation,),
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
    """A number takes the unit that the other tails have; a unit that is given must be one of theirs."""
    units = dict.fromkeys(quantity_unit(id) for id in samples if is_quantity(id))
    readings = parse_quantity(text)
    for amount, said in readings:
        if not said:
            return Quantity(amount, next(iter(units)) or "1").id
        for unit in filter(None, units):
            if normal_unit(said) in unit_spellings(graph.unit_names(unit)):
                return Quantity(amount, unit).id
    if readings:
        raise LiteralError(
            f"the unit of {text!r} is none that this relation has",
            remedy=f"give the number alone, or an id like {Quantity(readings[0][0], 'Q1').id}",
        )
    try:
        return resolve_entity(graph, text)
    except UnknownIdError:
        raise LiteralError(f"{text!r} is not a number", remedy="write it like 1,250 or 1250.5") from None


def _as_stored(graph: KnowledgeGraph, id: str) -> str:
    """The spelling that the graph already has for this date or quantity."""
    number = graph.find(id)
    return id if number is None else graph.id(number)


def parse_fact(graph: KnowledgeGraph, text: str) -> tuple[str, str, str]:
    """Split `HEAD RELATION TAIL` where each part is an id or a name of several words. Returns ids."""
    for separator in ("|", "\t"):
        if separator in text:
            parts = [part.strip() for part in text.split(separator)]
            if len(parts) != 3 or not all(parts):
                raise GraphError(f"{text!r} has {len(parts)} parts", remedy="write HEAD | RELATION | TAIL")
            return _resolved(graph, *parts)
    words = text.split()
    if len(words) == 3:
        return _resolved(graph, *words)
    names = relation_names(graph)
    readings: dict[tuple[str, str, str], None] = {}
    problems: dict[int, KglmError] = {}  # by how many words name the relation
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
            f"{text!r} can be read in {len(readings)} ways", remedy="write HEAD | RELATION | TAIL, or use ids"
        )
    if problems:
        raise problems[max(problems)]
    raise GraphError(f"no relation is named in {text!r}", remedy="write HEAD | RELATION | TAIL, by ids or names")


def _resolved(graph: KnowledgeGraph, head: str, relation: str, tail: str) -> tuple[str, str, str]:
    relation = resolve_relation(graph, relation)
    if relation.startswith(REVERSE):  # said from the tail's side: the fact itself runs the other way
        relation, head, tail = relation.removeprefix(REVERSE), tail, head
    head = resolve_entity(graph, head)
    return head, relation, resolve_tail(graph, head, relation, tail)

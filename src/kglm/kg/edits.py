"""Translate an edit that a person asks for into changes of the journal.

An impossible edit (unknown id, duplicate, self-loop, malformed date) raises an error before anything is changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from kglm.errors import GraphError
from kglm.kg.head_facts import HeadFacts
from kglm.kg.ids import REVERSE, is_item_id
from kglm.kg.journal import Change
from kglm.kg.resolve import resolve_entity, resolve_relation, resolve_tail
from kglm.kg.schema import FactRow

if TYPE_CHECKING:
    from kglm.kg.graph import KnowledgeGraph


class FactEdit(NamedTuple):
    """Add or remove a fact, or make it the only fact of its head and relation (`set`)."""

    action: Literal["add", "remove", "set"]
    head: str
    relation: str
    tail: str


class NewEntity(NamedTuple):
    """An entity to create; the first name is its label."""

    id: str
    names: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> NewEntity:
        """Parse "ID=LABEL|ALIAS|…"."""
        id, equals, names = text.partition("=")
        if not equals:
            raise GraphError(f"{text!r} has no name", remedy='write it like "Q_me=My Name|Me"')
        return cls(id.strip(), tuple(names.split("|")))


class RelationType(NamedTuple):
    """The type of the values of a relation, as in "quantity:metre"; it decides how later edits read them."""

    relation: str
    type: str


def plan(graph: KnowledgeGraph, edit: FactEdit | NewEntity | RelationType) -> list[Change]:
    """Return the changes that carry out `edit`, without applying them."""
    if isinstance(edit, NewEntity):
        return _creation(graph, edit)
    if isinstance(edit, RelationType):
        return [Change("type", edit.relation, tail=edit.type, statement=graph.datatype(edit.relation))]
    action, head, relation, tail = resolve_edit(graph, edit)
    if head == tail:
        raise GraphError(f"head and tail of the fact are both {head}", remedy="give two different entities")
    return {"add": _addition, "remove": _removal, "set": _setting}[action](graph, FactRow(head, relation, tail))


def resolve_edit(graph: KnowledgeGraph, edit: FactEdit) -> FactEdit:
    """Replace names by ids, and a reverse relation by the forward one with head and tail exchanged."""
    head, tail = edit.head, edit.tail
    relation = resolve_relation(graph, edit.relation)
    if relation.startswith(REVERSE):
        relation, head, tail = relation.removeprefix(REVERSE), tail, head
    head = resolve_entity(graph, head)
    return FactEdit(edit.action, head, relation, resolve_tail(graph, head, relation, tail))


def _addition(graph: KnowledgeGraph, fact: FactRow) -> list[Change]:
    if _holds(graph, fact):
        raise GraphError(f"the graph already has the fact {_show(graph, fact)}", remedy="nothing was changed")
    return [Change("add", *fact)]


def _removal(graph: KnowledgeGraph, fact: FactRow) -> list[Change]:
    if not _holds(graph, fact):
        raise GraphError(
            f"there is no fact {_show(graph, fact)}",
            place=graph.store.path,
            remedy=f"list the facts with: kglm kg show KG {fact.head}",
        )
    return _head_facts(graph, fact.head).remove(fact)


def _setting(graph: KnowledgeGraph, fact: FactRow) -> list[Change]:
    head, relation = graph.number(fact.head), graph.find_relation(fact.relation)
    tails = [] if relation is None else graph.overlay.ids_of(graph.tails(head, relation))
    if tails == [fact.tail]:
        raise GraphError(
            f"{_show(graph, fact)} is already the only fact of this head and relation", remedy="nothing was changed"
        )
    others = [tail for tail in tails if tail != fact.tail]
    changes = _head_facts(graph, fact.head).remove_tails(fact.relation, others)
    return changes if len(others) < len(tails) else [*changes, Change("add", *fact)]


def _head_facts(graph: KnowledgeGraph, head: str) -> HeadFacts:
    return HeadFacts(graph.store, graph.overlay.base.spellings, head, graph.pending)


def _creation(graph: KnowledgeGraph, edit: NewEntity) -> list[Change]:
    names = tuple(dict.fromkeys(" ".join(name.split()) for name in edit.names if name.strip()))
    if not is_item_id(edit.id):
        raise GraphError(f"{edit.id!r} is not an entity id", remedy="use Q123, or Q_something for one of your own")
    if not names:
        raise GraphError(f"the new entity {edit.id} has no name", remedy='write "ID=LABEL|ALIAS|…"')
    number = graph.find(edit.id)
    if number is None:
        return [Change("create", edit.id, names=names)]
    if len(graph.edges(number).tail) == 1 and tuple(graph.names(number)) == names:
        return []  # an undo leaves created entities in the graph, without facts
    raise GraphError(f"the graph already has an entity {edit.id}", remedy="choose another id, or use this entity")


def _holds(graph: KnowledgeGraph, fact: FactRow) -> bool:
    relation, tail = graph.find_relation(fact.relation), graph.find(fact.tail)
    if relation is None or tail is None:
        return False
    return graph.overlay.has_fact(graph.number(fact.head), relation, tail)


def _show(graph: KnowledgeGraph, fact: FactRow) -> str:
    tail = graph.find(fact.tail)
    shown = fact.tail if tail is None else f"{graph.label(tail)} ({fact.tail})"
    return f"{graph.label(graph.number(fact.head))} —{graph.relation_name(fact.relation)}→ {shown}"

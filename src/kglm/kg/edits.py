"""From what a person wants changed to the changes of the journal.

Whatever cannot be done (an unknown id, a duplicate, a self-loop, a malformed date) is refused with a remedy before
anything is touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from kglm.errors import GraphError
from kglm.kg.ids import REVERSE, is_item_id
from kglm.kg.journal import Change, Pending
from kglm.kg.resolve import resolve_entity, resolve_relation, resolve_tail
from kglm.kg.store import FactRow

if TYPE_CHECKING:
    from kglm.kg.graph import KnowledgeGraph


class FactEdit(NamedTuple):
    """Add or remove a fact, or make it the only one of its head and relation (`set`)."""

    action: Literal["add", "remove", "set"]
    head: str
    relation: str
    tail: str


class NewEntity(NamedTuple):
    """An entity that the graph does not hold yet; the first name is its label."""

    id: str
    names: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> NewEntity:
        """An entity written as "ID=LABEL|ALIAS|…"."""
        id, equals, names = text.partition("=")
        if not equals:
            raise GraphError(f"{text!r} has no name", remedy='write it like "Q_me=My Name|Me"')
        return cls(id.strip(), tuple(names.split("|")))


def plan(graph: KnowledgeGraph, edit: FactEdit | NewEntity) -> list[Change]:
    """The changes that carry out `edit` on the graph as it is; nothing is changed here."""
    if isinstance(edit, NewEntity):
        return _creation(graph, edit)
    action, head, relation, tail = by_ids(graph, edit)
    if head == tail:
        raise GraphError(f"a fact from {head} to itself", remedy="give two different entities")
    return {"add": _addition, "remove": _removal, "set": _setting}[action](graph, FactRow(head, relation, tail))


def by_ids(graph: KnowledgeGraph, edit: FactEdit) -> FactEdit:
    """The same edit with ids for names, said from the head's side."""
    head, tail = edit.head, edit.tail
    relation = resolve_relation(graph, edit.relation)
    if relation.startswith(REVERSE):
        relation, head, tail = relation.removeprefix(REVERSE), tail, head
    head = resolve_entity(graph, head)
    return FactEdit(edit.action, head, relation, resolve_tail(graph, head, relation, tail))


def _addition(graph: KnowledgeGraph, fact: FactRow) -> list[Change]:
    if _holds(graph, fact):
        raise GraphError(f"the fact {_show(graph, fact)} is there already", remedy="nothing was changed")
    return [Change("add", *fact)]


def _removal(graph: KnowledgeGraph, fact: FactRow) -> list[Change]:
    if not _holds(graph, fact):
        raise GraphError(
            f"there is no fact {_show(graph, fact)}",
            place=graph.store.path,
            remedy=f"see the facts with: kglm kg show KG {fact.head}",
        )
    return Pending(graph.store, fact.head, graph.pending).remove(fact)


def _setting(graph: KnowledgeGraph, fact: FactRow) -> list[Change]:
    head, relation = graph.number(fact.head), graph.find_relation(fact.relation)
    tails = [] if relation is None else [graph.id(int(tail)) for tail in graph.tails(head, relation)]
    if tails == [fact.tail]:
        raise GraphError(f"{_show(graph, fact)} is already the only such fact", remedy="nothing was changed")
    pending = Pending(graph.store, fact.head, graph.pending)
    others = [FactRow(fact.head, fact.relation, tail) for tail in tails if tail != fact.tail]
    changes = [change for other in others for change in pending.remove(other)]
    return changes if fact.tail in tails else [*changes, Change("add", *fact)]


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
        return []  # left without facts by an undo: there it is
    raise GraphError(f"the entity {edit.id} is there already", remedy="use it as it is")


def _holds(graph: KnowledgeGraph, fact: FactRow) -> bool:
    relation, tail = graph.find_relation(fact.relation), graph.find(fact.tail)
    if relation is None or tail is None:
        return False
    return graph.overlay.has_fact(graph.number(fact.head), relation, tail)


def _show(graph: KnowledgeGraph, fact: FactRow) -> str:
    tail = graph.find(fact.tail)
    shown = fact.tail if tail is None else f"{graph.label(tail)} ({fact.tail})"
    return f"{graph.label(graph.number(fact.head))} —{graph.relation_name(fact.relation)}→ {shown}"

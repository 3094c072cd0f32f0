"""The knowledge graph that the rest of the package uses: numbered nodes, edges as array slices, immediate edits.

graph = KnowledgeGraph.open("world.kg", writable=True)
obama = graph.number("Q76")
for relation, tail in zip(*graph.edges(obama)):
    print(graph.relation_label(relation), graph.label(tail))
graph.set("Q76", "P569", "2013-03-21")     # in memory and on disk, before this returns
graph.undo()

draft = graph.fork()                       # its edits stay in memory
draft.add("Q76", "P26", "Q6294")
"""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from kglm.errors import GraphError, UnknownIdError
from kglm.kg import journal
from kglm.kg.arrays import IntArray, LongArray
from kglm.kg.compiled import open_compiled
from kglm.kg.edits import FactEdit, NewEntity, RelationType, plan
from kglm.kg.head_facts import HeadFacts
from kglm.kg.ids import REVERSE, REVERSE_LABEL
from kglm.kg.journal import Change
from kglm.kg.literals.literal import is_date, is_literal, quantity_unit, render_literal
from kglm.kg.overlay import Edges, Overlay
from kglm.kg.schema import FactRow
from kglm.kg.statements import NOTHING_KNOWN, Statement
from kglm.kg.store import Found, Store

Edits = Literal["store", "memory", "refused"]
JOURNAL_LIMIT = 1000
"""Opening a graph replays at most this many changes on top of older arrays; with more, the arrays are rebuilt."""


class RaggedEdges(NamedTuple):
    """The edges of several nodes, concatenated: those of the i-th node are at offsets[i] : offsets[i + 1]."""

    offsets: LongArray
    relation: IntArray
    tail: IntArray


class KnowledgeGraph:
    """Facts, names and edits.

    Nodes, names and edges come from memory-mapped arrays; `search`, `hash` and edits also query the SQLite file.
    """

    def __init__(self, store: Store, overlay: Overlay, generation: int, edits: Edits) -> None:
        self.store = store
        self.overlay = overlay
        self.generation = generation
        """Number of the latest stored edit that this object includes."""
        self.edits: Edits = edits
        """Destination of edits: the store, memory only (a fork), or refused (opened for reading)."""
        self.author: str | None = None
        """Who makes the edits that are stored; recorded with them."""
        self._history: list[list[Change]] = []
        """Edits of a fork, without the undone ones."""
        self._editing = threading.RLock()
        self.unit_names: Callable[[str], Sequence[str]] = lru_cache(4096)(self._unit_names)

    @classmethod
    def open(cls, path: str | Path, *, writable: bool = False, whole: bool = False) -> KnowledgeGraph:
        """Open a graph file made by `kglm kg import`. Sizes and a sample of its blocks are checked; with `whole`, every
        byte is (see `Store.check` and `Artefact.check`)."""
        store = Store.open(path, writable=writable)
        if not store.integrity.sealed:
            print(
                f"note: {path} was made by an earlier version and has no checksums, so damage would go unnoticed;"
                f" add them with: kglm doctor {path} --repair",
                file=sys.stderr,
            )
        try:
            base = open_compiled(store, journal_limit=JOURNAL_LIMIT)
            graph = cls(store, Overlay(base), base.generation, "store" if writable else "refused")
            graph.refresh()
            if whole:
                graph.check()
        except BaseException:
            store.close()
            raise
        return graph

    def check(self) -> None:
        """Raise an error if a byte of the file or of its arrays is damaged."""
        self.store.check()
        self.overlay.base.artefact.check()

    def refresh(self) -> None:
        """Apply edits that other processes have stored since this graph was opened or last refreshed."""
        with self._editing, self.store.snapshot():
            changes = journal.changes_since(self.store, self.generation)
            self.generation = self.store.generation
            overlay = self.overlay.copy() if changes else self.overlay
            overlay.apply(changes)
            self.overlay = overlay

    def fork(self) -> KnowledgeGraph:
        """Copy of the graph whose edits stay in memory and do not affect this graph. Both share one open store."""
        fork = KnowledgeGraph(self.store, self.overlay.copy(), self.generation, "memory")
        fork._history = list(self._history)
        return fork

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> KnowledgeGraph:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"KnowledgeGraph({str(self.store.path)!r}, {len(self)} entities)"

    @property
    def hash(self) -> str:
        """Hash of the import and of every edit since, including unsaved edits of a fork."""
        stored = self.store.digest(self.generation)
        if not self._history:
            return stored
        edits = repr([[tuple(change) for change in changes] for changes in self._history])
        return hashlib.blake2b((stored + edits).encode(), digest_size=8).hexdigest()

    # Nodes

    def __len__(self) -> int:
        """Number of nodes, literals included; node numbers are 0 … len - 1."""
        return len(self.overlay)

    def __contains__(self, id: str) -> bool:
        return self.overlay.number(id) is not None

    def same_numbers(self, other: KnowledgeGraph) -> bool:
        """True if entities and relations have the same numbers in both graphs."""
        return (
            len(self) == len(other)
            and list(self.overlay.relations) == list(other.overlay.relations)
            and all(self.id(number) == other.id(number) for number in range(len(self)))
        )

    def find(self, id: str) -> int | None:
        """Node number of an id, or None. Accepts any spelling of a date or quantity id."""
        return self.overlay.number(id)

    def number(self, id: str) -> int:
        """Node number of an id; raises UnknownIdError if the graph does not contain it."""
        number = self.find(id)
        if number is None:
            raise UnknownIdError(
                f"no entity {id!r}", place=self.store.path, remedy="look for it with: kglm kg find KG TEXT"
            )
        return number

    def id(self, number: int) -> str:
        return self.overlay.id(number)

    def names(self, number: int) -> Sequence[str]:
        """Stored label and aliases; a literal has none."""
        base = self.overlay.base
        return base.names(number) if number < len(base) else self.overlay.names.get(number, ())

    def aliases(self, number: int) -> Sequence[str]:
        """Texts that name an entity, label first; for a literal, its renderings."""
        id = self.id(number)
        return render_literal(id, self.unit_names) if is_literal(id) else self.names(number)

    def label(self, number: int) -> str:
        """Display name: the label, a literal's first rendering (with its unit), or the id."""
        names = self.aliases(number)
        if not names:
            return self.id(number)
        unit = quantity_unit(self.id(number))
        units = self.unit_names(unit) if unit else ()
        return f"{names[0]} {units[0]}" if units else names[0]

    def literal_nodes(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Two masks over all nodes: literals, and dates only. Decided by the first letter of the id."""
        base, new_ids = self.overlay.base, self.overlay.ids
        first = base.id_bytes[base.id_offsets[:-1]]
        date = np.concatenate([first == ord("T"), np.array([is_date(id) for id in new_ids], np.bool_)])
        other = np.isin(first, (ord("V"), ord("S")))
        literal = np.concatenate([other, np.array([is_literal(id) for id in new_ids], np.bool_)])
        return literal | date, date

    def search(self, text: str, limit: int = 20) -> list[Found]:
        """Search the stored entities by id or name; entities that only a fork has created are not found."""
        return self.store.search(text, limit)

    def _unit_names(self, unit: str) -> Sequence[str]:
        number = self.find(unit)
        return () if number is None else tuple(self.names(number))

    # Relations. An index is 2 × the stored relation's number, + 1 for its reverse; 0 is reflexive.

    @property
    def relation_count(self) -> int:
        """Relation indices are below this."""
        return 2 * len(self.overlay.relations)

    def find_relation(self, id: str) -> int | None:
        number = self.overlay.relation_numbers.get(id.removeprefix(REVERSE))
        return None if number is None else 2 * number + id.startswith(REVERSE)

    def relation_id(self, index: int) -> str:
        id = self.overlay.relations[index >> 1]
        return REVERSE + id if index & 1 else id

    def relation_label(self, index: int) -> str:
        """Display name of a relation; a reverse relation has the same name after `←`."""
        label = self.relation_name(self.overlay.relations[index >> 1])
        return REVERSE_LABEL + label if index & 1 else label

    def relation_name(self, id: str) -> str:
        """Name of a stored relation; a qualifier is named by both parts: `member of sports team: position`."""
        number = self.overlay.relation_numbers.get(id)
        stored = self.overlay.base.relations
        if number is not None and number < len(stored) and (label := stored[number][1]):
            return label
        if ":" in id:
            return ": ".join(self.relation_name(part) for part in id.split(":"))
        entity = self.find(id)
        names = () if entity is None else self.names(entity)
        return names[0] if names else id

    def relation_names(self, id: str) -> list[str]:
        """Distinct names of a stored relation, label first."""
        entity = self.find(id)
        return list(dict.fromkeys([self.relation_name(id), *(() if entity is None else self.names(entity))]))

    def datatype(self, id: str) -> str:
        """Type of the values of a stored relation, as its import or an edit has said; empty if none has."""
        for change in reversed(self.pending):
            if change.action == "type" and change.head == id:
                return change.tail
        return self.store.datatype(id)

    # Edges

    def edges(self, number: int) -> Edges:
        """All edges of a node: reflexive, forward and reverse; sorted by (relation, tail)."""
        return self.overlay.edges(number)

    def edges_of(self, numbers: npt.ArrayLike) -> RaggedEdges:
        """All edges of many nodes at once."""
        nodes = np.asarray(numbers, np.int64)
        overlay, base = self.overlay, self.overlay.base
        edited = {
            place: overlay.edges(node)
            for place, node in enumerate(nodes.tolist())
            if node in overlay.touched or node >= len(base)
        }
        starts = base.edge_offsets[np.minimum(nodes, len(base) - 1)]
        lengths = base.edge_offsets[np.minimum(nodes + 1, len(base))] - starts
        for place, edges in edited.items():
            starts[place], lengths[place] = 0, len(edges.tail)
        offsets = np.zeros(len(nodes) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        if edited:  # the edges read here for edited nodes are placeholders, replaced below
            places = np.minimum(places, len(base.edge_tail) - 1)
        relation, tail = base.edge_relation[places], base.edge_tail[places]
        for place, edges in edited.items():
            part = slice(offsets[place], offsets[place + 1])
            relation[part], tail[part] = edges
        return RaggedEdges(offsets, relation, tail)

    def degrees(self, numbers: npt.ArrayLike) -> LongArray:
        """Number of edges of many nodes; edges of stored nodes are counted without reading them."""
        nodes = np.asarray(numbers, np.int64)
        offsets, stored = self.overlay.base.edge_offsets, len(self.overlay.base)
        degrees = offsets[np.minimum(nodes + 1, stored)] - offsets[np.minimum(nodes, stored)]
        for place, node in enumerate(nodes.tolist()):
            if node in self.overlay.touched or node >= stored:
                degrees[place] = len(self.edges(node).tail)
        return degrees

    def are_literals(self, numbers: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Mask of the nodes that are literals, decided by the first letter of the id."""
        nodes = np.asarray(numbers, np.int64)
        base = self.overlay.base
        stored = nodes < len(base)
        literal = np.zeros(len(nodes), np.bool_)
        literal[stored] = np.isin(base.id_bytes[base.id_offsets[nodes[stored]]], (ord("T"), ord("V"), ord("S")))
        literal[~stored] = [is_literal(self.id(node)) for node in nodes[~stored].tolist()]
        return literal

    def tails(self, head: int, relation: int) -> IntArray:
        """Tails e of all edges (head, relation, e), sorted."""
        edges = self.edges(head)
        start, end = np.searchsorted(edges.relation, [relation, relation + 1])
        return edges.tail[start:end]

    # Statements

    def statement(self, head: int, relation: int, tail: int) -> Statement:
        """Rank, times and sources of the fact of an edge; the default if nothing is known of it."""
        if relation & 1:
            head, relation, tail = tail, relation ^ 1, head
        overlay = self.overlay
        if (head, relation, tail) not in overlay.restated:
            places = overlay.base_places(head, relation, np.array([tail], np.int32))
            if not len(places) or not overlay.base.statements.between(places[0], places[0] + 1):
                return NOTHING_KNOWN
        fact = FactRow(self.id(head), self.relation_id(relation), self.id(tail))
        return HeadFacts(self.store, overlay.base.spellings, fact.head, self.pending).statement(fact)

    def source_label(self, source: str) -> str:
        """Display name of a source: the label of a work that the graph has, else the address or text itself."""
        return source if (number := self.find(source)) is None else self.label(number)

    # Edits

    def add(self, head: str, relation: str, tail: str) -> list[Change]:
        """Add a fact. It is on disk when this returns, unless this is a fork."""
        return self.edit([FactEdit("add", head, relation, tail)])

    def remove(self, head: str, relation: str, tail: str) -> list[Change]:
        return self.edit([FactEdit("remove", head, relation, tail)])

    def set(self, head: str, relation: str, tail: str) -> list[Change]:
        """Make (head, relation, tail) the only fact of that head and relation."""
        return self.edit([FactEdit("set", head, relation, tail)])

    def edit(self, edits: Sequence[FactEdit | NewEntity | RelationType]) -> list[Change]:
        """Apply several edits as one: all or none, undone by one `undo`. Returns the changes."""
        self._check_editable()
        with self._editing:
            while True:
                draft = self.fork()
                changes: list[Change] = []
                for edit in edits:
                    step = plan(draft, edit)
                    draft.apply_planned(step)
                    changes += step
                if self._commit(changes, draft.overlay):
                    return changes

    def undo(self) -> list[Change]:
        """Undo the latest edit that is not yet undone. Returns the changes."""
        self._check_editable()
        with self._editing:
            while True:
                if self.edits == "store":
                    number, changes = journal.last_edit(self.store)
                elif self._history:
                    number, changes = 0, journal.inverse(self._history[-1])
                else:
                    raise GraphError("has no edit to undo", place=self.store.path, remedy="nothing was changed")
                overlay = self.overlay.copy()
                overlay.apply(changes)
                if self._commit(changes, overlay, undoes=number):
                    return changes

    def apply_planned(self, changes: list[Change]) -> None:
        """Apply already planned changes to this fork, as one edit."""
        self.overlay.apply(changes)
        self._history.append(changes)

    @property
    def pending(self) -> list[Change]:
        """Changes of a fork that are not in the store."""
        return [change for changes in self._history for change in changes]

    def _check_editable(self) -> None:
        if self.edits == "refused":
            raise GraphError(
                "was opened for reading",
                place=self.store.path,
                remedy="open it with writable=True, or edit a fork() of it in memory",
            )

    def _commit(self, changes: list[Change], overlay: Overlay, undoes: int | None = None) -> bool:
        """Write to the store, then update memory. False if another process edited first: the caller plans again."""
        if self.edits == "store":
            try:
                self.generation = journal.apply(
                    self.store, changes, expected=self.generation, undoes=undoes, author=self.author
                )
            except journal.Conflict:
                self.refresh()
                return False
        elif undoes is None:
            self._history.append(changes)
        else:
            self._history.pop()
        self.overlay = overlay
        return True

"""Edits of each visitor, on top of the graph as it is served: in memory, seen by nobody else, undone one by one.

All of it is used by the computing thread alone.
"""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections import OrderedDict
from itertools import islice
from typing import NamedTuple

from kglm.answer.model import FactAwareLM
from kglm.errors import GraphError, LiteralError
from kglm.kg.edits import FactEdit, resolve_edit
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.journal import Change
from kglm.serve.problems import Problem
from kglm.serve.settings import Limits

WARM = 16
"""Sessions whose models are kept; the others keep their edits only."""


class Done(NamedTuple):
    """An edit by ids, and what it changed."""

    edit: FactEdit
    changes: tuple[Change, ...]

    @property
    def removed(self) -> list[str]:
        """The tails that went."""
        edit = self.edit
        same = (change for change in self.changes if change.action == "remove")
        return [each.tail for each in same if (each.head, each.relation) == (edit.head, edit.relation)]


class Session:
    """One visitor's edits, and the model that follows them."""

    def __init__(self, base: FactAwareLM) -> None:
        self.base = base
        self.done: list[Done] = []
        self.used = time.monotonic()
        self._live: FactAwareLM | None = None

    @property
    def live(self) -> FactAwareLM:
        """The model with these edits and no others."""
        if not self.done:
            return self.base
        if self._live is None:
            fork = self.base.graph.fork()
            for each in self.done:
                fork.apply_planned(list(each.changes))
            self._live = FactAwareLM(self.base.run.on(fork), self.base)
        return self._live

    def cool(self) -> None:
        """Keep the edits, not the model: it is quickly made again."""
        self._live = None

    def edit(self, wanted: FactEdit) -> Done:
        """One more edit, by ids or names."""
        fork = self.live.graph.fork()
        edit = resolve_edit(fork, wanted)
        self.done.append(Done(edit, tuple(fork.edit([edit]))))
        self.cool()
        return self.done[-1]

    def undo(self) -> Done:
        """Take back the last edit: all is as if it had never been."""
        if not self.done:
            raise Problem(404, "this session has no edit to undo", "nothing_to_undo")
        self.cool()
        return self.done.pop()

    def rebase(self, base: FactAwareLM) -> None:
        """The same edits on a graph that has changed; one that is not possible any more is dropped."""
        edits = [each.edit for each in self.done]
        fork, self.base, self.done = base.graph.fork(), base, []
        self.cool()
        for edit in edits:
            try:
                self.done.append(Done(edit, tuple(fork.edit([edit]))))
            except (GraphError, LiteralError):
                continue


class Sessions:
    """The model on the graph as it is served, and on each visitor's."""

    def __init__(self, live: FactAwareLM, limits: Limits) -> None:
        self._first = live
        self._base = live
        self._limits = limits
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def new(self) -> str:
        """A session without edits. If there are too many, another such goes, or else the one that was idle longest."""
        self._forget()
        while len(self._sessions) >= self._limits.sessions:
            bare = (name for name, session in self._sessions.items() if not session.done)
            del self._sessions[next(bare, next(iter(self._sessions)))]
        name = secrets.token_urlsafe(24)
        self._sessions[name] = Session(self.served())
        return name

    def get(self, name: str) -> Session:
        """A session that is there, with all that happened to the graph since."""
        self._forget()
        session = self._sessions.get(name)
        if session is None:
            raise Problem(404, "no such session, or it was idle for too long; begin another", "no_session")
        session.used = time.monotonic()
        self._sessions.move_to_end(name)
        base = self.served()
        if session.base is not base:
            session.rebase(base)
        for other in islice(reversed(self._sessions.values()), WARM, None):
            other.cool()
        return session

    def _forget(self) -> None:
        oldest = time.monotonic() - self._limits.session_seconds
        while self._sessions and next(iter(self._sessions.values())).used < oldest:
            self._sessions.popitem(last=False)

    def served(self) -> FactAwareLM:
        """The model on the graph as it is stored now, whoever edited it."""
        graph = self._base.graph
        try:
            if graph.store.generation == graph.generation:
                return self._base
            first = self._first.graph
            fresh = KnowledgeGraph(first.store, first.overlay.copy(), first.generation, "refused")
            fresh.refresh()
        except sqlite3.OperationalError:  # someone is writing right now: next time
            return self._base
        self._base = FactAwareLM(self._first.run.on(fresh), self._first)
        return self._base

    def persist(self, session: Session) -> int:
        """Write a session's edits into the graph file: one step of its journal, on disk when this returns."""
        if not session.done:
            raise Problem(422, "this session has no edits to store", "nothing_to_persist")
        edits = [each.edit for each in session.done]
        with KnowledgeGraph.open(self._first.graph.store.path, writable=True) as stored:
            stored.edit(edits)
        session.done = []
        session.rebase(self.served())
        return len(edits)

"""Sessions: edits on top of the stored graph, in memory, visible only within the session, undone one by one.

Used by the compute thread alone.
"""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from kglm.answer.pretrained.model import AnyModel
from kglm.errors import GraphError, LiteralError
from kglm.kg.edits import FactEdit, resolve_edit
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.journal import Change
from kglm.serve.problems import Problem
from kglm.serve.settings import Limits

MODELS_IN_MEMORY = 16
"""Recently used sessions that keep their model in memory; the others keep only their edits."""


class AppliedEdit(NamedTuple):
    """An edit by ids, and the changes it made to the graph."""

    edit: FactEdit
    changes: tuple[Change, ...]

    @property
    def removed(self) -> list[str]:
        """Tails of the facts that the edit removed."""
        key = (self.edit.head, self.edit.relation)
        removals = (change for change in self.changes if change.action == "remove")
        return [change.tail for change in removals if (change.head, change.relation) == key]


class Session:
    """The edits of one session, and the model with these edits."""

    def __init__(self, base: AnyModel, now: float) -> None:
        """`base` is the model on the stored graph."""
        self.base = base
        self.edits: list[AppliedEdit] = []
        self.last_used = now
        self._model: AnyModel | None = None

    @property
    def model(self) -> AnyModel:
        """The base model with the edits of this session."""
        if not self.edits:
            return self.base
        if self._model is None:
            fork = self.base.graph.fork()
            for applied in self.edits:
                fork.apply_planned(list(applied.changes))
            self._model = self.base.on(fork)
        return self._model

    def drop_model(self) -> None:
        """Free the model; `model` rebuilds it from the edits."""
        self._model = None

    def edit(self, edit: FactEdit) -> AppliedEdit:
        """Apply one more edit, given by ids or names."""
        fork = self.model.graph.fork()
        resolved = resolve_edit(fork, edit)
        self.edits.append(AppliedEdit(resolved, tuple(fork.edit([resolved]))))
        self.drop_model()
        return self.edits[-1]

    def undo(self) -> AppliedEdit:
        """Undo the last edit and return it."""
        if not self.edits:
            raise Problem(404, "this session has no edit to undo", "nothing_to_undo")
        self.drop_model()
        return self.edits.pop()

    def rebase(self, base: AnyModel) -> None:
        """Repeat the edits on a stored graph that has changed; drop those that are no longer possible."""
        edits = [applied.edit for applied in self.edits]
        fork, self.base, self.edits = base.graph.fork(), base, []
        self.drop_model()
        for edit in edits:
            try:
                self.edits.append(AppliedEdit(edit, tuple(fork.edit([edit]))))
            except (GraphError, LiteralError):
                continue


class Sessions:
    """The model on the stored graph, and the open sessions. Tests replace `clock`."""

    def __init__(self, model: AnyModel, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._first = model
        self._base = model
        self._limits = limits
        self.clock = clock
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        """By name, the least recently used first."""

    def __len__(self) -> int:
        return len(self._sessions)

    def new(self) -> str:
        """Open a session without edits and return its name.

        If there are too many, close another one without edits; if all have edits, the least recently used.
        """
        self._close_idle()
        while len(self._sessions) >= self._limits.sessions:
            unedited = (name for name, session in self._sessions.items() if not session.edits)
            del self._sessions[next(unedited, next(iter(self._sessions)))]
        name = secrets.token_urlsafe(24)
        self._sessions[name] = Session(self.stored_model(), self.clock())
        return name

    def get(self, name: str) -> Session:
        """An open session, rebased if the stored graph has changed."""
        self._close_idle()
        session = self._sessions.get(name)
        if session is None:
            raise Problem(404, "no such session, or it was idle for too long; open another", "no_session")
        session.last_used = self.clock()
        self._sessions.move_to_end(name)
        base = self.stored_model()
        if session.base is not base:
            session.rebase(base)
        for other in islice(reversed(self._sessions.values()), MODELS_IN_MEMORY, None):
            other.drop_model()
        return session

    def _close_idle(self) -> None:
        oldest = self.clock() - self._limits.session_seconds
        while self._sessions and next(iter(self._sessions.values())).last_used < oldest:
            self._sessions.popitem(last=False)

    def stored_model(self) -> AnyModel:
        """The model on the graph file as it is now, including edits by other processes."""
        graph = self._base.graph
        try:
            if graph.store.generation == graph.generation:
                return self._base
            first = self._first.graph
            fresh = KnowledgeGraph(first.store, first.overlay.copy(), first.generation, "refused")
            fresh.refresh()
        except sqlite3.OperationalError:  # another process is writing; the next call tries again
            return self._base
        self._base = self._first.on(fresh)
        return self._base

    def persist(self, session: Session) -> int:
        """Write a session's edits to the graph file as one step of its journal; return their number.

        They are on disk when this returns.
        """
        if not session.edits:
            raise Problem(422, "this session has no edits to store", "nothing_to_persist")
        edits = [applied.edit for applied in session.edits]
        with KnowledgeGraph.open(self._first.graph.store.path, writable=True) as stored:
            stored.edit(edits)
        session.edits = []
        session.rebase(self.stored_model())
        return len(edits)

"""Routes of sessions and their edits."""

from __future__ import annotations

from itertools import islice

from fastapi import APIRouter, Request

from kglm.kg.edits import FactEdit
from kglm.kg.graph import KnowledgeGraph
from kglm.serve import bodies, views
from kglm.serve.problems import Problem
from kglm.serve.routes import SessionName, service_of
from kglm.serve.sessions import AppliedEdit, Session
from kglm.serve.work import YieldPoint

router = APIRouter(prefix="/api")
MAX_REMOVED = 100
"""Removed tails that a response lists; an edit of a hub can remove many more."""


def edit_body(graph: KnowledgeGraph, number: int, applied: AppliedEdit) -> bodies.Edit:
    edit = applied.edit
    head, tail = views.entity_of(graph, edit.head), views.entity_of(graph, edit.tail)
    relation = views.relation_of(graph, edit.relation)
    removed = (id for id in applied.removed if id != edit.tail or edit.action == "remove")
    return bodies.Edit(
        number=number,
        action=edit.action,
        head=head,
        relation=relation,
        tail=tail,
        text=f"{head.label} —{relation.label}→ {tail.label}",
        removed=[views.entity_of(graph, id) for id in islice(removed, MAX_REMOVED)],
    )


def edit_bodies(session: Session) -> list[bodies.Edit]:
    return [edit_body(session.model.graph, number, applied) for number, applied in enumerate(session.edits, 1)]


@router.post("/sessions", status_code=201)
async def new_session(request: Request) -> bodies.SessionResponse:
    """Open a session. Its edits are visible only to requests that send its name."""
    service = service_of(request)
    name = await service.compute(request, lambda _: service.new_session(), light=True)
    return bodies.SessionResponse(session=name)


@router.get("/edits")
async def edits(request: Request, session: SessionName = None) -> bodies.EditsResponse:
    """The edits of a session, oldest first."""
    service = service_of(request)

    def task(_: YieldPoint) -> list[bodies.Edit]:
        return [] if session is None else edit_bodies(service.sessions.get(session))

    result = await service.compute(request, task, light=True)
    return bodies.EditsResponse(edits=result, allow_edit=service.config.allow_edit, persist=service.config.persist)


@router.post("/edits", status_code=201)
async def edit(request: Request, body: bodies.EditRequest, session: SessionName = None) -> bodies.EditResponse:
    """Edit a fact in this session; the next response includes the edit."""
    service = service_of(request)

    def task(_: YieldPoint) -> bodies.EditResponse:
        own = service.session(session)
        if len(own.edits) >= service.config.limits.edits:
            raise Problem(422, f"a session has at most {len(own.edits)} edits; undo some first", "too_many_edits")
        own.edit(FactEdit(body.action, body.head, body.relation, body.tail))
        result = edit_bodies(own)
        return bodies.EditResponse(edit=result[-1], edits=result)

    return await service.compute(request, task, light=True)


@router.delete("/edits/last")
async def undo(request: Request, session: SessionName = None) -> bodies.UndoResponse:
    """Undo the last edit of this session."""
    service = service_of(request)

    def task(_: YieldPoint) -> bodies.UndoResponse:
        own = service.session(session)
        number, graph = len(own.edits), own.model.graph
        undone = edit_body(graph, number, own.undo())
        return bodies.UndoResponse(undone=undone, edits=edit_bodies(own))

    return await service.compute(request, task, light=True)


@router.post("/edits/persist")
async def persist(request: Request, session: SessionName = None) -> bodies.PersistResponse:
    """Write the edits of this session to the graph file, as one step that `kglm kg edit KG --undo` can undo."""
    service = service_of(request)
    if not service.config.persist:
        raise Problem(403, "storing edits is off; start the server with --persist", "persist_off")

    def task(_: YieldPoint) -> bodies.PersistResponse:
        own = service.session(session)
        count = service.sessions.persist(own)
        return bodies.PersistResponse(persisted=count, edits=edit_bodies(own))

    return await service.compute(request, task)

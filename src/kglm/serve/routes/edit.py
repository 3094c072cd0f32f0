"""Routes of sessions and their edits."""

from __future__ import annotations

from fastapi import APIRouter, Request

from kglm.kg.edits import FactEdit
from kglm.kg.graph import KnowledgeGraph
from kglm.serve import bodies, views
from kglm.serve.problems import Problem
from kglm.serve.routes import SessionName, service_of
from kglm.serve.sessions import Done, Session
from kglm.serve.work import Pause

router = APIRouter(prefix="/api")


def told(graph: KnowledgeGraph, number: int, done: Done) -> bodies.Edit:
    edit = done.edit
    head, tail = views.entity_of(graph, edit.head), views.entity_of(graph, edit.tail)
    relation = views.relation_of(graph, edit.relation)
    return bodies.Edit(
        number=number,
        action=edit.action,
        head=head,
        relation=relation,
        tail=tail,
        text=f"{head.label} —{relation.label}→ {tail.label}",
        removed=[views.entity_of(graph, id) for id in done.removed if id != edit.tail or edit.action == "remove"],
    )


def all_told(session: Session) -> list[bodies.Edit]:
    return [told(session.live.graph, number, done) for number, done in enumerate(session.done, 1)]


@router.post("/sessions", status_code=201)
async def begin(request: Request) -> bodies.SessionResponse:
    """A session: edits that nobody else sees."""
    service = service_of(request)
    name = await service.compute(request, lambda _: service.begin(), light=True)
    return bodies.SessionResponse(session=name)


@router.get("/edits")
async def edits(request: Request, session: SessionName = None) -> bodies.EditsResponse:
    """The edits of a session, the first first."""
    service = service_of(request)

    def task(_: Pause) -> list[bodies.Edit]:
        return [] if session is None else all_told(service.sessions.get(session))

    found = await service.compute(request, task, light=True)
    return bodies.EditsResponse(edits=found, allow_edit=service.config.allow_edit, persist=service.config.persist)


@router.post("/edits", status_code=201)
async def edit(request: Request, body: bodies.EditRequest, session: SessionName = None) -> bodies.EditResponse:
    """Change a fact for this session; the next answer follows it."""
    service = service_of(request)

    def task(_: Pause) -> bodies.EditResponse:
        own = service.session(session)
        if len(own.done) >= service.config.limits.edits:
            raise Problem(422, f"{len(own.done)} edits are enough for one session; undo some", "too_many_edits")
        own.edit(FactEdit(body.action, body.head, body.relation, body.tail))
        found = all_told(own)
        return bodies.EditResponse(edit=found[-1], edits=found)

    return await service.compute(request, task, light=True)


@router.delete("/edits/last")
async def undo(request: Request, session: SessionName = None) -> bodies.UndoResponse:
    """Take back the last edit of this session."""
    service = service_of(request)

    def task(_: Pause) -> bodies.UndoResponse:
        own = service.session(session)
        number, graph = len(own.done), own.live.graph
        undone = told(graph, number, own.undo())
        return bodies.UndoResponse(undone=undone, edits=all_told(own))

    return await service.compute(request, task, light=True)


@router.post("/edits/persist")
async def persist(request: Request, session: SessionName = None) -> bodies.PersistResponse:
    """Write the edits of this session into the graph file, as one step that `kglm kg edit KG --undo` takes back."""
    service = service_of(request)
    if not service.config.persist:
        raise Problem(403, "edits are not stored; the server must be started with --persist", "persist_off")

    def task(_: Pause) -> bodies.PersistResponse:
        own = service.session(session)
        count = service.sessions.persist(own)
        return bodies.PersistResponse(persisted=count, edits=all_told(own))

    return await service.compute(request, task)

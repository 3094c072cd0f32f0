"""Routes of sessions and their edits."""

from __future__ import annotations

from fastapi import APIRouter, Request

from kglm.kg.edits import FactEdit
from kglm.kg.graph import KnowledgeGraph
from kglm.serve import shapes, views
from kglm.serve.answering import SessionName, service_of
from kglm.serve.problems import Problem
from kglm.serve.sessions import Done, Session
from kglm.serve.work import Pause

router = APIRouter(prefix="/api")


def told(graph: KnowledgeGraph, number: int, done: Done) -> shapes.Edit:
    edit = done.edit
    head, tail = views.entity_of(graph, edit.head), views.entity_of(graph, edit.tail)
    relation = views.relation_of(graph, edit.relation)
    return shapes.Edit(
        number=number,
        action=edit.action,
        head=head,
        relation=relation,
        tail=tail,
        text=f"{head.label} —{relation.label}→ {tail.label}",
        removed=[views.entity_of(graph, id) for id in done.removed if id != edit.tail or edit.action == "remove"],
    )


def all_told(session: Session) -> list[shapes.Edit]:
    return [told(session.live.graph, number, done) for number, done in enumerate(session.done, 1)]


@router.post("/sessions", status_code=201)
async def begin(request: Request) -> shapes.SessionTold:
    """A session: edits that nobody else sees."""
    service = service_of(request)
    name = await service.compute(request, lambda _: service.begin(), light=True)
    return shapes.SessionTold(session=name)


@router.get("/edits")
async def edits(request: Request, session: SessionName = None) -> shapes.Edits:
    """The edits of a session, the first first."""
    service = service_of(request)

    def task(_: Pause) -> list[shapes.Edit]:
        return [] if session is None else all_told(service.sessions.get(session))

    found = await service.compute(request, task, light=True)
    return shapes.Edits(edits=found, allow_edit=service.config.allow_edit, persist=service.config.persist)


@router.post("/edits", status_code=201)
async def edit(request: Request, asked: shapes.EditAsked, session: SessionName = None) -> shapes.Edited:
    """Change a fact for this session; the next answer follows it."""
    service = service_of(request)

    def task(_: Pause) -> shapes.Edited:
        own = service.session(session)
        if len(own.done) >= service.config.limits.edits:
            raise Problem(422, f"{len(own.done)} edits are enough for one session; undo some", "too_many_edits")
        own.edit(FactEdit(asked.action, asked.head, asked.relation, asked.tail))
        found = all_told(own)
        return shapes.Edited(edit=found[-1], edits=found)

    return await service.compute(request, task, light=True)


@router.delete("/edits/last")
async def undo(request: Request, session: SessionName = None) -> shapes.Undone:
    """Take back the last edit of this session."""
    service = service_of(request)

    def task(_: Pause) -> shapes.Undone:
        own = service.session(session)
        number, graph = len(own.done), own.live.graph
        undone = told(graph, number, own.undo())
        return shapes.Undone(undone=undone, edits=all_told(own))

    return await service.compute(request, task, light=True)


@router.post("/edits/persist")
async def persist(request: Request, session: SessionName = None) -> shapes.Persisted:
    """Write the edits of this session into the graph file, as one step that `kglm kg edit KG --undo` takes back."""
    service = service_of(request)
    if not service.config.persist:
        raise Problem(403, "edits are not stored; the server must be started with --persist", "persist_off")

    def task(_: Pause) -> shapes.Persisted:
        own = service.session(session)
        count = service.sessions.persist(own)
        return shapes.Persisted(persisted=count, edits=all_told(own))

    return await service.compute(request, task)

"""Routes that look things up: entities, relations, documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, TypeVar

from fastapi import APIRouter, Path, Query, Request

from kglm.kg.graph import KnowledgeGraph
from kglm.serve import bodies, views
from kglm.serve.explore import DocumentFilter
from kglm.serve.problems import Problem
from kglm.serve.routes import SessionName, service_of
from kglm.serve.service import Service
from kglm.serve.work import LIGHT_WORDS, Pause

T = TypeVar("T")
router = APIRouter(prefix="/api")

Sought = Annotated[str, Query(max_length=200, description="A name, or the beginning of one.")]
Offset = Annotated[int, Query(ge=0, le=10_000_000)]
Limit = Annotated[int, Query(ge=1, le=100)]
Id = Annotated[str, Query(min_length=1, max_length=300)]
EntityId = Annotated[str, Path(min_length=1, max_length=300)]
Number = Annotated[int, Path(ge=1, le=2**31)]
Source = Annotated[Literal["WIKI", "NEL", "KG", "COREF"] | None, Query()]


async def _looked_up(request: Request, session: str | None, look: Callable[[Service, KnowledgeGraph], T]) -> T:
    """What is found in the graph that this visitor sees."""
    service = service_of(request)
    return await service.compute(request, lambda _: look(service, service.model(session).graph), light=True)


@router.get("/entities")
async def entities(
    request: Request, q: Sought = "", limit: Limit = 20, session: SessionName = None
) -> bodies.EntitiesResponse:
    """Entities by name or id: exact matches first, then names that start so or have the words."""

    def look(service: Service, graph: KnowledgeGraph) -> bodies.EntitiesResponse:
        nodes = service.lookup.entities(graph, q, limit)
        return bodies.EntitiesResponse(entities=[views.entity_summary(graph, node) for node in nodes])

    return await _looked_up(request, session, look)


@router.get("/entities/{id:path}")
async def entity(
    request: Request, id: EntityId, offset: Offset = 0, limit: Limit = 100, session: SessionName = None
) -> bodies.EntityResponse:
    """An entity: its names, its facts, and the facts that point at it."""

    def look(_: Service, graph: KnowledgeGraph) -> bodies.EntityResponse:
        node = graph.find(id)
        if node is None:
            raise Problem(404, f"no entity {id!r}; look for it with /api/entities?q=", "unknown_id")
        return views.entity_response(graph, node, offset, limit)

    return await _looked_up(request, session, look)


@router.get("/relations")
async def relations(
    request: Request, q: Sought = "", limit: Limit = 20, session: SessionName = None
) -> bodies.RelationsResponse:
    """Relations by id, name or alias: those that are called so, then those whose name starts so or has the words."""

    def look(service: Service, graph: KnowledgeGraph) -> bodies.RelationsResponse:
        best = service.lookup.relations(graph, q, limit)
        return bodies.RelationsResponse(relations=[views.relation_of(graph, id) for id in best])

    return await _looked_up(request, session, look)


@router.get("/documents")
async def documents(
    request: Request,
    q: Sought = "",
    source: Source = None,
    relation: Id | None = None,
    entity: Id | None = None,
    offset: Offset = 0,
    limit: Limit = 20,
) -> bodies.DocumentsResponse:
    """Documents that have the words, and a mention that fits."""
    service, wanted = service_of(request), DocumentFilter(q, source, relation, entity)

    def task(_: Pause) -> bodies.DocumentsResponse:
        numbers = service.library.find(wanted)
        return bodies.DocumentsResponse(
            total=len(numbers),
            documents=[
                bodies.DocumentSummary(
                    number=number,
                    title=service.library[number].title,
                    words=sum(map(len, service.library[number].sentences())),
                    mentions=len(service.library[number].mentions),
                    excerpt=service.library.excerpt(number, wanted),
                )
                for number in numbers[offset : offset + limit]
            ],
        )

    return await service.compute(request, task, light=True)


@router.get("/documents/{number}")
async def document(
    request: Request,
    number: Number,
    q: Sought = "",
    source: Source = None,
    relation: Id | None = None,
    entity: Id | None = None,
    session: SessionName = None,
) -> bodies.DocumentResponse:
    """A document with its mentions, and its neighbours among those that fit."""
    service, wanted = service_of(request), DocumentFilter(q, source, relation, entity)

    def task(_: Pause) -> bodies.DocumentResponse:
        if number > len(service.library):
            there = f"there are {len(service.library):,}" if len(service.library) else "there are none here"
            raise Problem(404, f"there is no document {number:,}; {there}", "no_document")
        around = service.library.around(service.library.find(wanted), number)
        return views.document(service.model(session).graph, service.library[number], number, *around)

    short = number > len(service.library) or len(service.library[number].tokens) <= LIGHT_WORDS
    return await service.compute(request, task, light=short)

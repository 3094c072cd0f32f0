"""Read-only routes: entities, relations, documents."""

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
from kglm.serve.work import LIGHT_WORDS, YieldPoint

T = TypeVar("T")
router = APIRouter(prefix="/api")

NameQuery = Annotated[str, Query(max_length=200, description="A name, or the start of one.")]
WordsQuery = Annotated[str, Query(max_length=200, description="Words that the document contains.")]
Offset = Annotated[int, Query(ge=0, le=10_000_000, description="Number of results to skip.")]
Limit = Annotated[int, Query(ge=1, le=100, description="Maximum number of results.")]
RelationQuery = Annotated[
    str | None, Query(min_length=1, max_length=300, description="Id of a relation that leads to a mention.")
]
EntityQuery = Annotated[str | None, Query(min_length=1, max_length=300, description="Id of a mentioned entity.")]
EntityId = Annotated[str, Path(min_length=1, max_length=300, description="Id of an entity, a date or a quantity.")]
Number = Annotated[int, Path(ge=1, le=2**31, description="Number of a document, from 1.")]
Source = Annotated[Literal["WIKI", "NEL", "KG", "COREF"] | None, Query(description="Source of a mention.")]


async def _search(request: Request, session: str | None, search: Callable[[Service, KnowledgeGraph], T]) -> T:
    """Search the graph of this session, including its unsaved edits."""
    service = service_of(request)
    return await service.compute(request, lambda _: search(service, service.session_model(session).graph), light=True)


@router.get("/entities")
async def entities(
    request: Request, q: NameQuery = "", limit: Limit = 20, session: SessionName = None
) -> bodies.EntitiesResponse:
    """Find entities by name or id: exact matches first, then names that start with the text or have its words."""

    def search(service: Service, graph: KnowledgeGraph) -> bodies.EntitiesResponse:
        nodes = service.lookup.entities(graph, q, limit)
        return bodies.EntitiesResponse(entities=[views.entity_summary(graph, node) for node in nodes])

    return await _search(request, session, search)


@router.get("/entities/{id:path}")
async def entity(
    request: Request, id: EntityId, offset: Offset = 0, limit: Limit = 100, session: SessionName = None
) -> bodies.EntityResponse:
    """An entity: its names, and its facts as head and as tail."""

    def search(_: Service, graph: KnowledgeGraph) -> bodies.EntityResponse:
        node = graph.find(id)
        if node is None:
            raise Problem(404, f"no entity {id!r}; search with /api/entities?q=", "unknown_id")
        return views.entity_response(graph, node, offset, limit)

    return await _search(request, session, search)


@router.get("/relations")
async def relations(
    request: Request, q: NameQuery = "", limit: Limit = 20, session: SessionName = None
) -> bodies.RelationsResponse:
    """Find relations by id, name or alias, in the same order as entities."""

    def search(service: Service, graph: KnowledgeGraph) -> bodies.RelationsResponse:
        ids = service.lookup.relations(graph, q, limit)
        return bodies.RelationsResponse(relations=[views.relation_of(graph, id) for id in ids])

    return await _search(request, session, search)


@router.get("/documents")
async def documents(
    request: Request,
    q: WordsQuery = "",
    source: Source = None,
    relation: RelationQuery = None,
    entity: EntityQuery = None,
    offset: Offset = 0,
    limit: Limit = 20,
) -> bodies.DocumentsResponse:
    """Find documents that contain the words, and a mention with this source, relation and entity."""
    service, filter = service_of(request), DocumentFilter(q, source, relation, entity)

    def task(_: YieldPoint) -> bodies.DocumentsResponse:
        numbers = service.library.find(filter)
        return bodies.DocumentsResponse(
            total=len(numbers),
            documents=[
                bodies.DocumentSummary(
                    number=number,
                    title=service.library[number].title,
                    words=sum(map(len, service.library[number].sentences())),
                    mentions=len(service.library[number].mentions),
                    excerpt=service.library.excerpt(number, filter),
                )
                for number in numbers[offset : offset + limit]
            ],
        )

    return await service.compute(request, task, light=True)


@router.get("/documents/{number}")
async def document(
    request: Request,
    number: Number,
    q: WordsQuery = "",
    source: Source = None,
    relation: RelationQuery = None,
    entity: EntityQuery = None,
    session: SessionName = None,
) -> bodies.DocumentResponse:
    """A document with its mentions, and the numbers before and after it in the search result."""
    service, filter = service_of(request), DocumentFilter(q, source, relation, entity)

    def task(_: YieldPoint) -> bodies.DocumentResponse:
        if number > len(service.library):
            last = f"the last is {len(service.library):,}" if len(service.library) else "this server has none"
            raise Problem(404, f"there is no document {number:,}; {last}", "no_document")
        neighbours = service.library.neighbours(service.library.find(filter), number)
        return views.document(service.session_model(session).graph, service.library[number], number, *neighbours)

    light = number > len(service.library) or len(service.library[number].tokens) <= LIGHT_WORDS
    return await service.compute(request, task, light=light)

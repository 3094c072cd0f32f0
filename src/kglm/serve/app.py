"""The application: routes, and how what goes wrong is told."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import FastAPI, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException

from kglm import __version__
from kglm.errors import KglmError
from kglm.serve import bodies
from kglm.serve.guard import Guard
from kglm.serve.problems import Problem, from_error
from kglm.serve.routes import answer, edit, read, service_of
from kglm.serve.service import Service

REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": bodies.ErrorResponse, "description": text}
    for status, text in {
        400: "The request is malformed.",
        401: "The token is missing or wrong.",
        403: "This is not allowed here.",
        404: "There is no such thing.",
        405: "There is no such method.",
        408: "The request took too long to arrive.",
        413: "The body is too large.",
        415: "The body is not application/json.",
        422: "What the request asks for cannot be done.",
        429: "Too many requests are waiting.",
        503: "It waited or took too long, or the server is going down.",
    }.items()
}


def make_app(service: Service) -> Guard:
    """The ASGI application of a service."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="kglm",
        version=__version__,
        description="Language models that take their facts from a knowledge graph.",
        docs_url=None,
        redoc_url=None,
        responses=REFUSALS,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.service = service
    for router in (answer.router, edit.router, read.router):
        app.include_router(router)
    app.get("/api/health")(health)
    app.get("/metrics", response_class=PlainTextResponse)(metrics)
    app.get("/", include_in_schema=False)(index)
    app.get("/page/{name}", include_in_schema=False)(part)
    app.add_exception_handler(Problem, _tell_problem)
    app.add_exception_handler(KglmError, _tell_error)
    app.add_exception_handler(RequestValidationError, _tell_misfit)
    app.add_exception_handler(sqlite3.DatabaseError, _tell_store)
    app.add_exception_handler(HTTPException, _tell_http)
    app.add_exception_handler(Exception, _tell_mistake)
    return Guard(app, service.config, service.metrics)


async def health(request: Request) -> bodies.HealthResponse:
    """What is served, and within which limits."""
    return service_of(request).health()


async def metrics(request: Request) -> PlainTextResponse:
    """Counts, for Prometheus."""
    text = service_of(request).metrics_text()
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


async def index(request: Request) -> Response:
    return await part(request, "index.html")


async def part(request: Request, name: Annotated[str, Path(max_length=100)]) -> Response:
    file = service_of(request).page.get(name)
    if file is None:
        raise Problem(404, "the page has no such part")
    return Response(file.content, media_type=file.type)


def _told(problem: Problem) -> JSONResponse:
    return JSONResponse(problem.content, problem.status, problem.headers)


async def _tell_problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return _told(error)


async def _tell_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, KglmError)
    return _told(from_error(error))


async def _tell_misfit(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part)[:60] for part in first["loc"])
    return _told(Problem(422, f"{where}: {first['msg']}"))


async def _tell_http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = {404: "there is nothing here", 405: "this address does not take that method"}
    text = message.get(error.status_code, str(error.detail))
    return _told(Problem(error.status_code, text, **dict(error.headers or {})))


async def _tell_mistake(_: Request, __: Exception) -> Response:
    return _told(Problem(500, "a mistake of the server's own"))


async def _tell_store(_: Request, error: Exception) -> Response:
    """A graph file that cannot be read or written at this moment: another process writes, or the disk is full."""
    print(f"warning: {error}", file=sys.stderr)
    return _told(Problem(503, "the graph cannot be read or written right now; come again soon", Retry_After="5"))

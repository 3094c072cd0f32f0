"""The ASGI application: routes and error responses."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException

from kglm import __version__
from kglm.errors import KglmError
from kglm.serve import bodies
from kglm.serve.guard import Guard
from kglm.serve.problems import Problem, from_error
from kglm.serve.routes import answer, check_query, edit, read, service_of
from kglm.serve.service import Service

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": bodies.ErrorResponse, "description": text}
    for status, text in {
        400: "The request is malformed.",
        401: "The token is missing or wrong.",
        403: "The server does not allow this.",
        404: "The address, entity, document or session does not exist.",
        405: "The address does not support this method.",
        408: "The request took too long to arrive.",
        413: "The body is too large.",
        415: "The body is not application/json.",
        422: "The request does not fit the schema, or the graph refuses it.",
        429: "The queue is full.",
        503: "The request waited or computed for too long, or the server is going down.",
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
        responses=ERRORS,
        dependencies=[Depends(check_query)],
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.service = service
    for router in (answer.router, edit.router, read.router):
        app.include_router(router)
    app.get("/api/health")(health)
    app.get("/metrics", response_class=PlainTextResponse)(metrics)
    app.get("/", include_in_schema=False)(index)
    app.get("/page/{name}", include_in_schema=False)(page_file)
    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(KglmError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(sqlite3.DatabaseError, _on_store_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_bug)
    return Guard(app, service.config, service.metrics)


async def health(request: Request) -> bodies.HealthResponse:
    """What is served, and the limits of requests."""
    return service_of(request).health()


async def metrics(request: Request) -> PlainTextResponse:
    """Request counts and times in the text format of Prometheus."""
    text = service_of(request).metrics_text()
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


async def index(request: Request) -> Response:
    return await page_file(request, "index.html")


async def page_file(request: Request, name: Annotated[str, Path(max_length=100)]) -> Response:
    file = service_of(request).page.get(name)
    if file is None:
        raise Problem(404, "the page has no such file")
    return Response(file.content, media_type=file.type)


def _response(problem: Problem) -> JSONResponse:
    return JSONResponse(problem.content, problem.status, problem.headers)


async def _on_problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return _response(error)


async def _on_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, KglmError)
    return _response(from_error(error))


async def _on_invalid_request(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part)[:60] for part in first["loc"])
    return _response(Problem(422, f"{where}: {first['msg']}"))


async def _on_http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    messages = {404: "there is nothing at this address", 405: "this address does not support that method"}
    text = messages.get(error.status_code, str(error.detail))
    return _response(Problem(error.status_code, text, **dict(error.headers or {})))


async def _on_bug(_: Request, __: Exception) -> Response:
    return _response(Problem(500, "an internal error of the server"))


async def _on_store_error(_: Request, error: Exception) -> Response:
    """The graph file cannot be read or written now: another process writes to it, or the disk is full."""
    print(f"warning: {error}", file=sys.stderr)
    return _response(Problem(503, "the graph cannot be read or written right now; try again soon", Retry_After="5"))

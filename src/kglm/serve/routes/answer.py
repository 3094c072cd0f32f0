"""Routes that ask the model: complete, generate, link, annotate, the local graph."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from kglm.answer.completion import linked_mentions
from kglm.answer.generate import GenerateConfig
from kglm.answer.model import FactAwareLM
from kglm.errors import KglmError
from kglm.linking.linker import LinkedName
from kglm.serve import bodies, views
from kglm.serve.problems import Problem, from_error
from kglm.serve.routes import SessionName, service_of
from kglm.serve.service import Service
from kglm.serve.work import LIGHT_WORDS, Pause
from kglm.text.article import article_from
from kglm.text.document import to_json
from kglm.text.marked import Passage, masked
from kglm.text.tokenizer import detokenize

NDJSON = "application/x-ndjson"
CHARACTERS = 6
"""Of a word, with its blank, on average."""
router = APIRouter(prefix="/api")


@router.post("/complete")
async def complete(
    request: Request, body: bodies.CompleteRequest, session: SessionName = None
) -> bodies.CompleteResponse:
    """What comes next, each word with the facts it comes from."""
    service = service_of(request)

    def task(_: Pause) -> bodies.CompleteResponse:
        completion = service.ask(service.model(session), body).with_top(body.top)
        return bodies.CompleteResponse.model_validate(completion.to_json(reasons=body.reasons))

    return await service.compute(request, task)


@router.post("/graph")
async def graph(request: Request, body: bodies.PromptRequest, session: SessionName = None) -> bodies.GraphResponse:
    """The local graph of a text, with the model's weights for the next word."""
    service = service_of(request)

    def task(_: Pause) -> bodies.GraphResponse:
        completion = service.ask(service.model(session), body)
        return views.local_graph(completion.graph, completion.linked, completion.distribution)

    return await service.compute(request, task)


@router.post(
    "/generate",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": 'Lines of JSON: {"prompt", "mentions"}, {"word", "p", "reason"} of each word, '
            '{"done", "text"}; or {"error"} if something fails midway.',
            "content": {NDJSON: {"schema": {"type": "string"}}},
        }
    },
)
async def generate(request: Request, body: bodies.GenerateRequest, session: SessionName = None) -> StreamingResponse:
    """Go on with a text; every word is sent as it is made, with the fact it came from."""
    service = service_of(request)
    # what is wrong with the request is known before the first line, and told by a status
    first, lines = await service.stream(request, lambda pause: _generated(service, body, session, pause))
    return StreamingResponse(_sent(first, lines), media_type=NDJSON)


def _generated(
    service: Service, body: bodies.GenerateRequest, session: str | None, pause: Pause
) -> Iterator[dict[str, Any]]:
    live = service.model(session)
    words = service.words(live, body.text)
    spans = service.spans(live, words, body.entities)
    config = GenerateConfig(body.words, body.temperature, body.top_p, body.seed, body.beam)
    spoken = live.generate(words, spans, config=config, links=body.links, pause=pause)
    said = list(words)
    linked = [] if body.links == "none" else live.linker.link(words, spans)
    first = _linked(live, words, linked)
    for each in spoken:
        if len(said) == len(words):
            yield first
        said.append(each.word)
        yield each.to_json()
    if len(said) == len(words):
        yield first
    yield {"done": True, "text": detokenize(said)}


async def _sent(first: dict[str, Any], rest: AsyncIterator[dict[str, Any]]) -> AsyncIterator[bytes]:
    try:
        yield _line(first)
        async for each in rest:
            yield _line(each)
    except Problem as problem:
        yield _line(problem.content)
    except KglmError as error:
        yield _line(from_error(error).content)
    finally:
        await rest.aclose()  # type: ignore[attr-defined]


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, allow_nan=False).encode() + b"\n"


@router.post("/link")
async def link(request: Request, body: bodies.LinkRequest, session: SessionName = None) -> bodies.LinkResponse:
    """Names in a text, and whom they may be of."""
    service = service_of(request)

    def task(_: Pause) -> bodies.LinkResponse:
        live = service.model(session)
        words = service.words(live, body.text)
        linked = live.linker.link(words, service.spans(live, words, body.entities))
        return bodies.LinkResponse.model_validate(_linked(live, words, linked))

    short = len(body.text) <= LIGHT_WORDS * CHARACTERS
    return await service.compute(request, task, light=short)


def _linked(live: FactAwareLM, words: list[str], linked: list[LinkedName]) -> dict[str, Any]:
    """The prompt and its mentions, in the JSON form of a completion."""
    return {"prompt": words, "mentions": [each.to_json() for each in linked_mentions(live.graph, words, linked)]}


@router.post("/annotate")
async def annotate(
    request: Request, body: bodies.AnnotateRequest, session: SessionName = None
) -> bodies.AnnotateResponse:
    """All mentions of a text, with the facts that lead to them."""
    service = service_of(request)

    def task(_: Pause) -> bodies.AnnotateResponse:
        live = service.model(session)
        article = article_from(body.title, Passage(masked(body.text), []))
        if article is None:
            raise Problem(422, "there is not a word in this text", "no_words")
        document = service.annotator(live).annotate(article)
        return bodies.AnnotateResponse(document=views.document(live.graph, document), record=to_json(document))

    return await service.compute(request, task)

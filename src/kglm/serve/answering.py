"""Routes that ask the model: complete, generate, link, annotate, the local graph."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from fastapi.responses import StreamingResponse

from kglm.answer.completion import Reason, linked_mentions
from kglm.answer.generate import GenerateConfig
from kglm.answer.model import FactAwareLM
from kglm.errors import KglmError
from kglm.linking.linker import Linked
from kglm.serve import shapes, views
from kglm.serve.problems import Problem, from_error
from kglm.serve.service import Service
from kglm.serve.work import LIGHT_WORDS, Pause
from kglm.text.article import article_from
from kglm.text.document import to_json
from kglm.text.marked import Passage, masked
from kglm.text.tokenizer import detokenize

SessionName = Annotated[
    str | None,
    Header(
        alias="X-Kglm-Session",
        min_length=22,
        max_length=64,
        pattern=r"^[A-Za-z0-9_-]+$",
        description="Whose edits are seen, from POST /api/sessions.",
    ),
]
NDJSON = "application/x-ndjson"
CHARACTERS = 6
"""Of a word, with its blank, on average."""
router = APIRouter(prefix="/api")


def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


@router.post("/complete")
async def complete(request: Request, asked: shapes.CompleteAsked, session: SessionName = None) -> shapes.Completed:
    """What comes next, each word with the facts it comes from."""
    service = service_of(request)

    def task(_: Pause) -> shapes.Completed:
        completion = service.ask(service.model(session), asked).with_top(asked.top)
        return shapes.Completed.model_validate(completion.to_json(reasons=asked.reasons))

    return await service.compute(request, task)


@router.post("/graph")
async def graph(request: Request, asked: shapes.Prompt, session: SessionName = None) -> shapes.LocalGraph:
    """The local graph of a text, with the model's weights for the next word."""
    service = service_of(request)

    def task(_: Pause) -> shapes.LocalGraph:
        completion = service.ask(service.model(session), asked)
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
async def generate(request: Request, asked: shapes.GenerateAsked, session: SessionName = None) -> StreamingResponse:
    """Go on with a text; every word is sent as it is made, with the fact it came from."""
    service = service_of(request)
    # what is wrong with the request is known before the first line, and told by a status
    first, lines = await service.stream(request, lambda pause: _generated(service, asked, session, pause))
    return StreamingResponse(_sent(first, lines), media_type=NDJSON)


def _generated(
    service: Service, asked: shapes.GenerateAsked, session: str | None, pause: Pause
) -> Iterator[dict[str, Any]]:
    live = service.model(session)
    words = service.words(live, asked.text)
    spans = service.spans(live, words, asked.entities)
    config = GenerateConfig(asked.words, asked.temperature, asked.top_p, asked.seed, asked.beam)
    spoken = live.generate(words, spans, config=config, links=asked.links, pause=pause)
    said = list(words)
    linked = [] if asked.links == "none" else live.linker.link(words, spans)
    first = _linked(live, words, linked)
    for each in spoken:
        if len(said) == len(words):
            yield first
        said.append(each.word)
        yield {"word": each.word, "p": each.p, "reason": Reason.of(live.graph, each.reason).to_json()}
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
async def link(request: Request, asked: shapes.LinkAsked, session: SessionName = None) -> shapes.LinkedTold:
    """Names in a text, and whom they may be of."""
    service = service_of(request)

    def task(_: Pause) -> shapes.LinkedTold:
        live = service.model(session)
        words = service.words(live, asked.text)
        linked = live.linker.link(words, service.spans(live, words, asked.entities))
        return shapes.LinkedTold.model_validate(_linked(live, words, linked))

    short = len(asked.text) <= LIGHT_WORDS * CHARACTERS
    return await service.compute(request, task, light=short)


def _linked(live: FactAwareLM, words: list[str], linked: list[Linked]) -> dict[str, Any]:
    """The prompt and its mentions, in the JSON form of a completion."""
    return {"prompt": words, "mentions": [each.to_json() for each in linked_mentions(live.graph, words, linked)]}


@router.post("/annotate")
async def annotate(request: Request, asked: shapes.AnnotateAsked, session: SessionName = None) -> shapes.Annotated_:
    """All mentions of a text, with the facts that lead to them."""
    service = service_of(request)

    def task(_: Pause) -> shapes.Annotated_:
        live = service.model(session)
        article = article_from(asked.title, Passage(masked(asked.text), []))
        if article is None:
            raise Problem(422, "there is not a word in this text", "no_words")
        document = service.annotator(live).annotate(article)
        return shapes.Annotated_(document=views.document(live.graph, document), record=to_json(document))

    return await service.compute(request, task)

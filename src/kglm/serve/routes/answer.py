"""Routes that run the model: complete, generate, link, annotate, the local graph."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from kglm.answer.completion import GeneratedWord
from kglm.answer.generate import GenerateConfig
from kglm.answer.given import continued
from kglm.answer.mentions import LinkedMention
from kglm.answer.model import FactAwareLM
from kglm.errors import KglmError
from kglm.serve import bodies, views
from kglm.serve.problems import Problem, from_error
from kglm.serve.routes import SessionName, service_of
from kglm.serve.service import Service
from kglm.serve.work import LIGHT_WORDS, YieldPoint
from kglm.text.article import article_from
from kglm.text.document import to_json
from kglm.text.marked import Passage, masked

NDJSON = "application/x-ndjson"
CHARACTERS_PER_WORD = 6
"""Average, with the blank after the word."""
router = APIRouter(prefix="/api")


@router.post("/complete")
async def complete(
    request: Request, body: bodies.CompleteRequest, session: SessionName = None
) -> bodies.CompleteResponse:
    """Predict how a text goes on: the most probable answers and next words, each with the facts behind it."""
    service = service_of(request)

    def task(_: YieldPoint) -> bodies.CompleteResponse:
        completion = service.complete(service.session_model(session), body).with_top(body.top)
        return bodies.CompleteResponse.model_validate(completion.to_json(reasons=body.reasons))

    return await service.compute(request, task)


@router.post("/ask")
async def ask(request: Request, body: bodies.AskRequest, session: SessionName = None) -> bodies.AskResponse:
    """Answer a question in a sentence, from facts of the graph, or say what is missing. For pretrained models."""
    service = service_of(request)

    def task(_: YieldPoint) -> bodies.AskResponse:
        model = service.session_model(session)
        if isinstance(model, FactAwareLM):
            raise Problem(422, "this model answers no questions; complete a sentence instead", "not_pretrained")
        spans = service.spans(model, service.words(model, body.text), body.entities)
        reply = model.ask(body.text, spans, links=body.links, top=body.top, trust=body.trust)
        return bodies.AskResponse.model_validate(reply.to_json(reasons=body.reasons))

    return await service.compute(request, task)


@router.post("/graph")
async def graph(request: Request, body: bodies.PromptRequest, session: SessionName = None) -> bodies.GraphResponse:
    """The local graph of a text: facts of the mentioned entities, with their probability for the next word."""
    service = service_of(request)

    def task(_: YieldPoint) -> bodies.GraphResponse:
        completion = service.complete(service.session_model(session), body)
        return views.local_graph(completion.graph, completion.linked, completion.distribution)

    return await service.compute(request, task)


@router.post(
    "/generate",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": 'Lines of JSON: first {"prompt", "mentions"}, then {"word", "p", "reason"} for each word, '
            'last {"done", "text"}; or {"error"} if the generation fails. Words of pretrained models have "text", '
            '"supported" as well.',
            "content": {NDJSON: {"schema": {"type": "string"}}},
        }
    },
)
async def generate(request: Request, body: bodies.GenerateRequest, session: SessionName = None) -> StreamingResponse:
    """Continue a text; each word is sent as soon as it is generated, with the fact behind it."""
    service = service_of(request)
    # an invalid request fails before the first line, so that the response has an error status
    first, others = await service.stream(
        request, lambda yield_point: _generated_records(service, body, session, yield_point)
    )
    return StreamingResponse(_json_lines(first, others), media_type=NDJSON)


def _generated_records(
    service: Service, body: bodies.GenerateRequest, session: str | None, yield_point: YieldPoint
) -> Iterator[dict[str, Any]]:
    model = service.session_model(session)
    prompt = service.words(model, body.text)
    spans = service.spans(model, prompt, body.entities)
    config = GenerateConfig(body.words, body.temperature, body.top_p, body.seed, body.beam)
    text, options = body.text if model.is_pretrained else prompt, service.options(model, body)
    generated = model.generate(text, spans, config=config, links=body.links, pause=yield_point, **options)
    mentions = model.link(prompt, spans)
    if body.links == "none":
        chosen = {(span.start, span.end) for span in spans}
        mentions = [mention for mention in mentions if (mention.start, mention.end) in chosen]
    words: list[GeneratedWord] = []
    for word in generated:
        if not words:
            yield _linked_prompt(prompt, mentions)
        words.append(word)
        yield word.to_json()
    if not words:
        yield _linked_prompt(prompt, mentions)
    yield {"done": True, "text": continued(body.text, prompt, words)}


async def _json_lines(first: dict[str, Any], others: AsyncIterator[dict[str, Any]]) -> AsyncIterator[bytes]:
    """Encode records as lines; an error becomes the last line, because the status is already sent."""
    try:
        yield _json_line(first)
        async for record in others:
            yield _json_line(record)
    except Problem as problem:
        yield _json_line(problem.content)
    except KglmError as error:
        yield _json_line(from_error(error).content)
    finally:
        await others.aclose()  # type: ignore[attr-defined]


def _json_line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, allow_nan=False).encode() + b"\n"


@router.post("/link")
async def link(request: Request, body: bodies.LinkRequest, session: SessionName = None) -> bodies.LinkResponse:
    """Find names in a text and list the entities they may refer to."""
    service = service_of(request)

    def task(_: YieldPoint) -> bodies.LinkResponse:
        model = service.session_model(session)
        words = service.words(model, body.text)
        mentions = model.link(words, service.spans(model, words, body.entities))
        return bodies.LinkResponse.model_validate(_linked_prompt(words, mentions))

    light = len(body.text) <= LIGHT_WORDS * CHARACTERS_PER_WORD
    return await service.compute(request, task, light=light)


def _linked_prompt(words: Sequence[str], mentions: Sequence[LinkedMention]) -> dict[str, Any]:
    """A prompt and its mentions, in the JSON form of `kglm link --json`."""
    return {"prompt": list(words), "mentions": [mention.to_json() for mention in mentions]}


@router.post("/annotate")
async def annotate(
    request: Request, body: bodies.AnnotateRequest, session: SessionName = None
) -> bodies.AnnotateResponse:
    """Annotate all mentions of a text, with the facts that lead to them."""
    service = service_of(request)

    def task(_: YieldPoint) -> bodies.AnnotateResponse:
        model = service.session_model(session)
        article = article_from(body.title, Passage(masked(body.text), []))
        if article is None:
            raise Problem(422, "the text contains no words; give a text to annotate", "no_words")
        document = service.annotator(model).annotate(article)
        return bodies.AnnotateResponse(document=views.document(model.graph, document), record=to_json(document))

    return await service.compute(request, task)

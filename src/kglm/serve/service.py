"""The state of a server: the model, the sessions, the documents, and the compute queue they share."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import asdict
from typing import Any, TypeVar

from fastapi import Request

from kglm import __version__
from kglm.annotate.annotator import Annotator
from kglm.answer.completion import Completion
from kglm.answer.pretrained.model import AnyModel
from kglm.answer.reading import Span
from kglm.serve import bodies, page
from kglm.serve.explore import Library
from kglm.serve.lookup import Lookup
from kglm.serve.metrics import Metrics
from kglm.serve.problems import Problem
from kglm.serve.sessions import Session, Sessions
from kglm.serve.settings import ServeConfig, name_of
from kglm.serve.work import ComputeQueue, YieldPoint

T = TypeVar("T")
CACHE_SIZE = 3
"""Completions, and annotators, in memory: the page requests the next words and the local graph of the same prompt."""
EXAMPLES = (
    ("Barack Obama", "Barack Obama was born on"),
    ("Super Mario Land", "Super Mario Land is a"),
    ("Michelle Obama", "Michelle Obama is married to"),
    ("France", "The capital of France is"),
    ("Jane Austen", "Jane Austen was born on"),
)
"""A name and a prompt with it; the page offers the prompts whose name is in the graph."""


class Service:
    """Everything the routes use. They call the model only inside `compute` or `stream`, in the compute thread."""

    def __init__(self, model: AnyModel, config: ServeConfig, library: Library | None = None) -> None:
        self.config = config
        self.model = model
        self.library = library or Library()
        self.sessions = Sessions(model, config.limits)
        self.metrics = Metrics()
        self.queue = ComputeQueue(config.limits)
        self.page = page.load()
        self.lookup = Lookup(model.graph)
        self._completions: OrderedDict[tuple[AnyModel, str], Completion] = OrderedDict()
        self._annotators: OrderedDict[int, tuple[AnyModel, Annotator]] = OrderedDict()
        model.linker  # noqa: B018 (built now, so that the first request does not wait for it)
        self._health = self._describe()

    def close(self) -> None:
        self.queue.close()

    # On the event loop

    async def compute(self, request: Request, task: Callable[[YieldPoint], T], *, light: bool = False) -> T:
        """Run a task in the compute thread; cancel it if the client disconnects."""
        return await unless_disconnected(request, self.queue.run(task, light=light))

    async def stream(self, request: Request, start: Callable[[YieldPoint], Iterator[T]]) -> tuple[T, AsyncIterator[T]]:
        """The first result of a task, and an iterator over the others."""
        results = self.queue.stream(start)
        return await unless_disconnected(request, anext(results)), results

    # In the compute thread

    def session_model(self, session: str | None) -> AnyModel:
        """The model on the graph of this session, or on the stored graph if there is no session."""
        if self.sessions.stored_model() is not self._described_model:  # the stored graph was edited
            self._health = self._describe()
        return self.sessions.stored_model() if session is None else self.sessions.get(session).model

    def new_session(self) -> str:
        """Open a session and return its name; refused if edits are off."""
        self._check_edits_allowed()
        return self.sessions.new()

    def session(self, name: str | None) -> Session:
        """The session with this name, to edit its graph."""
        self._check_edits_allowed()
        if name is None:
            raise Problem(
                400,
                "an edit needs a session; open one with POST /api/sessions and send its name as X-Kglm-Session",
                "no_session_given",
            )
        return self.sessions.get(name)

    def _check_edits_allowed(self) -> None:
        if not self.config.allow_edit:
            raise Problem(403, "edits are off; start the server with --allow-edit", "edits_off")

    def spans(self, model: AnyModel, words: list[str], entities: list[bodies.EntitySpan]) -> list[Span]:
        """The mentions that a request gives, by node number."""
        for entity in entities:
            check_span(entity, words)
        return [Span(entity.start, entity.end, model.graph.number(entity.id)) for entity in entities]

    def words(self, model: AnyModel, text: str) -> list[str]:
        words = model.words(text)
        if len(words) > bodies.MAX_WORDS:
            raise Problem(422, f"the text has {len(words):,} words; give at most {bodies.MAX_WORDS:,}", "too_long")
        return words

    def complete(self, model: AnyModel, prompt: bodies.PromptRequest) -> Completion:
        """Complete a prompt, or return the cached completion. It lists no words: call `with_top` on it."""
        key = (model, prompt.model_dump_json(include={"text", "entities", "links", "trust"}))
        if (cached := self._completions.get(key)) is not None:
            return cached
        words = self.words(model, prompt.text)
        spans, options = self.spans(model, words, prompt.entities), self.options(model, prompt)
        text = prompt.text if model.is_pretrained else words
        completion = model.complete(text, spans, links=prompt.links, top=0, **options)
        self._completions[key] = completion
        if len(self._completions) > CACHE_SIZE:
            self._completions.popitem(last=False)
        return completion

    @staticmethod
    def options(model: AnyModel, prompt: bodies.PromptRequest) -> dict[str, Any]:
        """The options of a request that only a pretrained model has."""
        found = {name: value for name in ("trust", "grounded") if (value := getattr(prompt, name, None))}
        if prompt.trust == 0:
            found["trust"] = 0.0
        if found and not model.is_pretrained:
            raise Problem(422, f"this model has no {' and no '.join(found)}; leave it out", "not_pretrained")
        return found

    def annotator(self, model: AnyModel) -> Annotator:
        """An annotator with this model's graph, cached."""
        if id(model) not in self._annotators:
            self._annotators[id(model)] = (model, Annotator(model.graph))
            if len(self._annotators) > CACHE_SIZE:
                self._annotators.popitem(last=False)
        return self._annotators[id(model)][1]

    # The server itself

    def _describe(self) -> bodies.HealthResponse:
        self._described_model = self.sessions.stored_model()
        counts = self._described_model.graph.store.counts()
        fixed = {"text": bodies.MAX_TEXT, "words": bodies.MAX_WORDS, "article": bodies.MAX_ARTICLE}
        return bodies.HealthResponse(
            status="ok",
            version=__version__,
            model=self.model.name,
            run=name_of(self.model.run.home),
            graph=bodies.GraphCounts(entities=counts["entities"], facts=counts["facts"], relations=counts["relations"]),
            vocabulary=self.model.vocabulary_size,
            questions=self.model.is_pretrained,
            allow_edit=self.config.allow_edit,
            persist=self.config.persist,
            documents=len(self.library),
            token=self.config.token is not None,
            limits=asdict(self.config.limits) | fixed,
            examples=self._examples(),
        )

    def _examples(self) -> list[str]:
        prompts = [prompt for name, prompt in EXAMPLES if self.model.linker.candidates(name.split())]
        titles = [document.title for document in self.library.documents[:5] if document.title]
        return (prompts + [f"{title} is" for title in titles])[:5]

    def health(self) -> bodies.HealthResponse:
        return self._health

    def metrics_text(self) -> str:
        queue = self.queue
        return self.metrics.text(
            {
                "kglm_waiting": ("Requests in the queue.", queue.waiting),
                "kglm_computing": ("1 while a request is being computed, else 0.", float(queue.computing)),
                "kglm_refused_total": ("Requests refused because the queue was full.", queue.refused),
                "kglm_timed_out_total": ("Requests that waited or computed for too long.", queue.timed_out),
                "kglm_sessions": ("Open sessions.", len(self.sessions)),
            }
        )


def check_span(span: bodies.EntitySpan, words: list[str]) -> None:
    if not span.start < span.end <= len(words):
        raise Problem(
            422, f"an entity spans words {span.start} to {span.end} of {len(words)}; give start < end, inside the text"
        )


async def unless_disconnected(request: Request, result: Awaitable[T]) -> T:
    """Await a result; cancel it if the client disconnects first."""
    working, leaving = asyncio.ensure_future(result), asyncio.ensure_future(_disconnect(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise Problem(400, "the client has disconnected", "client_left")
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _disconnect(request: Request) -> None:
    """Return when the client disconnects."""
    while (await request.receive())["type"] != "http.disconnect":
        pass

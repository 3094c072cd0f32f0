"""What the routes ask: the model, the sessions, the documents, and the thread that computes for all of them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import asdict
from typing import TypeVar

from fastapi import Request

from kglm import __version__
from kglm.annotate.annotator import Annotator
from kglm.answer.completion import Completion
from kglm.answer.model import FactAwareLM
from kglm.answer.reading import Span
from kglm.serve import bodies, page
from kglm.serve.explore import Library
from kglm.serve.lookup import Lookup
from kglm.serve.metrics import Metrics
from kglm.serve.problems import Problem
from kglm.serve.sessions import Session, Sessions
from kglm.serve.settings import ServeConfig, name_of
from kglm.serve.work import Pause, Work

T = TypeVar("T")
CACHED = 3
"""Completions, and annotators. A page requests the next words of a prompt and its local graph one after the other."""
EXAMPLES = (
    ("Barack Obama", "Barack Obama was born on"),
    ("Super Mario Land", "Super Mario Land is a"),
    ("Michelle Obama", "Michelle Obama is married to"),
    ("France", "The capital of France is"),
    ("Jane Austen", "Jane Austen was born on"),
)


class Service:
    """All that a server holds. What computes is called by `compute` or `stream`, in one thread."""

    def __init__(self, live: FactAwareLM, config: ServeConfig, library: Library | None = None) -> None:
        self.config = config
        self.live = live
        self.library = library or Library()
        self.sessions = Sessions(live, config.limits)
        self.metrics = Metrics()
        self.work = Work(config.limits)
        self.page = page.load()
        self.lookup = Lookup(live.graph)
        self._completions: OrderedDict[tuple[FactAwareLM, str], Completion] = OrderedDict()
        self._annotators: OrderedDict[int, tuple[FactAwareLM, Annotator]] = OrderedDict()
        live.linker  # noqa: B018 (made now, not by the first who asks)
        self._health = self._examined()

    def close(self) -> None:
        self.work.close()

    # On the event loop

    async def compute(self, request: Request, task: Callable[[Pause], T], *, light: bool = False) -> T:
        """The result of a task; one whose client has left is not computed."""
        return await while_there(request, self.work.run(task, light=light))

    async def stream(self, request: Request, make: Callable[[Pause], Iterator[T]]) -> tuple[T, AsyncIterator[T]]:
        """The first result of a task, and then the others as they come."""
        results = self.work.stream(make)
        return await while_there(request, anext(results)), results

    # In the computing thread

    def model(self, session: str | None) -> FactAwareLM:
        """The model that this visitor sees."""
        if self.sessions.served() is not self._examined_at:  # someone has edited the stored graph
            self._health = self._examined()
        return self.sessions.served() if session is None else self.sessions.get(session).live

    def begin(self) -> str:
        """A new session; there are none where there are no edits."""
        self._editing()
        return self.sessions.new()

    def session(self, name: str | None) -> Session:
        """The session that edits go to."""
        self._editing()
        if name is None:
            raise Problem(400, "edits belong to a session: POST /api/sessions, then X-Kglm-Session", "no_session_given")
        return self.sessions.get(name)

    def _editing(self) -> None:
        if not self.config.allow_edit:
            raise Problem(403, "edits are off; the server must be started with --allow-edit", "edits_off")

    def spans(self, live: FactAwareLM, words: list[str], given: list[bodies.EntitySpan]) -> list[Span]:
        return [Span(each.start, each.end, live.graph.number(each.id)) for each in given if fits(each, words)]

    def words(self, live: FactAwareLM, text: str) -> list[str]:
        words = live.words(text)
        if len(words) > bodies.MAX_WORDS:
            raise Problem(422, f"a text of {len(words):,} words; give at most {bodies.MAX_WORDS:,}", "too_long")
        return words

    def ask(self, live: FactAwareLM, prompt: bodies.PromptRequest) -> Completion:
        """The completion of a prompt, without its list of words: `with_top` makes that."""
        key = (live, prompt.model_dump_json(include={"text", "entities", "links"}))
        if (cached := self._completions.get(key)) is not None:
            return cached
        words = self.words(live, prompt.text)
        completion = live.complete(words, self.spans(live, words, prompt.entities), links=prompt.links, top=0)
        self._completions[key] = completion
        if len(self._completions) > CACHED:
            self._completions.popitem(last=False)
        return completion

    def annotator(self, live: FactAwareLM) -> Annotator:
        """An annotator with this model's graph."""
        if id(live) not in self._annotators:
            self._annotators[id(live)] = (live, Annotator(live.graph))
            if len(self._annotators) > CACHED:
                self._annotators.popitem(last=False)
        return self._annotators[id(live)][1]

    # What is told of the server itself

    def _examined(self) -> bodies.HealthResponse:
        self._examined_at = self.sessions.served()
        counts = self._examined_at.graph.store.counts()
        fixed = {"text": bodies.MAX_TEXT, "words": bodies.MAX_WORDS, "article": bodies.MAX_ARTICLE}
        return bodies.HealthResponse(
            status="ok",
            version=__version__,
            model=self.live.run.settings.model,
            run=name_of(self.live.run.home),
            graph=bodies.GraphCounts(entities=counts["entities"], facts=counts["facts"], relations=counts["relations"]),
            vocabulary=len(self.live.run.vocabulary),
            allow_edit=self.config.allow_edit,
            persist=self.config.persist,
            documents=len(self.library),
            token=self.config.token is not None,
            limits=asdict(self.config.limits) | fixed,
            examples=self._examples(),
        )

    def _examples(self) -> list[str]:
        found = [text for name, text in EXAMPLES if self.live.linker.candidates(name.split())]
        titles = [document.title for document in self.library.documents[:5] if document.title]
        return (found + [f"{title} is" for title in titles])[:5]

    def health(self) -> bodies.HealthResponse:
        return self._health

    def metrics_text(self) -> str:
        work = self.work
        return self.metrics.text(
            {
                "kglm_waiting": ("Requests that wait to be computed.", work.waiting),
                "kglm_computing": ("Whether something is being computed.", float(work.computing)),
                "kglm_refused_total": ("Requests that found the queue full.", work.refused),
                "kglm_timed_out_total": ("Requests that waited or took too long.", work.given_up),
                "kglm_sessions": ("Sessions that are open.", len(self.sessions)),
            }
        )


def fits(span: bodies.EntitySpan, words: list[str]) -> bool:
    if not span.start < span.end <= len(words):
        raise Problem(
            422, f"an entity at words {span.start} to {span.end} of {len(words)}; give start < end, inside the text"
        )
    return True


async def while_there(request: Request, awaited: Awaitable[T]) -> T:
    """What is awaited, unless the client leaves first; then it is called off."""
    working, gone = asyncio.ensure_future(awaited), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise Problem(400, "the client has left", "client_left")
    finally:
        working.cancel()
        gone.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass

"""A run that answers: completes, generates and links, and follows edits of its graph at once.

model = kglm.load("RUN")
model.complete("Barack Obama was born on").words[0].word
model.edited(["Barack Obama | date of birth | 21 March 2013"]).complete("Barack Obama was born on")

Nothing here changes a stored graph: an edited model is another model, on a fork, with the same weights.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

from kglm import bundled
from kglm.answer.completion import Completion
from kglm.answer.generate import GenerateConfig, Spoken, generate
from kglm.answer.next_word import NextWordConfig, next_words
from kglm.answer.reading import Annotation, Reading, Span, read
from kglm.answer.running import with_running
from kglm.answer.sampled import read_sampled
from kglm.errors import ConfigError, DataError
from kglm.kg.edits import FactEdit, NewEntity
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.resolve import parse_fact
from kglm.linking.linker import LinkedName, Linker, joint_links, marginal_links
from kglm.linking.name_index import NameIndex
from kglm.marginal.particle import ParticleConfig
from kglm.model.kglm import Kglm
from kglm.runs.run import Run
from kglm.text.document import END, START
from kglm.text.function_words import is_content
from kglm.text.tokenizer import tokenizer

Links = Literal["average", "best", "sampled", "none"]
"""What is done with names in a prompt of which it is not said whose they are: every likely way to link them is read,
only the most likely, ways drawn from the model's own posterior, or they are plain words."""
PARTICLES = 100
"""Of a posterior."""
_PLACE = re.compile(r"(\d+)\s*:\s*(\d+)")


class FactAwareLM:
    """A trained KGLM on a graph. State is passed, not kept: two prompts know nothing of each other."""

    def __init__(self, run: Run, base: FactAwareLM | None = None) -> None:
        """`base`: the model before edits, if this one has some; the two share the index of names."""
        if not isinstance(run.model, Kglm):
            raise ConfigError(
                f"is a run of {run.settings.model}", place=run.home, remedy="give a run of: kglm train kglm"
            )
        self.run = run
        self._base = base
        self.model: Kglm = run.model

    @classmethod
    def open(cls, run: str | Path, *, kg: str | Path | None = None) -> FactAwareLM:
        """Load a run, on its own graph or on another."""
        return cls(Run.open(Path(run), kg=None if kg is None else Path(kg)))

    @property
    def graph(self) -> KnowledgeGraph:
        return self.run.graph

    @cached_property
    def linker(self) -> Linker:
        return Linker(self.graph, self._names(), self.run.introductions)

    def _names(self) -> NameIndex | None:
        if self._base is None:
            return None
        names = self._base.linker.names
        return names.on(self.graph) if len(self.graph) > len(self._base.graph) else names

    def edited(self, edits: Sequence[str | FactEdit | NewEntity]) -> FactAwareLM:
        """The model on an edited fork of its graph; a text is a fact to be the only one of its head and relation."""
        fork = self.graph.fork()
        for edit in edits:
            step = FactEdit("set", *parse_fact(fork, edit)) if isinstance(edit, str) else edit
            if not (isinstance(edit, str) and _holds(fork, step)):
                fork.edit([step])
        return FactAwareLM(self.run.on(fork), self)

    # Prompts

    def words(self, prompt: str | Sequence[str]) -> list[str]:
        """A prompt as words, `@@END@@` between sentences as in the corpus; one that is words already stays as it is,
        but for `@@START@@`."""
        if not isinstance(prompt, str):
            return list(prompt[1:] if list(prompt[:1]) == [START] else prompt)
        sentences = [[token.text for token in sentence] for sentence in tokenizer().sentences(prompt)]
        words = [word for sentence in sentences for word in (*sentence, END)][:-1]
        return words[1:] if words[:1] == [START] else words

    def link(self, prompt: str | Sequence[str], known: Sequence[Span] = ()) -> list[LinkedName]:
        """The names in a text, with whom they may be of."""
        return self._linked(self.words(prompt), known)

    def _linked(self, words: Sequence[str], known: Sequence[Span]) -> list[LinkedName]:
        """Names by their capitals; where none has them, names of several words in any case: "barack obama"."""
        if found := self.linker.link(words, known):
            return found
        raised = [word.capitalize() if is_content(word) else word.lower() for word in words]
        return [each for each in self.linker.link(raised) if sum(map(is_content, raised[each.start : each.end])) > 1]

    def spans(self, words: Sequence[str], entities: Sequence[str | Span]) -> list[Span]:
        """Mentions that are given: "0:2=Q76" by the places of words, "Barack Obama=Q76" by the words themselves."""
        return [each if isinstance(each, Span) else self._span(words, each) for each in entities]

    def _span(self, words: Sequence[str], text: str) -> Span:
        where, equals, id = text.rpartition("=")
        if not equals:
            raise DataError(f"{text!r} names no entity", remedy='write it like "0:2=Q76" or "Barack Obama=Q76"')
        node = self.graph.number(id.strip())
        if match := _PLACE.fullmatch(where.strip()):
            return Span(int(match[1]), int(match[2]), node)
        name = tokenizer().words(where)
        for start in range(len(words) - len(name) + 1):
            if name and list(words[start : start + len(name)]) == name:
                return Span(start, start + len(name), node)
        raise DataError(f"{where!r} does not stand in the prompt", remedy="give words of it, or their places")

    def read(
        self,
        prompt: str | Sequence[str],
        entities: Sequence[str | Span] = (),
        *,
        links: Links = "average",
        seed: int = 0,
    ) -> tuple[Reading, list[LinkedName]]:
        """Read a prompt, and say who is mentioned in it; the seed is of what is sampled."""
        if links not in get_args(Links):
            raise ConfigError(f"links {links!r}", remedy=f"use one of {', '.join(get_args(Links))}")
        words = self.words(prompt)
        known = self.spans(words, entities)
        if links == "sampled":
            if known:
                raise ConfigError(
                    "mentions are both given and drawn", remedy="give them, or draw all of them with links sampled"
                )
            names = self.linker.names
            return read_sampled(self.run, self.model, words, names, ParticleConfig(PARTICLES), seed)
        annotations: list[tuple[float, Annotation]] = [(1.0, known)]
        linked = self._linked(words, known) if links != "none" else [LinkedName.certain(*span) for span in known]
        if links != "none":
            ways = joint_links(linked, most=1 if links == "best" else 8)
            annotations = [(p, [Span(*span) for span in spans]) for p, spans in ways]
            last = max((each.end for each in linked), default=0)
            annotations = with_running(self.run, self.model, words, annotations)
            begun = ((p, [span for span in spans if span.start >= last]) for p, spans in annotations)
            linked = [*linked, *marginal_links(begun)]
        return read(self.run, self.model, words, annotations), linked

    # Answers

    def complete(
        self,
        prompt: str | Sequence[str],
        entities: Sequence[str | Span] = (),
        *,
        edits: Sequence[str | FactEdit | NewEntity] = (),
        top: int = 5,
        links: Links = "average",
        limits: NextWordConfig | None = None,
        seed: int = 0,
    ) -> Completion:
        """The distribution of the next word, its most probable words with their reasons."""
        if edits:
            return self.edited(edits).complete(prompt, entities, top=top, links=links, limits=limits, seed=seed)
        reading, linked = self.read(prompt, entities, links=links, seed=seed)
        return Completion.of(self.graph, reading.surface[1:], linked, next_words(reading, limits), top=top)

    def generate(
        self,
        prompt: str | Sequence[str] = "",
        entities: Sequence[str | Span] = (),
        *,
        config: GenerateConfig | None = None,
        links: Links = "best",
        pause: Callable[[], None] = lambda: None,
    ) -> Iterator[Spoken]:
        """Words one by one, each with its reason; `pause` is called before each is computed."""
        config = config or GenerateConfig()
        reading, _ = self.read(prompt, entities, links=links, seed=config.seed)
        for spoken, _ in generate(reading, config, pause=pause):
            yield spoken


def _holds(graph: KnowledgeGraph, step: FactEdit | NewEntity) -> bool:
    """Whether a fact is the only one of its head and relation already."""
    if not isinstance(step, FactEdit):
        return False
    head, relation, tail = graph.find(step.head), graph.find_relation(step.relation), graph.find(step.tail)
    if head is None or relation is None or tail is None:
        return False
    return bool(graph.tails(head, relation).tolist() == [tail])


def load(run: str | Path | None = None, *, kg: str | Path | None = None) -> FactAwareLM:
    """A trained run, ready to answer; if none is given, that of a quickstart here or the one of the package."""
    return FactAwareLM.open(bundled.default_run() if run is None else run, kg=kg)

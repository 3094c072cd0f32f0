"""A pretrained language model whose facts come from a graph: the interface of `FactAwareLM`, and answers to questions.

    model = kglm.load("heads-run", kg="own.kg")
    model.complete("Nora Feld reports to")
    model.ask("Who does Nora Feld report to?").text
    model.edited("Nora Feld | reports to | Tom Ash").ask("Who does Nora Feld report to?").text

Trained heads work on any graph. An edited model has the same base, the same heads and a fork of the graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Unpack

from kglm.answer.completion import Completion, GeneratedWord
from kglm.answer.generate import GenerateConfig
from kglm.answer.given import Edit, edited_graph
from kglm.answer.mentions import linked_mentions
from kglm.answer.model import FactAwareLM, GenerateOptions, Links
from kglm.answer.on_graph import OnGraph
from kglm.answer.pretrained.answers import SubwordAnswers, SubwordDistribution
from kglm.answer.pretrained.asked import Reply, reply
from kglm.answer.pretrained.generate import Generator, Linking
from kglm.answer.pretrained.plausible import Plausibility
from kglm.answer.pretrained.prompts import (
    LinkedPrompt,
    link_prompt,
    names_of_prompt,
    prompt_words,
    read_prompt,
    subword_links,
)
from kglm.answer.pretrained.support import NameWords, Support
from kglm.answer.pretrained.written import WordStream
from kglm.answer.reading import Span
from kglm.errors import ConfigError
from kglm.heads.growing import GrowingText
from kglm.heads.local import Link
from kglm.heads.passage import Passage
from kglm.heads.reading import Reader, Reading
from kglm.heads.run import HeadsRun
from kglm.heads.tables import GraphTables
from kglm.kg.graph import KnowledgeGraph
from kglm.linking.linker import LinkedName
from kglm.worlds.world import default_graph

TRUST = 2.0
"""Default trust of answers."""
TEXT_TRUST = 2.0
"""Default trust of generated text (see `Following.in_text`)."""
LEAST_SCORED = 1e-4
"""See `Reader`."""


class PretrainedLM(OnGraph):
    """A pretrained language model with heads and a graph. It keeps no state between calls."""

    is_pretrained = True

    def __init__(
        self, run: HeadsRun, tables: GraphTables, base: PretrainedLM | None = None, trust: float | None = None
    ) -> None:
        """`base` is the model before edits, if there are any; `trust` is used where none is given,
        else `TRUST` and `TEXT_TRUST`."""
        super().__init__(tables.graph, base)
        self.run, self.tables, self.trust = run, tables, trust

    @classmethod
    def open(
        cls,
        run: str | Path,
        *,
        kg: str | Path | KnowledgeGraph | None = None,
        base: str | Path | None = None,
        trust: float | None = None,
    ) -> PretrainedLM:
        """Load trained heads with a graph file, an open graph, the graph of their training, or the bundled world.

        `base` is a name or path of the language model, if it is elsewhere than at training.
        """
        opened = HeadsRun.open(Path(run), base=base)
        graph = kg if isinstance(kg, KnowledgeGraph) else KnowledgeGraph.open(_graph_file(opened, kg))
        return cls(opened, opened.tables(graph), trust=trust)

    def __repr__(self) -> str:
        edits = f", {len(self.graph.pending)} unsaved changes" if self.graph.pending else ""
        return f"PretrainedLM({self.run.base.name!r}, {len(self.graph):,} entities{edits})"

    def edited(self, edits: Edit | Sequence[Edit]) -> PretrainedLM:
        """The same base and heads with an edited fork of the graph; give one edit or several.

        model.edited("France | capital | Lyon")
        """
        return self.on(edited_graph(self.graph, edits))

    def on(self, graph: KnowledgeGraph) -> PretrainedLM:
        """The same base and heads with a fork of the graph."""
        return PretrainedLM(self.run, self.tables.on(graph), self, self.trust)

    @property
    def name(self) -> str:
        """Name of the pretrained language model."""
        return self.run.base.name

    @property
    def vocabulary_size(self) -> int:
        """Number of subwords of the language model."""
        return len(self.run.base.subwords)

    def _trust(self, given: float | None, default: float) -> float:
        return next(trust for trust in (given, self.trust, default) if trust is not None)

    def _reader(self, trust: float | None) -> Reader:
        trust = self._trust(trust, TRUST)
        if trust != trust:
            raise ConfigError(
                f"a trust of {trust}", remedy="give a number; 0 is the trained model, -inf the base alone"
            )
        if trust not in self._readers:
            self._readers[trust] = Reader(self.run.heads, self.tables, trust, LEAST_SCORED)
        return self._readers[trust]

    @cached_property
    def _readers(self) -> dict[float, Reader]:
        return {}

    @cached_property
    def _plausibility(self) -> Plausibility:
        return Plausibility(self.graph)

    @cached_property
    def _name_words(self) -> NameWords:
        return NameWords(self.graph)

    def _distribution(self, answers: SubwordAnswers) -> SubwordDistribution:
        return SubwordDistribution(answers, self._plausibility)

    # Prompts

    def _linked_names(self, words: Sequence[str], given: Sequence[Span]) -> list[LinkedName]:
        return names_of_prompt(words, self._prompt_linker, given)

    def _linked(
        self, prompt: str | Sequence[str], entities: Sequence[str | Span], links: Links, *, question: bool = False
    ) -> LinkedPrompt:
        if links not in ("average", "best", "none"):
            raise ConfigError(f"links {links!r} with a pretrained model", remedy="use one of average, best, none")
        passage = read_prompt(prompt, self.run.base.subwords, question=question)
        words = prompt_words(passage)
        given = self.given(words, entities)
        names = [LinkedName.certain(*span) for span in given] if links == "none" else self._linked_names(words, given)
        return link_prompt(passage, names, self.graph, best=links == "best")

    def read(
        self,
        prompt: str | Sequence[str],
        entities: Sequence[str | Span] = (),
        *,
        links: Links = "average",
        trust: float | None = None,
        question: bool = False,
    ) -> tuple[Reading, LinkedPrompt]:
        """Read a text or a question; return the state after it and the candidates of its names."""
        linked = self._linked(prompt, entities, links, question=question)
        text = GrowingText.of(linked.passage, self.run.base.subwords)
        return self._reader(trust).read(text, linked.links), linked

    # Answers

    def complete(
        self,
        prompt: str | Sequence[str],
        entities: Sequence[str | Span] = (),
        *,
        edits: Edit | Sequence[Edit] = (),
        top: int = 5,
        links: Links = "average",
        seed: int = 0,
        trust: float | None = None,
    ) -> Completion:
        """Predict how a text goes on: the `top` most probable answers and next words, with the facts behind each.

        `trust` is added to the scores of facts: 0 is the trained model, −inf the base alone.
        """
        if top < 0:
            raise ConfigError(f"top = {top}", remedy="give 0 or more")
        if edits:
            return self.edited(edits).complete(prompt, entities, top=top, links=links, seed=seed, trust=trust)
        reading, linked = self.read(prompt, entities, links=links, trust=trust)
        answers = SubwordAnswers(reading)
        return Completion.ranked(
            self.graph, linked.words, linked.names, self._distribution(answers), answers, top=top,
            relations=self.tables.relations,
        )  # fmt: skip

    def ask(
        self,
        question: str,
        entities: Sequence[str | Span] = (),
        *,
        edits: Edit | Sequence[Edit] = (),
        top: int = 5,
        links: Links = "average",
        trust: float | None = None,
    ) -> Reply:
        """Answer a question in a sentence from facts of the graph, or say what is missing.

        model.ask("When was Barack Obama born?").text
        """
        if edits:
            return self.edited(edits).ask(question, entities, top=top, links=links, trust=trust)
        reading, linked = self.read(question, entities, links=links, trust=trust, question=True)
        answers = SubwordAnswers(reading)
        mentions = linked_mentions(self.graph, linked.words, linked.names)
        return reply(answers.start.following, self._distribution(answers), linked.words, mentions, top=top)

    def generate(
        self,
        prompt: str | Sequence[str] = "",
        entities: Sequence[str | Span] = (),
        *,
        config: GenerateConfig | None = None,
        links: Links = "best",
        trust: float | None = None,
        grounded: bool = False,
        pause: Callable[[], None] = lambda: None,
        **options: Unpack[GenerateOptions],
    ) -> Iterator[GeneratedWord]:
        """Generate words one by one, each with its reason; names, dates and numbers are marked as supported or not.

        `grounded`: names, dates and numbers come from the graph or the prompt. `pause` is called before each step of
        the language model.

        for word in model.generate("Marie Curie was", words=30, seed=1): print(word.text, end="")
        """
        return self._generate(
            prompt, entities, replace(config or GenerateConfig(), **options), links, trust, grounded, pause
        )

    def _generate(
        self,
        prompt: str | Sequence[str],
        entities: Sequence[str | Span],
        config: GenerateConfig,
        links: Links,
        trust: float | None,
        grounded: bool,
        pause: Callable[[], None],
    ) -> Iterator[GeneratedWord]:
        trust = self._trust(trust, TEXT_TRUST)
        base_alone = trust == -math.inf
        reading, linked = self.read(prompt, entities, links=links, trust=trust if base_alone else 0.0)
        support = Support(self.graph, linked.words, self._name_words)
        favour = 0.0 if base_alone else trust
        generator = Generator(support, self._link_on(links), config, grounded=grounded, trust=favour)
        stream = WordStream(self.graph, support, linked.words)
        drafts = (
            iter([generator.beam(reading, config.words, pause)]) if config.beam else generator.sample(reading, pause)
        )
        yield from stream.words(drafts, config.words)

    def _link_on(self, links: Links) -> Linking:
        """Links the names of a text that grows; earlier links stay."""

        def link(passage: Passage, given: Sequence[Link]) -> list[Link]:
            words = prompt_words(passage)
            last = max((link.end for link in given), default=0)
            known = [] if links == "none" else self._prompt_linker.link(words)
            best = [LinkedName.certain(n.start, n.end, n.node) for n in known if n.node is not None]
            new = [each for each in subword_links(passage, best, self.graph) if each.start >= last]
            return [*given, *new]

        return link


AnyModel = FactAwareLM | PretrainedLM
"""A loaded model of either kind."""


def _graph_file(run: HeadsRun, kg: str | Path | None) -> Path:
    if kg is not None:
        return Path(kg)
    if not (run.home / "kg.json").is_file():  # heads without a graph of their own
        return default_graph()
    from kglm.runs.run import graph_path

    return graph_path(run.home)

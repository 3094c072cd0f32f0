"""A loaded model: complete, generate, link, and apply graph edits without retraining.

    model = kglm.load("RUN")
    model.complete("Barack Obama was born on").words[0].word
    model.edited("Barack Obama | date of birth | 21 March 2013").complete("Barack Obama was born on")

Nothing here changes a stored graph: an edited model has the same weights and a fork of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn, TypedDict, Unpack, get_args

from kglm import bundled
from kglm.answer.completion import Completion, GeneratedWord
from kglm.answer.generate import GenerateConfig, generate
from kglm.answer.given import Edit, edited_graph
from kglm.answer.next_word import NextWordConfig, next_words
from kglm.answer.on_graph import OnGraph
from kglm.answer.reading import Annotation, Reading, Span, read
from kglm.answer.running import unfinished_name_start, with_running
from kglm.answer.sampled import read_sampled
from kglm.errors import ConfigError
from kglm.heads.store import is_heads
from kglm.kg.graph import KnowledgeGraph
from kglm.linking.joint import joint_links, marginal_links, most_probable_spans
from kglm.linking.linker import LinkedName
from kglm.marginal.particle import ParticleConfig
from kglm.model.kglm import Kglm
from kglm.pretrained.sources import is_installed
from kglm.runs.run import Run
from kglm.worlds.world import graph_path

if TYPE_CHECKING:
    from kglm.answer.pretrained.model import PretrainedLM

Links = Literal["average", "best", "sampled", "none"]
"""How to link names whose entity is not given: average over the likely annotations, take the most likely one, sample
annotations from the model's posterior, or link none."""
NO_HEADS = "no trained heads for a pretrained language model are installed"
PARTICLES = 100
"""Particles that approximate the posterior with links "sampled"."""


class GenerateOptions(TypedDict, total=False):
    """The fields of `GenerateConfig`, as keyword arguments."""

    words: int
    temperature: float
    top_p: float
    seed: int
    beam: int
    repeat: int


class FactAwareLM(OnGraph):
    """A trained KGLM with its graph. It keeps no state between calls: each prompt is read by itself."""

    is_pretrained = False

    def __init__(self, run: Run, base: FactAwareLM | None = None) -> None:
        """`base` is the model before edits, if there are any."""
        if not isinstance(run.model, Kglm):
            raise ConfigError(
                f"is a run of {run.settings.model}", place=run.home, remedy="give a run of: kglm train kglm"
            )
        super().__init__(run.graph, base, run.introductions)
        self.run = run
        self.model: Kglm = run.model

    @classmethod
    def open(cls, run: str | Path, *, kg: str | Path | KnowledgeGraph | None = None) -> FactAwareLM:
        """Load a run with its own graph, with another graph file, or with an open graph and its unsaved edits."""
        if not isinstance(kg, KnowledgeGraph):
            return cls(Run.open(Path(run), kg=None if kg is None else Path(kg)))
        stored = cls(Run.open(Path(run), kg=kg.store.path))
        if not kg.pending:
            return stored
        fork = stored.graph.fork()  # repeats the edits: the numbers of new nodes follow from the graph just opened
        fork.apply_planned(kg.pending)
        return cls(stored.run.on(fork), stored)

    def __repr__(self) -> str:
        edits = f", {len(self.graph.pending)} unsaved changes" if self.graph.pending else ""
        return f"FactAwareLM({str(self.run.home)!r}, {len(self.graph):,} entities{edits})"

    def edited(self, edits: Edit | Sequence[Edit]) -> FactAwareLM:
        """The same weights with an edited fork of the graph; give one edit or several.

        model.edited("France | capital | Lyon")
        """
        return self.on(edited_graph(self.graph, edits))

    def on(self, graph: KnowledgeGraph) -> FactAwareLM:
        """The same weights with a fork of the graph."""
        return FactAwareLM(self.run.on(graph), self)

    @property
    def name(self) -> str:
        """Name of the kind of model."""
        return self.run.settings.model

    @property
    def vocabulary_size(self) -> int:
        """Number of words that the model knows."""
        return len(self.run.vocabulary)

    # Prompts

    def read(
        self,
        prompt: str | Sequence[str],
        entities: Sequence[str | Span] = (),
        *,
        links: Links = "average",
        seed: int = 0,
    ) -> tuple[Reading, list[LinkedName]]:
        """Read a prompt; return the model's state after it and the candidates of its mentions."""
        if links not in get_args(Links):
            raise ConfigError(f"links {links!r}", remedy=f"use one of {', '.join(get_args(Links))}")
        words = self.words(prompt)
        given = self.given(words, entities)
        if links == "sampled":
            if given:
                raise ConfigError(
                    "entities are given and links are sampled", remedy="leave out the entities, or use other links"
                )
            names = self.linker.names
            return read_sampled(self.run, self.model, words, names, ParticleConfig(PARTICLES), seed)
        annotations: list[tuple[float, Annotation]] = [(1.0, given)]
        linked = [LinkedName.certain(*span) for span in given]
        if links != "none":
            linked = self._linked_names(words, given)
            ways = joint_links(linked, limit=1 if links == "best" else 8)
            annotations = [(p, [Span(*span) for span in spans]) for p, spans in ways]
            start = unfinished_name_start(self.run, words, [span for _, spans in annotations for span in spans])
            annotations = with_running(self.run, self.model, words, annotations)
            begun = ((p, [span for span in spans if span.start >= start]) for p, spans in annotations)
            linked = [*(each for each in linked if each.end <= start), *most_probable_spans(marginal_links(begun))]
        return read(self.run, self.model, words, annotations), linked

    # Answers

    def complete(
        self,
        prompt: str | Sequence[str],
        entities: Sequence[str | Span] = (),
        *,
        edits: Edit | Sequence[Edit] = (),
        top: int = 5,
        links: Links = "average",
        limits: NextWordConfig | None = None,
        seed: int = 0,
    ) -> Completion:
        """Predict how a text goes on: the `top` most probable answers and next words, with the facts behind each."""
        if top < 0:
            raise ConfigError(f"top = {top}", remedy="give 0 or more")
        if edits:
            return self.edited(edits).complete(prompt, entities, top=top, links=links, limits=limits, seed=seed)
        reading, linked = self.read(prompt, entities, links=links, seed=seed)
        return Completion.of(self.graph, reading, linked, next_words(reading, limits), top=top, limits=limits)

    def generate(
        self,
        prompt: str | Sequence[str] = "",
        entities: Sequence[str | Span] = (),
        *,
        config: GenerateConfig | None = None,
        links: Links = "best",
        pause: Callable[[], None] = lambda: None,
        **options: Unpack[GenerateOptions],
    ) -> Iterator[GeneratedWord]:
        """Generate words one by one, each with its reason. `pause` is called before each word is computed.

        for word in model.generate("France is", words=12, seed=1): print(word)
        """
        return self._generate(prompt, entities, replace(config or GenerateConfig(), **options), links, pause)

    def ask(self, *_: object, **__: object) -> NoReturn:
        """Questions are answered by pretrained models only: this raises an error."""
        raise ConfigError(
            "this model answers no questions",
            remedy="complete a sentence, or use a run of heads: see docs/pretrained.md",
        )

    def _generate(
        self,
        prompt: str | Sequence[str],
        entities: Sequence[str | Span],
        config: GenerateConfig,
        links: Links,
        pause: Callable[[], None],
    ) -> Iterator[GeneratedWord]:
        reading, _ = self.read(prompt, entities, links=links, seed=config.seed)
        for (word, p, derivation), _ in generate(reading, config, pause=pause):
            yield GeneratedWord.of(self.graph, word, p, derivation)


def load(
    run: str | Path | None = None,
    *,
    kg: str | Path | KnowledgeGraph | None = None,
    base: str | Path | None = None,
    trust: float | None = None,
) -> FactAwareLM | PretrainedLM:
    """Load a trained run: of an LSTM model, or of heads on a pretrained language model.

    Without a run: the heads that come with kglm, on the bundled world or on `kg`, if their base is installed; else
    `quickstart/kglm` if it exists here, else the small model that comes with kglm. `base` and `trust` are for
    pretrained models: see `PretrainedLM`.

    model = kglm.load("own-run", kg="other.kg")
    """
    home = default_run(base) if run is None else Path(run)
    graph = graph_path(kg) if isinstance(kg, str | Path) else kg
    if not is_heads(home):
        if base is not None or trust is not None:
            raise ConfigError(
                "is a run without a pretrained language model", place=home, remedy="leave out the base and the trust"
            )
        return FactAwareLM.open(home, kg=graph)
    from kglm.answer.pretrained.model import PretrainedLM

    return PretrainedLM.open(home, kg=graph, base=base, trust=trust)


def default_run(base: str | Path | None = None) -> Path:
    """The run to use when none is named: heads with their base, if it is installed, else a small LSTM model."""
    heads = bundled.default_heads()
    if base is not None and heads is None:
        raise ConfigError(NO_HEADS, remedy=f"name a run of heads, or set {bundled.HEADS_VARIABLE} to one")
    if heads is not None and (base is not None or is_installed()):
        return heads
    return bundled.default_run()

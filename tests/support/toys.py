"""Toy worlds for the models, small enough to enumerate: what can be said in them, and texts drawn at random."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import NEW
from kglm.kg.literals.literal import is_literal
from kglm.kg.literals.texts import text_id
from kglm.kg.tail_features import TailFeatureReader
from kglm.model.aliases import AliasTable
from kglm.model.awd_lstm import AwdLstm
from kglm.model.base import KglmConfig, Scores
from kglm.model.buckets import frequency_buckets
from kglm.model.cues import Cues
from kglm.model.encoders.awd_lstm import EncoderConfig
from kglm.model.entities import EntityTable, relation_words
from kglm.model.entity_nlm import EntityNlm, EntityNlmProposal
from kglm.model.graph_features import GraphFeatures
from kglm.model.kglm import Kglm
from kglm.model.options import PAPER, LatentConfig
from kglm.model.proposal import Proposal
from kglm.model.text import HistoryConfig
from kglm.model.types import Type
from kglm.text.document import END, START, Document, Mention
from kglm.text.vocabulary import PADDING, UNKNOWN, Vocabulary
from kglm.train.chunks import ChunkBuilder, whole
from kglm.train.encoding import DocumentEncoder
from support.worlds import make_store

YEAR = "T::9::+1989-00-00T00:00:00Z"
DAY = "T::11::+1989-04-21T00:00:00Z"
FACTS = (
    ("Q1", "P1", "Q2"),
    ("Q1", "P2", "Q2"),  # parallel to the one above
    ("Q1", "P1", "Q3"),  # two tails of one relation
    ("Q2", "P3", YEAR),
)
STATEMENTS = (
    (("Q1", "P1", "Q2"), {"qualifiers": {"P580": ["T::9::+1975-00-00T00:00:00Z"], "P582": [DAY]}}),
    (("Q1", "P1", "Q3"), {"rank": "preferred", "qualifiers": {"P580": [DAY]}}),
    (("Q1", "P1", "Q4"), {"qualifiers": {"P585": ["T::9::+1980-00-00T00:00:00Z"]}}),
)
"""Three values of one relation: one that has ended, the preferred one, and one of a single year."""
MORE_FACTS = (("Q3", "P31", "Q2"), ("Q2", "P3", DAY))
"""A kind, and a second date."""
NAMES = {"Q1": ("Mario Land", "Mario"), "Q2": ("Game Boy",)}  # Q3 has no name at all
INTRODUCTIONS = {"Q1": 3, "Q2": 1}
"""In how many training documents they are introduced; Q3 in none."""
SIZE = 3
CUE_NAMES = {"P1": ("Mario", "is"), "P2": ("Boy",), "P3": ("Boy", "Tennis")}
"""What the relations are called in texts: as words that these have; P31 is called nothing."""
OPTIONS = {
    "best": {},
    "everything on": {
        "latent": LatentConfig(entity_bias=True),
        "facts": (*FACTS, ("Q3", "P31", "Q2"), ("Q2", "P3", DAY)),
    },
    "paper": {"latent": PAPER},
    "statements": {"statements": STATEMENTS},
    "paper with missing facts": {"latent": replace(PAPER, missing=True)},
    "window": {"parent_window": 1},
    "three types": {"latent": PAPER, "mention_types": "paper"},
    "no facts": {"latent": LatentConfig(facts="none")},
    "topic": {"latent": LatentConfig(facts="topic"), "topic": "Q1"},
    "nobody's topic": {"latent": LatentConfig(facts="topic")},
}
ALL_OPTIONS = OPTIONS | {"long text": {"facts": (*FACTS, ("Q1", "P2", text_id("Boy is Mario is Boy is Mario")))}}
"""With a text of more words than an entity has alias slots."""


@dataclass(frozen=True)
class GivenTopic(HistoryConfig):
    """All documents have the topic that the toy gives."""

    given: int | None = None

    def topic(self, graph: KnowledgeGraph, document: Document) -> int | None:
        return self.given


@dataclass
class Toy:
    """A graph, a vocabulary and a model in double precision with random parameters."""

    features: GraphFeatures
    vocabulary: Vocabulary
    history: GivenTopic
    encoder: DocumentEncoder
    builder: ChunkBuilder
    model: Kglm
    proposal: Proposal
    plain: AwdLstm
    tracker: EntityNlm
    tracker_proposal: EntityNlmProposal
    hidden: dict[int, frozenset[int]] = field(default_factory=dict)
    """Relations that brute force treats as if their parents lacked them."""

    @property
    def graph(self) -> KnowledgeGraph:
        return self.features.graph

    @property
    def aliases(self) -> AliasTable:
        return self.features.aliases

    def score(self, *documents: Document) -> Scores:
        pieces = [whole(self.encoder.encode(document)) for document in documents]
        with torch.no_grad():
            return self.model.score(self.builder.build(pieces))

    def log_joint(self, *documents: Document) -> list[float]:
        return [float(x) for x in self.score(*documents).total_BT.sum(1)]


def make_toy(
    home: Path,
    *,
    latent: LatentConfig | None = None,
    facts: tuple[tuple[str, str, str], ...] = FACTS,
    names: dict[str, tuple[str, ...]] | None = None,
    statements: tuple[tuple[tuple[str, str, str], dict[str, object]], ...] = (),
    words: tuple[str, ...] = ("Mario", "is", "Boy"),
    mention_types: str = "continue",
    parent_window: int | None = None,
    topic: str | None = None,
    seed: int = 0,
) -> Toy:
    latent = latent or LatentConfig()
    graph = KnowledgeGraph.open(make_store(home, facts, NAMES if names is None else names, statements))
    vocabulary = Vocabulary((PADDING, UNKNOWN, START, END, *words), 5)
    aliases = AliasTable(graph, vocabulary, str.split, max_aliases=2, max_alias_tokens=3)
    cues = Cues(graph, lambda name: CUE_NAMES.get(name, () if name.startswith("P") else name.split()))
    given = None if topic is None or topic not in graph else graph.number(topic)
    missing = latent.offers_missing
    history = GivenTopic(latent.facts, parent_window, mention_types, missing, given)  # type: ignore[arg-type]
    introductions = {graph.number(id): n for id, n in INTRODUCTIONS.items() if id in graph}
    generator = torch.Generator().manual_seed(seed)
    literal = torch.from_numpy(graph.literal_nodes()[0])
    vectors = torch.nn.functional.normalize(torch.randn(len(graph), SIZE, generator=generator), dim=-1)
    relations = torch.randn(graph.relation_count, SIZE, generator=generator)
    relations[0] = 0
    real = (~literal).nonzero()[:, 0]
    table = EntityTable.make(
        vectors,
        torch.arange(len(graph)),
        real,
        torch.from_numpy(frequency_buckets(np.array([introductions.get(node, 0) for node in real.tolist()]))),
        relations,
        relation_words(graph, vocabulary, lambda name: [name, "is"]),
    )
    features = GraphFeatures(graph, aliases, cues, table, tails=TailFeatureReader(graph) if latent.tail_facts else None)
    config = KglmConfig(EncoderConfig(embedding=4, hidden=5, layers=2), latent)
    model = Kglm(config, len(vocabulary), features, generator=generator)
    for _, parameter in sorted(model.named_parameters()):  # biases start at zero; here every term must matter
        parameter.data += 0.5 * torch.randn(parameter.shape, generator=generator)
    model.latent.relations.vector_RD.data[0] = 0
    proposal = Proposal(config, len(vocabulary), features, generator=generator)
    plain = AwdLstm(config.encoder, len(vocabulary), generator=generator)
    trackers = [kind(config.encoder, len(vocabulary), generator=generator) for kind in (EntityNlm, EntityNlmProposal)]
    models = (each.double().eval() for each in (model, proposal, plain, *trackers))
    encoder = DocumentEncoder(features, vocabulary, history)
    builder = ChunkBuilder(features, parent_window=parent_window, introductions=introductions, missing=missing)
    return Toy(features, vocabulary, history, encoder, builder, *models)  # type: ignore[arg-type]


class Some:
    """Candidates that leave much out: the broad part must cover it."""

    complete = False

    def __init__(self, *nodes: int) -> None:
        self.nodes = nodes

    def at(self, t: int) -> list[int]:
        return list(self.nodes) if t % 2 == 0 else []

    def length(self, t: int, node: int) -> int:
        return 2


def assert_mean(log_values: np.ndarray, log_truth: float) -> None:
    """The mean of e^values is e^truth within four standard errors."""
    ratio = np.exp(log_values - log_truth)
    assert abs(ratio.mean() - 1) < 4 * ratio.std() / math.sqrt(len(ratio))
    assert ratio.std() > 0


@dataclass(frozen=True)
class Step:
    """One z_t and x_t: a type, the entity it speaks of, the fact it came by, and the word."""

    word: str
    type: Type
    node: int = -1
    parent: int = -1
    relation: int = -1


def surface_words(toy: Toy) -> list[str]:
    """Every word that can be said: the vocabulary (without padding) and all words of aliases."""
    words = [word for word in toy.vocabulary.words if word != PADDING]
    for node in range(len(toy.graph)):
        words += [word for word in toy.aliases[node].surface if word is not None]
    return list(dict.fromkeys(words))


def given(toy: Toy) -> dict[int, int]:
    """Who is a parent before anything is said, and since when."""
    return {} if toy.history.given is None else {toy.history.given: -1}


def leads(toy: Toy, node: int) -> bool:
    """Whether who was mentioned is a parent."""
    scope = toy.history.facts
    return node == toy.history.given if scope == "topic" else scope == "all" and not is_literal(toy.graph.id(node))


def candidates(toy: Toy, last: dict[int, int], t: int) -> list[int]:
    window = toy.history.parent_window
    return [node for node, at in last.items() if window is None or t - at <= window]


def legal_steps(toy: Toy, before: list[Step]) -> list[Step]:
    """Every z_t (with no word yet) that is legal after `before`."""
    last = given(toy)
    for t, step in enumerate(before):
        if step.node >= 0 and leads(toy, step.node):
            last[step.node] = t
    found = [Step("", Type.NONE)]
    if toy.history.facts != "topic":
        found += [Step("", Type.NEW, node) for node in toy.model.entities.real_E.tolist()]
    for parent in candidates(toy, last, len(before)):
        relations, tails = toy.graph.edges(parent)
        found += [
            Step("", Type.RELATED, tail, parent, relation)
            for relation, tail in zip(relations.tolist(), tails.tolist(), strict=True)
        ]
    if before and before[-1].node >= 0 and toy.history.mention_types == "continue":
        found.append(replace(before[-1], word="", type=Type.CONTINUE))
    return found


def sayable(toy: Toy, step: Step) -> list[Step]:
    """The step with each word it can emit: the vocabulary, and what its entity's aliases add."""
    words = list(toy.vocabulary.words)
    if step.node >= 0:
        words += [word for word in toy.aliases[step.node].surface if word is not None]
    return [replace(step, word=word) for word in dict.fromkeys(words)]


def annotated(toy: Toy, steps: list[Step], title: str = "toy") -> Document:
    """The annotated text of z and x."""
    mentions: list[Mention] = []
    for t, step in enumerate(steps):
        if step.type == Type.CONTINUE:
            mentions[-1] = mentions[-1].moved(mentions[-1].start, t + 2)
        elif step.type != Type.NONE:
            id = toy.graph.id(step.node)
            new = step.type == Type.NEW
            relation = NEW if new else toy.graph.relation_id(step.relation)
            parent = id if new else toy.graph.id(step.parent)
            mentions.append(Mention(t + 1, t + 2, id, "KG", (relation,), (parent,)))
    return Document(title, [START, *(step.word for step in steps)], mentions)


def random_texts(toy: Toy, length: int, count: int, seed: int = 1) -> list[list[Step]]:
    """Texts whose every step is a legal one, drawn evenly."""
    generator = random.Random(seed)
    texts = []
    for _ in range(count):
        steps: list[Step] = []
        for _ in range(length):
            steps.append(generator.choice(sayable(toy, generator.choice(legal_steps(toy, steps)))))
        texts.append(steps)
    return texts


def random_documents(toy: Toy, count: int, seed: int = 1) -> list[Document]:
    """Annotated texts of different lengths."""
    return [annotated(toy, random_texts(toy, 3 + 2 * k % 11, 1, seed=seed + k)[0], f"toy {k}") for k in range(count)]

"""Toy worlds for the models, small enough to enumerate, and the probabilities of their texts by brute force.

`enumerate_log_joint` computes log p(x, z) from a model's parameters by the formulas of the paper, one position and one
candidate at a time, sharing nothing with the fast code but the encoder's hidden states.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import NEW
from kglm.kg.literals import is_literal
from kglm.model.aliases import AliasTable
from kglm.model.annotation import AnnotationEncoder, Type, bucket, frequency_bucket, type_feature
from kglm.model.awd_lstm import AwdLstm
from kglm.model.chunk import ChunkBuilder, whole
from kglm.model.cues import Cues
from kglm.model.encoder import EncoderConfig
from kglm.model.entities import EntityTable, relation_words
from kglm.model.entity_nlm import EntityNlm, EntityNlmProposal
from kglm.model.kglm import Kglm
from kglm.model.latent import PAPER, LatentConfig
from kglm.model.parts import KglmConfig, Scores
from kglm.model.proposal import Proposal
from kglm.text.document import END, START, Document, Mention
from kglm.text.vocabulary import PADDING, UNKNOWN, Vocabulary
from worlds import make_store

YEAR = "T::9::+1989-00-00T00:00:00Z"
DAY = "T::11::+1989-04-21T00:00:00Z"
FACTS = (
    ("Q1", "P1", "Q2"),
    ("Q1", "P2", "Q2"),  # parallel to the one above
    ("Q1", "P1", "Q3"),  # two tails of one relation
    ("Q2", "P3", YEAR),
)
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
    "window": {"parent_window": 1},
    "three types": {"latent": PAPER, "mention_types": "paper"},
    "no facts": {"latent": LatentConfig(facts="none")},
    "topic": {"latent": LatentConfig(facts="topic"), "topic": "Q1"},
    "nobody's topic": {"latent": LatentConfig(facts="topic")},
}


class ToldTopic(AnnotationEncoder):
    """Documents are about whom the toy says."""

    told: int | None = None

    def topic(self, document: Document) -> int | None:
        return self.told


@dataclass
class Toy:
    """A graph, a vocabulary and a model in double precision with random parameters."""

    graph: KnowledgeGraph
    vocabulary: Vocabulary
    aliases: AliasTable
    encoder: ToldTopic
    builder: ChunkBuilder
    model: Kglm
    proposal: Proposal
    plain: AwdLstm
    tracker: EntityNlm
    tracker_proposal: EntityNlmProposal

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
    words: tuple[str, ...] = ("Mario", "is", "Boy"),
    mention_types: str = "continue",
    parent_window: int | None = None,
    topic: str | None = None,
    seed: int = 0,
) -> Toy:
    latent = latent or LatentConfig()
    graph = KnowledgeGraph.open(make_store(home, facts, NAMES if names is None else names))
    vocabulary = Vocabulary((PADDING, UNKNOWN, START, END, *words), 5)
    aliases = AliasTable(graph, vocabulary, str.split, max_aliases=2, max_alias_tokens=3)
    cues = Cues(graph, lambda name: CUE_NAMES.get(name, () if name.startswith("P") else name.split()))
    encoder = ToldTopic(
        graph,
        vocabulary,
        aliases,
        mention_types=mention_types,  # type: ignore[arg-type]
        parent_window=parent_window,
        facts=latent.facts,
        cues=cues,
    )
    encoder.told = None if topic is None or topic not in graph else graph.number(topic)
    introductions = {graph.number(id): n for id, n in INTRODUCTIONS.items() if id in graph}
    builder = ChunkBuilder(graph, aliases, parent_window=parent_window, introductions=introductions, cues=cues)
    generator = torch.Generator().manual_seed(seed)
    literal = torch.from_numpy(graph.literal_nodes()[0])
    vectors = torch.nn.functional.normalize(torch.randn(len(graph), SIZE, generator=generator), dim=-1)
    relations = torch.randn(graph.relation_count, SIZE, generator=generator)
    relations[0] = 0
    real = (~literal).nonzero()[:, 0]
    table = EntityTable(
        vectors,
        torch.arange(len(graph)),
        real,
        torch.tensor([frequency_bucket(builder.introductions.get(node, 0)) for node in real.tolist()]),
        relations,
        relation_words(graph, vocabulary, lambda name: [name, "is"]),
    )
    config = KglmConfig(EncoderConfig(embedding=4, hidden=5, layers=2), latent)
    model = Kglm(config, len(vocabulary), table, generator=generator)
    for parameter in model.parameters():  # biases start at zero; here every term must matter
        parameter.data += 0.5 * torch.randn(parameter.shape, generator=generator)
    model.latent.relation_RD.data[0] = 0
    proposal = Proposal(config, len(vocabulary), table, generator=generator)
    plain = AwdLstm(config.encoder, len(vocabulary), generator=generator)
    trackers = [kind(config.encoder, len(vocabulary), generator=generator) for kind in (EntityNlm, EntityNlmProposal)]
    models = (each.double().eval() for each in (model, proposal, plain, *trackers))
    return Toy(graph, vocabulary, aliases, encoder, builder, *models)  # type: ignore[arg-type]


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


def word_probability(toy: Toy, h_x: Tensor, node: int, word: str, before: tuple[str, ...] = ()) -> float:
    """p(x_t = word | entity); `before` are the words of the mention so far."""
    model, vocabulary = toy.model, toy.vocabulary
    weight, bias = model.encoder.embedding.weight, model.word_bias_V
    if node < 0:
        scores = (weight @ h_x + bias).exp()
        return float(scores[vocabulary.index[word]] / scores.sum()) if word in vocabulary else 0.0
    h = model.renderer.projection(torch.cat([h_x, model.latent.entity_vectors(torch.tensor(node))]))
    generate = (weight @ h + bias).exp()
    query = torch.tanh(model.renderer.copy.weight @ h)
    total, mass = float(generate.sum()), 0.0
    aliases = toy.aliases[node]
    rows, width = aliases.words_AL.shape
    encoded_ALH, _ = model.renderer.alias_lstm(weight[torch.from_numpy(aliases.words_AL)])
    for row in range(rows):
        for place in range(width):
            said = aliases.surface[row * width + place]
            if said is None:
                continue
            score = float((query @ encoded_ALH[row, place]).exp())
            alias_so_far = aliases.surface[row * width : row * width + place]
            if model.config.latent.alias_order and alias_so_far == before:
                score *= math.exp(float(model.renderer.order[min(place, 1)]))
            total += score
            mass += score if said == word else 0.0
    if word in vocabulary:
        mass += float(generate[vocabulary.index[word]])
    return mass / total


def relation_vector(toy: Toy, relation: int) -> Tensor:
    """v_r, with the words of its name."""
    latent = toy.model.latent
    vector = latent.relation_RD[relation]
    words = [word for word in latent.relation_word_NL[relation // 2].tolist() if word]
    if toy.model.config.latent.relation_text and words:
        mean = sum(toy.model.encoder.embedding.weight[word] for word in words) / len(words)
        vector = vector + mean @ latent.text_2HD[relation % 2]
    return vector


def entity_bias(toy: Toy, node: int, own: set[int]) -> float:
    """b_e; `own` are the entities that the document introduces, if it is one of those that were counted."""
    latent, config = toy.model.latent, toy.model.config.latent
    bias = float(latent.entity_bias_E[latent.real_E.tolist().index(node)]) if config.entity_bias else 0.0
    count = toy.builder.introductions.get(node, 0) - (node in own)
    return bias + (float(latent.frequency[frequency_bucket(max(count, 0))]) if config.frequency_bias else 0.0)


def sentence(before: list[str]) -> list[str]:
    """The words since the last end of a sentence."""
    words = [START, *before]
    return words[max(place for place, word in enumerate(words) if word in (START, END)) + 1 :]


def cue(toy: Toy, h_x: Tensor, relation: int, before: list[str]) -> float:
    """What the words before say for a relation."""
    if not toy.model.config.latent.cues:
        return 0.0
    said = {word.casefold() for word in before}
    stored = [id for id in CUE_NAMES if toy.graph.find_relation(id) is not None]
    names = [{word.casefold() for word in CUE_NAMES[id]} for id in stored]
    id = toy.graph.relation_id(relation - relation % 2)
    if id not in stored:
        return 0.0
    weight = {
        word: math.log(1 + len(names) / sum(word in name for name in names)) * (0.3 if word == "is" else 1)
        for name in names
        for word in name
    }
    name = names[stored.index(id)]
    share = sum(weight[word] for word in name & said) / sum(weight[word] for word in name)
    last, words = 0.0, [word.casefold() for word in CUE_NAMES[id]]
    for length in range(1, len(words) + 1):
        ends = words[-length:] == [word.casefold() for word in before][-length:]
        covered = sum(weight[word] for word in words[-length:]) / sum(weight[word] for word in words)
        if ends and covered >= 0.5 and any(word != "is" for word in words[-length:]):
            last = covered
    latent = toy.model.latent
    weights = (latent.cue + h_x @ latent.cue_HQ)[3 * (relation % 2) : 3 * (relation % 2) + 3].tolist()
    return weights[0] * share * (share >= 0.5) + weights[1] * (name <= said) + weights[2] * last


def path_probability(
    toy: Toy, h_x: Tensor, h_p: Tensor, h_r: Tensor, last: dict[int, int], t: int, step: Step, before: list[str]
) -> float:
    """π(p) π(r | p) π(e | p, r); `last` holds the candidates and when they were last mentioned."""
    latent, config, graph = toy.model.latent, toy.model.config.latent, toy.graph
    order = list(last)
    window = toy.encoder.parent_window
    scores = {}
    for parent in order:
        if window is None or t - last[parent] <= window:
            score = float(latent.entity_vectors(torch.tensor(parent)) @ h_p)
            places = latent.parent_bias.weight_Q + h_x @ latent.parent_bias.context_HQ
            score += float(places[bucket(t - last[parent])]) if config.recency_bias else 0.0
            score += float(places[-2]) if config.subject_bias and parent == order[0] else 0.0
            score += float(places[-1]) if config.sentence_bias and t - last[parent] <= len(before) else 0.0
            scores[parent] = math.exp(score)
    if step.parent not in scores:
        return 0.0
    relations, tails = graph.edges(step.parent)
    distinct = sorted(set(relations.tolist()))
    weights = {r: math.exp(float(relation_vector(toy, r) @ h_r) + cue(toy, h_x, r, before)) for r in distinct}
    reached = [tail for r, tail in zip(relations.tolist(), tails.tolist(), strict=True) if r == step.relation]
    if step.node not in reached:
        return 0.0
    share = tail_share(toy, h_x, step.node, reached, before)
    return scores[step.parent] / sum(scores.values()) * weights[step.relation] / sum(weights.values()) * share


def tail_share(toy: Toy, h_x: Tensor, node: int, reached: list[int], before: list[str]) -> float:
    """π(e | p, r)."""
    latent, said = toy.model.latent, {word.casefold() for word in before}
    instance = toy.graph.find_relation("P31")

    def kind(node: int) -> float:
        kinds = [] if instance is None else toy.graph.tails(node, instance).tolist()
        words = {word.casefold() for kind in kinds for word in toy.graph.names(kind)[0].split()}
        gamma, delta = (latent.cue + h_x @ latent.cue_HQ)[6:].tolist()
        day = toy.graph.id(node).startswith("T::11")
        return gamma * bool(words & said) + delta * day if toy.model.config.latent.cues else 0.0

    if not toy.model.config.latent.tail_scores:
        return 1 / len(reached)
    masses = {
        e: math.exp(float(latent.entity_vectors(torch.tensor(e)) @ (h_x @ latent.tail_HD)) + kind(e)) for e in reached
    }
    return masses[node] / sum(masses.values())


def enumerate_log_joint(
    toy: Toy, steps: list[Step], *, counted: bool = False, written: list[str] | None = None
) -> float:
    """log p(x, z), word for word; `written` are the words as they stand, where those of the steps are unknown ones."""
    written = [step.word for step in steps] if written is None else written
    model = toy.model
    own = {step.node for step in steps if step.type == Type.NEW} if counted else set()
    words = torch.tensor([toy.vocabulary.encode([START, *(step.word for step in steps)])])
    with torch.no_grad():
        h_TD = model.encoder(words, None).h_BTD[0]
        total, last, running = 0.0, _given(toy), list[str]()
        inside, since = False, None
        for t, step in enumerate(steps):
            h_x, h_p, h_r = h_TD[t].split(model.sizes)
            total += math.log(
                type_probability(toy, h_x, step, bool(_candidates(toy, last, t)), inside, running, since, steps, t)
            )
            if step.type == Type.NEW:
                logits = torch.tensor([
                    float(model.latent.entity_vectors(torch.tensor(node)) @ (h_p + h_r)) + entity_bias(toy, node, own)
                    for node in model.latent.real_E.tolist()
                ], dtype=torch.float64)  # fmt: skip
                share = model.config.latent.uniform_share
                chosen = model.latent.real_E.tolist().index(step.node)
                total += math.log((1 - share) * float(logits.softmax(0)[chosen]) + share / len(logits))
            elif step.type == Type.RELATED:
                probability = path_probability(toy, h_x, h_p, h_r, last, t, step, sentence(written[:t]))
                total += math.log(probability) if probability else -math.inf
            before = tuple(running) if step.type == Type.CONTINUE else ()
            total += math.log(word_probability(toy, h_x, step.node, step.word, before) or 1e-300)
            inside = step.node >= 0
            if inside:
                running = [*running, step.word] if step.type == Type.CONTINUE else [step.word]
                since = t
                if _leads(toy, step.node):
                    last[step.node] = t
        return total


def _given(toy: Toy) -> dict[int, int]:
    """Who is a parent before anything is said, and since when."""
    return {} if toy.encoder.told is None else {toy.encoder.told: -1}


def _leads(toy: Toy, node: int) -> bool:
    """Whether who was mentioned is a parent."""
    scope = toy.encoder.facts
    return node == toy.encoder.told if scope == "topic" else scope == "all" and not is_literal(toy.graph.id(node))


def _candidates(toy: Toy, last: dict[int, int], t: int) -> list[int]:
    window = toy.encoder.parent_window
    return [node for node, at in last.items() if window is None or t - at <= window]


def type_probability(
    toy: Toy, h_x: Tensor, step: Step, related: bool, inside: bool, running: list[str], since: int | None,
    steps: list[Step], t: int,
) -> float:  # fmt: skip
    latent = toy.model.latent
    logits = latent.type_head(h_x)
    if toy.model.config.latent.type_features:
        goes_on = ends = False
        if inside:
            goes_on, ends = toy.aliases[steps[t - 1].node].can_follow(running)
        logits = logits + latent.type_feature[type_feature(inside, goes_on, ends, None if since is None else t - since)]
    weights = logits.exp()
    legal = [True, toy.encoder.facts != "topic", related, inside and toy.encoder.mention_types == "continue"]
    total = sum(float(w) for w, ok in zip(weights, legal, strict=True) if ok)
    return float(weights[step.type]) / total if legal[step.type] else 1e-300


def legal_steps(toy: Toy, before: list[Step]) -> list[Step]:
    """Every z_t (with no word yet) that is legal after `before`."""
    last = _given(toy)
    for t, step in enumerate(before):
        if step.node >= 0 and _leads(toy, step.node):
            last[step.node] = t
    found = [Step("", Type.NONE)]
    if toy.encoder.facts != "topic":
        found += [Step("", Type.NEW, node) for node in toy.model.latent.real_E.tolist()]
    for parent in _candidates(toy, last, len(before)):
        relations, tails = toy.graph.edges(parent)
        found += [
            Step("", Type.RELATED, tail, parent, relation)
            for relation, tail in zip(relations.tolist(), tails.tolist(), strict=True)
        ]
    if before and before[-1].node >= 0 and toy.encoder.mention_types == "continue":
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

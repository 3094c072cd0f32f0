"""The probabilities of a toy's texts by brute force.

`enumerate_log_joint` computes log p(x, z) from a model's parameters by the formulas of the paper, one position and one
candidate at a time, sharing nothing with the fast code but the encoder's hidden states.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from kglm.kg.literals.literal import is_text
from kglm.model.buckets import bucket
from kglm.model.types import Type
from kglm.text.document import END, START
from support.toys import CUE_NAMES, STATEMENTS, Step, Toy, candidates, given, leads


class Said(NamedTuple):
    """What a step depends on: who was last mentioned when, whether a mention runs and its words, and all before."""

    last: dict[int, int]
    inside: bool
    running: list[str]
    since: int | None
    steps: list[Step]
    written: list[str]
    own: set[int]
    """Entities that the document introduces, if it is a training document."""


def word_probability(toy: Toy, h_x: Tensor, node: int, word: str, before: tuple[str, ...] = ()) -> float:
    """p(x_t = word | entity); `before` are the words of the mention so far."""
    model, vocabulary = toy.model, toy.vocabulary
    weight, bias = model.encoder.embedding.weight, model.word_bias_V
    if node < 0:
        scores = (weight @ h_x + bias).exp()
        return float(scores[vocabulary.index[word]] / scores.sum()) if word in vocabulary else 0.0
    h = model.renderer.projection(torch.cat([h_x, model.entities.vectors(torch.tensor(node))]))
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
            first = 0 if is_text(toy.graph.id(node)) else row * width  # a text is one name in all rows
            alias_so_far = aliases.surface[first : row * width + place]
            if model.config.latent.alias_order and alias_so_far == before:
                score *= math.exp(float(model.renderer.order[min(len(alias_so_far), 1)]))
            total += score
            mass += score if said == word else 0.0
    if word in vocabulary:
        mass += float(generate[vocabulary.index[word]])
    return mass / total


def relation_vector(toy: Toy, relation: int) -> Tensor:
    """v_r, with the words of its name."""
    latent = toy.model.latent
    vector = latent.relations.vector_RD[relation]
    words = [word for word in toy.model.entities.relation_word_KL[relation // 2].tolist() if word]
    if toy.model.config.latent.relation_text and words:
        mean = sum(toy.model.encoder.embedding.weight[word] for word in words) / len(words)
        vector = vector + mean @ latent.relations.name_2HD[relation % 2]
    return vector


def entity_bias(toy: Toy, node: int, own: set[int]) -> float:
    """b_e; `own` are the entities that the document introduces, if it is one of those that were counted."""
    latent, config = toy.model.latent, toy.model.config.latent
    bias = (
        float(latent.new_entities.bias_E[toy.model.entities.real_E.tolist().index(node)]) if config.entity_bias else 0.0
    )
    count = toy.builder.introductions.get(node, 0) - (node in own)
    return bias + (
        float(latent.new_entities.frequency_Q[1 + bucket(count) if count > 0 else 0]) if config.frequency_bias else 0.0
    )


def state(inside: bool, goes_on: bool, ends: bool, gap: int | None) -> int:
    """The number of a mention state."""
    if inside:
        return [0, 1, 2, 3][goes_on + 2 * ends]
    return 12 if gap is None else 4 + bucket(gap)


def sentence(before: list[str]) -> list[str]:
    """The words since the last end of a sentence."""
    words = [START, *before]
    return words[max(place for place, word in enumerate(words) if word in (START, END)) + 1 :]


def named(toy: Toy, relation: int, before: list[str]) -> tuple[float, bool, float]:
    """How far the words before name a relation: m, [m = 1], a."""
    said = {word.casefold() for word in before}
    stored = [id for id in CUE_NAMES if toy.graph.find_relation(id) is not None]
    names = [{word.casefold() for word in CUE_NAMES[id]} for id in stored]
    id = toy.graph.relation_id(relation - relation % 2)
    if id not in stored:
        return 0.0, False, 0.0
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
    return share * (share >= 0.5), name <= said, last


def cue(toy: Toy, h_x: Tensor, relation: int, before: list[str]) -> float:
    """What the words before say for a relation."""
    if not toy.model.config.latent.cues:
        return 0.0
    latent = toy.model.latent
    weights = (latent.cues.weight_Q + h_x @ latent.cues.context_HQ)[
        3 * (relation % 2) : 3 * (relation % 2) + 3
    ].tolist()
    return sum(weight * found for weight, found in zip(weights, named(toy, relation, before), strict=True))


def path_probability(
    toy: Toy, h_x: Tensor, h_p: Tensor, h_r: Tensor, last: dict[int, int], t: int, step: Step, before: list[str]
) -> float:
    """π(p) π(r | p) π(e | p, r); `last` holds the candidates and when they were last mentioned."""
    latent, config, graph = toy.model.latent, toy.model.config.latent, toy.graph
    order = list(last)
    window = toy.history.parent_window
    scores = {}
    for parent in order:
        if window is None or t - last[parent] <= window:
            score = float(toy.model.entities.vectors(torch.tensor(parent)) @ h_p)
            places = latent.parents.weight_Q + h_x @ latent.parents.context_HQ
            score += float(places[bucket(t - last[parent])]) if config.recency_bias else 0.0
            score += float(places[-2]) if config.subject_bias and parent == order[0] else 0.0
            score += float(places[-1]) if config.sentence_bias and t - last[parent] <= len(before) else 0.0
            scores[parent] = math.exp(score)
    if step.parent not in scores:
        return 0.0
    relations, tails = graph.edges(step.parent)
    hidden = toy.hidden.get(step.parent, ())
    distinct = sorted(set(relations.tolist()) - set(hidden))
    weights = {r: math.exp(float(relation_vector(toy, r) @ h_r) + cue(toy, h_x, r, before)) for r in distinct}
    if toy.model.latent.missing is not None:
        weights |= {
            r: math.exp(float(relation_vector(toy, r) @ h_r) + cue(toy, h_x, r, before) + handicap(toy, h_x, before))
            for r in lacked(toy, step.parent)
        }
    p_relation = scores[step.parent] / sum(scores.values()) * weights.get(step.relation, 0.0) / sum(weights.values())
    if step.type == Type.NONE:
        return p_relation
    reached = [tail for r, tail in zip(relations.tolist(), tails.tolist(), strict=True) if r == step.relation]
    if step.node not in reached or step.relation in hidden:
        return 0.0
    return p_relation * tail_share(toy, h_x, step, reached, before)


def lacked(toy: Toy, parent: int) -> list[int]:
    """The relations that a parent lacks; 0 and 1 are the reflexive one and its reverse."""
    own = set(toy.graph.edges(parent).relation.tolist()) - set(toy.hidden.get(parent, ()))
    return [r for r in range(2, toy.graph.relation_count) if r not in own]


def handicap(toy: Toy, h_x: Tensor, before: list[str]) -> float:
    """κ: what the score of a relation that the parent lacks differs by."""
    head, config = toy.model.latent.missing, toy.model.config.latent
    value = float(head.bias + h_x @ head.context_H)
    if config.cues or config.type_cues:
        found = [named(toy, relation, before) for relation in range(0, toy.graph.relation_count, 2)]
        value += sum(float(w) * max(column) for w, column in zip(head.cue_3, zip(*found, strict=True), strict=True))
    return value


def missing_steps(toy: Toy, last: dict[int, int], t: int) -> list[Step]:
    """Every fact that the text may ask for and that is missing."""
    if toy.model.latent.missing is None:
        return []
    parents = candidates(toy, last, t)
    return [Step("", Type.NONE, -1, parent, relation) for parent in parents for relation in lacked(toy, parent)]


def statement(toy: Toy, head: int, relation: int, tail: int) -> tuple[int, int | None, int | None, bool]:
    """Rank, first year, last year (None if unknown) of a fact, and whether it has ended, as `STATEMENTS` gives them."""
    if relation % 2:
        head, relation, tail = tail, relation - 1, head
    triple = (toy.graph.id(head), toy.graph.relation_id(relation), toy.graph.id(tail))
    stored = toy.graph.find_relation("P1:P580") is not None  # else this toy has no statements
    data: dict[str, Any] = dict(STATEMENTS).get(triple, {}) if stored else {}
    years = {key: int(value[0].split("+")[1][:4]) for key, value in data.get("qualifiers", {}).items()}
    first, last = years.get("P580", years.get("P585")), years.get("P582", years.get("P585"))
    return int(data.get("rank") == "preferred"), first, last, "P582" in years


def fact_score(
    toy: Toy, h_x: Tensor, parent: int, relation: int, tail: int, reached: list[int], said: list[str]
) -> float:
    """What the graph says for a tail."""
    if not toy.model.config.latent.tail_facts:
        return 0.0
    near = {node: [int(e) for e in toy.graph.edges(node).tail] for node in range(len(toy.graph))}
    rank, first, last, ended = statement(toy, parent, relation, tail)
    starts = [statement(toy, parent, relation, e)[1] for e in reached]
    years = [int(word) for word in said if word.isdigit() and len(word) == 4]
    named = 0
    if years and first is not None:
        named = 1 if first <= years[-1] <= (9999 if last is None else last) else -1
    values = [
        rank,
        ended,
        first is not None and first == max(start for start in starts if start is not None),
        math.log(near[parent].count(tail)),
        math.log(1 + len(set(near[parent]) & set(near[tail]))),
        math.log(1 + len(near[tail])),
        named,
    ]
    head = toy.model.latent.tails.facts
    assert head is not None
    weights = (head.weight_Q + h_x @ head.context_HQ).tolist()
    return sum(weight * value for weight, value in zip(weights, values, strict=True))


def tail_share(toy: Toy, h_x: Tensor, step: Step, reached: list[int], before: list[str]) -> float:
    """π(e | p, r)."""
    latent, config, said = toy.model.latent, toy.model.config.latent, {word.casefold() for word in before}
    instance = toy.graph.find_relation("P31")

    def kind(node: int) -> float:
        kinds = [] if instance is None else toy.graph.tails(node, instance).tolist()
        words = {word.casefold() for kind in kinds for word in toy.graph.names(kind)[0].split()}
        gamma, delta = (latent.cues.weight_Q + h_x @ latent.cues.context_HQ)[6:].tolist()
        day = toy.graph.id(node).startswith("T::11")
        return gamma * bool(words & said) + delta * day if config.cues else 0.0

    if not (config.tail_scores or config.tail_facts) or len(reached) == 1:
        return 1 / len(reached)
    scores = [
        config.tail_scores * float(toy.model.entities.vectors(torch.tensor(e)) @ (h_x @ latent.tails.query_HD))
        + kind(e)
        + fact_score(toy, h_x, step.parent, step.relation, e, reached, before)
        for e in reached
    ]
    return math.exp(scores[reached.index(step.node)]) / sum(map(math.exp, scores))


def type_probability(toy: Toy, h_x: Tensor, said: Said, step: Step) -> float:
    latent, t = toy.model.latent, len(said.steps)
    related, inside = bool(candidates(toy, said.last, t)), said.inside
    logits = latent.types.head(h_x)
    if toy.model.config.latent.type_cues and toy.encoder.cues is not None:
        found = [named(toy, relation, sentence(said.written)) for relation in range(0, toy.graph.relation_count, 2)]
        for place, most in enumerate(map(max, zip(*found, strict=True))):
            logits = logits + most * (latent.types.cue_3C[place] + h_x @ latent.types.cue_H3C[:, place])
        share = [round((m + a) / 2, 9) for m, _, a in found]
        chosen = share.index(max(share))
        logits = logits + share[chosen] * (relation_vector(toy, 2 * chosen) @ latent.types.relation_DC)
    if toy.model.config.latent.type_features:
        goes_on = ends = False
        if inside:
            goes_on, ends = toy.aliases[said.steps[-1].node].can_follow(said.running)
        gap = None if said.since is None else t - said.since
        logits = logits + latent.types.state_QC[state(inside, goes_on, ends, gap)]
    weights = logits.exp()
    legal = [True, toy.history.facts != "topic", related, inside and toy.history.mention_types == "continue"]
    total = sum(float(w) for w, ok in zip(weights, legal, strict=True) if ok)
    return float(weights[step.type]) / total if legal[step.type] else 1e-300


def step_log_probability(toy: Toy, h_D: Tensor, said: Said, step: Step) -> float:
    """log p(x_t, z_t | all before).

    A step without a mention has a parent and a relation if the text asks for this fact, which is missing; without them
    it stands for all steps without a mention.
    """
    model, t = toy.model, len(said.steps)
    h_x, h_p, h_r = h_D.split(model.sizes)
    words = sentence(said.written)
    total = math.log(type_probability(toy, h_x, said, step))
    if step.type == Type.NONE:
        related = type_probability(toy, h_x, said, replace(step, type=Type.RELATED))
        asked = [step] if step.parent >= 0 else missing_steps(toy, said.last, t)
        missing = related * sum(path_probability(toy, h_x, h_p, h_r, said.last, t, each, words) for each in asked)
        total = math.log(missing if step.parent >= 0 else math.exp(total) + missing)
    if step.type == Type.NEW:
        logits = torch.tensor([
            float(model.entities.vectors(torch.tensor(node)) @ (h_p + h_r)) + entity_bias(toy, node, said.own)
            for node in model.entities.real_E.tolist()
        ], dtype=torch.float64)  # fmt: skip
        share = model.config.latent.uniform_share
        chosen = model.entities.real_E.tolist().index(step.node)
        total += math.log((1 - share) * float(logits.softmax(0)[chosen]) + share / len(logits))
    elif step.type == Type.RELATED:
        probability = path_probability(toy, h_x, h_p, h_r, said.last, t, step, words)
        total += math.log(probability) if probability else -math.inf
    before = tuple(said.running) if step.type == Type.CONTINUE else ()
    return total + math.log(word_probability(toy, h_x, step.node, step.word, before) or 1e-300)


def enumerate_log_joint(
    toy: Toy,
    steps: list[Step],
    *,
    counted: bool = False,
    written: list[str] | None = None,
    known: dict[tuple[Step, ...], float] | None = None,
) -> float:
    """log p(x, z), word for word; `written` are the words as they stand, where those of the steps are unknown ones.

    `known` keeps what each step adds after those before it, for texts that begin alike: of one toy, none of them
    counted, with the same words as they stand.
    """
    assert known is None or not counted
    known = {} if known is None else known
    written = [step.word for step in steps] if written is None else written
    model = toy.model
    own = {step.node for step in steps if step.type == Type.NEW} if counted else set()
    words = torch.tensor([toy.vocabulary.encode([START, *(step.word for step in steps)])])
    with torch.no_grad():
        h_TD = model.encoder(words, None).h_BTD[0]
        total, last, running = 0.0, given(toy), list[str]()
        inside, since = False, None
        for t, step in enumerate(steps):
            so_far = tuple(steps[: t + 1])
            if so_far not in known:
                said = Said(last, inside, running, since, steps[:t], written[:t], own)
                known[so_far] = step_log_probability(toy, h_TD[t], said, step)
            total += known[so_far]
            inside = step.node >= 0
            if inside:
                running = [*running, step.word] if step.type == Type.CONTINUE else [step.word]
                since = t
                if leads(toy, step.node):
                    last[step.node] = t
        return total

"""Fact completion: rank the next word after a prompt, and check whether the best word comes from the right fact.

A prompt is a sentence about an entity X without its last part. There are four modes:

oracle      the model is given the entity X
linked      the project's linker finds X
shortlist   the linker chooses X among the ids of the prompt
plain       no entities, for plain language models

Four scorers decide whether a word is right (`prompts.SCORERS`). Words are ranked by their total probability, copied
plus generated; the unknown word keeps its rank and counts as wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args

import torch

from kglm.answer.completion import Reason
from kglm.answer.model import FactAwareLM
from kglm.answer.next_word import Derivation, next_words
from kglm.answer.reading import Annotation, Span, read
from kglm.errors import ConfigError
from kglm.evaluate.prompts import SCORERS, Prompt, expected_answer
from kglm.kg.graph import KnowledgeGraph
from kglm.linking.joint import joint_links
from kglm.model.awd_lstm import AwdLstm
from kglm.model.table import MODELS, Mode
from kglm.model.types import Type
from kglm.progress import progress
from kglm.runs.run import Run
from kglm.text.document import START

TOP = 5
"""Next words to rank for each prompt."""


@dataclass(frozen=True)
class Prediction:
    """The most probable next words after a prompt, and the main reason for each (None for a plain model)."""

    words: list[tuple[str, float]]
    reasons: list[Derivation | None]


@dataclass(frozen=True)
class Row:
    """Result for one prompt; `at1` and `at5` say by scorer whether one of the best 1 or 5 words is right."""

    model: str
    mode: Mode
    prompt: Prompt
    prediction: Prediction
    at1: dict[str, bool]
    at5: dict[str, bool]
    from_fact: bool
    """True if the main reason for the best word is the expected fact (relation and tail)."""
    in_graph: bool
    """True if the graph has the subject."""
    reasons: list[dict[str, Any] | None]

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "mode": self.mode,
            "relation": self.prompt.relation,
            "prompt": " ".join(self.prompt.words),
            "id": self.prompt.id,
            "expected": self.prompt.tail,
            "at1": self.at1,
            "at5": self.at5,
            "from_fact": self.from_fact,
            "known": self.in_graph,
            "words": [
                {"word": word, "p": p, "reason": reason}
                for (word, p), reason in zip(self.prediction.words, self.reasons, strict=True)
            ],
        }


def modes_of(run: Run) -> tuple[Mode, ...]:
    """Modes in which the run's model can complete prompts; an error if there is none."""
    modes = run.settings.kind.modes
    if not modes:
        remedy = f"give a run of {', '.join(name for name, kind in MODELS.items() if kind.modes)}"
        raise ConfigError(f"a {run.settings.model} run cannot complete prompts", place=run.home, remedy=remedy)
    return modes


def wanted_modes(name: str, run: Run, modes: Sequence[str]) -> list[Mode]:
    """The requested modes that the model has (all, if none is requested); an error if that leaves none."""
    if unknown := [mode for mode in modes if mode not in get_args(Mode)]:
        raise ConfigError(f"there is no mode {unknown[0]!r}", remedy=f"use {', '.join(get_args(Mode))}")
    wanted = [mode for mode in modes_of(run) if not modes or mode in modes]
    if not wanted:
        raise ConfigError(f"{name} has no mode {', '.join(modes)}", remedy=f"use {', '.join(modes_of(run))}")
    return wanted


Predict = Callable[[Prompt, Mode], Prediction]


def complete_all(name: str, run: Run, prompts: Sequence[Prompt], modes: Sequence[Mode] = ()) -> list[Row]:
    """Complete all prompts in each mode; by default in all modes that the model and the prompts support."""
    if not modes and not any(prompt.shortlist for prompt in prompts):
        modes = [mode for mode in modes_of(run) if mode != "shortlist"]
    predict = _plain_predictor(run) if modes_of(run) == ("plain",) else _fact_aware_predictor(FactAwareLM(run))
    return score_prompts(name, predict, run.graph, prompts, wanted_modes(name, run, modes))


def score_prompts(
    name: str, predict: Predict, graph: KnowledgeGraph, prompts: Sequence[Prompt], modes: Sequence[Mode] = ("plain",)
) -> list[Row]:
    """Predict after all prompts in each mode, and score the predictions by the names and facts of the graph."""
    rows = []
    with progress(f"completing with {name}", len(prompts) * len(modes), "prompts") as advance:
        for mode in modes:
            for prompt in prompts:
                rows.append(_row(name, graph, mode, prompt, predict(prompt, mode)))
                advance()
    return rows


def _row(name: str, graph: KnowledgeGraph, mode: Mode, prompt: Prompt, prediction: Prediction) -> Row:
    expected = expected_answer(graph, prompt)
    words = [word for word, _ in prediction.words]
    first = prediction.reasons[0] if prediction.reasons else None
    return Row(
        name,
        mode,
        prompt,
        prediction,
        {scorer: expected.accepts(scorer, words[:1]) for scorer in SCORERS},
        {scorer: expected.accepts(scorer, words[:TOP]) for scorer in SCORERS},
        first is not None and first.type == Type.RELATED and (first.relation, first.entity) in expected.facts,
        prompt.id in graph,
        [None if reason is None else Reason.of(graph, reason).to_json() for reason in prediction.reasons],
    )


def _fact_aware_predictor(live: FactAwareLM) -> Predict:
    def predict(prompt: Prompt, mode: Mode) -> Prediction:
        reading = read(live.run, live.model, prompt.words, _annotations(live, prompt, mode))
        found = next_words(reading)
        words = found.top(TOP)
        return Prediction(words, [found.derivations(word)[0] for word, _ in words])

    return predict


def _annotations(live: FactAwareLM, prompt: Prompt, mode: Mode) -> list[tuple[float, Annotation]]:
    """Possible links of the prompt's mentions with their probabilities."""
    if mode == "linked":
        linked = live.linker.link(prompt.words)
        return [(p, [Span(*span) for span in spans]) for p, spans in joint_links(linked)]
    ids = [prompt.id] if mode == "oracle" else list(prompt.shortlist)
    nodes = [node for id in ids if (node := live.graph.find(id)) is not None]
    if not nodes:
        return [(1.0, [])]
    place = (prompt.start, prompt.end)
    weights = live.linker.probabilities(prompt.words, *place, nodes) if len(nodes) > 1 else [1.0]
    return [(p, [Span(*place, node)]) for p, node in zip(weights, nodes, strict=True)]


def _plain_predictor(run: Run) -> Predict:
    model = cast(AwdLstm, run.model)

    def predict(prompt: Prompt, mode: Mode) -> Prediction:
        del mode
        words = torch.tensor([run.vocabulary.encode([START, *prompt.words])])
        with torch.no_grad():
            p_V = model.next_words(words)[0].double().exp()
        best = torch.topk(p_V, TOP)
        found = [(run.vocabulary.words[int(k)], float(p)) for p, k in zip(best.values, best.indices, strict=True)]
        return Prediction(found, [None] * len(found))

    return predict


def table(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Accuracy in percent by model, mode, relation and scorer, and the mean over relations.

    `from_fact` is the share of right best words whose main reason is the expected fact.
    """
    result: list[dict[str, Any]] = []
    for model, mode in dict.fromkeys((row.model, row.mode) for row in rows):
        selected = [row for row in rows if (row.model, row.mode) == (model, mode)]
        relations = list(dict.fromkeys(row.prompt.relation for row in selected))
        for scorer in SCORERS:
            cells = []
            for relation in relations:
                group = [row for row in selected if row.prompt.relation == relation]
                right = [row for row in group if row.at1[scorer]]
                cells.append({
                    "at1": 100 * len(right) / len(group),
                    "at5": 100 * sum(row.at5[scorer] for row in group) / len(group),
                    "from_fact": 100 * sum(row.from_fact for row in right) / len(right) if right else None,
                    "n": len(group),
                })  # fmt: skip
            for relation, cell in zip(relations, cells, strict=True):
                result.append({"model": model, "mode": mode, "relation": relation, "scorer": scorer, **cell})
            shares = [cell["from_fact"] for cell in cells if cell["from_fact"] is not None]
            mean = {key: sum(float(cell[key] or 0) for cell in cells) / len(cells) for key in ("at1", "at5")}
            average: dict[str, Any] = {"model": model, "mode": mode, "relation": "average", "scorer": scorer, **mean}
            average |= {"from_fact": sum(shares) / len(shares) if shares else None, "n": len(selected)}
            result.append(average)
    return result

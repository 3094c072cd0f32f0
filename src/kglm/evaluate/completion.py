"""Fact completion: does the right word come first, and does it come from the right fact?

A prompt is a sentence about X that lacks its last part. `oracle` is told who X is, `linked` finds it with the project's
own linker, `shortlist` chooses among the ids of the row, `plain` is for models that know no entities. A word is right
by one of four scorers (`prompts.SCORERS`); words are ranked by their whole probability, copied and generated together,
and the unknown word keeps its rank as a wrong answer.
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
from kglm.evaluate.prompts import SCORERS, Prompt, answer
from kglm.kg.graph import KnowledgeGraph
from kglm.linking.linker import joint_links
from kglm.model.awd_lstm import AwdLstm
from kglm.model.table import MODELS, Mode
from kglm.model.types import Type
from kglm.progress import progress
from kglm.runs.run import Run
from kglm.text.document import START

TOP = 5


@dataclass(frozen=True)
class Said:
    """What a model says after a prompt: the best words, and the main reason of each (none for a plain model)."""

    words: list[tuple[str, float]]
    reasons: list[Derivation | None]


@dataclass(frozen=True)
class Row:
    """One prompt, what was said, and which scorers find it right among the first k."""

    model: str
    mode: Mode
    prompt: Prompt
    said: Said
    at1: dict[str, bool]
    at5: dict[str, bool]
    from_fact: bool
    """Whether the best word's main reason is the fact that was asked for: its relation and its tail."""
    known: bool
    """Whether the graph has the subject."""
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
            "known": self.known,
            "words": [
                {"word": word, "p": p, "reason": reason}
                for (word, p), reason in zip(self.said.words, self.reasons, strict=True)
            ],
        }


def modes_of(run: Run) -> tuple[Mode, ...]:
    """How a model can be asked."""
    modes = run.settings.kind.modes
    if not modes:
        remedy = f"give a run of {', '.join(name for name, kind in MODELS.items() if kind.modes)}"
        raise ConfigError(f"a run of {run.settings.model} completes nothing", place=run.home, remedy=remedy)
    return modes


def wanted_modes(name: str, run: Run, modes: Sequence[str]) -> list[Mode]:
    """Those of the modes that the model has; there must be one."""
    if unknown := [mode for mode in modes if mode not in get_args(Mode)]:
        raise ConfigError(f"there is no mode {unknown[0]!r}", remedy=f"use {', '.join(get_args(Mode))}")
    wanted = [mode for mode in modes_of(run) if not modes or mode in modes]
    if not wanted:
        raise ConfigError(f"{name} cannot be asked by {', '.join(modes)}", remedy=f"use {', '.join(modes_of(run))}")
    return wanted


Speak = Callable[[Prompt, Mode], Said]
"""Answers a prompt."""


def complete_all(name: str, run: Run, prompts: Sequence[Prompt], modes: Sequence[Mode] = ()) -> list[Row]:
    """All prompts, in each of the modes; if none are given, in all that the model has and the prompts allow."""
    if not modes and not any(prompt.shortlist for prompt in prompts):
        modes = [mode for mode in modes_of(run) if mode != "shortlist"]
    speak = _plain(run) if modes_of(run) == ("plain",) else _knowing(FactAwareLM(run))
    return ask(name, speak, run.graph, prompts, wanted_modes(name, run, modes))


def ask(
    name: str, speak: Speak, graph: KnowledgeGraph, prompts: Sequence[Prompt], modes: Sequence[Mode] = ("plain",)
) -> list[Row]:
    """All prompts, in each of the modes, to whatever answers; the graph says what is right."""
    rows = []
    with progress(f"completing with {name}", len(prompts) * len(modes), "prompts") as advance:
        for mode in modes:
            for prompt in prompts:
                rows.append(_row(name, graph, mode, prompt, speak(prompt, mode)))
                advance()
    return rows


def _row(name: str, graph: KnowledgeGraph, mode: Mode, prompt: Prompt, said: Said) -> Row:
    right = answer(graph, prompt)
    words = [word for word, _ in said.words]
    first = said.reasons[0] if said.reasons else None
    return Row(
        name,
        mode,
        prompt,
        said,
        {scorer: right.right(scorer, words[:1]) for scorer in SCORERS},
        {scorer: right.right(scorer, words[:TOP]) for scorer in SCORERS},
        first is not None and first.type == Type.RELATED and (first.relation, first.entity) in right.facts,
        prompt.id in graph,
        [None if reason is None else Reason.of(graph, reason).to_json() for reason in said.reasons],
    )


def _knowing(live: FactAwareLM) -> Speak:
    def speak(prompt: Prompt, mode: Mode) -> Said:
        reading = read(live.run, live.model, prompt.words, _annotations(live, prompt, mode))
        found = next_words(reading)
        words = found.top(TOP)
        return Said(words, [found.derivations(word)[0] for word, _ in words])

    return speak


def _annotations(live: FactAwareLM, prompt: Prompt, mode: Mode) -> list[tuple[float, Annotation]]:
    """Who is mentioned in the prompt."""
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


def _plain(run: Run) -> Speak:
    model = cast(AwdLstm, run.model)

    def speak(prompt: Prompt, mode: Mode) -> Said:
        del mode
        words = torch.tensor([run.vocabulary.encode([START, *prompt.words])])
        with torch.no_grad():
            p_V = model.next_words(words)[0].double().exp()
        best = torch.topk(p_V, TOP)
        found = [(run.vocabulary.words[int(k)], float(p)) for p, k in zip(best.values, best.indices, strict=True)]
        return Said(found, [None] * len(found))

    return speak


def table(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Accuracy by model, mode, relation and scorer, and averaged over relations; `from_fact` is of the best words."""
    result: list[dict[str, Any]] = []
    for model, mode in dict.fromkeys((row.model, row.mode) for row in rows):
        ours = [row for row in rows if (row.model, row.mode) == (model, mode)]
        relations = list(dict.fromkeys(row.prompt.relation for row in ours))
        for scorer in SCORERS:
            cells = []
            for relation in relations:
                group = [row for row in ours if row.prompt.relation == relation]
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
            average |= {"from_fact": sum(shares) / len(shares) if shares else None, "n": len(ours)}
            result.append(average)
    return result

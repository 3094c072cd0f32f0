"""python -m benchmarks.pretrained.edits --kg shared.kg --data ../shared/data --run RUN --to results [--sequence 2000]

Edits of CounterFact: the graph's fact is set to another object, nothing is trained.

Each of the official 500 edits is made on its own. With --sequence N, N edits are made one after the other on one model
(the official ones first), and all of them are asked at the end. Facts that the graph holds, and facts that were
supplied to it first (subject or fact were missing), are reported apart; objects that are missing are added by name.

efficacy        after the edit, p(new object) > p(old object) after the prompt of the edit
paraphrase      the same after its paraphrases
neighbourhood   p(old object) > p(new object) after prompts about other subjects that have the old object (official)
  before        the same before the edit: what the base and the graph say anyway
  unchanged     the probabilities of both objects are the same before and after the edit, to 1e-9
locality        no probability of an answer or a word after the prompt of another edit changes by more than 1e-9
leak            mean p(old object) before the edit, after it, and by the base alone; and the share of prompts after
                which the old object is still the best answer

p(object) is the sum of the probabilities of the best 50 answers that are the object or have one of its names, and 0 if
there is none. Development uses rows that are not among the 2,000; they have one paraphrase and one neighbour each.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from benchmarks.pretrained.common import (
    Accepted,
    Model,
    Row,
    arguments,
    load,
    margin,
    read_gz,
    resumed,
    sampled,
    save,
    share,
)
from benchmarks.table import print_table

from kglm.kg.edits import FactEdit, NewEntity
from kglm.kg.graph import KnowledgeGraph

EXACT = 1e-9
REPORTED = 2000
"""Edits of the reported sequence; the first 500 of them are the official ones."""
TOP = 50
"""Answers of a completion that are looked through for an object."""


class Edit(NamedTuple):
    """An edit of CounterFact with what the graph needs for it."""

    row: Row
    subject: str
    old: str
    new: str
    supplied: tuple[NewEntity | FactEdit, ...]
    """Entities and the old fact, if the graph lacks them."""
    added: tuple[NewEntity, ...]
    """The new object, if the graph lacks it."""

    @property
    def change(self) -> list[NewEntity | FactEdit]:
        return [*self.added, FactEdit("set", self.subject, self.row["relation"], self.new)]

    @property
    def held(self) -> bool:
        """True if the graph has the old fact."""
        return not self.supplied


def made_id(name: str) -> str:
    """An id for an entity that the graph does not have."""
    return "Q_" + re.sub(r"\W+", "_", name)


def planned(graph: KnowledgeGraph, row: Row) -> Edit | None:
    """The edit of a row; None if the graph does not have the relation, or subject and object are the same."""
    relation = graph.find_relation(row["relation"])
    if relation is None:
        return None
    ids, new_entities = [], []
    for key in ("subject", "object", "target_new"):
        id = row[f"{key}_id"] or made_id(row[key])
        ids.append(id)
        new_entities.append(() if id in graph else (NewEntity(id, (row[key],)),))
    subject, old, new = ids
    if len(set(ids)) < 3:
        return None
    head, tail = graph.find(subject), graph.find(old)
    holds = head is not None and tail is not None and tail in graph.tails(head, relation).tolist()
    fact = () if holds else (FactEdit("add", subject, row["relation"], old),)
    return Edit(row, subject, old, new, (*new_entities[0], *new_entities[1], *fact), new_entities[2])


# Asking


class Asked(NamedTuple):
    """Probabilities of the two objects after a prompt, and whether the old one is the best answer."""

    old: float
    new: float
    best: str


def ask(model: Model, prompt: str, edit: Edit, *, base: bool = False) -> Asked:
    """p(old object) and p(new object) after a prompt."""
    options: dict[str, Any] = {"trust": -math.inf} if base else {}
    answers = model.complete(prompt, top=TOP, **options).answers
    right = [accepted(model.graph, edit, key) for key in ("old", "new")]
    old, new = (sum(answer.p for answer in answers if each.answer(answer)) for each in right)
    first = answers[0] if answers else None
    best = (
        "none" if first is None else "new" if right[1].answer(first) else "old" if right[0].answer(first) else "other"
    )
    return Asked(old, new, best)


def accepted(graph: KnowledgeGraph, edit: Edit, key: str) -> Accepted:
    """The old or the new object, without names that both have."""
    ids = {"old": edit.old, "new": edit.new}
    names = {"old": edit.row["object"], "new": edit.row["target_new"]}
    found = {key: Accepted.of(graph, [ids[key]], [names[key]]) for key in ids}
    shared = found["old"].names & found["new"].names
    return replace(found[key], names=found[key].names - shared)


def distribution(model: Model, prompt: str) -> dict[tuple[str, str], float]:
    """Probabilities of answers and words after a prompt."""
    found = model.complete(prompt, top=TOP)
    answers = {("answer", f"{each.text} {each.entity and each.entity.id}"): each.p for each in found.answers}
    return answers | {("word", each.word): each.p for each in found.words}


def measures(before: Model | None, after: Model, edit: Edit, paraphrases: int, neighbours: int) -> Row:
    """Ask all prompts of an edit after it, and before it unless `before` is None."""
    row = edit.row
    prompt = ask(after, row["prompt"], edit)
    others = [
        text for text, kind in zip(row["paraphrases"], row["paraphrase_kind"], strict=True) if kind == "paraphrase"
    ]
    rephrased = [ask(after, text, edit) for text in others[:paraphrases]]
    around = [ask(after, text, edit) for text in row["neighbourhood"][:neighbours]]
    base = ask(after, row["prompt"], edit, base=True)
    found: Row = {
        "id": row["id"], "relation": row["relation"], "prompt": row["prompt"], "held": edit.held,
        "efficacy": prompt.new > prompt.old, "best": prompt.best, "p_old": prompt.old, "p_new": prompt.new,
        "paraphrase": [each.new > each.old for each in rephrased],
        "paraphrase_best": [each.best == "new" for each in rephrased],
        "neighbourhood": [each.old > each.new for each in around],
        "p_old_base": base.old, "p_new_base": base.new, "base_prefers_old": base.old > base.new,
    }  # fmt: skip
    if before is not None:
        earlier = ask(before, row["prompt"], edit)
        earlier_around = [ask(before, text, edit) for text in row["neighbourhood"][:neighbours]]
        pairs = list(zip(earlier_around, around, strict=True))
        found |= {
            "p_old_before": earlier.old,
            "p_new_before": earlier.new,
            "best_before": earlier.best,
            "neighbourhood_before": [each.old > each.new for each in earlier_around],
            "unchanged": [max(abs(a.old - b.old), abs(a.new - b.new)) <= EXACT for a, b in pairs],
        }
    return found


def single(model: Model, edit: Edit, other: Row, paraphrases: int, neighbours: int) -> Row:
    """One edit on its own; `other` is a row whose prompt does not touch it."""
    before = model.edited([*edit.supplied]) if edit.supplied else model
    started = time.perf_counter()
    after = before.edited(edit.change)
    after.complete(edit.row["prompt"])
    seconds = time.perf_counter() - started
    first, second = (distribution(each, other["prompt"]) for each in (before, after))
    change = max(abs(first.get(key, 0) - second.get(key, 0)) for key in first | second)
    found = measures(before, after, edit, paraphrases, neighbours)
    return found | {"seconds": seconds, "change": change, "locality": change <= EXACT, "other": other["prompt"]}


def untouched(edits: Sequence[Edit], place: int) -> Row:
    """The next row with another subject, whose prompt and objects have nothing in common with the edit."""
    edit = edits[place]
    own = {edit.row[key] for key in ("subject", "object", "target_new")}
    for step in range(1, len(edits)):
        row = edits[(place + step) % len(edits)].row
        if not own & {row["subject"], row["object"], row["target_new"]} and row["relation"] != edit.row["relation"]:
            return row
    raise SystemExit("too few edits to measure locality: give a larger --limit")


# Rows


def rows_of(data: Path, half: str, count: int, seed: int) -> list[Row]:
    """Rows in random order, each subject and relation once: the official ones, then others with a real paraphrase.

    For development only those of the others are taken that no reported sequence has.
    """
    official = list(read_gz(data / "benchmarks/counterfact-500.jsonl.gz"))
    more = [row for row in read_gz(data / "benchmarks/counterfact.jsonl.gz") if "paraphrase" in row["paraphrase_kind"]]
    distinct: dict[tuple[str, str], Row] = {}
    for rows in (official, more):
        for row in sorted(rows, key=lambda row: sampled(str(row["id"]), seed)):
            distinct.setdefault((row["subject"], row["relation"]), row)
    order = list(distinct.values())
    return order[:count] if half == "reported" else order[REPORTED:][:count]


def summary(name: str, rows: Sequence[Row]) -> list[Row]:
    """Measures of facts that the graph held, of supplied facts, and of all."""
    found = []
    for group_name, group in (
        ("graph holds the fact", [row for row in rows if row["held"]]),
        ("fact supplied", [row for row in rows if not row["held"]]),
        ("all", list(rows)),
    ):
        if not group:
            continue
        old_best = [{"leaks": row["best"] == "old"} for row in group]
        numbers = {
            key: mean(row[key] for row in group) for key in ("p_old", "p_new", "p_old_base", "p_old_before")
            if key in group[0]
        }  # fmt: skip
        found.append({
            "edits": name, "facts": group_name, "n": len(group),
            "efficacy": share(group, "efficacy"), "margin": margin(group, "efficacy"),
            "new_first": share([{"x": row["best"] == "new"} for row in group], "x"),
            **{key: flat(group, key) for key in
               ("paraphrase", "paraphrase_best", "neighbourhood", "neighbourhood_before", "unchanged")},
            "locality": share([row for row in group if "locality" in row], "locality"),
            "old_first": share(old_best, "leaks"), **numbers,
        })  # fmt: skip
    return found


def task_name(edit: Edit) -> str:
    return f"{edit.row['id']} {edit.row['prompt']}"


def flat(rows: Sequence[Row], key: str) -> float | None:
    """Share over all prompts of all rows, in percent."""
    values = [value for row in rows for value in row.get(key, ())]
    return 100 * sum(values) / len(values) if values else None


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--sequence", type=int, default=0, help="edits to make one after the other; 0: single edits")
    parser.add_argument("--paraphrases", type=int, default=2)
    parser.add_argument("--neighbours", type=int, default=10, help="neighbourhood prompts of each edit")
    options = parser.parse_args()
    model = load(options.run, options.kg)
    count = options.sequence or 500
    rows = rows_of(options.data, options.half, count, options.seed)
    edits = [edit for row in rows if (edit := planned(model.graph, row)) is not None]
    print(f"{len(edits)} of {count} edits have a relation of the graph")
    edits, counts = edits[: options.limit], (options.paraphrases, options.neighbours)
    if options.sequence:
        started = time.perf_counter()
        for edit in edits:
            graph = model.graph
            supplied = [each for each in edit.supplied if not (isinstance(each, NewEntity) and each.id in graph)]
            added = [each for each in edit.change if not (isinstance(each, NewEntity) and each.id in graph)]
            model = model.edited([*supplied, *added])
        print(f"{len(edits)} edits in {time.perf_counter() - started:.1f} seconds")
        tasks = [(task_name(each), partial(measures, None, model, each, *counts)) for each in edits]
        name = f"{options.sequence} in sequence"
    else:
        others = [untouched(edits, place) for place in range(len(edits))]
        pairs = zip(edits, others, strict=True)
        tasks = [(task_name(each), partial(single, model, each, other, *counts)) for each, other in pairs]
        name = "single"
    path = options.to / f"edits-{options.sequence or 'single'}-{options.half}.jsonl"
    results = summary(name, resumed(path, tasks, title="edits"))
    columns = ("facts", "n", "efficacy", "margin", "new_first", "paraphrase", "paraphrase_best", "neighbourhood",
               "neighbourhood_before", "unchanged", "locality")  # fmt: skip
    print_table(columns, [[row.get(column) for column in columns] for row in results], title=name)
    columns = ("facts", "n", "p_old_before", "p_old", "p_old_base", "p_new", "old_first")
    print_table(columns, [[row.get(column) for column in columns] for row in results], title="Leak of the old object")
    save(path.with_suffix(".json"), results)


if __name__ == "__main__":
    main()

"""python -m benchmarks.pretrained.edits --kg shared.kg --data ../shared/data --run RUN --to results [--sequence 2000]

Edits of CounterFact: the graph's fact is set to another object, nothing is trained.

Each of the official 500 edits is made on its own. With --sequence N, N edits are made one after the other on one model
(the official ones first), and all of them are asked at the end. Facts that the graph holds, and facts that were
supplied to it first (subject or fact were missing), are reported apart; objects that are missing are added by name.

efficacy        after the edit, p(new object) > p(old object) after the prompt of the edit; p is the geometric mean over
                the subwords of the name, as in the official measure
paraphrase      the same after its paraphrases
neighbourhood   p(old object) > p(new object) after prompts about other subjects that have the old object (official)
  before        the same before the edit, for the first two prompts: what the base and the graph say anyway; `same` is
                the share after the edit for these two
  unchanged     the probabilities of both objects are the same before and after the edit, to 1e-9
locality        no probability of an answer or a word after the prompt of another edit changes by more than 1e-9
leak            mean p(old object), of the whole name, before the edit, after it, and by the base alone; and the share
                of prompts after which the old object is still the best answer

Development uses rows that are not among the 2,000; they have one paraphrase and one neighbour each.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import mean
from typing import NamedTuple

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

from kglm.heads.following import Following
from kglm.heads.reading import Reading
from kglm.kg.edits import FactEdit, NewEntity
from kglm.kg.graph import KnowledgeGraph

EXACT = 1e-9
REPORTED = 2000
"""Edits of the reported sequence; the first 500 of them are the official ones."""
BEFORE = 2
"""Neighbourhood prompts that are also asked before an edit."""
LISTS = ("paraphrase", "paraphrase_best", "neighbourhood", "neighbourhood_before", "neighbourhood_same", "unchanged")
"""Measures with several prompts of each edit."""
TOP = 20
"""Answers and words that are compared for locality."""


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
    """log p of the two objects after a prompt: of the whole name, and on average for each subword of it."""

    old: float
    new: float
    mean_old: float
    mean_new: float

    @property
    def new_wins(self) -> bool:
        """True if the new object is more probable, by the official measure."""
        return self.mean_new > self.mean_old

    def differs(self, other: Asked) -> bool:
        """True if a probability differs by more than `EXACT`."""
        return max(abs(math.exp(self.old) - math.exp(other.old)), abs(math.exp(self.new) - math.exp(other.new))) > EXACT


def ask(model: Model, prompt: str, row: Row, *, base: bool = False) -> Asked:
    """log p of both objects of an edit as they are named in CounterFact."""
    reading, _ = model.read(prompt, trust=-math.inf if base else None)
    found = [log_probs(model, reading, row[key]) for key in ("object", "target_new")]
    return Asked(*map(sum, found), *map(mean, found))


def log_probs(model: Model, reading: Reading, text: str) -> list[float]:
    """log p of each subword of a text after a prompt."""
    found = []
    for id in model.run.base.subwords.encode(f" {text}").ids:
        found.append(math.log(max(float(Following.of(reading).p_V[id]), 1e-300)))
        reading = reading.step(id)
    return found


def best_answer(model: Model, prompt: str, edit: Edit) -> str:
    """Which object the best answer is: old, new or other."""
    [first] = model.complete(prompt, top=1).answers or [None]
    for name, id, key in (("new", edit.new, "target_new"), ("old", edit.old, "object")):
        if first is not None and Accepted.of(model.graph, [id], [edit.row[key]]).answer(first):
            return name
    return "other"


def distribution(model: Model, prompt: str) -> dict[tuple[str, str], float]:
    """Probabilities of answers and words after a prompt."""
    found = model.complete(prompt, top=TOP)
    answers = {("answer", f"{each.text} {each.entity and each.entity.id}"): each.p for each in found.answers}
    return answers | {("word", each.word): each.p for each in found.words}


def measures(before: Model | None, after: Model, edit: Edit, paraphrases: int, neighbours: int) -> Row:
    """Ask all prompts of an edit after it, and some before it unless `before` is None."""
    row = edit.row
    prompt = ask(after, row["prompt"], row)
    kinds = zip(row["paraphrases"], row["paraphrase_kind"], strict=True)
    others = [text for text, kind in kinds if kind == "paraphrase"][:paraphrases]
    around = [ask(after, text, row) for text in row["neighbourhood"][:neighbours]]
    alone = ask(after, row["prompt"], row, base=True)
    found: Row = {
        "id": row["id"], "relation": row["relation"], "prompt": row["prompt"], "held": edit.held,
        "efficacy": prompt.new_wins, "best": best_answer(after, row["prompt"], edit),
        "p_old": math.exp(prompt.old), "p_new": math.exp(prompt.new),
        "paraphrase": [ask(after, text, row).new_wins for text in others],
        "paraphrase_best": [best_answer(after, text, edit) == "new" for text in others],
        "neighbourhood": [not each.new_wins for each in around],
        "p_old_base": math.exp(alone.old), "p_new_base": math.exp(alone.new), "base_prefers_new": alone.new_wins,
    }  # fmt: skip
    if before is not None:
        earlier = ask(before, row["prompt"], row)
        earlier_around = [ask(before, text, row) for text in row["neighbourhood"][: min(neighbours, BEFORE)]]
        found |= {
            "p_old_before": math.exp(earlier.old),
            "p_new_before": math.exp(earlier.new),
            "neighbourhood_before": [not each.new_wins for each in earlier_around],
            "neighbourhood_same": [not each.new_wins for each in around[: len(earlier_around)]],
            "unchanged": [not a.differs(b) for a, b in zip(earlier_around, around, strict=False)],
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
            **{key: flat(group, key) for key in LISTS},
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
               "neighbourhood_before", "neighbourhood_same", "unchanged", "locality")  # fmt: skip
    print_table(columns, [[row.get(column) for column in columns] for row in results], title=name)
    columns = ("facts", "n", "p_old_before", "p_old", "p_old_base", "p_new", "old_first")
    print_table(columns, [[row.get(column) for column in columns] for row in results], title="Leak of the old object")
    save(path.with_suffix(".json"), results)


if __name__ == "__main__":
    main()

"""python -m benchmarks.pretrained.new_graphs --run RUN --to results [--graphs company novel zoo invented foods]

Questions about graphs that no training has seen, right after their import: a company, a novel and a zoo (those of
`tests/kg/own`), an invented world (`worlds/invented.tsv`), and a table of numbers (`foods.py`).

Each fact is asked in three wordings: in the words of the relation's label, of an alias that the graph has, and in a
free paraphrase (`worlds/*.toml`, written before any model was asked). They are statements to complete; a question in
the words of the label and a free one are asked too. The halves have different facts and different wordings.

Then the asked facts are removed, one subject and relation at a time, and the statements are asked again:

missing     it says that a fact is missing (recall); `precision`: of all prompts where it says so, with or without the
            fact in the graph, the share of those without
named       it names the removed relation of the subject
plain       it answers with plain words, or to a question that it finds no fact; but not with another fact
other       it answers with another fact of the graph: wrong
"""

from __future__ import annotations

import json
import random
import re
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.pretrained.common import (
    TOP,
    Accepted,
    Model,
    Question,
    Row,
    arguments,
    complete,
    half_of,
    is_found,
    judged,
    load,
    margin,
    resumed,
    sampled,
    save,
    share,
)
from benchmarks.pretrained.foods import write_foods
from benchmarks.table import print_table

import kglm
from kglm.kg.arrays import is_fact
from kglm.kg.edits import FactEdit
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.literal import is_literal

HOME = Path(__file__).parent
OWN = HOME.parents[1] / "tests/kg/own"
WORLDS = ("company", "novel", "zoo", "invented")
NUMBERS = "foods"
STATEMENTS = ("label", "alias", "free")
ASKED = ("ask_label", "ask_free")
HALF = {"development": 0, "reported": 1}
"""Place of a half's wording in the lists of wordings."""
FACTS = {NUMBERS: 200}
"""Facts that are asked in each half; otherwise `WORLD_FACTS`."""
WORLD_FACTS = 50


def build(name: str, home: Path, *, aliases: bool = True) -> Path:
    """Import a graph as a user would: tables, and a file with aliases of the relations."""
    kg = home / f"{name}.kg"
    if kg.exists():
        return kg
    home.mkdir(parents=True, exist_ok=True)
    if name == NUMBERS:
        write_foods(home / "foods.csv")
        sources = [home / "foods.csv"]
    elif name == "invented":
        sources = [HOME / "worlds/invented.tsv"]
    else:
        sources = sorted(path for path in (OWN / name).iterdir() if path.name != "expected.csv")
    kglm.import_graph(sources, kg)
    if not aliases:
        return kg
    with KnowledgeGraph.open(kg) as graph:
        ids = {graph.relation_label(r): graph.relation_id(r) for r in range(2, graph.relation_count, 2)}
    named = home / f"{name}-relations.jsonl"
    with named.open("w", encoding="utf-8") as stream:
        for label, each in wordings(name).items():
            stream.write(json.dumps({"id": ids[label], "label": label, "aliases": each["also"]}) + "\n")
    kglm.import_graph(sources, kg, entities=named, replace=True)
    return kg


def wordings(name: str) -> dict[str, Any]:
    """Wordings of each relation of a graph, by its label."""
    return tomllib.loads((HOME / f"worlds/{name}.toml").read_text(encoding="utf-8"))


def facts(graph: KnowledgeGraph, name: str, half: str, seed: int) -> list[tuple[str, str, tuple[str, ...]]]:
    """Subject, relation and tails to ask for, in random order: at least one of each relation first."""
    found = []
    for head in range(len(graph)):
        of: dict[int, list[int]] = defaultdict(list)
        for relation, tail in zip(*(column.tolist() for column in graph.edges(head)), strict=True):
            if is_fact(relation) and relation % 2 == 0:
                of[relation].append(tail)
        found += [
            (graph.id(head), graph.relation_id(r), tuple(map(graph.id, tails)))
            for r, tails in of.items()
            if graph.relation_label(r) in wordings(name)
        ]
    found = [fact for fact in found if half_of(f"{name} {fact[0]} {fact[1]}") == half]
    found.sort(key=lambda fact: sampled(f"{fact[0]} {fact[1]}", seed))
    rank: dict[str, int] = defaultdict(int)
    order = []
    for fact in found:
        rank[fact[1]] += 1
        order.append((rank[fact[1]] > 1, fact))
    return [fact for _, fact in sorted(order, key=lambda pair: pair[0])]


def questions(graph: KnowledgeGraph, name: str, half: str, limit: int | None, seed: int) -> list[Question]:
    """Each fact in every wording of this half; kinds are `STATEMENTS` and `ASKED`."""
    worded, found = wordings(name), []
    for head, relation, tails in facts(graph, name, half, seed)[: limit or FACTS.get(name, WORLD_FACTS)]:
        of = worded[graph.relation_name(relation)]
        label = graph.label(graph.number(head))
        for kind in (*STATEMENTS, *ASKED):
            text = filled(of[kind][HALF[half]], label)
            said = label if label in text else label[0].upper() + label[1:]
            found.append(Question(f"{name} {head} {relation} {kind}", text, head, said, relation, tails, kind))
    return found


def filled(wording: str, name: str) -> str:
    """A wording with the name of its subject: no second article, a capital at the beginning."""
    if re.match(r"the\b", name, re.IGNORECASE):
        wording = re.sub(r"\b[Tt]he {X}", "{X}", wording)
    text = wording.replace("{X}", name)
    return text[0].upper() + text[1:]


# Asking


def asked(model: Model, question: Question, how: str) -> Row:
    """Ask one question with its fact in the graph."""
    accepted = Accepted.of(model.graph, question.tails)
    found = question.to_json() | {"how": how, "removed": False, "number": all(map(is_literal, question.tails))}
    if question.kind in ASKED:
        return {**found, **spoken(model.ask(question.prompt), model.graph, question, accepted)}
    row = judged(complete(model, question, how=how), accepted)
    return {**found, **row, "subject_found": is_found(question, row)}


def spoken(answer: Any, graph: KnowledgeGraph, question: Question, accepted: Accepted) -> Row:
    """Judge an answer to a question: `answer1` its best answer, `said` whether its sentence has a right name."""
    names = [name for id in question.tails for name in graph.aliases(graph.number(id))]
    text = answer.text or ""
    said = any(re.search(rf"(?<![\w.,]){re.escape(name)}(?!\w|[.,]\d)", text, re.IGNORECASE) for name in names)
    right = [accepted.answer(each) for each in answer.answers[:TOP]]
    missing = answer.missing[0] if answer.missing else None
    return {
        "text": answer.text,
        "note": answer.note,
        "said": said,
        "answer1": any(right[:1]),
        "answer5": any(right),
        "answers": [(each.text, each.entity and each.entity.id, round(each.p, 6)) for each in answer.answers[:TOP]],
        "says_missing": bool(answer.asks_for_missing),
        "missing": missing and {"p": missing.p, "parent": missing.parent.id, "relation": missing.relation.id},
        "linked": [(mention.text, mention.id, round(mention.p, 4)) for mention in answer.mentions],
    }


def removed(model: Model, question: Question) -> Row:
    """Ask again without the fact: all tails of the subject and the relation are removed."""
    edits = [FactEdit("remove", question.subject, question.relation, tail) for tail in question.tails]
    edited = model.edited(edits)
    found = question.to_json() | {"how": "linked", "removed": True}
    accepted = Accepted.of(model.graph, question.tails)
    if question.kind in ASKED:
        row = spoken(edited.ask(question.prompt), model.graph, question, accepted)
        outcome = "missing" if row["says_missing"] else "plain" if row["text"] is None else "other"
    else:
        row = judged(complete(edited, question), accepted)
        first = row["answers"][0] if row["answers"] else ("", None, 0.0)
        outcome = "missing" if row["says_missing"] else "plain" if first[1] is None else "other"
    missing = row["missing"] or {}
    named = (missing.get("parent"), missing.get("relation")) == (question.subject, question.relation)
    return {**found, **row, "named": named and row["says_missing"], "outcome": outcome}


# Tables


def accuracy(name: str, rows: Sequence[Row]) -> list[Row]:
    """Shares by kind of wording and way to ask."""
    found = []
    for kind in (*STATEMENTS, *ASKED):
        for how in dict.fromkeys(row["how"] for row in rows):
            group = [row for row in rows if (row["kind"], row["how"]) == (kind, how) and not row["removed"]]
            if group:
                numbers = [row for row in group if row["number"]]
                found.append({
                    "graph": name, "kind": kind, "how": how, "n": len(group),
                    **{key: share(group, key) for key in ("answer1", "answer5")},
                    "margin": margin(group, "answer1"),
                    "numbers": share(numbers, "answer1"), "numbers_n": len(numbers),
                    "word1": share(group, "word1") if kind in STATEMENTS else None,
                    "said": share(group, "said") if kind in ASKED else None,
                    "says_missing": share(group, "says_missing"),
                    "subject_found": share(group, "subject_found") if kind in STATEMENTS else None,
                })  # fmt: skip
    return found


def missing_table(name: str, rows: Sequence[Row]) -> list[Row]:
    """Precision and recall of missing by kind of wording."""
    found = []
    for kinds in (*[(kind,) for kind in (*STATEMENTS, *ASKED)], STATEMENTS):
        group = [row for row in rows if row["kind"] in kinds and row["how"] == "linked"]
        without, there = ([row for row in group if row["removed"] is value] for value in (True, False))
        said = [row for row in group if row["says_missing"]]
        if without:
            found.append({
                "graph": name, "kind": "all statements" if len(kinds) > 1 else kinds[0], "n": len(without),
                "recall": share(without, "says_missing"),
                "precision": 100 * sum(row["removed"] for row in said) / len(said) if said else None,
                "false": share(there, "says_missing"),
                "named": share(without, "named"),
                **{key: 100 * sum(row["outcome"] == key for row in without) / len(without)
                   for key in ("plain", "other")},
            })  # fmt: skip
    return found


def main() -> None:
    parser = arguments(__doc__, graph=False)
    parser.add_argument("--graphs", nargs="+", choices=(*WORLDS, NUMBERS), default=(*WORLDS, NUMBERS))
    parser.add_argument("--how", nargs="+", choices=("linked", "given", "base"), default=["linked"])
    parser.add_argument("--no-aliases", action="store_true", help="import no aliases of relations")
    parser.add_argument("--no-questions", action="store_true", help="ask statements only")
    parser.add_argument("--no-removal", action="store_true", help="do not ask without the facts")
    options = parser.parse_args()
    right, gone, everything = [], [], []
    suffix = "-no-aliases" if options.no_aliases else ""
    for name in options.graphs:
        kg = build(name, options.to / f"graphs{suffix}", aliases=not options.no_aliases)
        model = load(options.run, kg)
        asked_for = questions(model.graph, name, options.half, options.limit, options.seed)
        if options.no_questions:
            asked_for = [each for each in asked_for if each.kind in STATEMENTS]
        tasks = [
            (f"{how} {each.key}", partial(asked, model, each, how))
            for each in asked_for
            for how in options.how
            if how == "linked" or each.kind in STATEMENTS
        ]
        if not options.no_removal:
            tasks += [(f"removed {each.key}", partial(removed, model, each)) for each in asked_for]
        random.Random(options.seed).shuffle(tasks)
        rows = resumed(options.to / f"new-graphs-{name}{suffix}-{options.half}.jsonl", tasks, title=name)
        right += accuracy(name, rows)
        gone += missing_table(name, rows)
        everything += [row for row in rows if name in WORLDS]
    right += accuracy("all but foods", everything)
    gone += missing_table("all but foods", everything)
    columns = ("graph", "kind", "how", "n", "answer1", "margin", "answer5", "word1", "said", "numbers", "says_missing",
               "subject_found")  # fmt: skip
    heads = (
        "graph",
        "wording",
        "subject",
        "n",
        "@1",
        "±",
        "@5",
        "word@1",
        "said",
        "@1 of numbers",
        "missing, %",
        "found",
    )
    print_table(heads, [[row[column] for column in columns] for row in right])
    columns = ("graph", "kind", "n", "recall", "precision", "false", "named", "plain", "other")
    print_table(columns, [[row.get(column) for column in columns] for row in gone], title="Without the fact")
    save(options.to / f"new-graphs{suffix}-{options.half}.json", {"accuracy": right, "missing": gone})


if __name__ == "__main__":
    main()

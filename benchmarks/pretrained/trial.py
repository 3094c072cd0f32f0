"""python -m benchmarks.pretrained.trial --half development --to FOLDER

Try the default as a new user would: the prompts and questions of `trial.tsv` with the bundled world and heads.

Even rows of the table are the development half, odd rows the reported one. What the graph has is looked up: it `has` a
right answer under one of the relations, has an `other` value, or `lacks` the fact. What the model says:

right     its best answer is right: an entity, date or number, or plain words
among     (questions) it lists several values, and one but the first is right
wrong     it states a fact of the graph that is no right answer
missing   it says that the graph lacks the fact, or (questions) that it has no answer
plain     (statements) its best answer is words of the language model, and not right
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.pretrained.common import HALVES, SURE, Model, Row, arguments, load, normal, resumed, save

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.dates import Date
from kglm.kg.literals.literal import is_date, is_quantity
from kglm.kg.literals.quantities import Quantity

TABLE = Path(__file__).with_name("trial.tsv")
ANY, ABOUT, NEVER = "*", "~", "missing"
"""Right answers: any value that the graph has, a number within `NEAR` of this one, none at all."""
NEAR = 0.1
SEARCHED = 50
"""Entities of a name that are looked at."""
VERDICTS = ("right", "among", "wrong", "missing", "plain")


@dataclass(frozen=True)
class Line:
    """A line of the table."""

    kind: str
    text: str
    subject: str
    relations: tuple[str, ...]
    right: tuple[str, ...]

    @property
    def is_question(self) -> bool:
        return self.text.endswith("?")


def read_table(half: str) -> list[Line]:
    """The lines of a half."""
    rows = [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    lines = [
        Line(kind, text, name, tuple(r.split("|")), tuple(right.split("|"))) for kind, text, name, r, right in rows
    ]
    return [line for number, line in enumerate(lines, 1) if HALVES[number % 2] == half]


def values(graph: KnowledgeGraph, line: Line) -> list[list[tuple[str, int]]]:
    """Relations and values of the fact that a line asks for, for each entity with the name, the best known first."""
    found = [hit for hit in graph.search(line.subject, SEARCHED) if normal(hit.match) == normal(line.subject)]
    ids = {id: label for id, label in graph.store.rows("SELECT id, label FROM relation") if label in line.relations}
    return [
        [(ids[id], graph.number(row.tail)) for id in ids for row in graph.store.facts_with(hit.id, id)]
        for hit in sorted(found, key=lambda hit: -hit.facts)
    ]


def what_graph_has(graph: KnowledgeGraph, line: Line) -> tuple[str, list[str]]:
    """`has`, `other` or `lacks`, and the values of the graph."""
    subjects = values(graph, line)
    labels = [[graph.label(node) for _, node in each] for each in subjects]
    if line.right == (NEVER,):
        return "lacks", labels[0] if labels else []
    for each, shown in zip(subjects, labels, strict=True):
        if any(right == ANY or matches(graph, node, right) for _, node in each for right in line.right):
            return "has", shown
    other = next((shown for shown in labels if shown), [])
    return ("other" if other else "lacks"), other


def matches(graph: KnowledgeGraph, node: int, right: str) -> bool:
    """True if an entity or a literal is what a right answer says."""
    id = graph.id(node)
    if is_quantity(id):
        amount = float(Quantity.parse_id(id).amount)
        number = right.removeprefix(ABOUT)
        return number.replace(".", "").isdigit() and abs(amount - float(number)) <= NEAR * float(number)
    if is_date(id):
        return right[:1].isdigit() and _iso(id).startswith(right)
    return normal(right) in {normal(name) for name in graph.aliases(node)}


def _iso(id: str) -> str:
    date = Date.parse_id(id)
    return f"{date.year:04}-{date.month:02}-{date.day:02}"


def is_right(graph: KnowledgeGraph, answer: Any, line: Line) -> bool:
    """True if an answer is right as a whole."""
    if ANY in line.right and any(
        fact.relation.label in line.relations and normal(line.subject) in map(normal, _names(graph, fact.parent))
        for fact in answer.facts
    ):
        return True
    if answer.entity is not None:
        return any(matches(graph, graph.number(answer.entity.id), right) for right in line.right)
    years = {right[:4] for right in line.right if right[:4].isdigit()}
    return normal(answer.text) in map(normal, line.right) or bool(years & set(answer.text.replace(",", " ").split()))


def _names(graph: KnowledgeGraph, entity: Any) -> Sequence[str]:
    return () if entity is None else graph.aliases(graph.number(entity.id))


def tried(model: Model, line: Line) -> Row:
    """What the model says to a line, and the verdict."""
    graph = model.graph
    status, known = what_graph_has(graph, line)
    result = model.ask(line.text, top=32) if line.is_question else model.complete(line.text)
    if line.is_question:
        said = [answer for answer in result.answers if result.text and answer.text in result.text]
        shown, p = result.text or result.note, sum(answer.p for answer in said)
    else:
        said = [] if result.asks_for_missing else list(result.answers[:1])
        shown, p = (str(said[0]) if said else str(result.notable_missing)), said[0].p if said else 0.0
    right = [is_right(graph, answer, line) for answer in said]
    if not said:
        verdict = "missing"
    elif any(right):
        verdict = "right" if right[0] else "among"
    else:
        verdict = "wrong" if line.is_question or said[0].facts else "plain"
    return {
        "kind": line.kind, "question": line.is_question, "text": line.text, "expected": line.right, "graph": status,
        "values": known[:8], "verdict": verdict, "p": p, "said": shown,
        "links": [(each.text, each.label, round(each.p, 3)) for each in result.mentions if each.p >= 0.05],
    }  # fmt: skip


def summary(rows: Sequence[Row]) -> list[Row]:
    """Counts by what is asked, what the graph has, and kind, with totals."""
    table = []
    for asked, question in (("statements", False), ("questions", True)):
        for status in ("has", "other", "lacks"):
            chosen = [row for row in rows if row["question"] == question and row["graph"] == status]
            for kind in [*dict.fromkeys(row["kind"] for row in chosen), None]:
                counts = Counter(row["verdict"] for row in chosen if kind in (None, row["kind"]))
                table.append({"asked": asked, "graph": status, "kind": kind or "all", "n": counts.total()} | counts)
    return table


def main() -> None:
    given = arguments(__doc__, graph=False).parse_args()
    lines = read_table(given.half)[: given.limit]
    model = load(given.run)
    tasks = [(line.text, partial(tried, model, line)) for line in lines]
    rows = resumed(given.to / f"trial-{given.half}.jsonl", tasks, title="trial")
    print("| asked | the graph | kind | n |", " | ".join(VERDICTS), "|")
    print("|---|---|---|" + "---:|" * (len(VERDICTS) + 1))
    table = summary(rows)
    for each in table:
        counts = " | ".join(str(each.get(verdict, "")) for verdict in VERDICTS)
        print(f"| {each['asked']} | {each['graph']} | {each['kind']} | {each['n']} | {counts} |")
    for row in rows:
        if row["verdict"] not in (("missing", "plain", "right") if row["graph"] == "lacks" else ("right",)):
            print(f"{row['verdict']:8}{row['graph']:6}{row['text']}  →  {row['said']}  {row['p']:.2f}  {row['values']}")
    wrong = [row["p"] for row in rows if row["verdict"] == "wrong"]
    print(f"wrong facts: {len(wrong)}, of these with p ≥ {SURE}: {sum(p >= SURE for p in wrong)}")
    save(given.to / f"trial-{given.half}.json", {"heads": given.run or "default", "rows": len(rows), "table": table})


if __name__ == "__main__":
    main()

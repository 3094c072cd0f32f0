"""python benchmarks/world_questions.py [--kg KG]

Ask the bundled world the questions of `world_questions.tsv`: does the graph have the answer?

right: the only value, or the preferred one; among: one of several values; wrong: another value; missing: no value. The
entity is the one with most facts among those with the name; a date is right if it begins with the answer.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import kglm
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.literal import is_date
from kglm.kg.statements import iso_date

QUESTIONS = Path(__file__).with_name("world_questions.tsv")


def judge(graph: KnowledgeGraph, entity: str, relation: str, answer: str) -> tuple[str, str]:
    """How the graph answers, and what it says."""
    found = [hit for hit in graph.search(entity, 20) if hit.match.casefold() == entity.casefold()]
    if not found:
        return "missing", "no such entity"
    ids = [id for id, label in graph.store.rows("SELECT id, label FROM relation") if label == relation]
    rows = [row for id in ids for row in graph.store.facts_with(max(found, key=lambda hit: hit.facts).id, id)]
    preferred = [row for row in rows if row.rank] or rows
    values = [iso_date(row.tail) if is_date(row.tail) else graph.label(graph.number(row.tail)) for row in preferred]
    matching = [value for value in values if value.replace(",", "").startswith(answer)]
    verdict = "right" if matching and len(values) == 1 else "among" if matching else "wrong" if values else "missing"
    return verdict, ", ".join(values[:4])


def main() -> None:
    counts: Counter[str] = Counter()
    with kglm.world() as graph:
        for line in QUESTIONS.read_text(encoding="utf-8").splitlines():
            if not line.startswith("#"):
                question, entity, relation, answer = line.split("\t")
                verdict, said = judge(graph, entity, relation, answer)
                counts[verdict] += 1
                print(f"{verdict:8}{question}  {said}")
    print(dict(counts))


if __name__ == "__main__":
    main()

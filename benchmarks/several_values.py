"""python benchmarks/several_values.py [--run RUN] [--kg KG] [--half test] [--json FILE]

Does a model choose the current value among several values of a relation?

`several-values.jsonl` has 150 prompts for the shared graph whose relation has two to twenty values there, each with the
value that is right today (or was right last), written down before any model was asked. Prompts of even lines (from 0)
are for development, those of odd lines are the test. The subject is given. Two shares are printed by relation:

    value    the right value has the highest p(related, p, r, e) among the values of the relation
    answer   the right value has the highest probability among all entities that facts lead to, by any relation

`even` is the share of a choice at random.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import torch

import kglm
from kglm.answer.next_word import NextWordConfig
from kglm.answer.pretrained.model import AnyModel, PretrainedLM
from kglm.answer.reading import Span
from kglm.text.tokenizer import tokenizer
from table import print_table

PROMPTS = Path(__file__).with_name("several-values.jsonl")
HALVES = {"development": slice(0, None, 2), "test": slice(1, None, 2), "all": slice(None)}
EVERYTHING = NextWordConfig(max_new=0, max_related=100_000)


def masses(model: AnyModel, prompt: dict[str, Any]) -> tuple[Counter[int], Counter[int]]:
    """Probability of each value of the relation asked for, and of each entity by any relation."""
    before, name, after = (tokenizer().words(part) for part in prompt["text"].partition(prompt["name"]))
    span = Span(len(before), len(before) + len(name), model.graph.number(prompt["entity"]))
    words = [*before, *name, *after]
    if isinstance(model, PretrainedLM):
        found = model.complete(words, [span], links="none").distribution
    else:
        found = model.complete(words, [span], limits=EVERYTHING).distribution
    of_relation, of_any = Counter[int](), Counter[int]()
    relation = model.graph.find_relation(prompt["relation"])
    for p, *subject, value in found.facts():
        of_any[value] += p
        if subject == [span.node, relation]:
            of_relation[value] += p
    return of_relation, of_any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="run of kglm, trained on the shared graph; or heads")
    parser.add_argument("--kg", type=Path, help="the shared graph, if it is not where the run was trained")
    parser.add_argument("--half", choices=HALVES, default="test")
    parser.add_argument("--json", type=Path, help="write one line for each prompt")
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = kglm.load(options.run, kg=options.kg)
    lines = PROMPTS.read_text(encoding="utf-8").splitlines()[HALVES[options.half]]
    records = []
    for prompt in map(json.loads, lines):
        of_relation, of_any = masses(model, prompt)
        right = {model.graph.number(id) for id in prompt["answers"]}
        best, first = (counts.most_common(1)[0][0] for counts in (of_relation, of_any))
        records.append(
            prompt
            | {"value": best in right, "answer_is_first": first in right, "even": len(right) / len(of_relation)}
            | {"p": [(model.graph.label(node), p / of_relation.total()) for node, p in of_relation.most_common()]}
        )
    rows = []
    for relation in (*dict.fromkeys(record["relation"] for record in records), "all"):
        group = [record for record in records if relation in (record["relation"], "all")]
        shares = (
            100 * sum(record[key] for record in group) / len(group) for key in ("even", "value", "answer_is_first")
        )
        rows.append((relation, len(group), *shares))
    print_table(("relation", "prompts", "even, %", "value, %", "answer, %"), rows)
    if options.json:
        options.json.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))


if __name__ == "__main__":
    main()

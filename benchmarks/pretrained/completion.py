"""python -m benchmarks.pretrained.completion --kg shared.kg --data ../shared/data --run RUN --to results

Fact completion on the shared graph: the model finds the subject itself (linked), or it is given; beside it the base
alone. Sets (--sets):

lama        LAMA's T-REx facts that the graph holds, with one object for subject and relation; ParaRel's wordings
sample      the 60 prompts of `completion/sample.jsonl`
relations   facts of relations that no training text used (`held_out_relations.txt`)
wordings    facts of other relations, in wordings that no training text used (`held_out.is_held_out_wording`)

Facts of the last two are drawn at random among pairs of subject and relation with one object. `word@k`: one of the
best k next words is the first word of a name of the object (strict); `answer@k`: one of the best k answers is right as
a whole. All shares are means over relations. The halves have different facts; the sample is one set.
"""

from __future__ import annotations

import gzip
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
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
    mean_over,
    read_gz,
    resumed,
    sampled,
    save,
    share,
)
from benchmarks.pretrained.held_out import held_out_relations, is_held_out_wording
from benchmarks.table import print_table

from kglm.evaluate.prompts import SCORERS, TEMPLATE_RELATIONS, expected_answer, read_prompts
from kglm.kg.arrays import is_fact
from kglm.kg.graph import KnowledgeGraph
from kglm.text.tokenizer import detokenize

SETS = ("lama", "sample", "relations", "wordings")
FACTS = {"lama": 25, "relations": 12, "wordings": 4}
"""Facts of each relation, in each half."""
WORDINGS = {"lama": 2, "relations": 2, "wordings": 1}
"""Wordings of each fact."""
SUBJECT, OBJECT = "XXXX", "____"


def lama(graph: KnowledgeGraph, data: Path, seed: int) -> Iterator[Question]:
    """LAMA's facts that the graph holds with one object, in ParaRel's wordings."""
    for row in read_gz(data / "benchmarks/lama-trex.jsonl.gz"):
        head, relation = graph.find(row["subject_id"]), graph.find_relation(row["relation"])
        if head is None or relation is None or [graph.id(t) for t in graph.tails(head, relation)] != [row["object_id"]]:
            continue
        prompts = list(dict.fromkeys([row["prompt"], *row["paraphrases"]]))
        prompts = [prompt for prompt in prompts if prompt and row["subject"] in prompt]
        rng = random.Random(f"{seed} {row['id']}")
        for number, prompt in enumerate(rng.sample(prompts, min(WORDINGS["lama"], len(prompts)))):
            yield Question(
                f"lama {row['id']} {number}",
                " ".join(prompt.split()),
                row["subject_id"],
                row["subject"],
                row["relation"],
                (row["object_id"],),
                row["id"],
            )


def wordings_of(data: Path) -> dict[str, list[str]]:
    """Wordings of each relation that end in the object, without their last part."""
    found = {}
    with gzip.open(data / "wordings/wikifactdiff.json.gz", "rt", encoding="utf-8") as stream:
        worded = json.load(stream)
    for relation, pairs in worded.items():
        texts = [text.rstrip(" .") for text, _ in pairs]
        found[relation] = [text for text in texts if text.endswith(OBJECT) and text.count(SUBJECT) == 1]
    return found


def drawn(graph: KnowledgeGraph, data: Path, seed: int, *, relations: bool) -> Iterator[Question]:
    """Facts of held-out relations in any wording, or of other relations in held-out wordings."""
    name, held = ("relations" if relations else "wordings"), set(held_out_relations())
    worded = {
        relation: [text for text in texts if relations or is_held_out_wording(relation, text)]
        for relation, texts in sorted(wordings_of(data).items())
        if (relation in held) == relations
    }
    arrays = graph.overlay.base
    forward = np.flatnonzero(is_fact(arrays.edge_relation) & (arrays.edge_relation % 2 == 0))
    for relation_id, texts in worded.items():
        relation = graph.find_relation(relation_id)
        if relation is None or not texts:
            continue
        places = forward[arrays.edge_relation[forward] == relation]
        heads = np.searchsorted(arrays.edge_offsets, places, side="right") - 1
        heads, counts = np.unique(heads, return_counts=True)
        single = heads[counts == 1].tolist()
        for head in sorted(single, key=lambda head: sampled(f"{graph.id(head)} {relation_id}", seed))[:400]:
            [tail] = graph.tails(head, relation).tolist()
            subject = graph.id(head)
            if not graph.names(head) or not graph.aliases(tail):
                continue
            fact, label = f"{subject} {relation_id}", graph.label(head)
            rng = random.Random(f"{seed} {fact}")
            for number, text in enumerate(rng.sample(texts, min(WORDINGS[name], len(texts)))):
                prompt = text.removesuffix(OBJECT).strip().replace(SUBJECT, label)
                yield Question(f"{name} {fact} {number}", prompt, subject, label, relation_id, (graph.id(tail),), fact)


def chosen(questions: Iterator[Question], name: str, half: str, limit: int | None, seed: int) -> list[Question]:
    """The first facts of each relation in one half, in random order; then at most `limit` questions."""
    facts: dict[str, dict[str, list[Question]]] = defaultdict(lambda: defaultdict(list))
    for question in questions:
        if half_of(question.kind) == half:
            facts[question.relation][question.kind].append(question)
    found = []
    for of_relation in facts.values():
        order = sorted(of_relation, key=lambda fact: sampled(fact, seed))
        found += [question for fact in order[: FACTS[name]] for question in of_relation[fact]]
    return sorted(found, key=lambda question: sampled(question.key, seed))[:limit]


def ask(model: Model, question: Question, how: str) -> Row:
    """Complete one prompt and judge the answers."""
    found = complete(model, question, how=how)
    row = judged(found, Accepted.of(model.graph, question.tails))
    return {**question.to_json(), "how": how, "subject_found": is_found(question, row), **row}


def sample_rows(model: Model, data: Path, hows: Sequence[str], to: Path) -> list[Row]:
    """The 60 sample prompts, with all scorers of `kglm table completion`."""

    def one(number: int, how: str) -> Row:
        prompt = prompts[number]
        text, name = detokenize(prompt.words), detokenize(prompt.words[prompt.start : prompt.end])
        relation = TEMPLATE_RELATIONS.get(prompt.relation, "")
        expected = expected_answer(model.graph, prompt)
        tails = tuple(model.graph.id(tail) for _, tail in expected.facts)
        question = Question(f"sample {number}", text, prompt.id, name, relation, tails)
        found = complete(model, question, how=how)
        names = [] if prompt.date else [prompt.tail]
        row = judged(found, Accepted.of(model.graph, tails, names))
        words = [word for word, _ in row["words"]]
        for scorer in SCORERS:
            row[f"{scorer}1"] = expected.accepts(scorer, words[:1])
            row[f"{scorer}5"] = expected.accepts(scorer, words)
        row |= {"word1": row["strict1"], "word5": row["strict5"]}
        return {**question.to_json(), "how": how, "subject_found": is_found(question, row), **row}

    prompts = read_prompts(data / "completion/sample.jsonl")
    tasks = [(f"{how} {number}", partial(one, number, how)) for how in hows for number in range(len(prompts))]
    return resumed(to, tasks, title="sample")


def summary(name: str, rows: Sequence[Row], hows: Sequence[str]) -> list[Row]:
    """Means over relations, one row for each way to ask."""
    found = []
    for how in hows:
        group = [row for row in rows if row["how"] == how]
        keys = ("answer1", "answer5", "word1", "word5")
        found.append({
            "set": name,
            "how": how,
            "prompts": len(group),
            "relations": len({row["relation"] for row in group}),
            **{key: mean_over(group, "relation", key) for key in keys},
            "subject_found": share(group, "subject_found") if how == "linked" else None,
            "by_relation": {
                relation: {"n": len(rows_of), **{key: share(rows_of, key) for key in keys}}
                for relation in sorted({row["relation"] for row in group})
                if (rows_of := [row for row in group if row["relation"] == relation])
            },
        })  # fmt: skip
    return found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--how", nargs="+", choices=("linked", "given", "base"), default=["linked", "base"])
    options = parser.parse_args()
    model = load(options.run, options.kg)
    results = []
    for name in options.sets:
        path = options.to / f"completion-{name}-{options.half}.jsonl"
        if name == "sample":
            rows = sample_rows(model, options.data, options.how, options.to / "completion-sample.jsonl")
        else:
            seed = options.seed
            source = (
                lama(model.graph, options.data, seed)
                if name == "lama"
                else drawn(model.graph, options.data, seed, relations=name == "relations")
            )
            questions = chosen(source, name, options.half, options.limit, seed)
            tasks = [(f"{how} {q.key}", partial(ask, model, q, how)) for q in questions for how in options.how]
            rows = resumed(path, tasks, title=name)
        results += summary(name, rows, options.how)
    columns = ("set", "how", "prompts", "relations", "answer1", "answer5", "word1", "word5", "subject_found")
    heads = ("set", "subject", "prompts", "relations", "answer@1", f"answer@{TOP}", "word@1", f"word@{TOP}", "found, %")
    print_table(heads, [[result[column] for column in columns] for result in results])
    save(options.to / f"completion-{options.half}.json", results)


if __name__ == "__main__":
    main()

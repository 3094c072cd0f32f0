"""python -m benchmarks.pretrained.generation --kg shared.kg --data ../shared/data --run RUN --to results

Text about people, places, works and companies of the shared graph, beside the base alone with the same settings and
seeds. Prompts are openings with the names of entities that have at least ten facts, drawn at random; the halves have
different entities and openings.

supported   names, dates and numbers of the text that the graph supports (`supported.py`), in percent
right       facts that the text states about the subject by fixed patterns (dates and places of birth and death,
            capitals, authors, directors, spouses), of those whose relation the graph has for the subject
ratio       perplexity of the text under the base, as a multiple of that of the base's own texts
repeated    4-grams of the text that it has had before

Modes: default, grounded (names, dates and numbers come from the graph or the prompt), base (the base alone), and
trust=NUMBER. The first 20 texts of each mode are written to samples.md.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from benchmarks.pretrained.common import Model, Row, arguments, half_of, load, resumed, sampled, save
from benchmarks.pretrained.rival import own_facts
from benchmarks.pretrained.supported import items, statements
from benchmarks.table import print_table

from kglm.kg.graph import KnowledgeGraph
from kglm.pretrained.base import BaseModel
from kglm.text.tokenizer import detokenize

KINDS: dict[str, tuple[str, ...]] = {
    "person": ("Q5",),
    "place": ("Q515", "Q1549591", "Q6256", "Q3624078", "Q3957", "Q1093829", "Q4022"),
    "work": ("Q11424", "Q571", "Q7725634", "Q8261", "Q482994", "Q5398426", "Q7889"),
    "company": ("Q4830453", "Q6881511", "Q783794", "Q891723", "Q1762059"),
}
OPENINGS: dict[str, dict[str, tuple[str, ...]]] = {
    "development": {
        "person": ("{X} was born", "{X} is a", "{X} married"),
        "place": ("{X} is", "{X} lies in", "The people of {X}"),
        "work": ("{X} is a", "{X} was written by", "The main character of {X}"),
        "company": ("{X} is a", "{X} was founded", "The products of {X}"),
    },
    "reported": {
        "person": ("{X} was", "The life of {X} began", "{X} is best known for", "{X} died"),
        "place": ("{X} has", "{X} is located in", "The history of {X}", "Visitors of {X}"),
        "work": ("{X} was", "{X} tells the story of", "{X} was first", "{X} was directed by"),
        "company": ("{X} was", "{X} has its headquarters in", "The business of {X}", "{X} was started by"),
    },
}
LEAST_FACTS = 10
EACH = 50
"""Entities of each kind."""
WORDS = 60
SAMPLES = 20


def prompts(graph: KnowledgeGraph, half: str, each: int, seed: int) -> Iterator[tuple[str, int, str]]:
    """Kind, node and prompt."""
    instance = graph.find_relation("P31")
    assert instance is not None
    for kind, classes in KINDS.items():
        nodes = {
            node
            for id in classes
            if (number := graph.find(id)) is not None
            for node in graph.tails(number, instance + 1).tolist()
        }
        order = sorted(nodes, key=lambda node: sampled(graph.id(node), seed))
        fitting = (
            node
            for node in order
            if half_of(graph.id(node)) == half
            and graph.names(node)
            and graph.label(node)[0].isupper()
            and len(own_facts(graph, node)) >= LEAST_FACTS
        )
        openings = OPENINGS[half][kind]
        for place, node in zip(range(each), fitting, strict=False):
            yield kind, node, openings[place % len(openings)].replace("{X}", graph.label(node))


def options_of(mode: str) -> dict[str, Any]:
    """Options of `generate` for a mode."""
    if mode == "base":
        return {"trust": -math.inf}
    if mode == "grounded":
        return {"grounded": True}
    return {"trust": float(mode.removeprefix("trust="))} if mode.startswith("trust=") else {}


def joined(words: Sequence[Any]) -> str:
    """The text of generated words."""
    texts = [word.word for word in words]
    return "".join(texts) if any(text.startswith(" ") for text in texts[1:]) else detokenize(texts)


def one(model: Model, base: BaseModel, kind: str, node: int, prompt: str, mode: str, seed: int, count: int) -> Row:
    """Generate one text and examine it."""
    started = time.perf_counter()
    words = list(model.generate(prompt, words=count, seed=seed, **options_of(mode)))
    seconds = time.perf_counter() - started
    text = joined(words)
    graph = model.graph
    found = [(each.kind, each.supported, each.start, each.end) for each in items(graph, node, prompt, text)]
    stated = [each._asdict() for each in statements(graph, node, prompt, text)]
    before, ids = base.subwords.encode(prompt).ids, base.subwords.encode(f"{prompt} {text.lstrip()}").ids
    log_p = base.log_probs(ids)
    shared = next((k for k, (a, b) in enumerate(zip(before, ids, strict=False)) if a != b), min(len(before), len(ids)))
    tokens = text.split()
    grams = [tuple(tokens[k : k + 4]) for k in range(len(tokens) - 3)]
    return {
        "kind": kind, "mode": mode, "subject": graph.id(node), "prompt": prompt, "seed": seed, "text": text,
        "seconds": seconds, "words": len(tokens), "items": found, "statements": stated,
        "log_p": float(log_p[shared:].sum()), "subwords": len(ids) - shared,
        "grams": len(grams), "repeated": len(grams) - len(set(grams)),
        "from_graph": sum(bool(word.reason.is_fact) for word in words),
    }  # fmt: skip


def summary(rows: Sequence[Row], base_rows: Sequence[Row], name: str, kind: str) -> Row:
    """Shares over all texts of a mode and a kind."""
    listed = [item for row in rows for item in row["items"]]
    stated = [each for row in rows for each in row["statements"]]
    checked = [each["right"] for each in stated if each["right"] is not None]

    def percent(values: Sequence[bool]) -> float | None:
        return 100 * sum(values) / len(values) if values else None

    def perplexity(some: Sequence[Row]) -> float:
        return math.exp(-sum(row["log_p"] for row in some) / max(sum(row["words"] for row in some), 1))

    return {
        "mode": name, "kind": kind, "texts": len(rows),
        "names": percent([item[1] for item in listed if item[0] == "name"]),
        "dates": percent([item[1] for item in listed if item[0] == "date"]),
        "numbers": percent([item[1] for item in listed if item[0] == "number"]),
        "supported": percent([item[1] for item in listed]), "items": len(listed),
        "right": percent(checked), "facts": len(checked), "unverifiable": len(stated) - len(checked),
        "perplexity": perplexity(rows), "ratio": perplexity(rows) / perplexity(base_rows) if base_rows else None,
        "repeated": 100 * sum(row["repeated"] for row in rows) / max(sum(row["grams"] for row in rows), 1),
        "seconds": sum(row["seconds"] for row in rows) / len(rows),
    }  # fmt: skip


def samples(rows: Sequence[Row], modes: Sequence[str]) -> str:
    """The first texts of each mode, as Markdown: what is not supported is in bold."""
    lines = []
    for mode in modes:
        lines += [f"## {mode}", ""]
        for row in [row for row in rows if row["mode"] == mode][:SAMPLES]:
            text = row["text"]
            for _, supported, start, end in reversed(row["items"]):
                text = text if supported else f"{text[:start]}**{text[start:end]}**{text[end:]}"
            lines += [f"* *{row['prompt']}* {text.strip()}"]
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--modes", nargs="+", default=["default", "grounded", "base"])
    parser.add_argument("--each", type=int, default=EACH, help="entities of each kind")
    parser.add_argument("--words", type=int, default=WORDS)
    options = parser.parse_args()
    model, base = load(options.run, options.kg), BaseModel.open()
    asked = list(prompts(model.graph, options.half, options.each, options.seed))
    asked = sorted(asked, key=lambda each: sampled(each[2], options.seed))[: options.limit]
    tasks = [
        (f"{mode} {prompt}", partial(one, model, base, kind, node, prompt, mode, options.seed + place, options.words))
        for place, (kind, node, prompt) in enumerate(asked)
        for mode in options.modes
    ]
    rows = resumed(options.to / f"generation-{options.half}.jsonl", tasks, title="generating")
    results = []
    for kind in (*KINDS, "all"):
        of_kind = [row for row in rows if kind in (row["kind"], "all")]
        alone = [row for row in of_kind if row["mode"] == "base"]
        for mode in options.modes:
            if group := [row for row in of_kind if row["mode"] == mode]:
                results.append(summary(group, alone, mode, kind))
    columns = ("kind", "mode", "texts", "supported", "names", "dates", "numbers", "items", "right", "facts",
               "unverifiable", "ratio", "repeated", "seconds")  # fmt: skip
    print_table(columns, [[row[column] for column in columns] for row in results])
    save(options.to / f"generation-{options.half}.json", results)
    (options.to / "samples.md").write_text(samples(rows, options.modes), encoding="utf-8")


if __name__ == "__main__":
    main()

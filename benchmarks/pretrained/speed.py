"""python -m benchmarks.pretrained.speed --kg shared.kg --data ../shared/data --run RUN --to results [--parts …]

What the graph costs beside the base alone, on one thread, in ratios measured in turns; `forward` and `decode` count
processor seconds, so that other processes matter less. Parts (--parts):

forward    reading articles: preparing and scoring with the heads, in percent of the base's own forward pass
decode     seconds for each generated subword with the graph, as a multiple of the base alone by the same function
           (`loop`), and of a bare loop over the base
complete   p50 and p90 of `complete` on the shared graph, and the base's forward pass of the same prompts
edit       an edit and the next answer on a graph with --entities entities
memory     peak memory of the command `kglm complete`, in MiB

Medians are over --rounds rounds after one that is not counted.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from benchmarks.pretrained.common import Model, Row, arguments, complete, load, resumed, save
from benchmarks.pretrained.completion import chosen, lama
from benchmarks.pretrained.generation import prompts
from benchmarks.table import print_table

import kglm
from kglm.heads.features import Features, next_log_probs
from kglm.heads.lattice import score_text
from kglm.heads.local import Link, annotated_links
from kglm.heads.passage import Passage, passage
from kglm.heads.prepared import prepare
from kglm.heads.run import HeadsRun
from kglm.heads.scoring import PassageScores
from kglm.heads.tables import GraphTables
from kglm.kg.graph import KnowledgeGraph
from kglm.pretrained.base import BaseModel
from kglm.text.document import read_documents

PARTS = ("forward", "decode", "complete", "edit", "memory")
ARTICLES, SUBWORDS = 6, 700
"""Articles of the forward pass, and subwords read of each: one window."""
FIRST_NAMES = ("Ana", "Ben", "Cara", "Dan", "Eva", "Finn", "Gina", "Hugo", "Iris", "Jon")
PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
"""


def timed(work: Callable[[], Any]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def in_turns(works: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Median seconds of several functions that are called in turns."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds + 1):
        for name, work in works.items():
            spent = timed(work)
            if number:
                seconds[name].append(spent)
    return {name: median(each) for name, each in seconds.items()}


def forward(run: str, kg: Path, data: Path, rounds: int) -> Row:
    """Seconds of the base's forward pass with the scores of the text, and of the heads' part after it."""
    opened = HeadsRun.open(Path(run))
    base, found = opened.base, []
    with KnowledgeGraph.open(kg) as graph:
        tables = opened.tables(graph)
        for document in list(read_documents(data / "lw2/valid.jsonl.gz"))[50 : 50 + ARTICLES]:
            whole = passage(document, base.subwords, graph)
            found.append(_article(opened, tables, whole, annotated_links(whole, graph), rounds))
    total = {key: sum(each[key] for each in found) for key in found[0]}
    return total | {"heads_share": 100 * total["heads"] / total["base"], "dtype": str(base.model.dtype)}


def _article(
    opened: HeadsRun, tables: GraphTables, whole: Passage, links: Sequence[Link], rounds: int
) -> dict[str, float]:
    base = opened.base
    ids, middle = whole.ids[:SUBWORDS], base.feature_layers[0]
    short = cut(whole, SUBWORDS)
    kept = [link for link in links if link.end <= len(ids)]
    state: dict[str, Any] = {}

    @torch.no_grad()
    def read() -> None:
        hidden = base.model.hidden(torch.tensor([[base.subwords.start, *ids[:-1]]]), after=(middle,))
        last_TD, ids_T = hidden.last_BTD[0], torch.tensor(ids)
        state["features"] = Features(
            ids_T, hidden.after[middle][0].half(), last_TD.half(), *next_log_probs(base, last_TD, ids_T)
        )

    def score() -> None:
        prepared = prepare(short, state["features"], tables, kept, opened.heads.config.max_tails)
        score_text(PassageScores.of(opened.heads, prepared))

    seconds = in_turns({"base": read, "heads": score}, rounds)
    return seconds | {"subwords": float(len(ids)), "links": float(len(kept))}


def cut(whole: Passage, count: int) -> Passage:
    """The first subwords of a passage."""
    end_T, word_T = whole.end_T[:count], whole.word_T[:count]
    return replace(
        whole,
        text=whole.text[: end_T[-1]],
        ids=whole.ids[:count],
        end_T=end_T,
        word_T=word_T,
        begins_T=whole.begins_T[:count],
        surface=whole.surface[: word_T[-1] + 1],
        mentions=tuple(each for each in whole.mentions if each.end <= count),
    )


def decode(model: Model, base: BaseModel, rounds: int, words: int = 40, texts: int = 4) -> Row:
    """Seconds for each subword of generated text."""
    asked = [prompt for _, _, prompt in prompts(model.graph, "development", 5, 0)][::5][:texts]
    spent: dict[str, list[float]] = {"graph": [], "base alone": [], "bare loop": []}
    for number in range(rounds + 1):
        for place, prompt in enumerate(asked):
            row = {}
            for name, options in (("graph", {}), ("base alone", {"trust": -math.inf})):
                started = time.process_time()
                made = [word.word for word in model.generate(prompt, words=words, seed=place, **options)]
                seconds = time.process_time() - started
                row[name] = seconds / max(len(base.subwords.encode(" ".join(made)).ids), 1)
            row["bare loop"] = bare_loop(base, prompt, words)
            if number:
                for name, value in row.items():
                    spent[name].append(value)
    found = {name: median(each) for name, each in spent.items()}
    return found | {
        "graph / base alone": found["graph"] / found["base alone"],
        "graph / bare loop": found["graph"] / found["bare loop"],
    }


@torch.no_grad()
def bare_loop(base: BaseModel, prompt: str, count: int) -> float:
    """Seconds for each subword of greedy decoding, the prompt's pass included."""
    started = time.process_time()
    cache, ids = base.model.new_cache(), [base.subwords.start, *base.subwords.encode(prompt).ids]
    for _ in range(count):
        last_TD = base.model.hidden(torch.tensor([ids]), cache).last_BTD[0, -1:]
        ids = [int(base.model.logits(last_TD)[0].argmax())]
    return (time.process_time() - started) / count


def completions(model: Model, base: BaseModel, data: Path, count: int = 40) -> Row:
    """Seconds of `complete`, and of the base's forward pass."""
    asked = chosen(lama(model.graph, data, 0), "lama", "development", count + 3, 0)
    spent, alone = [], []
    for place, question in enumerate(asked):
        ids = torch.tensor([[base.subwords.start, *base.subwords.encode(question.prompt).ids]])
        alone.append(timed(lambda ids=ids: base.model.logits(base.model.hidden(ids).last_BTD[:, -1])))  # type: ignore[misc]
        spent.append(timed(lambda question=question: complete(model, question)))  # type: ignore[misc]
        if place == 2:
            spent, alone = [], []
    p50, p90 = np.percentile(spent, [50, 90])
    return {"entities": len(model.graph), "p50": p50, "p90": p90, "base": median(alone), "prompts": len(spent)}


def million(home: Path, entities: int) -> Path:
    """A graph of people with a town, a friend and a birth date each."""
    kg = home / f"people-{entities}.kg"
    if kg.exists():
        return kg
    home.mkdir(parents=True, exist_ok=True)
    with gzip.open(home / "facts.tsv.gz", "wt", compresslevel=1) as stream:
        for number in range(entities):
            date = f"+{1900 + number % 99}-{1 + number % 12:02d}-{1 + number % 28:02d}T00:00:00Z"
            stream.write(f"Q_p{number}\tP_town\tQ_t{number % 1000}\n")
            stream.write(f"Q_p{number}\tP_friend\tQ_p{(number * 7 + 1) % entities}\n")
            stream.write(f"Q_p{number}\tP_born\tT::11::{date}\n")
    names = {"P_town": "home town", "P_friend": "friend", "P_born": "date of birth"}
    names |= {f"Q_t{number}": f"Town{number}" for number in range(1000)}
    names |= {f"Q_p{number}": f"{FIRST_NAMES[number % 10]} Person{number}" for number in range(entities)}
    with gzip.open(home / "entities.jsonl.gz", "wt", compresslevel=1) as stream:
        for id, label in names.items():
            stream.write(json.dumps({"id": id, "label": label, "aliases": []}) + "\n")
    kglm.import_graph(home / "facts.tsv.gz", kg, entities=home / "entities.jsonl.gz", replace=True)
    return kg


def editing(run: str | None, home: Path, entities: int, rounds: int) -> Row:
    """Seconds of an edit and the next answer on a large graph."""
    kg = million(home, entities)
    opening = time.perf_counter()
    model = load(run, kg)
    first = model.complete("The home town of Ana Person10 is")
    opened = time.perf_counter() - opening
    spent, right = [], []
    for number in range(rounds + 1):
        person = 1000 + 10 * number
        started = time.perf_counter()
        edited = model.edited(f"Q_p{person} | home town | Town{number + 500}")
        answer = edited.complete(f"The home town of Ana Person{person} is").answers[0].text
        spent.append(time.perf_counter() - started)
        right.append(answer == f"Town{number + 500}")
    return {
        "entities": entities, "open_and_first_answer": opened, "first": first.answers[0].text,
        "edit_and_answer": median(spent[1:]), "right": 100 * sum(right) / len(right),
    }  # fmt: skip


def memory(run: str | None, kg: Path) -> Row:
    """Peak memory of the command."""
    command = [sys.executable, "-m", "kglm", "complete", *([run] if run else []), "--kg", str(kg)]
    command.append("The capital of France is")
    call = [sys.executable, "-c", PEAK, *command]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    started = time.perf_counter()
    found = subprocess.run(call, check=True, capture_output=True, text=True, env=environment).stdout
    return {"peak_mib": float(found), "seconds": time.perf_counter() - started}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--entities", type=int, default=1_000_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    opened: dict[str, Any] = {}

    def model() -> Model:
        opened.setdefault("model", load(options.run, options.kg))
        return opened["model"]

    def base() -> BaseModel:
        opened.setdefault("base", BaseModel.open())
        found: BaseModel = opened["base"]
        return found

    works: dict[str, Callable[[], Row]] = {
        "forward": lambda: forward(options.run, options.kg, options.data, options.rounds),
        "decode": lambda: decode(model(), base(), options.rounds),
        "complete": lambda: completions(model(), base(), options.data),
        "edit": lambda: editing(options.run, options.to / "graphs", options.entities, options.rounds),
        "memory": lambda: memory(options.run, options.kg),
    }
    rows = resumed(options.to / "speed.jsonl", [(part, works[part]) for part in options.parts], title="speed")
    listed = [(row["task"], key, value) for row in rows for key, value in row.items() if key != "task"]
    print_table(("part", "measure", "value"), listed)
    save(options.to / "speed.json", rows)


if __name__ == "__main__":
    main()

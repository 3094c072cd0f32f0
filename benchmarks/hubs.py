"""python benchmarks/hubs.py [--degrees 100 1000 10000 100000 200000] [--rounds 3] [--json FILE] [--plot FILE]

Measure how the cost of showing, editing and completing grows with the number of facts of an entity.

For each degree, a graph is imported: the bundled world, and one hub that has so many parts, all of them of one kind, so
that the kind has as many facts that point at it. The graph gets vectors and a tiny model. Then the commands `kg show`
and `kg edit` are timed, process start included, and the first completion in a process that has loaded the model: for an
ordinary entity, for the hub, for the kind, and for a prompt that mentions the ordinary entity and the hub. All of it
runs side by side in each round; the results are medians. Everything uses one thread, and seconds are those of the
processor: on a busy machine, the clock would measure the waiting for other processes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import kglm
from kglm import bundled
from kglm.plots import Series, line_chart
from table import print_table

DEGREES = (100, 1_000, 10_000, 100_000, 200_000)
FIRST_NAMES = ("Alba", "Bruno", "Carla", "Dario", "Elsa", "Fedor", "Greta", "Hugo", "Ines", "Jonas")
DOCUMENTS = 60
"""Articles to train the tiny model on."""
PROMPTS = {
    "complete, ordinary": "Plain Folder has part",
    "complete, hub": "Grand Register has part",
    "complete, kind": "Register Entry is",
    "complete, both": "Plain Folder is part of Grand Register , which has part",
}
SHOWN = {"show, ordinary": "Plain Folder", "show, hub": "Grand Register", "show, kind": "Register Entry"}
EDITS = {
    "edit, ordinary": ("--set", "Plain Folder | country | France"),
    "set, hub": ("--set", "Grand Register | country | France"),
    "add, hub": ("--add", "Grand Register | has part | Paris"),
    "remove, hub": ("--remove", "Q_hub P527 Q_m7"),
    "remove, kind": ("--remove", "Q_m7 P31 Q_kind"),
}
COMPLETE = """
import sys, time, torch
torch.set_num_threads(1)
import kglm
model = kglm.load(sys.argv[1])
model.linker
start = time.process_time()
model.complete(sys.argv[2])
print(time.process_time() - start)
"""


def build(home: Path, degree: int) -> None:
    """A graph with a hub of this degree, its vectors, and a model."""
    members = [f"Q_m{number}" for number in range(degree)]
    facts = ["Q_hub\tP17\tQ30", "Q_one\tP17\tQ30", "Q_one\tP527\tQ_m0", "Q_one\tP527\tQ_m1"]
    facts += [line for member in members for line in (f"Q_hub\tP527\t{member}", f"{member}\tP31\tQ_kind")]
    names = {"Q_hub": "Grand Register", "Q_kind": "Register Entry", "Q_one": "Plain Folder", "P527": "has part"}
    names |= {member: f"{FIRST_NAMES[number % 10]} Entry{number}" for number, member in enumerate(members)}
    entities = [json.dumps({"id": id, "label": label, "aliases": []}) for id, label in names.items()]
    (home / "facts.tsv").write_text(bundled.FACTS.read_text() + "\n".join(facts) + "\n")
    (home / "entities.jsonl").write_text(bundled.ENTITIES.read_text() + "\n".join(entities) + "\n")
    kg = home / "hub.kg"
    kglm.import_graph(
        home / "facts.tsv",
        kg,
        entities=[home / "entities.jsonl", bundled.RELATION_NAMES],
        relations=bundled.RELATIONS,
        replace=True,
    )
    kglm.embed(kg, dim=32, epochs=1)
    with gzip.open(bundled.ARTICLES, "rt") as stream:
        lines = stream.read().splitlines()
    data, valid = home / "data.jsonl", home / "valid.jsonl"
    data.write_text("\n".join(lines[:DOCUMENTS]) + "\n")
    valid.write_text("\n".join(lines[DOCUMENTS : DOCUMENTS + 5]) + "\n")
    options = {"train.epochs": 1}
    kglm.train_model("kglm", data=data, valid=valid, kg=kg, to=home / "run", config="tiny", overrides=options)


def command(*arguments: object) -> float:
    """Processor seconds of a command, process start included."""
    start = _children()
    subprocess.run([sys.executable, "-m", "kglm", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)
    return _children() - start


def _children() -> float:
    """Processor seconds of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def completion(run: Path, prompt: str) -> float:
    """Processor seconds of the first completion after loading."""
    call = [sys.executable, "-c", COMPLETE, str(run), prompt]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return float(subprocess.run(call, check=True, capture_output=True, text=True, env=environment).stdout)


def one_round(home: Path) -> dict[str, float]:
    kg, run, seconds, undone = home / "hub.kg", home / "run", {}, []
    for name, entity in SHOWN.items():
        seconds[name] = command("kg", "show", kg, entity)
    for name, prompt in PROMPTS.items():
        seconds[name] = completion(run, prompt)
    for name, edit in EDITS.items():
        seconds[name] = command("kg", "edit", kg, *edit)
        undone.append(command("kg", "edit", kg, "--undo"))
    seconds["undo"] = median(undone)
    return seconds


def measure(degree: int, rounds: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        build(home, degree)
        completion(home / "run", PROMPTS["complete, ordinary"])  # builds the index of names beside the graph
        results = [one_round(home) for _ in range(rounds)]
    return {name: median(result[name] for result in results) for name in results[0]}


def chart(results: dict[int, dict[str, float]]) -> str:
    lines, degrees = ("show, hub", "set, hub", "complete, ordinary", "complete, hub"), list(results)
    series = [Series(name, degrees, [results[degree][name] for degree in degrees]) for name in lines]
    return line_chart("Cost by degree", "facts of the entity", "seconds", series, log_x=True, log_y=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--degrees", type=int, nargs="+", default=DEGREES, help="facts of the hub")
    parser.add_argument("--rounds", type=int, default=3, help="times that each is measured")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--plot", type=Path, help="draw the results to this SVG file")
    arguments = parser.parse_args()
    results = {degree: measure(degree, arguments.rounds) for degree in arguments.degrees}
    names = list(next(iter(results.values())))
    rows = [(name, *(results[degree][name] for degree in results)) for name in names]
    print_table(("seconds", *(f"{degree:,}" for degree in results)), rows)
    ratios = [
        (f"{name} / ordinary", *(each[name] / each["complete, ordinary"] for each in results.values()))
        for name in PROMPTS
        if name != "complete, ordinary"
    ]
    print_table(("ratio", *(f"{degree:,}" for degree in results)), ratios)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")
    if arguments.plot:
        arguments.plot.write_text(chart(results))


if __name__ == "__main__":
    main()

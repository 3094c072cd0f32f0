"""python benchmarks/side_by_side.py --old TREE --new TREE [--rounds 5] [--json FILE]

Compare the speed of two versions of kglm: training steps, estimation of p(x), completions, and opening runs and graphs,
per second, new / old.

A TREE is a checkout (with src/kglm), for example of `git worktree add TREE COMMIT`. Each measurement runs in a process
of its own on one thread, and the processes alternate: old, new, old, new. Each version works with its own bundled
model and graph, because file formats change; articles and prompts are those of the new tree. Only what both versions
have is called: the commands `kglm train` and `kglm evaluate`, and `kglm.load(RUN).complete(PROMPT)`.

Rates are per processor second, which other programs on a shared machine disturb less than the clock. Loading is not
timed. Each ratio compares two neighbouring processes; the table has the median and the range over the rounds, and for
comparison the median by the clock. `same` says whether both versions computed the same numbers to six digits (loss,
perplexity, probabilities).
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from statistics import median
from typing import Any

from table import print_table

PROMPTS = ("{} is", "{} was born in", "{} is a")
VALIDATION = 5
"""Articles to validate on; validation itself is not timed."""
OPENED = 20
"""Times a run is opened; a graph, which takes a tenth of the time, 20 times as often."""
WARM_UP = 10
"""Prompts completed before the clock starts."""

Measured = dict[str, Any]
"""What a process measured: `count`, `cpu` and `clock` (seconds), `result` (the numbers that must agree)."""


class Stopwatch:
    """Processor and clock seconds since it was made."""

    def __init__(self) -> None:
        self.start = time.process_time(), time.perf_counter()

    def seconds(self) -> dict[str, float]:
        return {"cpu": time.process_time() - self.start[0], "clock": time.perf_counter() - self.start[1]}


# Measured in a process of one version


def run_command(*words: object) -> dict[str, Any]:
    """Run a kglm command in this process and return what it prints with --json."""
    from kglm.cli import main as kglm_main

    sys.argv = ["kglm", *map(str, words), "--json"]
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            kglm_main()
    except SystemExit as leaving:
        if leaving.code:
            raise
    return dict(json.loads(printed.getvalue()))


def measure_training(home: Path, options: argparse.Namespace) -> Measured:
    """Training steps of one epoch, timed from the end of the first to the end of the last."""
    del options
    from torch.optim.optimizer import register_optimizer_step_post_hook

    ends: list[Stopwatch] = []
    register_optimizer_step_post_hook(lambda *_: ends.append(Stopwatch()))
    with tempfile.TemporaryDirectory() as to:
        files = ["--data", home / "train.jsonl", "--valid", home / "valid.jsonl", "--kg", home / "run" / "world.kg"]
        sizes = ["--config", "quickstart", "--set", "train.epochs=1", "--set", "train.threads=1"]
        sizes += ["--set", "train.rows=8"]
        [metrics] = run_command("train", "kglm", *files, *sizes, "--to", Path(to) / "run")["metrics"]
    cpu, clock = (last - first for first, last in zip(ends[0].start, ends[-1].start, strict=True))
    return {"count": len(ends) - 1, "cpu": cpu, "clock": clock, "result": [metrics["valid"]["nats"]]}


def measure_estimation(home: Path, options: argparse.Namespace) -> Measured:
    """Tokens scored by the particle filter; a first call loads the model and warms up."""
    command = ["evaluate", home / "run", "--samples", options.samples, "--data"]
    run_command(*command, home / "valid.jsonl")
    stopwatch = Stopwatch()
    found = run_command(*command, home / "scored.jsonl")
    return {"count": found["tokens"], **stopwatch.seconds(), "result": [found["ppl"], found["upp"]]}


def measure_completion(home: Path, options: argparse.Namespace) -> Measured:
    """Prompts completed, each about another entity, with the reasons of the best five words."""
    import kglm

    model = kglm.load(home / "run")
    prompts = json.loads((home / "prompts.json").read_text())
    for prompt in prompts[:WARM_UP]:
        model.complete(prompt)
    stopwatch, found = Stopwatch(), []
    for prompt in prompts[WARM_UP : WARM_UP + options.prompts]:
        found.append(model.complete(prompt).to_json()["words"][0]["p"])
    return {"count": len(found), **stopwatch.seconds(), "result": found}


def measure_opening_runs(home: Path, options: argparse.Namespace) -> Measured:
    """Times the run is opened, with its graph and its vectors."""
    import kglm

    del options
    kglm.load(home / "run")
    stopwatch = Stopwatch()
    for _ in range(OPENED):
        model = kglm.load(home / "run")
    return {"count": OPENED, **stopwatch.seconds(), "result": [len(model.graph)]}


def measure_opening_graphs(home: Path, options: argparse.Namespace) -> Measured:
    """Times the graph is opened."""
    from kglm.kg.graph import KnowledgeGraph

    del options
    path = home / "large.kg" if (home / "large.kg").exists() else home / "run" / "world.kg"
    KnowledgeGraph.open(path).close()
    stopwatch = Stopwatch()
    for _ in range(20 * OPENED):
        with KnowledgeGraph.open(path) as graph:
            count = len(graph)
    return {"count": 20 * OPENED, **stopwatch.seconds(), "result": [count]}


MEASURES: dict[str, tuple[str, Callable[[Path, argparse.Namespace], Measured]]] = {
    "training": ("steps", measure_training),
    "estimation": ("tokens", measure_estimation),
    "completion": ("prompts", measure_completion),
    "opening a run": ("runs", measure_opening_runs),
    "opening a graph": ("graphs", measure_opening_graphs),
}


# Started and compared


def prepare(old: Path, new: Path, home: Path, options: argparse.Namespace) -> None:
    """Copy the bundled run of each tree, and cut the articles of the new one into the files that both read."""
    for name, tree in (("old", old), ("new", new)):
        shutil.copytree(tree / "src" / "kglm" / "bundled" / "run", home / name / "run")
    with gzip.open(home / "new" / "run" / "articles.jsonl.gz", "rt", encoding="utf-8") as stream:
        lines = list(stream)
    titles = [json.loads(line)["title"] for line in lines]
    prompts = [PROMPTS[number % len(PROMPTS)].format(title) for number, title in enumerate(titles)]
    for name in ("old", "new"):
        folder = home / name
        (folder / "valid.jsonl").write_text("".join(lines[:VALIDATION]), encoding="utf-8")
        (folder / "scored.jsonl").write_text("".join(lines[VALIDATION : VALIDATION + options.scored]), encoding="utf-8")
        (folder / "train.jsonl").write_text("".join(lines[VALIDATION:]), encoding="utf-8")
        (folder / "prompts.json").write_text(json.dumps(prompts))
    if options.facts:
        for name, tree in (("old", old), ("new", new)):
            command = [sys.executable, "-m", "kglm", "kg", "import", *options.facts, "--to", home / name / "large.kg"]
            names = ["--entities", options.entities] if options.entities else []
            environment = os.environ | {"PYTHONPATH": str(tree / "src")}
            subprocess.run([*command, *names], env=environment, check=True, stdout=subprocess.DEVNULL)


def measure(tree: Path, name: str, home: Path, options: argparse.Namespace) -> Measured:
    """Measure one version in a process of its own, on one thread."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--measure", name, "--home", str(home)]
    command += ["--prompts", str(options.prompts), "--samples", str(options.samples)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} failed in {tree}:\n{done.stderr}")
    found: Measured = json.loads(done.stdout.splitlines()[-1])
    if not Path(found["package"]).is_relative_to(tree):
        raise SystemExit(f"measured {found['package']} instead of {tree}: is kglm found before PYTHONPATH?")
    return found


def agree(old: Measured, new: Measured) -> bool:
    pairs = zip(old["result"], new["result"], strict=True)
    return all(abs(a - b) <= 1e-6 * max(abs(a), abs(b)) for a, b in pairs)


def summary(pairs: list[tuple[Measured, Measured]]) -> dict[str, Any]:
    """Median rates, and the ratios new / old over the rounds, by processor time and by the clock."""
    ratios = {
        kind: [new["count"] / new[kind] / (old["count"] / old[kind]) for old, new in pairs] for kind in ("cpu", "clock")
    }
    rates = {
        version: median(pair[place]["count"] / pair[place]["cpu"] for pair in pairs)
        for place, version in enumerate(("old", "new"))
    }
    spread = {"median": median(ratios["cpu"]), "least": min(ratios["cpu"]), "greatest": max(ratios["cpu"])}
    return {**rates, "ratio": spread, "by_clock": median(ratios["clock"]), "same": all(agree(*pair) for pair in pairs)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=Path, help="checkout of the version to compare with")
    parser.add_argument("--new", type=Path, help="checkout of the version to measure")
    parser.add_argument("--rounds", type=int, default=5, help="pairs of processes for each measurement")
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=list(MEASURES), help="measurements")
    parser.add_argument("--scored", type=int, default=40, help="articles scored for estimation")
    parser.add_argument("--samples", type=int, default=30, help="particles for estimation")
    parser.add_argument("--prompts", type=int, default=250, help="prompts completed")
    parser.add_argument("--facts", nargs="+", type=Path, help="import these and open that graph, not the bundled one")
    parser.add_argument("--entities", type=Path, help="names of the entities of --facts")
    parser.add_argument("--json", type=Path, help="write all measurements to this file")
    parser.add_argument("--measure", choices=MEASURES, help=argparse.SUPPRESS)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:  # the process of one version
        import kglm

        found = MEASURES[options.measure][1](options.home, options)
        print(json.dumps(found | {"package": kglm.__file__}))
        return
    if options.old is None or options.new is None:
        parser.error("give both --old and --new")
    compare(options.old.resolve(), options.new.resolve(), options)


def compare(old: Path, new: Path, options: argparse.Namespace) -> None:
    pairs: dict[str, list[tuple[Measured, Measured]]] = {name: [] for name in options.only}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        prepare(old, new, home, options)
        for number in range(options.rounds):
            for name, done in pairs.items():
                done.append((measure(old, name, home / "old", options), measure(new, name, home / "new", options)))
                rates = [each["count"] / each["cpu"] for each in done[-1]]
                unit = MEASURES[name][0]
                print(f"round {number + 1}: {name:11} old {rates[0]:9,.1f}, new {rates[1]:9,.1f} {unit}/s", flush=True)
    results = {name: summary(done) for name, done in pairs.items()}
    rows = [
        (
            f"{name}, {MEASURES[name][0]}",
            row["old"],
            row["new"],
            row["ratio"]["median"],
            f"{row['ratio']['least']:.2f} – {row['ratio']['greatest']:.2f}",
            row["by_clock"],
            "yes" if row["same"] else "no",
        )
        for name, row in results.items()
    ]
    title = f"per processor second, median of {options.rounds} rounds; above 1, the new version is faster"
    print_table(("", "old", "new", "new / old", "range", "by clock", "same"), rows, title=title)
    if options.json:
        measured = {name: [{"old": a, "new": b} for a, b in done] for name, done in pairs.items()}
        options.json.write_text(json.dumps({"summary": results, "rounds": measured}, indent=2) + "\n")


if __name__ == "__main__":
    main()

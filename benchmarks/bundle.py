"""The model that comes with the package: a quickstart that takes its time, without what only training needs.

python benchmarks/bundle.py --home /tmp/bundle --to src/kglm/bundled/run

Goes on where it was if it was stopped. Prints what was measured, for docs/model-card.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import shutil
from pathlib import Path

from kglm.annotate.wordings import read_wordings
from kglm.annotate.writing import Writer
from kglm.evaluate.completion import complete_all, table
from kglm.evaluate.prompts import read_prompts
from kglm.evaluate.rows import perplexity_table, score_runs
from kglm.files import read_json, write_json
from kglm.kg.graph import KnowledgeGraph
from kglm.quickstart import Quickstart, QuickstartConfig
from kglm.text.document import to_line
from kglm.train.run import Run

KEPT = ("config.toml", "vocabulary.json", "introductions.json", "model.safetensors", "metrics.jsonl", "README.md")
ARTICLES = 300
MOST = 25_000_000
"""Bytes that may be shipped."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True, help="where it is made")
    parser.add_argument("--to", type=Path, required=True, help="where what is shipped goes")
    parser.add_argument("--texts", type=int, default=24)
    parser.add_argument("--epochs", type=int, default=6)
    given = parser.parse_args()
    story = Quickstart(given.home, QuickstartConfig(texts=given.texts, notes=0.9, epochs=given.epochs))
    for step in (story.begin, story.build, story.write, story.annotate, story.embed, story.train):
        step()
    ship(story, given.to)
    measure(story)


def ship(story: Quickstart, to: Path) -> None:
    """Copy the run and its graph; articles about the world to look at are written anew."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    run = story.run("kglm")
    for name in KEPT:
        shutil.copy(run / name, to / name)
    for path in story.home.glob("world.kg*"):
        if not path.name.endswith((".lock", "-wal", "-shm")):
            (shutil.copytree if path.is_dir() else shutil.copy)(path, to / path.name)
    write_json(to / "kg.json", read_json(run / "kg.json") | {"path": "world.kg", "beside": "world.kg"})
    about = {key: value for key, value in read_json(run / "run.json").items() if key in ("format", "kglm", "from")}
    write_json(to / "run.json", about)
    writer = Writer(KnowledgeGraph.open(to / "world.kg"), read_wordings(), 1)
    topics = sorted(random.Random(1).sample(writer.topics(least=5), ARTICLES))
    with gzip.GzipFile(to / "articles.jsonl.gz", "wb", mtime=0) as stream:
        for document in writer.texts(topics, wordings="all"):
            stream.write(to_line(document))
    size = sum(path.stat().st_size for path in to.rglob("*") if path.is_file())
    assert size <= MOST, f"{size:,} bytes"
    print(f"{to}: {size:,} bytes")


def measure(story: Quickstart) -> None:
    """Both tables, on what was held out."""
    prompts = read_prompts(story.questions)
    for model in ("awd-lstm", "kglm"):
        cells = table(complete_all(model, Run.open(story.run(model)), prompts))
        print(json.dumps([cell for cell in cells if cell["scorer"] == "strict"]))
    runs = [str(story.run("awd-lstm")), str(story.run("kglm"))]
    print(json.dumps(perplexity_table(score_runs(runs, [story.held_corpus], (), "particle", 100, workers=2))))


if __name__ == "__main__":
    main()

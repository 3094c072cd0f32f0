"""python benchmarks/bundle.py FOLDER --to src/kglm/bundled/run

Make the model that is shipped with the package from the folder of a finished `kglm quickstart --to FOLDER`.

Copies the kglm run and its graph without the files that only training needs, and writes example articles.
"""

from __future__ import annotations

import argparse
import gzip
import random
import shutil
from pathlib import Path

from kglm.files import read_json, write_json
from kglm.kg.graph import KnowledgeGraph
from kglm.quickstart import Quickstart
from kglm.text.document import to_line
from kglm.writing.articles import Writer
from kglm.writing.wordings import read_wordings

FILES = ("config.toml", "vocabulary.json", "introductions.json", "model.safetensors", "metrics.jsonl", "README.md")
"""Files of the run to ship."""
ARTICLES = 300
"""Example articles to write."""
MAX_BYTES = 25_000_000
"""Limit on the size of the folder."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the quickstart")
    parser.add_argument("--to", type=Path, required=True, help="folder to write; it is deleted first")
    given = parser.parse_args()
    ship(Quickstart(given.folder), given.to)


def ship(story: Quickstart, to: Path) -> None:
    """Copy the run and its graph, and write example articles about the graph."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    run = story.run("kglm")
    for name in FILES:
        shutil.copy(run / name, to / name)
    for path in story.home.glob("world.kg*"):
        if not path.name.endswith((".lock", "-wal", "-shm")):
            (shutil.copytree if path.is_dir() else shutil.copy)(path, to / path.name)
    write_json(to / "kg.json", read_json(run / "kg.json") | {"path": "world.kg", "beside": "world.kg"})
    about = {key: value for key, value in read_json(run / "run.json").items() if key in ("format", "kglm", "from")}
    write_json(to / "run.json", about)
    writer = Writer(KnowledgeGraph.open(to / "world.kg"), read_wordings(), 1)
    topics = sorted(random.Random(1).sample(writer.topics(min_relations=5), ARTICLES))
    with gzip.GzipFile(to / "articles.jsonl.gz", "wb", mtime=0) as stream:
        for document in writer.texts(topics, wordings="all"):
            stream.write(to_line(document))
    size = sum(path.stat().st_size for path in to.rglob("*") if path.is_file())
    assert size <= MAX_BYTES, f"{size:,} bytes are more than {MAX_BYTES:,}"
    print(f"{to}: {size:,} bytes")


if __name__ == "__main__":
    main()

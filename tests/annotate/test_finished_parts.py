"""Shards of a run that ended after it had written its output, but before it had removed them."""

from __future__ import annotations

import os
from pathlib import Path

from kglm.annotate.pipeline import remove_finished_parts


def make(home: Path, *, shard: int, output: int | None) -> tuple[Path, Path]:
    """An output and a shard, written at these times in seconds."""
    to, parts = home / "docs.jsonl", home / "docs.jsonl.parts"
    parts.mkdir()
    (parts / "00000.jsonl").write_text("{}\n")
    os.utime(parts / "00000.jsonl", (shard, shard))
    if output is not None:
        to.write_text("{}\n")
        os.utime(to, (output, output))
    return to, parts


def test_shards_older_than_the_output_are_removed(tmp_path: Path) -> None:
    to, parts = make(tmp_path, shard=1000, output=2000)
    remove_finished_parts(to)
    assert to.read_text() == "{}\n" and not parts.exists()
    remove_finished_parts(to)
    assert [path.name for path in tmp_path.iterdir()] == ["docs.jsonl"]


def test_shards_of_a_run_that_will_replace_the_output_stay(tmp_path: Path) -> None:
    to, parts = make(tmp_path, shard=2000, output=1000)
    remove_finished_parts(to)
    assert (parts / "00000.jsonl").exists()


def test_shards_of_a_run_without_output_stay(tmp_path: Path) -> None:
    to, parts = make(tmp_path, shard=1000, output=None)
    remove_finished_parts(to)
    assert (parts / "00000.jsonl").exists()

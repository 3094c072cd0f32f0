"""Edits and SIGKILL: what a command has said is done stays done; what it was doing is whole or not there."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import Command
from kglm.kg.graph import KnowledgeGraph
from support.worlds import facts_of, make_store

EDIT_AND_WAIT = """
import sys, time
from kglm.kg.graph import KnowledgeGraph
graph = KnowledgeGraph.open(sys.argv[1], writable=True)
graph.set("Q76", "P569", "2013-03-21")
print("done", flush=True)
time.sleep(60)
"""

MANY_EDITS = """
import sys
from kglm.kg.edits import FactEdit
from kglm.kg.graph import KnowledgeGraph
graph = KnowledgeGraph.open(sys.argv[1], writable=True)
edits = [FactEdit("add", "Q1", "P1", f"Q{n}") for n in range(100, 1100)]
print("start", flush=True)
while True:
    graph.edit(edits)
    graph.undo()
"""


def killed_at(process: subprocess.Popen[str], seconds: float) -> None:
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_an_edit_survives_a_kill_right_after_it(tmp_path: Path) -> None:
    path = make_store(tmp_path)
    process = subprocess.Popen([sys.executable, "-c", EDIT_AND_WAIT, str(path)], stdout=subprocess.PIPE, text=True)
    killed_at(process, 0)
    with KnowledgeGraph.open(path) as graph:
        assert ("Q76", "P569", "T::11::+2013-03-21T00:00:00Z") in facts_of(graph)
        assert ("Q76", "P569", "T::11::+1961-08-04T00:00:00Z") not in facts_of(graph)


def test_a_kill_during_an_edit_leaves_the_old_or_the_new_state(tmp_path: Path) -> None:
    """A thousand facts go in and out as one edit each; a reader never finds some of them."""
    facts = [("Q1", "P1", "Q2"), *((f"Q{n}", "P2", "Q2") for n in range(100, 1100))]
    path = make_store(tmp_path, facts)
    generator = random.Random(5)
    for _ in range(8):
        process = subprocess.Popen([sys.executable, "-c", MANY_EDITS, str(path)], stdout=subprocess.PIPE, text=True)
        killed_at(process, generator.uniform(0.01, 0.4))
        with KnowledgeGraph.open(path) as graph:  # a reader must be able to roll back what the writer left
            count = len(graph.edges(graph.number("Q1")).tail) - 2
            assert count in (0, 1000)
            stored = sqlite3.connect(path)
            assert stored.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            [in_store] = stored.execute("SELECT count(*) FROM fact f JOIN relation r ON r.number = f.relation"
                                        " WHERE r.id = 'P1'").fetchone()  # fmt: skip
            stored.close()
            assert in_store == count + 1
        if count:
            with KnowledgeGraph.open(path, writable=True) as graph:
                graph.undo()


@pytest.mark.parametrize("verb", ["--undo", "--dry-run"])
def test_a_command_line_edit_is_durable(tmp_path: Path, verb: str, command: Command) -> None:
    path = make_store(tmp_path)
    words = ["kg", "edit", str(path)]
    edit = ["--set", "Q76 P569 2013-03-21"]
    for options in [edit, [verb]] if verb == "--undo" else [[*edit, verb]]:
        assert command(*words, *options).returncode == 0
    with KnowledgeGraph.open(path) as graph:
        assert ("Q76", "P569", "T::11::+1961-08-04T00:00:00Z") in facts_of(graph)

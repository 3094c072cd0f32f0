"""Edits and SIGKILL: a completed edit is on disk, an interrupted one is complete or absent."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Command
from kglm.kg.graph import KnowledgeGraph
from support.worlds import facts_of, make_store

EDIT_AND_WAIT = """
import signal, sys
from kglm.kg.graph import KnowledgeGraph
graph = KnowledgeGraph.open(sys.argv[1], writable=True)
graph.set("Q76", "P569", "2013-03-21")
print("done", flush=True)
signal.pause()
"""

MANY_EDITS = """
import os, signal, sys
from kglm.kg.edits import FactEdit
from kglm.kg.graph import KnowledgeGraph

written, last = 0, None

def trace(statement):
    global written, last
    written += statement.startswith(("INSERT", "DELETE")) and statement != last  # a trigger repeats the statement
    last = statement
    if written == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    if statement == "COMMIT":
        print("commit", flush=True)

graph = KnowledgeGraph.open(sys.argv[1], writable=True)
graph.store._connection.set_trace_callback(trace)
edits = [FactEdit("add", "Q1", "P1", f"Q{n}") for n in range(100, 1100)]
while True:
    graph.edit(edits)
    graph.undo()
"""
"""Add and remove a thousand facts for ever; kill this process before a given statement that writes (0: never)."""
WRITES = 2 * 2002
"""Statements that write, in an edit and its undo: one for the edit, two for each change, one for the seal."""


def started(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def kill_after_line(process: subprocess.Popen[str]) -> None:
    """Kill a process as soon as it has printed a line."""
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_edit_survives_a_kill_right_after_it(tmp_path: Path) -> None:
    path = make_store(tmp_path)
    kill_after_line(started(EDIT_AND_WAIT, path))
    with KnowledgeGraph.open(path) as graph:
        assert ("Q76", "P569", "T::11::+2013-03-21T00:00:00Z") in facts_of(graph)
        assert ("Q76", "P569", "T::11::+1961-08-04T00:00:00Z") not in facts_of(graph)


@pytest.fixture(scope="module")
def thousand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    facts = [("Q1", "P1", "Q2"), *((f"Q{n}", "P2", "Q2") for n in range(100, 1100))]
    return make_store(tmp_path_factory.mktemp("kg"), facts)


def check_whole_edit(path: Path) -> int:
    """Check that the file is sound and has all facts of the edit or none; undo it. Return their number."""
    with KnowledgeGraph.open(path) as graph:  # a reader must be able to roll back the transaction of a killed writer
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
    return count


@pytest.mark.parametrize("statement", [1, *random.Random(5).sample(range(2, WRITES), 4), WRITES])
def test_kill_inside_a_transaction_rolls_it_back(thousand: Path, statement: int) -> None:
    """A thousand facts are one edit: a kill before any of its statements leaves the state before it."""
    process = started(MANY_EDITS, thousand, statement)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert check_whole_edit(thousand) == (1000 if statement > WRITES // 2 else 0)


@pytest.mark.parametrize("attempt", range(4))
def test_kill_during_a_commit_leaves_the_old_or_the_new_state(thousand: Path, attempt: int) -> None:
    """The signal arrives while SQLite writes the commit, or shortly after it."""
    kill_after_line(started(MANY_EDITS, thousand, 0))
    check_whole_edit(thousand)


@pytest.mark.parametrize("verb", ["--undo", "--dry-run"])
def test_edit_and_undo_by_command_are_durable(tmp_path: Path, verb: str, command: Command) -> None:
    path = make_store(tmp_path)
    words = ["kg", "edit", str(path)]
    edit = ["--set", "Q76 P569 2013-03-21"]
    for options in [edit, [verb]] if verb == "--undo" else [[*edit, verb]]:
        assert command(*words, *options).returncode == 0
    with KnowledgeGraph.open(path) as graph:
        assert ("Q76", "P569", "T::11::+1961-08-04T00:00:00Z") in facts_of(graph)

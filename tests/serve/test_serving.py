"""`kglm serve` as it is typed: what it refuses, what it prints, how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from conftest import Command

KGLM = [sys.executable, "-m", "kglm"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--host", "0.0.0.0"], "0.0.0.0 can be reached from other machines, and there is no token"),
        (["--host", "0.0.0.0", "--token", "short"], "a token of 5 characters"),
        (["--persist"], "edits are to be stored but not allowed"),
        (["--port", "70000"], "port 70000"),
        (["--queue", "0"], "queue = 0"),
        (["--time", "nan"], "compute_seconds = nan"),
        (["--threads", "-1"], "--threads -1"),
        (["--port", "x"], "Invalid value for '--port'"),
        (["--host", "no such host.invalid", "--token", "x" * 16], "cannot listen on"),
    ],
)
def test_what_is_refused(
    command: Command, run: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], complaint: str
) -> None:
    monkeypatch.delenv("KGLM_TOKEN", raising=False)
    left = command("serve", str(run), *options)
    assert left.returncode == 2
    assert complaint in left.stderr and left.stderr.startswith("error: ") and left.stderr.count("\n") == 1


def test_the_token_of_the_environment_counts(command: Command, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KGLM_TOKEN", "tooshort")
    assert "a token of 8 characters" in command("serve", str(run)).stderr


def test_a_port_that_is_taken_and_a_run_that_is_none(command: Command, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        left = command("serve", str(tmp_path), "--port", port)
    assert left.returncode == 2 and f"cannot listen on 127.0.0.1, port {port}" in left.stderr
    left = command("serve", str(tmp_path), "--port", "0", "--threads", "1")
    assert left.returncode == 2 and "is not a run" in left.stderr


@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_it_says_where_it_is_and_ends_when_told(run: Path, how: signal.Signals) -> None:
    options = ["--port", "0", "--threads", "1", "--documents", str(run.parent / "said.jsonl")]
    with subprocess.Popen(
        [*KGLM, "serve", str(run), *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        assert line.startswith("kglm serves run at http://127.0.0.1:")
        address = line.split()[-1]
        with urllib.request.urlopen(f"{address}api/health") as answer:
            assert json.load(answer)["documents"] == 40
        body = json.dumps({"text": "Barack Obama", "words": 200, "temperature": 2.0, "top_p": 1.0}).encode()
        asked = urllib.request.Request(f"{address}api/generate", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked) as text:
            assert b"prompt" in text.readline()
            process.send_signal(how)
            last = json.loads(text.read().splitlines()[-1])
        assert "done" in last or last["error"]["code"] == "unavailable", "a text that is being said ends properly"
        assert process.wait(20) == 0
        assert process.stdout.read() == "" and "Traceback" not in process.stderr.read()

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
from kglm import bundled
from kglm.serve.settings import name_of

KGLM = [sys.executable, "-m", "kglm"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--host", "0.0.0.0"], "0.0.0.0 can be reached from other machines, and there is no token"),
        (["--host", "0.0.0.0", "--token", "short"], "a token of 5 characters"),
        (["--persist"], "--persist stores edits, but edits are not allowed"),
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


def test_a_port_that_is_taken(command: Command, run: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        left = command("serve", str(run), "--port", port)
    assert left.returncode == 2 and f"cannot listen on 127.0.0.1, port {port}" in left.stderr


def test_what_is_not_there_is_refused_before_anything_is_loaded(run: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from kglm.cli.main import main\n"
        "for words in sys.argv[1:]:\n"
        "    sys.argv = ['kglm', 'serve', *words.split('|')]\n"
        "    try: main()\n"
        "    except SystemExit as left: print(left.code, sorted({'torch', 'fastapi'} & set(sys.modules)))\n"
    )
    wrong = [str(tmp_path), f"{run}|--documents|no.jsonl", f"{run}|--kg|no.kg"]
    process = subprocess.run([sys.executable, "-c", code, *wrong], capture_output=True, text=True, check=True)
    assert process.stdout.splitlines() == ["2 []"] * 3
    complaints = [line.partition(": ")[2] for line in process.stderr.splitlines()]
    assert [line.partition(": ")[2].partition(";")[0] for line in complaints] == [
        "is not a run", "no such file", "no such file",
    ]  # fmt: skip


def test_the_bundled_graph_is_not_written_to(command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KGLM_TOKEN", raising=False)
    left = command("serve", "--allow-edit", "--persist", cwd=tmp_path)
    assert left.returncode == 2 and "name a run" in left.stderr
    assert command("serve", str(bundled.RUN), "--allow-edit", "--persist").stderr == left.stderr


def test_what_a_run_is_called() -> None:
    assert name_of(bundled.RUN) == "the model that comes with kglm" and name_of(Path("runs/mine/")) == "mine"


@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_it_says_where_it_is_and_ends_when_told(run: Path, how: signal.Signals) -> None:
    options = ["--port", "0", "--threads", "1", "--documents", str(run.parent / "said.jsonl")]
    with subprocess.Popen(
        [*KGLM, "serve", str(run), *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        assert process.stderr.readline() == "loading run …\n"
        line = process.stdout.readline()
        assert line.startswith("kglm serves run at http://127.0.0.1:")
        address = line.split()[-1]
        with urllib.request.urlopen(f"{address}api/health") as answer:
            assert json.load(answer)["documents"] == 40
        body = json.dumps({"text": "Barack Obama", "words": 200, "temperature": 2.0, "top_p": 1.0}).encode()
        request = urllib.request.Request(f"{address}api/generate", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as text:
            assert b"prompt" in text.readline()
            process.send_signal(how)
            last = json.loads(text.read().splitlines()[-1])
        assert "done" in last or last["error"]["code"] == "unavailable", "a generation ends with a last line"
        assert process.wait(20) == 0
        assert process.stdout.read() == "" and "Traceback" not in process.stderr.read()

"""What docs/api.md shows is sent, in its order, to a server that allows it all."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import shutil
from pathlib import Path
from urllib.parse import parse_qsl

from conftest import ROOT
from kglm import bundled
from kglm.answer.model import FactAwareLM
from kglm.cli.serving import serve
from kglm.serve.explore import DocumentFilter, Library
from kglm.serve.settings import Limits
from kglm.text.document import read_documents
from support.serving import Client, serving

PAGE = (ROOT / "docs" / "api.md").read_text()
ADDRESS = "http://127.0.0.1:8391"
OPTIONS = {
    "queue": "queue", "wait": "wait_seconds", "time": "compute_seconds", "body": "body_bytes",
    "patience": "read_seconds", "connections": "connections", "sessions": "sessions",
}  # fmt: skip


def commands() -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    return "".join(blocks).replace("\\\n", " ").splitlines()


def sent(client: Client, words: list[str]) -> tuple[str, int, bytes]:
    """A curl command, sent by ourselves: route, status and body."""
    method, headers, data, address = "", {}, None, ""
    rest = iter(words[1:])
    for word in rest:
        if word == "-X":
            method = next(rest)
        elif word == "-H":
            name, _, value = next(rest).partition(": ")
            headers[name] = value
        elif word == "-d":
            data = next(rest).encode()
        elif word not in ("-s", "-sN"):
            address = word
    assert address.startswith(ADDRESS)
    path = address.removeprefix(ADDRESS)
    method = method or ("GET" if data is None else "POST")
    answer = client.ask(method, path, raw=data, **headers)
    return f"{method} {path.partition('?')[0]}", answer.status, answer.body


def test_every_request(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run.parent, tmp_path / "copy")
    live = FactAwareLM.open(copy / "run", kg=copy / "toy.kg")
    asked, session = set[str](), ""
    with serving(live, copy / "said.jsonl", allow_edit=True, persist=True) as client:
        for line in commands():
            if line.startswith("SESSION="):
                session = json.loads(client.post("/api/sessions").body)["session"]
            elif line.startswith("curl"):
                words = [word.replace("$SESSION", session) for word in shlex.split(line)]
                route, status, body = sent(client, words)
                assert status in (200, 201), f"{line}\n{body.decode()}"
                assert body
                asked.add(route)
        paths = client.get("/openapi.json").json["paths"]
    wanted = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    shown = {re.sub(r"/Q76$", "/{id}", re.sub(r"/1$", "/{number}", route)) for route in asked}
    assert wanted - {"POST /api/sessions"} <= shown, "every route is shown"


def test_the_documents_that_are_looked_for_are_there() -> None:
    library = Library(read_documents(bundled.ARTICLES))
    questions = [line.partition("?")[2].strip("'") for line in commands() if "/api/documents?" in line]
    assert questions
    for question in questions:
        asked = dict(parse_qsl(question))
        wanted = DocumentFilter(asked["q"], asked["source"], asked["relation"], asked["entity"])
        assert len(library.find(wanted)) > 0, question


def test_every_command() -> None:
    """Options that are shown exist."""
    known = {f"--{name.replace('_', '-')}" for name in inspect.signature(serve).parameters}
    lines = [line for line in commands() if "kglm serve" in line]
    assert len(lines) == 3
    for line in lines:
        assert {word for word in shlex.split(line, comments=True) if word.startswith("--")} <= known


def test_the_table_of_limits() -> None:
    limits, parameters = Limits(), inspect.signature(serve).parameters
    found = dict(re.findall(r"^\| `--(\w+)` \| (\d+) \|", PAGE, flags=re.MULTILINE))
    assert found.keys() == OPTIONS.keys()
    for option, default in found.items():
        assert float(default) == getattr(limits, OPTIONS[option]) == parameters[option].default

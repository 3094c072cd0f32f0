"""Every request in docs/api.md is sent to a server, in order; its JSON, options, functions and limits are checked."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import kglm
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
    """Send the request of a curl command; return route, status and body."""
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
    model = FactAwareLM.open(copy / "run", kg=copy / "toy.kg")
    routes, session = set[str](), ""
    with serving(model, copy / "said.jsonl", allow_edit=True, persist=True) as client:
        for line in commands():
            if line.startswith("SESSION="):
                session = json.loads(client.post("/api/sessions").body)["session"]
            elif line.startswith("curl"):
                words = [word.replace("$SESSION", session) for word in shlex.split(line)]
                route, status, body = sent(client, words)
                assert status in (200, 201), f"{line}\n{body.decode()}"
                assert body
                routes.add(route)
        paths = client.get("/openapi.json").json["paths"]
    wanted = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    shown = {re.sub(r"/Q76$", "/{id}", re.sub(r"/1$", "/{number}", route)) for route in routes}
    asked = {"POST /api/ask"}  # needs a pretrained model: see test_pretrained.py
    assert wanted - {"POST /api/sessions"} - asked <= shown, "every route is shown"


def shape(value: Any) -> Any:
    """The keys and types of a JSON value; of a list, those of its first item."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value[:1]]
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)


def test_the_json_that_is_shown() -> None:
    """The response has the same form and, except for its numbers, the same content."""
    request = next(line for line in commands() if "/api/complete" in line)
    body = json.loads(shlex.split(request)[-1])
    [shown] = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)]
    with serving(FactAwareLM.open(bundled.RUN)) as client:
        response = client.post("/api/complete", body).json
    assert shape(response) == shape(shown)
    assert response["prompt"] == shown["prompt"]
    mentions = [[each | {"p": 0, "p_nil": 0} for each in answer["mentions"]] for answer in (response, shown)]
    assert mentions[0] == mentions[1]
    reasons = [word["reasons"][0] | {"p": 0} for answer in (response, shown) for word in answer["words"]]
    assert reasons[0] == reasons[1]


def test_the_table_of_functions() -> None:
    names = set(re.findall(r"`kglm\.(\w+)`", PAGE))
    assert len(names) > 8 and {name for name in names if name != "__all__"} <= set(kglm.__all__)


def test_the_documents_that_are_searched_are_there() -> None:
    library = Library(read_documents(bundled.ARTICLES))
    questions = [line.partition("?")[2].strip("'") for line in commands() if "/api/documents?" in line]
    assert questions
    for question in questions:
        query = dict(parse_qsl(question))
        wanted = DocumentFilter(query["q"], query["source"], query["relation"], query["entity"])
        assert len(library.find(wanted)) > 0, question


def test_every_command() -> None:
    """Options that are shown exist."""
    options = {f"--{name.replace('_', '-')}" for name in inspect.signature(serve).parameters}
    lines = [line for line in commands() if "kglm serve" in line]
    assert len(lines) == 3
    for line in lines:
        assert {word for word in shlex.split(line, comments=True) if word.startswith("--")} <= options


def test_the_table_of_limits() -> None:
    limits, parameters = Limits(), inspect.signature(serve).parameters
    found = dict(re.findall(r"^\| `--(\w+)` \| (\d+) \|", PAGE, flags=re.MULTILINE))
    assert found.keys() == OPTIONS.keys()
    for option, default in found.items():
        assert float(default) == getattr(limits, OPTIONS[option]) == parameters[option].default

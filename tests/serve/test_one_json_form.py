"""One JSON form: Python's `to_json()`, the command's `--json` and the HTTP response are equal for the same prompt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Command
from kglm.answer.model import FactAwareLM
from kglm.answer.reading import Span
from support.serving import PROMPT, Client

PROMPTS = (
    PROMPT,
    "Obama met",
    "barack obama was born on",
    "Obama met Michelle Obama in Chicago. He was born",
    "It was",
)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_complete(client: Client, model: FactAwareLM, run: Path, command: Command, prompt: str) -> None:
    python = model.complete(prompt, top=7).to_json()
    assert client.post("/api/complete", {"text": prompt, "top": 7, "reasons": 20}).json == python
    assert json.loads(command("complete", str(run), prompt, "--top", "7", "--json").stdout) == python


@pytest.mark.parametrize("prompt", PROMPTS)
def test_link(client: Client, model: FactAwareLM, run: Path, command: Command, prompt: str) -> None:
    python = {"prompt": model.words(prompt), "mentions": [mention.to_json() for mention in model.link(prompt)]}
    assert client.post("/api/link", {"text": prompt}).json == python
    assert json.loads(command("link", str(run), prompt, "--json").stdout) == python


@pytest.mark.parametrize("prompt", PROMPTS)
def test_generate(client: Client, model: FactAwareLM, run: Path, command: Command, prompt: str) -> None:
    words = [word.to_json() for word in model.generate(prompt, words=4, beam=1)]
    shown = json.loads(command("generate", str(run), prompt, "--words", "4", "--beam", "1", "--json").stdout)
    answer = client.post("/api/generate", {"text": prompt, "words": 4, "beam": 1, "links": "best"})
    first, *generated, last = map(json.loads, answer.body.splitlines())
    assert generated == shown["words"] == words
    assert last == {"done": True, "text": shown["text"]}
    assert first == client.post("/api/link", {"text": prompt}).json and first["prompt"] == shown["prompt"]


def test_mentions_that_are_given(client: Client, model: FactAwareLM) -> None:
    """With links "none", the mentions are those of the request, in every response."""
    given = [{"start": 0, "end": 1, "id": "Q13133"}]
    body = {"text": "She met Barack Obama", "entities": given, "links": "none"}
    words = model.words(body["text"])
    python = model.complete(words, [Span(0, 1, model.graph.number("Q13133"))], links="none").to_json()["mentions"]
    assert [(mention["start"], mention["end"], mention["id"]) for mention in python] == [(0, 1, "Q13133")]
    assert client.post("/api/complete", body).json["mentions"] == python
    first = client.post("/api/generate", body | {"words": 1}).body.splitlines()[0]
    assert json.loads(first)["mentions"] == python

"""A server with a pretrained model: questions, trust, generation with marks, edits in sessions."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from support.questions import open_heads, save_heads
from support.serving import Client, serving

pytest.importorskip("transformers", reason="the extra hf is not installed")
QUESTION = {"text": "What is the spouse of Barack Obama?"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    home = tmp_path_factory.mktemp("heads")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KGLM_CACHE", str(home / "cache"))
        save_heads(home)
        with serving(open_heads(home), allow_edit=True) as client:
            yield client


def test_a_question_is_answered(client: Client) -> None:
    answer = client.post("/api/ask", QUESTION)
    assert answer.status == 200, answer.body
    assert answer.json["text"] == "The spouse of Barack Obama is Michelle Obama."
    model = client.service.model
    assert answer.json == json.loads(json.dumps(model.ask(QUESTION["text"], top=10).to_json(reasons=5)))


def test_an_edit_of_a_session_is_said_at_once(client: Client) -> None:
    own = client.with_session()
    edit = {"action": "set", "head": "Barack Obama", "relation": "spouse", "tail": "Nora Feld"}
    assert own.post("/api/edits", edit).status == 201
    assert own.post("/api/ask", QUESTION).json["text"] == "The spouse of Barack Obama is Nora Feld."
    assert client.post("/api/ask", QUESTION).json["text"] == "The spouse of Barack Obama is Michelle Obama."


def test_trust_is_an_option_of_a_completion(client: Client) -> None:
    prompt = {"text": "The spouse of Barack Obama is"}
    shares = []
    for trust in (-8.0, 0.0, 8.0):
        found = client.post("/api/complete", {**prompt, "trust": trust})
        assert found.status == 200, found.body
        shares.append(sum(answer["p"] for answer in found.json["answers"] if answer["facts"]))
    assert shares == sorted(shares) and shares[0] < 0.1 < shares[2]


@pytest.mark.parametrize("grounded", [False, True])
def test_generated_words_are_marked(client: Client, grounded: bool) -> None:
    body = {"text": "The spouse of Barack Obama is", "words": 8, "seed": 1, "grounded": grounded}
    answer = client.post("/api/generate", body)
    lines = [json.loads(line) for line in answer.body.splitlines()]
    assert lines[0]["prompt"] == body["text"].split() and lines[-1]["done"]
    words = lines[1:-1]
    assert all({"text", "supported"} <= word.keys() for word in words)
    assert lines[-1]["text"] == body["text"] + "".join(word["text"] for word in words)
    if grounded:
        assert all(word["supported"] is not False for word in words)


def test_the_local_graph_has_facts(client: Client) -> None:
    found = client.post("/api/graph", {"text": "The spouse of Barack Obama is"}).json
    assert {"parent": "Q76", "entity": "Q13133"}.items() <= max(found["edges"], key=lambda edge: edge["p"]).items()


def test_what_is_served(client: Client) -> None:
    health = client.get("/api/health").json
    assert health["model"] == "base" and health["vocabulary"] > 256

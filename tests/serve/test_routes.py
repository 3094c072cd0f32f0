"""Every route: valid requests, and requests that it must refuse."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from kglm.answer.model import FactAwareLM
from kglm.serve import bodies
from kglm.text.document import parse_document
from support.serving import PROMPT, SCRIPT, Client

BORN = "T::11::+1961-08-04T00:00:00Z"


def lines(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in body.splitlines()]


class TestComplete:
    def test_the_words_are_those_of_the_model(self, client: Client, model: FactAwareLM) -> None:
        found = client.post("/api/complete", {"text": PROMPT, "top": 5, "reasons": 3}).json
        expected = model.complete(PROMPT, top=5)
        assert found["prompt"] == PROMPT.split()
        assert {each["word"]: each["p"] for each in found["words"]} == pytest.approx(
            {each.word: each.p for each in expected.words}
        )
        assert found["rest"] == pytest.approx(expected.rest)
        [mention] = found["mentions"]
        assert {key: mention[key] for key in ("start", "end", "text", "id", "label")} == {
            "start": 0, "end": 2, "text": "Barack Obama", "id": "Q76", "label": "Barack Obama"
        }  # fmt: skip
        assert 0.9 < mention["p"] < 1 and mention["p"] + mention["p_nil"] == pytest.approx(1)

    @pytest.mark.parametrize("text", [PROMPT, "Obama met", ""])
    def test_the_json_form_is_that_of_a_completion(self, client: Client, model: FactAwareLM, text: str) -> None:
        expected = model.complete(text, top=7).to_json(reasons=2)
        answer = client.post("/api/complete", {"text": text, "top": 7, "reasons": 2}).json
        assert answer == expected, "the same keys and, from the same model, the same numbers"
        assert list(answer) == list(expected) and list(answer["words"][0]) == list(expected["words"][0])
        assert list(answer["words"][0]["reasons"][0]) == list(expected["words"][0]["reasons"][0])
        linked = client.post("/api/link", {"text": text}).json
        assert linked == {"prompt": expected["prompt"], "mentions": expected["mentions"]}

    def test_reasons_add_up(self, client: Client) -> None:
        for word in client.post("/api/complete", {"text": PROMPT, "top": 50, "reasons": 2}).json["words"]:
            assert len(word["reasons"]) <= 2
            assert sum(r["p"] for r in word["reasons"]) + word["further_reasons"]["p"] == pytest.approx(
                word["p"], rel=1e-6
            )

    def test_a_fact_has_ids_and_labels(self, client: Client) -> None:
        words = client.post("/api/complete", {"text": PROMPT, "top": 50, "reasons": 20}).json["words"]
        [reason] = [
            reason
            for word in words
            for reason in word["reasons"]
            if word["word"] == "1961" and reason["relation"] == "P569" and reason["copied"]
        ]
        assert reason["type"] == "related"
        assert (reason["parent"], reason["parent_label"]) == ("Q76", "Barack Obama")
        assert (reason["relation"], reason["relation_label"]) == ("P569", "date of birth")
        assert (reason["entity"], reason["entity_label"]) == (BORN, "August 4, 1961")
        assert reason["text"] == "related Barack Obama —date of birth→ August 4, 1961, copied"

    def test_entities_can_be_given(self, client: Client) -> None:
        body = {"text": "He was born on", "entities": [{"start": 0, "end": 1, "id": "Q76"}], "links": "none", "top": 50}
        given, not_given = (
            {word["word"]: word["p"] for word in client.post("/api/complete", body | change).json["words"]}["1961"]
            for change in ({}, {"entities": []})
        )
        assert given > 2 * not_given

    @pytest.mark.parametrize(
        "change",
        [
            {"text": None}, {"text": 5}, {"top": 0}, {"top": 51}, {"top": 2.5}, {"top": "5"}, {"reasons": 21},
            {"links": "sampled"}, {"links": None}, {"unknown": 1}, {"text": "x" * (bodies.MAX_TEXT + 1)},
            {"text": "a " * (bodies.MAX_WORDS + 1)}, {"entities": [{"start": 0, "end": 9, "id": "Q76"}]},
            {"entities": [{"start": 2, "end": 1, "id": "Q76"}]}, {"entities": [{"start": 0, "end": 1, "id": "Q404"}]},
            {"entities": [{"start": 0, "end": 2, "id": "Q76"}, {"start": 1, "end": 3, "id": "Q76"}]},
        ],
    )  # fmt: skip
    def test_invalid_requests(self, client: Client, change: dict[str, Any]) -> None:
        answer = client.post("/api/complete", {"text": PROMPT} | change)
        assert answer.status == 422
        assert answer.code in ("invalid", "too_long", "unknown_id", "refused")
        assert "\n" not in answer.json["error"]["message"] and "/" not in answer.json["error"]["message"]

    @pytest.mark.parametrize("text", ["", " ", "\x00", "🙂", "@@END@@", "Zork", "\u202eabc", "a " * 300])
    def test_odd_prompts(self, client: Client, text: str) -> None:
        found = client.post("/api/complete", {"text": text, "top": 50}).json
        assert 0 < sum(word["p"] for word in found["words"]) <= 1.0001


class TestGenerate:
    def test_word_by_word(self, client: Client, model: FactAwareLM) -> None:
        answer = client.post("/api/generate", {"text": PROMPT, "words": 5, "seed": 3})
        assert answer.headers["content-type"] == "application/x-ndjson"
        first, *words, last = lines(answer.body)
        assert first["prompt"] == PROMPT.split()
        assert [(each["text"], each["id"]) for each in first["mentions"]] == [("Barack Obama", "Q76")]
        assert len([word for word in words if word["word"] != "@@END@@"]) == 5
        assert last["done"] and last["text"].startswith(PROMPT)
        assert all(set(word) == {"word", "p", "reason"} for word in words)
        [reason, *_] = model.complete(PROMPT).words[0].reasons
        assert all(list(word["reason"]) == list(reason.to_json()) for word in words)

    def test_a_seed_decides(self, client: Client) -> None:
        one, same, other = (
            client.post("/api/generate", {"text": PROMPT, "words": 12, "temperature": 2.0, "seed": seed}).body
            for seed in (1, 1, 2)
        )
        assert one == same != other

    def test_beam_search_is_that_of_the_model(self, client: Client, model: FactAwareLM) -> None:
        from kglm.answer.generate import GenerateConfig

        expected = [each.word for each in model.generate(PROMPT, config=GenerateConfig(words=4, beam=3))]
        found = lines(client.post("/api/generate", {"text": PROMPT, "words": 4, "beam": 3}).body)
        assert [each["word"] for each in found[1:-1]] == expected

    @pytest.mark.parametrize(
        "change",
        [{"words": 0}, {"words": 201}, {"temperature": -1}, {"temperature": 3}, {"top_p": 0}, {"top_p": 2}, {"beam": 9},
         {"seed": -1}, {"seed": 2**32}, {"entities": [{"start": 0, "end": 1, "id": "Q404"}]}],
    )  # fmt: skip
    def test_invalid_requests(self, client: Client, change: dict[str, Any]) -> None:
        answer = client.post("/api/generate", {"text": PROMPT} | change)
        assert answer.status == 422 and answer.headers["content-type"] == "application/json"


class TestTexts:
    def test_link(self, client: Client) -> None:
        found = client.post("/api/link", {"text": "Obama met Michelle Obama in Chicago"}).json
        assert [(m["start"], m["end"], m["id"]) for m in found["mentions"]] == [
            (0, 1, "Q76"), (2, 4, "Q13133"), (5, 6, "Q1297")
        ]  # fmt: skip
        assert found["prompt"][5] == "Chicago"

    def test_annotate(self, client: Client) -> None:
        text = "Barack Obama was born in Honolulu. He married Michelle Obama."
        found = client.post("/api/annotate", {"text": text, "title": "Barack Obama"}).json
        document = found["document"]
        words = [word for sentence in document["sentences"] for word in sentence]
        named = {" ".join(words[m["start"] : m["end"]]): m for m in document["mentions"]}
        assert len(document["sentences"]) == 2
        assert named["Honolulu"]["reasons"][0] == {
            "parent": {"id": "Q76", "label": "Barack Obama", "literal": False},
            "relation": {"id": "P19", "label": "place of birth"},
        }
        assert named["Barack Obama"]["reasons"] == [] and named["Barack Obama"]["source"] == "NEL"
        assert document["number"] is document["previous"] is document["next"] is None
        assert parse_document(json.dumps(found["record"]).encode(), "").mentions[0].id == "Q76"

    def test_nothing_to_annotate(self, client: Client) -> None:
        answer = client.post("/api/annotate", {"text": " \n "})
        assert (answer.status, answer.code) == (422, "no_words")

    def test_the_local_graph(self, client: Client) -> None:
        found = client.post("/api/graph", {"text": PROMPT}).json
        nodes = {node["id"]: node for node in found["nodes"]}
        assert nodes["Q76"]["kind"] == "mentioned" and 0.9 < nodes["Q76"]["p"] < 1
        assert nodes[BORN]["kind"] == "candidate" and nodes[BORN]["literal"]
        [born] = [edge for edge in found["edges"] if edge["relation"]["id"] == "P569"]
        assert (born["parent"], born["entity"]) == ("Q76", BORN)
        assert 0 < born["p"] == nodes[BORN]["p"] < 1
        assert {id for edge in found["edges"] for id in (edge["parent"], edge["entity"])} <= set(nodes)
        assert [edge["p"] for edge in found["edges"]] == sorted((e["p"] for e in found["edges"]), reverse=True)

    def test_a_text_without_entities_has_no_graph(self, client: Client) -> None:
        assert client.post("/api/graph", {"text": "It was"}).json == {"nodes": [], "edges": [], "left_out": 0}


class TestLookingUp:
    @pytest.mark.parametrize(
        ("text", "first"),
        [("Q76", "Q76"), ("Barack", "Q76"), ("obama", "Q76"), ("michelle ob", "Q13133"), ("twin", "Q666")],
    )
    def test_entities(self, client: Client, text: str, first: str) -> None:
        found = client.get(f"/api/entities?q={quote(text)}").json["entities"]
        assert found[0]["id"] == first

    def test_the_summary_of_an_entity(self, client: Client) -> None:
        [found] = client.get("/api/entities?q=Q76&limit=1").json["entities"]
        assert found == {"id": "Q76", "label": "Barack Obama", "aliases": ["Obama"], "facts": 4}

    @pytest.mark.parametrize("text", ["", "%00", "zzzz", "%F0%9F%99%82", "'%20OR%201=1", "%25", "x" * 200])
    def test_no_entity(self, client: Client, text: str) -> None:
        assert client.get(f"/api/entities?q={text}").json == {"entities": []}

    def test_facts(self, client: Client) -> None:
        found = client.get("/api/entities/Q76").json
        assert found["total"] == 4 and found["label"] == "Barack Obama" and not found["literal"]
        facts = [(fact["relation"]["id"], fact["tail"]["id"], fact["reverse"]) for fact in found["facts"]]
        assert set(facts) == {
            ("P569", BORN, False), ("P19", "Q18094", False), ("P26", "Q13133", False), ("P26", "Q13133", True)
        }  # fmt: skip
        assert facts[-1][2], "facts that point here come last"
        assert client.get("/api/entities/Q76?offset=1&limit=2").json["facts"] == found["facts"][1:3]

    def test_a_date_by_its_id(self, client: Client) -> None:
        found = client.get(f"/api/entities/{quote(BORN, safe='')}").json
        assert found["label"] == "August 4, 1961" and found["literal"] and found["total"] == 0

    def test_unknown(self, client: Client) -> None:
        answer = client.get("/api/entities/Q404")
        assert (answer.status, answer.code) == (404, "unknown_id")
        assert client.get("/api/entities/").status == 422

    def test_relations(self, client: Client) -> None:
        assert client.get("/api/relations?q=born").json["relations"] == [{"id": "P569", "label": "date of birth"}]
        found = [r["id"] for r in client.get("/api/relations?q=birth").json["relations"]]
        assert set(found) == {"P569", "P19"}
        assert client.get("/api/relations?q=P26").json["relations"][0]["label"] == "spouse"
        assert len(client.get("/api/relations").json["relations"]) == 3

    @pytest.mark.parametrize(
        "query", ["limit=0", "limit=101", "limit=x", f"q={'x' * 201}", "limit=1e400", "q=a&q=b", "relation=&relation="]
    )
    def test_invalid_requests(self, client: Client, query: str) -> None:
        for place in ("entities", "relations", "documents"):
            assert client.get(f"/api/{place}?{query}").status == 422


class TestDocuments:
    def test_all_of_them(self, client: Client) -> None:
        found = client.get("/api/documents?limit=3&offset=1").json
        assert found["total"] == len(client.service.library) == 40
        assert [each["number"] for each in found["documents"]] == [2, 3, 4]
        shown = client.get("/api/documents/2").json
        assert sum(map(len, shown["sentences"])) == found["documents"][0]["words"]
        assert len(shown["mentions"]) == found["documents"][0]["mentions"]
        assert (shown["previous"], shown["next"]) == (1, 3)

    def test_filters_lead_from_one_to_the_next(self, client: Client) -> None:
        wanted = "entity=Q18094&relation=P19&q=honolulu"
        found = client.get(f"/api/documents?{wanted}&limit=100").json
        numbers = [each["number"] for each in found["documents"]]
        assert 1 < found["total"] == len(numbers) < 40
        assert client.get(f"/api/documents/{numbers[0]}?{wanted}").json["next"] == numbers[1]
        assert client.get(f"/api/documents/{numbers[1]}?{wanted}").json["previous"] == numbers[0]
        assert "Honolulu" in found["documents"][0]["excerpt"]
        mentions = client.get(f"/api/documents/{numbers[0]}").json["mentions"]
        [one] = [m for m in mentions if m["entity"]["id"] == "Q18094"]
        assert {"parent": {"id": "Q76", "label": "Barack Obama", "literal": False},
                "relation": {"id": "P19", "label": "place of birth"}} in one["reasons"]  # fmt: skip

    @pytest.mark.parametrize("query", ["source=COREF&entity=Q18094", "q=zzzz", "relation=P404", "entity=Q404"])
    def test_none(self, client: Client, query: str) -> None:
        assert client.get(f"/api/documents?{query}").json == {"total": 0, "documents": []}

    @pytest.mark.parametrize(("number", "status"), [("41", 404), ("0", 422), ("-1", 422), ("x", 422), ("9" * 30, 422)])
    def test_no_such_document(self, client: Client, number: str, status: int) -> None:
        assert client.get(f"/api/documents/{number}").status == status

    def test_no_such_source(self, client: Client) -> None:
        assert client.get("/api/documents?source=wiki").status == 422


class TestTheServerItself:
    def test_health(self, client: Client, model: FactAwareLM) -> None:
        found = client.get("/api/health").json
        assert found["status"] == "ok" and found["run"] == "run" and found["model"] == "kglm"
        assert found["graph"] == {"entities": len(model.graph), "facts": 7, "relations": 3}
        assert found["documents"] == 40 and found["allow_edit"] and not found["persist"] and not found["token"]
        assert PROMPT in found["examples"]
        assert found["limits"]["queue"] == 256

    def test_metrics(self, client: Client) -> None:
        client.get("/api/entities/Q404")
        answer = client.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        counted = [line for line in answer.body.decode().splitlines() if line.startswith("kglm_requests_total")]
        assert any('route="/api/entities/{id:path}",status="404"' in line for line in counted)
        for line in answer.body.decode().splitlines():
            assert line.startswith("#") or float(line.rpartition(" ")[2]) >= 0

    def test_unknown_addresses_share_one_metric(self, client: Client) -> None:
        for number in range(3):
            client.get(f"/nothing/{number}")
        assert "nothing" not in client.get("/metrics").body.decode()

    def test_the_page(self, client: Client) -> None:
        answer = client.get("/")
        assert answer.status == 200 and answer.headers["content-type"] == "text/html; charset=utf-8"
        for name, file in client.service.page.items():
            assert client.get(f"/page/{name}").body == file.content

    def test_openapi(self, client: Client) -> None:
        schema = client.get("/openapi.json").json
        assert {"/api/complete", "/api/generate", "/api/entities/{id}", "/api/edits/last"} <= set(schema["paths"])
        assert client.get("/docs").status == client.get("/redoc").status == 404

    def test_methods(self, client: Client) -> None:
        answer = client.ask("PUT", "/api/complete", {})
        assert (answer.status, answer.code, answer.headers["allow"]) == (405, "wrong_method", "POST")
        assert client.get("/api/nothing").code == "not_found"


def test_script_in_a_label_stays_json(client: Client) -> None:
    answer = client.get("/api/entities/Q666")
    assert answer.json["label"] == SCRIPT
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    found = client.post("/api/complete", {"text": SCRIPT})
    assert "".join(found.json["prompt"]) == SCRIPT and found.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("path", "body"),
    [("/api/ask", {}), ("/api/complete", {"trust": 1.0}), ("/api/generate", {"grounded": True})],
)
def test_options_of_pretrained_models_are_refused(client: Client, path: str, body: dict[str, object]) -> None:
    answer = client.post(path, {"text": "Who is Barack Obama?", **body})
    assert (answer.status, answer.code) == (422, "not_pretrained")

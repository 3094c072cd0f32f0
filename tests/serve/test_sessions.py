"""Edits: off by default, visible in one session, effective at once, undone exactly, stored only with --persist."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kglm.answer.model import FactAwareLM
from kglm.kg.edits import FactEdit
from kglm.kg.graph import KnowledgeGraph
from kglm.serve import sessions
from kglm.serve.routes.edit import MAX_REMOVED, edit_body
from kglm.serve.settings import Limits
from support.hubs import hub_store
from support.serving import PROMPT, Client, serving

EDIT = {"action": "set", "head": "Barack Obama", "relation": "date of birth", "tail": "21 March 2013"}
BORN, REBORN = "T::11::+1961-08-04T00:00:00Z", "T::11::+2013-03-21T00:00:00Z"


@pytest.fixture
def visitor(client: Client) -> Client:
    return client.with_session()


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    """A copy of the run and of its graph, to be changed."""
    shutil.copytree(run.parent, tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture
def storing(copy: Path) -> Iterator[Client]:
    """A server that stores edits."""
    with serving(FactAwareLM.open(copy / "run", kg=copy / "toy.kg"), allow_edit=True, persist=True) as client:
        yield client


class TestOneVisitor:
    def test_an_edit_changes_the_words_and_undo_brings_them_back(self, visitor: Client) -> None:
        before = visitor.words(top=50)
        answer = visitor.post("/api/edits", EDIT)
        assert answer.status == 201
        edit = answer.json["edit"]
        assert edit["text"] == "Barack Obama —date of birth→ March 21, 2013"
        assert edit["tail"] == {"id": REBORN, "label": "March 21, 2013", "literal": True}
        assert [each["id"] for each in edit["removed"]] == [BORN]
        after = visitor.words(top=50)
        assert "2013" in after and "2013" not in before
        assert after.get("1961", 0.0) < before["1961"]
        undone = visitor.ask("DELETE", "/api/edits/last").json
        assert undone["undone"] == edit and undone["edits"] == []
        assert visitor.words(top=50) == before

    def test_all_routes_include_the_edit(self, visitor: Client) -> None:
        visitor.post("/api/edits", EDIT)
        tails = {fact["tail"]["id"] for fact in visitor.get("/api/entities/Q76").json["facts"]}
        assert REBORN in tails and BORN not in tails
        edges = visitor.post("/api/graph", {"text": PROMPT}).json["edges"]
        assert REBORN in {edge["entity"] for edge in edges} and BORN not in {edge["entity"] for edge in edges}
        generated = visitor.post("/api/generate", {"text": PROMPT, "words": 30, "temperature": 1.5, "top_p": 1.0}).body
        assert b"2013" in generated
        text = "Barack Obama was born on March 21, 2013."
        mentions = visitor.post("/api/annotate", {"text": text}).json["document"]["mentions"]
        assert mentions[-1]["entity"]["id"] == REBORN and mentions[-1]["reasons"][0]["relation"]["id"] == "P569"

    def test_edits_by_id_and_their_order(self, visitor: Client) -> None:
        added = {"action": "add", "head": "Q76", "relation": "P19", "tail": "Q1297"}
        removed = {"action": "remove", "head": "Q76", "relation": "place of birth", "tail": "Honolulu"}
        assert visitor.post("/api/edits", added).json["edit"]["removed"] == []
        assert [each["id"] for each in visitor.post("/api/edits", removed).json["edit"]["removed"]] == ["Q18094"]
        listed = visitor.get("/api/edits").json
        assert [(each["number"], each["action"]) for each in listed["edits"]] == [(1, "add"), (2, "remove")]
        assert listed["allow_edit"] and not listed["persist"]
        assert visitor.ask("DELETE", "/api/edits/last").json["undone"]["action"] == "remove"
        assert {"Q1297", "Q18094"} <= {f["tail"]["id"] for f in visitor.get("/api/entities/Q76").json["facts"]}

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            ({"tail": "4 August 1961"}, "refused"),
            ({"head": "Zzz"}, "unknown_id"),
            ({"relation": "hobby"}, "unknown_id"),
            ({"tail": "2013-13-45"}, "refused"),
            ({"relation": "P26", "tail": "Q76"}, "refused"),
            ({"action": "add", "tail": BORN}, "refused"),
            ({"action": "remove"}, "refused"),
            ({"action": "destroy"}, "invalid"),
            ({"head": ""}, "invalid"),
            ({"head": "x" * 301}, "invalid"),
            ({"relation": "@@REFLEXIVE@@"}, "refused"),
        ],
    )
    def test_bad_edits_change_nothing(self, visitor: Client, change: dict[str, str], code: str) -> None:
        answer = visitor.post("/api/edits", EDIT | change)
        assert (answer.status, answer.code) == (422, code), answer.body
        assert ".kg:" not in answer.json["error"]["message"], "no path of this machine"
        assert visitor.get("/api/edits").json["edits"] == []

    @pytest.mark.parametrize(
        ("change", "expected"),
        [
            ({"tail": "a fine day"}, "'a fine day' is not a date; write it like 21 March 2013"),
            ({"relation": "P19", "tail": "Zzz"}, "'Zzz'; choose one from the list"),
            ({"head": "Zzz"}, "'Zzz'; choose one from the list"),
            ({"relation": "P404"}, "'P404'; choose one from the list"),
            ({"action": "remove"}, "there is no fact Barack Obama"),
        ],
    )
    def test_remedies_need_no_command_line(self, visitor: Client, change: dict[str, str], expected: str) -> None:
        message = visitor.post("/api/edits", EDIT | change).json["error"]["message"]
        assert expected in message and "kglm" not in message

    def test_nothing_to_undo(self, visitor: Client) -> None:
        answer = visitor.ask("DELETE", "/api/edits/last")
        assert (answer.status, answer.code) == (404, "nothing_to_undo")

    def test_too_many(self, model: FactAwareLM) -> None:
        with serving(model, allow_edit=True, limits=Limits(edits=1)) as client:
            visitor = client.with_session()
            assert visitor.post("/api/edits", EDIT).status == 201
            answer = visitor.post("/api/edits", EDIT | {"action": "add", "tail": "5 May 1955"})
            assert (answer.status, answer.code) == (422, "too_many_edits")


class TestManyVisitors:
    def test_sessions_do_not_share_edits(self, client: Client) -> None:
        one, other = client.with_session(), client.with_session()
        before = client.words(top=50)
        one.post("/api/edits", EDIT)
        other.post("/api/edits", EDIT | {"tail": "5 May 1955"})
        assert "2013" in one.words(top=50) and "1955" not in one.words(top=50)
        assert "1955" in other.words(top=50) and "2013" not in other.words(top=50)
        assert client.words(top=50) == before
        assert client.get("/api/edits").json["edits"] == []

    def test_a_session_must_be_there(self, client: Client) -> None:
        lost = Client(client.port, client.service, "A" * 32)
        for answer in (
            lost.post("/api/complete", {"text": PROMPT}),
            lost.post("/api/edits", EDIT),
            lost.post("/api/generate", {"text": PROMPT}),
            lost.get("/api/edits"),
        ):
            assert (answer.status, answer.code) == (404, "no_session")
        assert client.post("/api/edits", EDIT).code == "no_session_given"
        assert client.ask("DELETE", "/api/edits/last").status == 400

    @pytest.mark.parametrize("name", ["short", "x" * 65, "../../../../../../etc/passwd", "a b" * 10])
    def test_names_of_sessions(self, client: Client, name: str) -> None:
        answer = client.get("/api/edits", X_Kglm_Session=name)
        assert answer.status == 422 and "etc" not in answer.json["error"]["message"]

    def test_sessions_without_edits_go_first(self, model: FactAwareLM) -> None:
        with serving(model, allow_edit=True, limits=Limits(sessions=3)) as client:
            edited, bare = client.with_session(), client.with_session()
            edited.post("/api/edits", EDIT)
            for _ in range(5):
                client.with_session()
            assert len(edited.get("/api/edits").json["edits"]) == 1
            assert bare.get("/api/edits").code == "no_session"
            assert len(client.service.sessions) == 3

    def test_the_least_recently_used_session_is_closed(self, model: FactAwareLM) -> None:
        with serving(model, allow_edit=True, limits=Limits(sessions=2)) as client:
            first, second = client.with_session(), client.with_session()
            assert first.get("/api/edits").status == 200
            third = client.with_session()
            assert [each.get("/api/edits").status for each in (first, second, third)] == [200, 404, 200]

    def test_idle_for_too_long(self, model: FactAwareLM) -> None:
        with serving(model, allow_edit=True) as client:
            times = [0.0]
            client.service.sessions.clock = lambda: times[-1]
            visitor = client.with_session()
            for idle, status in ((7200, 200), (7200, 200), (7201, 404)):
                times.append(times[-1] + idle)
                assert visitor.get("/api/edits").status == status

    def test_a_dropped_model_is_rebuilt(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sessions, "MODELS_IN_MEMORY", 1)
        one, other = client.with_session(), client.with_session()
        one.post("/api/edits", EDIT)
        edited = one.words(top=50)
        other.post("/api/edits", EDIT | {"tail": "5 May 1955"})
        other.words()
        assert one.words(top=50) == edited


class TestPersist:
    def test_off_by_default(self, model: FactAwareLM) -> None:
        with serving(model) as client:
            visitor = Client(client.port, client.service, "A" * 32)
            for answer in (
                client.post("/api/sessions"),
                visitor.post("/api/edits", EDIT),
                visitor.ask("DELETE", "/api/edits/last"),
            ):
                assert (answer.status, answer.code) == (403, "edits_off")
            assert len(client.service.sessions) == 0
            assert client.get("/api/health").json["allow_edit"] is False

    def test_refused_without_the_flag(self, visitor: Client, model: FactAwareLM) -> None:
        visitor.post("/api/edits", EDIT)
        answer = visitor.post("/api/edits/persist")
        assert (answer.status, answer.code) == (403, "persist_off")
        assert model.graph.store.generation == 0

    def test_durable_and_one_step(self, storing: Client, copy: Path) -> None:
        visitor, other = storing.with_session(), storing.with_session()
        other.post("/api/edits", {"action": "add", "head": "Q76", "relation": "P19", "tail": "Q1297"})
        before = storing.words(top=50)
        visitor.post("/api/edits", EDIT)
        visitor.post("/api/edits", {"action": "remove", "head": "Q76", "relation": "P26", "tail": "Q13133"})
        after = visitor.words(top=50)
        assert visitor.post("/api/edits/persist").json == {"persisted": 2, "edits": []}
        assert storing.words(top=50) == pytest.approx(after, rel=1e-5), "everybody sees it"
        assert "2013" in other.words(top=50), "so do those with edits of their own"
        assert len(other.get("/api/edits").json["edits"]) == 1
        assert storing.get("/api/health").json["graph"]["facts"] == 6
        with KnowledgeGraph.open(copy / "toy.kg", writable=True) as stored:
            assert stored.generation == 1
            born = stored.find_relation("P569") or 0
            assert [stored.id(int(tail)) for tail in stored.tails(stored.number("Q76"), born)] == [REBORN]
            assert len(stored.undo()) == 3
        assert storing.words(top=50) == pytest.approx(before, rel=1e-5), "an edit by another process is followed too"

    def test_nothing_to_store(self, storing: Client) -> None:
        answer = storing.with_session().post("/api/edits/persist")
        assert (answer.status, answer.code) == (422, "nothing_to_persist")
        assert storing.post("/api/edits/persist").code == "no_session_given"

    def test_an_edit_that_another_session_stored_first(self, storing: Client) -> None:
        one, other = storing.with_session(), storing.with_session()
        for visitor in (one, other):
            visitor.post("/api/edits", EDIT)
        assert one.post("/api/edits/persist").status == 200
        assert other.get("/api/edits").json["edits"] == [], "it is so already"


def test_a_response_lists_some_of_many_removed_tails(tmp_path: Path) -> None:
    with KnowledgeGraph.open(hub_store(tmp_path, MAX_REMOVED + 20)) as graph:
        edit = FactEdit("set", "Q1", "P527", "Q31")
        applied = sessions.AppliedEdit(edit, tuple(graph.fork().edit([edit])))
        assert len(applied.removed) == MAX_REMOVED + 20
        assert [each.id for each in edit_body(graph, 1, applied).removed] == applied.removed[:MAX_REMOVED]

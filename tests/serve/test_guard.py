"""Attacks: wrong tokens, foreign names and pages, bodies that are too large or not what they seem, ways out of the
page's folder, line ends in headers. Whatever is answered carries the headers that keep a browser from running it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from kglm.answer.model import FactAwareLM
from kglm.errors import ConfigError
from kglm.serve.guard import HEADERS
from kglm.serve.settings import Limits, ServeConfig
from support.serving import PROMPT, Client, serving

TOKEN = "correct-horse-battery"
GUARDED = ("/metrics", "/api/entities?q=a", "/api/edits", "/api/documents", "/api/relations", "/nothing")
OPEN = ("/", "/api/health", "/openapi.json")


@pytest.fixture(scope="module")
def locked(model: FactAwareLM) -> Iterator[Client]:
    """A server with a token."""
    with serving(model, token=TOKEN) as client:
        yield client


def bare(client: Client, request: bytes) -> bytes:
    """All that a server answers to these bytes."""
    with client.socket() as connection:
        connection.sendall(request)
        connection.settimeout(20)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
        return answer


class TestToken:
    def test_right(self, locked: Client) -> None:
        assert all(locked.get(path).status == 200 for path in GUARDED[:-1])
        assert locked.words()
        assert locked.get("/api/health").json["token"] is True

    @pytest.mark.parametrize(
        "given",
        [None, "", "Bearer", "Bearer ", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", TOKEN,
         f"Bearer {TOKEN.upper()}", "Bearer \xff\xfe", f"Bearer {TOKEN}, Bearer {TOKEN}"],
    )  # fmt: skip
    def test_missing_or_wrong(self, locked: Client, given: str | None) -> None:
        without_token = Client(locked.port, locked.service)
        headers = {} if given is None else {"Authorization": given}
        for path in GUARDED:
            answer = without_token.get(path, **headers)
            assert (answer.status, answer.code, answer.headers["www-authenticate"]) == (401, "no_token", "Bearer")
            assert TOKEN.encode() not in answer.body
        for path in ("/api/complete", "/api/generate", "/api/sessions"):
            assert without_token.post(path, {"text": PROMPT}, **headers).status == 401

    def test_two_of_them(self, locked: Client) -> None:
        head = f"GET /metrics HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\nAuthorization: Bearer x\r\n\r\n"
        assert b" 401 " in bare(locked, head.encode()).splitlines()[0]

    def test_the_page_and_health_need_none(self, locked: Client) -> None:
        without_token = Client(locked.port, locked.service)
        for path in (*OPEN, "/page/index.html"):
            assert without_token.get(path).status == 200

    def test_with_a_token_any_name_will_do(self, locked: Client) -> None:
        assert locked.get("/metrics", Host="kglm.example").status == 200

    @pytest.mark.parametrize(
        ("config", "complaint"),
        [
            ({"host": "0.0.0.0"}, "no token"),
            ({"host": "::"}, "no token"),
            ({"host": "192.168.1.2"}, "no token"),
            ({"host": "example.org"}, "no token"),
            ({"host": "127.0.0.1.evil.example"}, "no token"),
            ({"token": "short"}, "5 characters"),
            ({"token": "with a blank in the midst"}, "blanks"),
            ({"token": "x" * 20 + "\r\nSet-Cookie: a"}, "blanks"),
            ({"port": 70000}, "port 70000"),
            ({"persist": True}, "not allowed"),
        ],
    )
    def test_what_is_refused_at_the_start(self, config: dict[str, Any], complaint: str) -> None:
        with pytest.raises(ConfigError, match=complaint):
            ServeConfig(**config)

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
    def test_loopback_needs_none(self, host: str) -> None:
        assert ServeConfig(host=host).loopback
        assert ServeConfig(host="0.0.0.0", token=TOKEN).token == TOKEN


class TestOtherPages:
    @pytest.mark.parametrize(
        "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "", "[::1", "0"]
    )
    def test_a_name_that_was_pointed_here(self, client: Client, host: str) -> None:
        for path in ("/", "/api/health", "/api/entities?q=a"):
            answer = client.get(path, Host=host)
            assert (answer.status, answer.code) == (403, "wrong_host")

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:8391", "[::1]"])
    def test_names_of_this_machine(self, client: Client, host: str) -> None:
        assert client.get("/api/health", Host=host).status == 200

    def test_the_address_that_it_listens_on(self, model: FactAwareLM) -> None:
        with (
            serving(model, host="127.0.0.2") as other,
            socket.create_connection(("127.0.0.2", other.port), timeout=30) as connection,
        ):
            host = f"127.0.0.2:{other.port}".encode()
            connection.sendall(b"GET /api/health HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n")
            assert b" 200 " in connection.recv(100)

    def test_two_names(self, client: Client) -> None:
        answer = bare(client, b"GET /api/health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        assert b" 400 " in answer.splitlines()[0]

    @pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1", "", "file://"])
    def test_what_other_pages_send(self, client: Client, origin: str) -> None:
        answer = client.post("/api/sessions", Origin=origin)
        assert (answer.status if origin else 403) == 403
        assert "access-control-allow-origin" not in answer.headers

    def test_our_own_page(self, client: Client) -> None:
        address = f"127.0.0.1:{client.port}"
        assert client.post("/api/sessions", Origin=f"http://{address}").status == 201

    def test_no_preflight_is_answered(self, client: Client) -> None:
        headers = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
        answer = client.ask("OPTIONS", "/api/complete", **headers)
        assert answer.status == 405 and not any(name.startswith("access-control") for name in answer.headers)

    @pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
    def test_what_a_form_can_send(self, client: Client, kind: str) -> None:
        answer = client.ask("POST", "/api/complete", {"text": PROMPT}, **{"Content-Type": kind})
        assert (answer.status, answer.code) == (415, "not_json")


@pytest.fixture(scope="module")
def strict(model: FactAwareLM) -> Iterator[Client]:
    """A server that takes small bodies only."""
    with serving(model, limits=Limits(body_bytes=2000)) as client:
        yield client


class TestBodies:
    def test_as_much_as_is_allowed(self, strict: Client) -> None:
        body = json.dumps({"text": "a"}).encode()
        assert strict.ask("POST", "/api/link", raw=body + b" " * (2000 - len(body))).status == 200
        assert strict.ask("POST", "/api/link", raw=body + b" " * (2001 - len(body))).code == "too_large"

    def test_declared(self, strict: Client) -> None:
        head = b"POST /api/link HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        for length in (b"2001", b"9" * 18):
            answer = bare(strict, head + b"Content-Length: " + length + b"\r\n\r\n{")
            assert b" 413 " in answer.splitlines()[0], "before anything of it is read"

    def test_in_pieces(self, strict: Client) -> None:
        with strict.socket() as connection:
            connection.sendall(
                b"POST /api/link HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n"
            )
            piece, answer, sent = b"400\r\n" + b"x" * 1024 + b"\r\n", b"", 0
            try:
                for _ in range(10_000):
                    connection.sendall(piece)
                    sent += 1024
            except OSError:
                pass  # it has hung up
            try:
                answer = connection.recv(65536)
            except OSError:
                answer = b""
        assert sent < 8_000_000, "it does not read on"
        assert not answer or b" 413 " in answer.splitlines()[0]

    def test_smuggling(self, strict: Client) -> None:
        head = b"POST /api/link HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
        answer = bare(strict, head + b"0\r\n\r\nGET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert answer.count(b"HTTP/1.1") == 1

    @pytest.mark.parametrize(
        "body",
        [b"", b"{", b"nonsense", b"[]", b"null", b'"text"', b"\xff\xfe", b'{"text": "a"} x', b'{"text": "\xff"}',
         b'{"text": "\\ud800"}', b'{"text": "a", "\\udfff": 1}', b'{"text": NaN}', b'{"text": "a", "top": NaN}',
         b'{"text": "a", "top": Infinity}', b'{"text": "a", "top": 1e999}', b'{"text": "a", "top": -0.5}',
         b'{"text": "a", "top": ' + b"9" * 5000 + b"}", b'{"text": "a", "top": 18446744073709551616}',
         b"[" * 100_000, b'{"text":' * 20_000, b'{"text": "a", "entities": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
         b'{"text": {"$ne": 1}}', b'{"__proto__": 1, "text": "a"}'],
    )  # fmt: skip
    def test_odd_json(self, client: Client, body: bytes) -> None:
        for path in ("/api/complete", "/api/generate"):
            answer = client.ask("POST", path, raw=body)
            assert answer.status in (400, 422), answer.body
            assert answer.headers["content-type"] == "application/json"
            assert len(answer.body) < 2000 and b"Traceback" not in answer.body

    def test_numbers_that_are_not(self, client: Client) -> None:
        for value in (b"NaN", b"-Infinity", b"1e999"):
            answer = client.ask("POST", "/api/generate", raw=b'{"text": "a", "temperature": ' + value + b"}")
            assert answer.status == 422

    def test_nul_and_controls_are_no_words(self, client: Client) -> None:
        assert client.post("/api/link", {"text": "Barack\x00Obama\x1b[31m"}).json["prompt"][:2] == ["Barack", "Obama"]


class TestWaysOut:
    @pytest.mark.parametrize(
        "path",
        ["/page/../app.py", "/page/..%2fapp.py", "/page/%2e%2e/app.py", "/page/....//app.py", "/page//etc/passwd",
         "/page/%2fetc%2fpasswd", "/page/..%5capp.py", "/page/index.html%00.js", "/page/", "/page", "/../../etc/passwd",
         "/page/C:%5cwindows", "/page/__init__.py", "/page/" + "a" * 5000, "//etc/passwd", "/page/index.html/",
         "/page/INDEX.html"],
    )  # fmt: skip
    def test_of_the_pages_folder(self, client: Client, path: str) -> None:
        answer = client.get(path)
        assert answer.status in (404, 422)
        assert b"root:" not in answer.body and b"import" not in answer.body

    @pytest.mark.parametrize(
        "id", ["../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%00", "file:///etc/passwd", "Q76/../Q666"]
    )
    def test_by_ids(self, client: Client, id: str) -> None:
        assert client.get(f"/api/entities/{id}").status == 404
        assert client.get(f"/api/documents/{quote(id, safe='')}").status in (404, 422)
        assert client.get(f"/api/documents?entity={quote(id)}&relation={quote(id)}").json["total"] == 0

    @pytest.mark.parametrize(
        "text", ["a\r\nSet-Cookie: evil=1", "a\nX-Evil: 1", "\r\n\r\n<html>", "é\u2028\r\nX-Evil: 1"]
    )
    def test_line_ends_stay_out_of_headers(self, client: Client, text: str) -> None:
        visitor = client.with_session()
        answers = [
            client.get(f"/api/entities/{quote(text, safe='')}"),
            client.get(f"/api/entities?q={quote(text)}"),
            client.get(f"/page/{quote(text, safe='')}"),
            client.get(f"/{quote(text, safe='')}"),
            client.post("/api/complete", {"text": text}),
            client.post("/api/complete", {"text": "a", text: 1}),
            client.post("/api/annotate", {"text": text, "title": text}),
            visitor.post("/api/edits", {"action": "add", "head": text, "relation": text, "tail": text}),
            client.post("/api/generate", {"text": text, "words": 1}),
        ]
        for answer in answers:
            assert "set-cookie" not in answer.headers and "x-evil" not in answer.headers
            assert answer.headers["content-type"] in ("application/json", "application/x-ndjson")

    def test_bare_line_ends_in_a_request(self, client: Client) -> None:
        answer = bare(client, b"GET /api/health HTTP/1.1\r\nHost: localhost\r\nX-Kglm-Session: a\rX-Evil: 1\r\n\r\n")
        assert b" 400 " in answer.splitlines()[0] and b"nosniff" in answer and b'"error"' in answer

    def test_a_head_without_end(self, client: Client) -> None:
        answer = bare(client, b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 40_000)
        assert b" 400 " in answer.splitlines()[0] and b"nosniff" in answer


def test_headers_on_every_answer(client: Client, locked: Client) -> None:
    answers = [
        client.get("/"), client.get("/page/index.html"), client.get("/api/health"), client.get("/metrics"),
        client.get("/openapi.json"), client.get("/nothing"), client.ask("PUT", "/api/complete"),
        client.post("/api/complete", {"text": PROMPT}), client.post("/api/complete", {"text": 1}),
        client.post("/api/generate", {"text": PROMPT, "words": 1}), client.get("/", Host="evil.example"),
        client.ask("POST", "/api/complete", raw=b"x" * 1_100_000), client.ask("POST", "/api/complete", raw=b"{"),
        Client(locked.port, locked.service).get("/metrics"), client.get("/api/entities/Q404"),
        client.ask("POST", "/api/complete", raw=b"x", Content_Type="text/plain"), client.post("/api/edits", {}),
    ]  # fmt: skip
    statuses = {answer.status for answer in answers}
    assert statuses >= {200, 401, 403, 404, 405, 413, 415, 422}
    for answer in answers:
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
        assert answer.headers["cache-control"] in ("no-store", "no-cache")
        assert "server" not in answer.headers and "access-control-allow-origin" not in answer.headers


def test_a_mistake_of_ours_says_nothing_of_the_machine(
    model: FactAwareLM, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving(model) as client:
        monkeypatch.setattr(client.service, "lookup", None)
        answer = client.get("/api/entities?q=a")
        assert (answer.status, answer.code) == (500, "our_mistake")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert b"NoneType" not in answer.body and b"/" not in answer.body
        assert client.get("/api/health").status == 200
    assert "AttributeError" in capfd.readouterr().err

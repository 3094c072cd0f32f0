"""Many clients, slow clients, clients that leave: real sockets against a real server."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from kglm.answer.model import FactAwareLM
from kglm.serve.settings import Limits
from kglm.serve.work import Pause
from support.serving import PROMPT, Client, serving

HEAD = b"POST /api/complete HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def hasty(live: FactAwareLM) -> Iterator[Client]:
    """A server without patience."""
    with serving(live, limits=Limits(read_seconds=0.4)) as client:
        yield client


def until_closed(connection: socket.socket) -> tuple[bytes, float]:
    """What is still sent, and how long it takes until the other side hangs up."""
    start, answer = time.monotonic(), b""
    connection.settimeout(15)
    try:
        while piece := connection.recv(65536):
            answer += piece
    except ConnectionError:
        pass
    return answer, time.monotonic() - start


class Held:
    """The computing thread, kept busy until it is let go."""

    def __init__(self, client: Client) -> None:
        self.client, self.go_on, self.begun = client, threading.Event(), threading.Event()
        self._plain = client.service.model

    def _model(self, session: str | None) -> FactAwareLM:
        self.begun.set()
        assert self.go_on.wait(30)
        return self._plain(session)

    def __enter__(self) -> Held:
        self.client.service.model = self._model  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        self.go_on.set()
        self.client.service.model = self._plain  # type: ignore[method-assign]


def wait_for(client: Client, waiting: int) -> None:
    for _ in range(1000):
        if client.service.work.waiting == waiting:
            return
        time.sleep(0.01)
    raise AssertionError(f"{client.service.work.waiting} wait")


def test_two_hundred_at_once_and_none_is_lost(live: FactAwareLM) -> None:
    with serving(live, limits=Limits()) as client:
        prompts = [f"{PROMPT} {number}" for number in range(200)]
        body = [json.dumps({"text": prompt, "top": 1, "reasons": 1}).encode() for prompt in prompts]
        connections = [client.socket() for _ in prompts]
        with Held(client) as held:  # so that they are all there at one time, however fast this machine is
            for connection, data in zip(connections, body, strict=True):
                connection.sendall(HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(data), data))
            wait_for(client, 199)
            held.go_on.set()
            for prompt, connection in zip(prompts, connections, strict=True):
                with connection:
                    answer, _ = until_closed(connection)
                head, _, data = answer.partition(b"\r\n\r\n")
                assert b" 200 " in head.splitlines()[0]
                assert json.loads(data)["prompt"] == prompt.split(), "each has its own answer"
        assert client.service.work.refused == client.service.work.given_up == 0


def test_a_full_queue_says_when_to_come_again(live: FactAwareLM) -> None:
    with serving(live, limits=Limits(queue=3)) as client:
        with Held(client) as held, ThreadPoolExecutor(10) as pool:
            asked = [pool.submit(client.post, "/api/complete", {"text": PROMPT})]
            assert held.begun.wait(20)
            asked += [pool.submit(client.post, "/api/complete", {"text": f"{PROMPT} {n}"}) for n in range(9)]
            while sum(each.done() for each in asked) < 6:
                time.sleep(0.01)
            early = [each.result() for each in asked if each.done()]
            assert client.get("/api/health").status == 200, "the rest of the server answers"
            assert client.post("/api/link", {"text": "a"}).status == 429
            held.go_on.set()
            answers = [each.result() for each in asked]
        assert Counter(answer.status for answer in answers) == {200: 4, 429: 6}
        assert all((each.code, each.headers["retry-after"]) == ("busy", "2") for each in early)
        assert "kglm_refused_total 7" in client.get("/metrics").body.decode()
        assert client.words()


def test_too_many_connections(live: FactAwareLM) -> None:
    with serving(live, limits=Limits(connections=2)) as client:
        with Held(client) as held, ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(client.post, "/api/complete", {"text": PROMPT}) for _ in range(2)]
            held.begun.wait(20)
            wait_for(client, 1)
            answer = client.get("/api/health")
            assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "busy", "2")
            idle = [client.socket() for _ in range(4)]
            assert until_closed(idle[-1])[1] < 5
            for connection in idle:
                connection.close()
            held.go_on.set()
            assert [each.result().status for each in asked] == [200, 200]
        assert client.get("/api/health").status == 200


class TestSlowClients:
    def test_a_head_that_does_not_come(self, hasty: Client) -> None:
        for said in (b"", b"GET / HTT", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n"):
            with hasty.socket() as connection:
                connection.sendall(said)
                answer, seconds = until_closed(connection)
            assert answer == b"" and 0.2 < seconds < 5

    def test_a_head_that_comes_letter_by_letter(self, hasty: Client) -> None:
        start = time.monotonic()
        with hasty.socket() as connection, pytest.raises(OSError):
            for letter in b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 10_000:
                connection.sendall(bytes([letter]))
                time.sleep(0.02)
        assert time.monotonic() - start < 5

    def test_a_second_request_that_does_not_come(self, hasty: Client) -> None:
        with hasty.socket() as connection:
            connection.sendall(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HT")
            answer, seconds = until_closed(connection)
        assert answer.count(b"HTTP/1.1 200") == 1 and seconds < 5

    def test_a_body_that_does_not_come(self, hasty: Client) -> None:
        for rest in (b"Content-Length: 100\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"):
            with hasty.socket() as connection:
                connection.sendall(HEAD + rest)
                answer, seconds = until_closed(connection)
            assert b" 408 " in answer.splitlines()[0] and b"too_slow" in answer and b"nosniff" in answer
            assert 0.2 < seconds < 5

    def test_a_body_that_comes_letter_by_letter(self, hasty: Client) -> None:
        with hasty.socket() as connection:
            connection.sendall(HEAD + b"Content-Length: 100000\r\n\r\n")
            start = time.monotonic()
            with pytest.raises(OSError):
                while time.monotonic() - start < 10:
                    connection.sendall(b" ")
                    time.sleep(0.02)
        assert time.monotonic() - start < 5

    def test_an_answer_that_is_not_taken(self, hasty: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        from kglm.serve.page import File

        monkeypatch.setitem(hasty.service.page, "big.js", File(b"x" * 50_000_000, "text/javascript"))
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", hasty.port))
            connection.sendall(b"GET /page/big.js HTTP/1.1\r\nHost: localhost\r\n\r\n")
            time.sleep(1.5)
            answer, _ = until_closed(connection)
        assert len(answer) < 50_000_000
        assert len(hasty.get("/page/big.js").body) == 50_000_000, "who takes it gets it all"

    def test_the_others_are_served_meanwhile(self, hasty: Client) -> None:
        slow = [hasty.socket() for _ in range(50)]
        for connection in slow:
            connection.sendall(b"POST /api/complete HTTP/1.1\r\n")
        assert hasty.words()
        for connection in slow:
            connection.close()


class TestClientsThatLeave:
    def test_a_text_is_not_said_to_nobody(self, client: Client) -> None:
        spoken: list[int] = []
        plain = client.service.stream

        async def counted(request, make):  # type: ignore[no-untyped-def]
            def counting(pause: Pause) -> Iterator[object]:
                for each in make(pause):
                    spoken.append(1)
                    yield each
                    time.sleep(0.02)

            return await plain(request, counting)

        client.service.stream = counted  # type: ignore[method-assign]
        try:
            data = json.dumps({"text": PROMPT, "words": 200}).encode()
            with client.socket() as connection:
                head = HEAD.replace(b"complete", b"generate")
                connection.sendall(head + b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
                assert b'"prompt"' in connection.recv(4096) + connection.recv(4096)
            count = -1
            while count != len(spoken):  # until no more is said
                count = len(spoken)
                time.sleep(0.3)
            assert 0 < count < 150
            assert client.service.work.waiting == 0
        finally:
            client.service.stream = plain  # type: ignore[method-assign]

    def test_an_answer_that_nobody_waits_for_is_not_computed(self, client: Client) -> None:
        computed: list[str] = []
        plain = client.service.ask

        def ask(live, prompt):  # type: ignore[no-untyped-def]
            computed.append(prompt.text)
            return plain(live, prompt)

        with Held(client) as held, ThreadPoolExecutor(1) as pool:
            client.service.ask = ask  # type: ignore[method-assign]
            first = pool.submit(client.post, "/api/complete", {"text": "first"})
            assert held.begun.wait(20)
            data = json.dumps({"text": "second"}).encode()
            with client.socket() as connection:
                connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
                wait_for(client, 1)
            time.sleep(0.2)
            held.go_on.set()
            assert first.result().status == 200
            assert client.post("/api/complete", {"text": "third"}).status == 200
        client.service.ask = plain  # type: ignore[method-assign]
        assert computed == ["first", "third"]


def test_a_server_that_is_told_to_end_says_so(live: FactAwareLM) -> None:
    with serving(live) as client, ThreadPoolExecutor(2) as pool:
        with Held(client) as held:
            asked = [pool.submit(client.post, "/api/complete", {"text": PROMPT}) for _ in range(2)]
            assert held.begun.wait(20)
            wait_for(client, 1)
            client.service.work.stop()
            answers = [each.result(20) for each in asked]
        assert [(each.status, each.code) for each in answers] == [(503, "unavailable")] * 2
        assert client.post("/api/link", {"text": "a"}).code == "unavailable"


def test_a_text_that_takes_too_long_ends_with_a_line_that_says_so(live: FactAwareLM) -> None:
    with serving(live, limits=Limits(compute_seconds=0.15)) as client:
        answer = client.post("/api/generate", {"text": PROMPT, "words": 200})
        *_, last = answer.body.splitlines()
        assert answer.status == 200 and json.loads(last)["error"]["code"] == "timed_out"
        beam = client.post("/api/generate", {"text": PROMPT, "words": 200, "beam": 8})
        assert (beam.status, beam.code) == (503, "timed_out")
        assert client.words()

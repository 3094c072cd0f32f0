"""Many clients, slow clients, clients that leave: real sockets against a real server.

Tests wait for events (a connection is closed, a job is cancelled), with a timeout only to end a test that fails.
"""

from __future__ import annotations

import itertools
import json
import socket
import threading
import time
from asyncio.selector_events import _SelectorTransport  # type: ignore[attr-defined]
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from kglm.answer.model import FactAwareLM
from kglm.serve.settings import Limits
from kglm.serve.work import YieldPoint
from support.serving import PROMPT, Client, serving

HEAD = b"POST /api/complete HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def hasty(model: FactAwareLM) -> Iterator[Client]:
    """A server with a short time limit for requests to arrive and responses to be read."""
    with serving(model, limits=Limits(read_seconds=0.4)) as client:
        yield client


def until_closed(connection: socket.socket) -> bytes:
    """The bytes that arrive until the server closes the connection."""
    answer = b""
    connection.settimeout(15)
    try:
        while piece := connection.recv(65536):
            answer += piece
    except ConnectionError:
        pass
    return answer


class BlockedCompute:
    """The compute thread, blocked until `go_on` is set."""

    def __init__(self, client: Client) -> None:
        self.client, self.go_on, self.begun = client, threading.Event(), threading.Event()
        self._session_model = client.service.session_model

    def _model(self, session: str | None) -> FactAwareLM:
        self.begun.set()
        assert self.go_on.wait(30)
        return self._session_model(session)

    def __enter__(self) -> BlockedCompute:
        self.client.service.session_model = self._model  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        self.go_on.set()
        self.client.service.session_model = self._session_model  # type: ignore[method-assign]


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it does not happen")


def wait_for(client: Client, waiting: int) -> None:
    wait_until(lambda: client.service.queue.waiting == waiting)


def test_two_hundred_requests_at_once_and_none_is_lost(model: FactAwareLM) -> None:
    with serving(model, limits=Limits()) as client:
        prompts = [f"{PROMPT} {number}" for number in range(200)]
        body = [json.dumps({"text": prompt, "top": 1, "reasons": 1}).encode() for prompt in prompts]
        connections = [client.socket() for _ in prompts]
        with BlockedCompute(client) as blocked:  # so that they are all there at one time, however fast this machine is
            for connection, data in zip(connections, body, strict=True):
                connection.sendall(HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(data), data))
            wait_for(client, 199)
            blocked.go_on.set()
            for prompt, connection in zip(prompts, connections, strict=True):
                with connection:
                    answer = until_closed(connection)
                head, _, data = answer.partition(b"\r\n\r\n")
                assert b" 200 " in head.splitlines()[0]
                assert json.loads(data)["prompt"] == prompt.split(), "each has its own response"
        assert client.service.queue.refused == client.service.queue.timed_out == 0


def test_a_full_queue_says_when_to_try_again(model: FactAwareLM) -> None:
    with serving(model, limits=Limits(queue=3)) as client:
        with BlockedCompute(client) as blocked, ThreadPoolExecutor(10) as pool:
            responses = [pool.submit(client.post, "/api/complete", {"text": PROMPT})]
            assert blocked.begun.wait(20)
            responses += [pool.submit(client.post, "/api/complete", {"text": f"{PROMPT} {n}"}) for n in range(9)]
            wait_until(lambda: sum(each.done() for each in responses) == 6)
            early = [each.result() for each in responses if each.done()]
            assert client.get("/api/health").status == 200, "the rest of the server answers"
            assert client.post("/api/link", {"text": "a"}).status == 429
            blocked.go_on.set()
            answers = [each.result() for each in responses]
        assert Counter(answer.status for answer in answers) == {200: 4, 429: 6}
        assert all((each.code, each.headers["retry-after"]) == ("busy", "2") for each in early)
        assert "kglm_refused_total 7" in client.get("/metrics").body.decode()
        assert client.words()


def test_too_many_connections(model: FactAwareLM) -> None:
    limits = Limits(connections=2, read_seconds=1000)  # no connection is closed because it is slow
    with serving(model, limits=limits) as client:
        with BlockedCompute(client) as blocked, ThreadPoolExecutor(2) as pool:
            responses = [pool.submit(client.post, "/api/complete", {"text": PROMPT}) for _ in range(2)]
            blocked.begun.wait(20)
            wait_for(client, 1)
            answer = client.get("/api/health")
            assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "busy", "2")
            idle = [client.socket() for _ in range(4)]
            assert until_closed(idle[-1]) == b""
            for connection in idle:
                connection.close()
            blocked.go_on.set()
            assert [each.result().status for each in responses] == [200, 200]
        assert client.get("/api/health").status == 200


class TestSlowClients:
    def test_a_head_that_does_not_come(self, hasty: Client) -> None:
        for head in (b"", b"GET / HTT", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n"):
            with hasty.socket() as connection:
                connection.sendall(head)
                assert until_closed(connection) == b""

    def test_a_head_that_comes_letter_by_letter(self, hasty: Client) -> None:
        with hasty.socket() as connection, pytest.raises(OSError):  # before all letters are sent
            for letter in b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 1000:
                connection.sendall(bytes([letter]))
                time.sleep(0.02)

    def test_a_second_request_that_does_not_come(self, hasty: Client) -> None:
        with hasty.socket() as connection:
            connection.sendall(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HT")
            answer = until_closed(connection)
        assert answer.count(b"HTTP/1.1 200") == 1

    def test_a_body_that_does_not_come(self, hasty: Client) -> None:
        for rest in (b"Content-Length: 100\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"):
            with hasty.socket() as connection:
                connection.sendall(HEAD + rest)
                answer = until_closed(connection)
            assert b" 408 " in answer.splitlines()[0] and b"too_slow" in answer and b"nosniff" in answer

    def test_a_body_that_comes_letter_by_letter(self, hasty: Client) -> None:
        with hasty.socket() as connection:
            connection.sendall(HEAD + b"Content-Length: 100000\r\n\r\n")
            with pytest.raises(OSError):  # before all letters are sent
                for _ in range(1000):
                    connection.sendall(b" ")
                    time.sleep(0.02)

    def test_a_response_that_is_not_read(self, hasty: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        from kglm.serve.page import File

        monkeypatch.setitem(hasty.service.page, "big.js", File(b"x" * 50_000_000, "text/javascript"))
        aborted, abort = set[int](), _SelectorTransport.abort

        def noted_abort(transport: _SelectorTransport) -> None:
            aborted.add(transport.get_extra_info("peername")[1])
            abort(transport)

        monkeypatch.setattr(_SelectorTransport, "abort", noted_abort)
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", hasty.port))
            connection.sendall(b"GET /page/big.js HTTP/1.1\r\nHost: localhost\r\n\r\n")
            port = connection.getsockname()[1]
            wait_until(lambda: port in aborted)
            assert len(until_closed(connection)) < 50_000_000
        assert len(hasty.get("/page/big.js").body) == 50_000_000, "a client that reads gets all of it"

    def test_the_others_are_served_meanwhile(self, hasty: Client) -> None:
        slow = [hasty.socket() for _ in range(50)]
        for connection in slow:
            connection.sendall(b"POST /api/complete HTTP/1.1\r\n")
        assert hasty.words()
        for connection in slow:
            connection.close()


class TestClientsThatLeave:
    def test_a_generation_ends(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        closed = threading.Event()
        stream = client.service.stream

        async def endless_stream(request, start):  # type: ignore[no-untyped-def]
            def endless(yield_point: YieldPoint) -> Iterator[object]:
                try:
                    for record in itertools.chain(start(yield_point), itertools.repeat({"word": "and"})):
                        yield record
                        time.sleep(0.01)
                finally:
                    closed.set()

            return await stream(request, endless)

        monkeypatch.setattr(client.service, "stream", endless_stream)
        data = json.dumps({"text": PROMPT, "words": 200}).encode()
        with client.socket() as connection:
            head = HEAD.replace(b"complete", b"generate")
            connection.sendall(head + b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
            assert b'"prompt"' in connection.recv(4096) + connection.recv(4096)
        assert closed.wait(20)
        assert client.service.queue.waiting == 0

    def test_a_request_that_waits_is_not_computed(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        computed: list[str] = []
        complete = client.service.complete

        def noted_complete(model, prompt):  # type: ignore[no-untyped-def]
            computed.append(prompt.text)
            return complete(model, prompt)

        with BlockedCompute(client) as blocked, ThreadPoolExecutor(1) as pool:
            monkeypatch.setattr(client.service, "complete", noted_complete)
            first = pool.submit(client.post, "/api/complete", {"text": "first"})
            assert blocked.begun.wait(20)
            data = json.dumps({"text": "second"}).encode()
            with client.socket() as connection:
                connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
                wait_for(client, 1)
            wait_until(lambda: all(job.cancelled for job in client.service.queue._heavy))
            blocked.go_on.set()
            assert first.result().status == 200
            assert client.post("/api/complete", {"text": "third"}).status == 200
        assert computed == ["first", "third"]


def test_a_server_that_stops_fails_its_requests(model: FactAwareLM) -> None:
    with serving(model) as client, ThreadPoolExecutor(2) as pool:
        with BlockedCompute(client) as blocked:
            responses = [pool.submit(client.post, "/api/complete", {"text": PROMPT}) for _ in range(2)]
            assert blocked.begun.wait(20)
            wait_for(client, 1)
            client.service.queue.stop()
            answers = [each.result(20) for each in responses]
        assert [(each.status, each.code) for each in answers] == [(503, "unavailable")] * 2
        assert client.post("/api/link", {"text": "a"}).code == "unavailable"


def test_a_generation_out_of_time_ends_with_an_error(model: FactAwareLM) -> None:
    with serving(model, limits=Limits(compute_seconds=100)) as client:
        seconds = itertools.count()
        client.service.queue._clock = lambda: float(next(seconds))  # each look at the clock takes a second
        answer = client.post("/api/generate", {"text": PROMPT, "words": 200})
        *_, last = answer.body.splitlines()
        assert answer.status == 200 and json.loads(last)["error"]["code"] == "timed_out"
        beam = client.post("/api/generate", {"text": PROMPT, "words": 200, "beam": 8})
        assert (beam.status, beam.code) == (503, "timed_out")
        assert client.words()

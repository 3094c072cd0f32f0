"""The door: what every request passes before anything looks at it, and every answer before it is sent.

A request must be for this server (a name that an attacker has pointed at 127.0.0.1 is refused), come from this page or
no page at all, know the token if there is one, and have arrived whole, in time, and no longer than is allowed: it is
counted as it comes in. Answers say to browsers that nothing but this server's own files may run.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from kglm.serve.metrics import Metrics
from kglm.serve.problems import Problem
from kglm.serve.settings import ServeConfig

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]", "::1"})
OPEN = ("/", "/api/health", "/openapi.json")
"""For everybody, as are the parts of the page; all else is guarded."""
DISCARDED = 8
"""Times the longest allowed body: how much more is read, and thrown away, before a refusal."""
METHODS = frozenset({"GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"})
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """An ASGI application around another."""

    def __init__(self, app: App, config: ServeConfig, metrics: Metrics) -> None:
        self._app = app
        self._config = config
        self._metrics = metrics
        self._names = LOOPBACK | {config.host.lower(), f"[{config.host.lower()}]"}
        self._inside = 0

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        start, status = time.monotonic(), 0
        self._inside += 1

        async def send_safely(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _with_headers(message["headers"], scope["path"])
            await send(message)

        unread = _Unread(receive)
        try:
            headers = _headers(scope)
            self._check(scope, headers)
            await self._app(scope, await self._arrived(headers, unread), send_safely)
        except Problem as problem:
            if not status:
                await unread.discard(DISCARDED * self._config.limits.body_bytes)
                await _refuse(problem, send_safely)
        except Exception:  # a mistake of ours: the client learns that much, standard error the rest
            traceback.print_exc(file=sys.stderr)
            if not status:
                await _refuse(Problem(500, "a mistake at the server's door"), send_safely)
        finally:
            self._inside -= 1
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.count(
                scope["method"] if scope["method"] in METHODS else "other",
                route,
                status or 499,
                time.monotonic() - start,
            )

    def _check(self, scope: MutableMapping[str, Any], headers: dict[str, list[str]]) -> None:
        if self._inside > self._config.limits.connections:
            raise Problem(503, "too many requests at one time; come again soon", "busy", Retry_After="2")
        host = headers.get("host", [])
        if len(host) > 1:
            raise Problem(400, "more than one Host")
        if "content-length" in headers and "transfer-encoding" in headers:
            raise Problem(400, "two lengths of one body")
        path, token = scope["path"], self._config.token
        guarded = not (path in OPEN or path.startswith("/page/"))
        if token is None:  # then nobody but this machine may ask, and no page of others in its browser
            named, origin = host[0] if host else "", headers.get("origin")
            if _without_port(named) not in self._names:
                raise Problem(403, "this server answers to its own address and to localhost only", "wrong_host")
            if guarded and origin and (origin[0] == "null" or urlsplit(origin[0]).netloc != named):
                raise Problem(403, "other pages may not ask this server", "wrong_origin")
        elif guarded:
            given = headers.get("authorization", [""])
            scheme, _, secret = given[0].partition(" ")
            known = hmac.compare_digest(secret.strip().encode("latin-1"), token.encode())
            if len(given) != 1 or scheme.lower() != "bearer" or not known:
                message = "the token is wrong" if secret else "a token is needed: Authorization: Bearer TOKEN"
                raise Problem(401, message, WWW_Authenticate="Bearer")

    async def _arrived(self, headers: dict[str, list[str]], receive: Receive) -> Receive:
        """The body, whole; then a way to hear whether the client is still there."""
        limits = self._config.limits
        declared = headers.get("content-length", ["0"])[0]
        if declared.isascii() and declared.isdigit() and int(declared[:20]) > limits.body_bytes:
            raise Problem(413, f"a body of more than {limits.body_bytes:,} bytes; send less")
        body = bytearray()
        try:
            async with asyncio.timeout(limits.read_seconds):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise Problem(400, "the request ended before its end")
                    body += message.get("body", b"")
                    if len(body) > limits.body_bytes:
                        raise Problem(413, f"a body of more than {limits.body_bytes:,} bytes; send less")
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            raise Problem(408, f"the request did not arrive within {limits.read_seconds:g} seconds") from None
        kind = headers.get("content-type", [""])[0].partition(";")[0].strip().lower()
        if body and kind != "application/json":
            raise Problem(415, "a body must be application/json")
        told = False

        async def replay() -> Message:
            nonlocal told
            if told:
                return await receive()
            told = True
            return {"type": "http.request", "body": bytes(body), "more_body": False}

        return replay


class _Unread:
    """The messages of a request, which remembers whether its body has ended."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._ended = False

    async def __call__(self) -> Message:
        message = await self._receive()
        self._ended = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    async def discard(self, most_bytes: int) -> None:
        """Read on, up to so many bytes, for a second: a client that still sends when the connection is closed loses the
        response, too."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                while not self._ended and most_bytes > 0:
                    most_bytes -= len((await self()).get("body", b""))


def _headers(scope: MutableMapping[str, Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name.lower() if colon and port.isdigit() and not name.endswith(":") else host.lower()


def _with_headers(headers: list[tuple[bytes, bytes]], path: str) -> list[tuple[bytes, bytes]]:
    own = dict(HEADERS)
    own["cache-control"] = "no-store" if path.startswith(("/api/", "/metrics")) else "no-cache"
    kept = [(name, value) for name, value in headers if name.decode("latin-1").lower() not in own]
    return [*kept, *((name.encode(), value.encode()) for name, value in own.items())]


async def _refuse(problem: Problem, send: Send) -> None:
    """Send the error and close the connection."""
    body = problem.body
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *((name.lower().encode(), value.encode()) for name, value in problem.headers.items()),
    ]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

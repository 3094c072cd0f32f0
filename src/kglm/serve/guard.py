"""Checks of every request before it is routed, and security headers on every response.

* Host: only names of this server, which stops DNS rebinding.
* Origin: only this server's own page, or no page.
* Token: must match, if the server has one.
* Body: must arrive within a time limit and a size limit; bytes are counted as they arrive.

The response headers allow a browser to run only this server's own files.
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
PUBLIC = ("/", "/api/health", "/openapi.json")
"""Paths that need no token and no origin check, as do the files of the page."""
DISCARD_FACTOR = 8
"""Before an error response, at most this many times the body limit is read and discarded."""
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
    """ASGI middleware with these checks and headers."""

    def __init__(self, app: App, config: ServeConfig, metrics: Metrics) -> None:
        self._app = app
        self._config = config
        self._metrics = metrics
        self._names = LOOPBACK | {config.host.lower(), f"[{config.host.lower()}]"}
        self._active = 0

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        start, status = time.monotonic(), 0
        self._active += 1

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _with_headers(message["headers"], scope["path"])
            await send(message)

        incoming = _IncomingBody(receive)
        try:
            headers = _headers(scope)
            self._check(scope, headers)
            await self._app(scope, await self._read_body(headers, incoming), send_with_headers)
        except Problem as problem:
            if not status:
                await incoming.discard(DISCARD_FACTOR * self._config.limits.body_bytes)
                await _refuse(problem, send_with_headers)
        except Exception:  # a bug: the traceback goes to standard error, not to the client
            traceback.print_exc(file=sys.stderr)
            if not status:
                await _refuse(Problem(500, "an internal error of the server"), send_with_headers)
        finally:
            self._active -= 1
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.count(
                scope["method"] if scope["method"] in METHODS else "other",
                route,
                status or 499,
                time.monotonic() - start,
            )

    def _check(self, scope: MutableMapping[str, Any], headers: dict[str, list[str]]) -> None:
        if self._active > self._config.limits.connections:
            raise Problem(503, "too many requests at one time; try again soon", "busy", Retry_After="2")
        host = headers.get("host", [])
        if len(host) > 1:
            raise Problem(400, "the request has more than one Host header; send one")
        if "content-length" in headers and "transfer-encoding" in headers:
            raise Problem(400, "the request has both Content-Length and Transfer-Encoding; send one of them")
        path, token = scope["path"], self._config.token
        guarded = not (path in PUBLIC or path.startswith("/page/"))
        if token is None:  # only programs on this machine, and no foreign page in its browser
            named, origin = host[0] if host else "", headers.get("origin")
            if _without_port(named) not in self._names:
                raise Problem(403, "the Host header names another server; use this address or localhost", "wrong_host")
            if guarded and origin and (origin[0] == "null" or urlsplit(origin[0]).netloc != named):
                raise Problem(403, "requests from other web pages are not allowed", "wrong_origin")
        elif guarded:
            given = headers.get("authorization", [""])
            scheme, _, secret = given[0].partition(" ")
            matches = hmac.compare_digest(secret.strip().encode("latin-1"), token.encode())
            if len(given) != 1 or scheme.lower() != "bearer" or not matches:
                message = "the token is wrong" if secret else "a token is needed; send Authorization: Bearer TOKEN"
                raise Problem(401, message, WWW_Authenticate="Bearer")

    async def _read_body(self, headers: dict[str, list[str]], receive: Receive) -> Receive:
        """Read the whole body. Returns a `receive` that gives the body once, and then reports a disconnect."""
        limits = self._config.limits
        declared = headers.get("content-length", ["0"])[0]
        if declared.isascii() and declared.isdigit() and int(declared[:20]) > limits.body_bytes:
            raise Problem(413, f"the body has more than {limits.body_bytes:,} bytes; send less")
        body = bytearray()
        try:
            async with asyncio.timeout(limits.read_seconds):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise Problem(400, "the body ended early; send all of it")
                    body += message.get("body", b"")
                    if len(body) > limits.body_bytes:
                        raise Problem(413, f"the body has more than {limits.body_bytes:,} bytes; send less")
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            raise Problem(408, f"the body did not arrive within {limits.read_seconds:g} s; send it faster") from None
        kind = headers.get("content-type", [""])[0].partition(";")[0].strip().lower()
        if body and kind != "application/json":
            raise Problem(415, "the body is not application/json; send JSON with that Content-Type")
        delivered = False

        async def replay() -> Message:
            nonlocal delivered
            if delivered:
                return await receive()
            delivered = True
            return {"type": "http.request", "body": bytes(body), "more_body": False}

        return replay


class _IncomingBody:
    """The ASGI messages of a request body; remembers whether the body has ended."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._ended = False

    async def __call__(self) -> Message:
        message = await self._receive()
        self._ended = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    async def discard(self, max_bytes: int) -> None:
        """Read and discard the rest of the body, up to `max_bytes` and for at most a second.

        A client that is still sending when the connection is closed would not get the response.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                while not self._ended and max_bytes > 0:
                    max_bytes -= len((await self()).get("body", b""))


def _headers(scope: MutableMapping[str, Any]) -> dict[str, list[str]]:
    headers: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return headers


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name.lower() if colon and port.isdigit() and not name.endswith(":") else host.lower()


def _with_headers(headers: list[tuple[bytes, bytes]], path: str) -> list[tuple[bytes, bytes]]:
    own = dict(HEADERS)
    own["cache-control"] = "no-store" if path.startswith(("/api/", "/metrics")) else "no-cache"
    others = [(name, value) for name, value in headers if name.decode("latin-1").lower() not in own]
    return [*others, *((name.encode(), value.encode()) for name, value in own.items())]


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

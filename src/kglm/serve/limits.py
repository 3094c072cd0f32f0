"""Connections with limits: disconnect clients that send a request's head, or read a response, too slowly.

The time limit of a body is in `guard`, which can still send an error response.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from kglm.serve.guard import HEADERS
from kglm.serve.problems import Problem
from kglm.serve.settings import Limits

MIN_READ_RATE = 1024
"""Bytes per second that a client must read."""
CONNECTIONS_PER_REQUEST = 2
"""Open connections allowed for each concurrent request: browsers keep idle connections."""


def protocol(limits: Limits) -> type[asyncio.Protocol]:
    """The connection class for uvicorn, with these limits."""

    class LimitedProtocol(H11Protocol):
        _read_timer: asyncio.TimerHandle | None = None
        _write_timer: asyncio.TimerHandle | None = None
        _unread = 0
        """Bytes of the response that the client had not read when the write timer started."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > CONNECTIONS_PER_REQUEST * limits.connections:
                transport.abort()
                return
            transport.set_write_buffer_limits(0)  # pause_writing is called as soon as the client does not read
            self._read_timer = self.loop.call_later(limits.read_seconds, transport.abort)

        def connection_lost(self, exc: Exception | None) -> None:
            for timer in (self._read_timer, self._write_timer):
                if timer is not None:
                    timer.cancel()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            answering = self.cycle is not None and not self.cycle.response_complete
            if answering and self._read_timer is not None:
                self._read_timer.cancel()
                self._read_timer = None
            elif not answering and self._read_timer is None:
                self._read_timer = self.loop.call_later(limits.read_seconds, self.transport.abort)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self._read_timer is None and self.conn.trailing_data[0]:  # the start of another request
                self._read_timer = self.loop.call_later(limits.read_seconds, self.transport.abort)

        def pause_writing(self) -> None:
            super().pause_writing()
            if self._write_timer is None:
                self._start_write_timer()

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._write_timer is not None:
                self._write_timer.cancel()
                self._write_timer = None

        def _start_write_timer(self) -> None:
            self._unread = self.transport.get_write_buffer_size()
            self._write_timer = self.loop.call_later(limits.read_seconds, self._check_read_rate)

        def _check_read_rate(self) -> None:
            """Disconnect a client that reads more slowly than `MIN_READ_RATE`."""
            if self._unread - self.transport.get_write_buffer_size() < MIN_READ_RATE * limits.read_seconds:
                self.transport.abort()
            else:
                self._start_write_timer()

        def send_400_response(self, msg: str) -> None:
            """Refuse what is not HTTP, in the same JSON form as other errors."""
            body = Problem(400, msg).body
            headers = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
            head = h11.Response(status_code=400, headers=[*(headers | HEADERS).items()], reason=b"Bad Request")
            for event in (head, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
            self.transport.close()

    return LimitedProtocol

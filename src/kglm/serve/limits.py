"""Clients that are slow on purpose are cut off: with the head of a request, or with taking in an answer.

(How long a body may take is the door's business, see `guard`: it can still say so.)
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from kglm.serve.guard import HEADERS
from kglm.serve.problems import Problem
from kglm.serve.settings import Limits

SLOWEST = 1024
"""Bytes a second that a client must take in."""
IDLE = 2
"""Connections for each that may be asking something: those of browsers are mostly idle."""


def protocol(limits: Limits) -> type[asyncio.Protocol]:
    """How connections are handled, with these limits."""

    class Patient(H11Protocol):
        _reading: asyncio.TimerHandle | None = None
        _writing: asyncio.TimerHandle | None = None
        _left = 0

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > IDLE * limits.connections:
                transport.abort()
                return
            transport.set_write_buffer_limits(0)  # so that it is told of every byte that is not taken
            self._reading = self.loop.call_later(limits.read_seconds, transport.abort)

        def connection_lost(self, exc: Exception | None) -> None:
            for timer in (self._reading, self._writing):
                if timer is not None:
                    timer.cancel()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            answering = self.cycle is not None and not self.cycle.response_complete
            if answering and self._reading is not None:
                self._reading.cancel()
                self._reading = None
            elif not answering and self._reading is None:
                self._reading = self.loop.call_later(limits.read_seconds, self.transport.abort)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self._reading is None and self.conn.trailing_data[0]:  # the beginning of another request
                self._reading = self.loop.call_later(limits.read_seconds, self.transport.abort)

        def pause_writing(self) -> None:
            super().pause_writing()
            if self._writing is None:
                self._watch()

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._writing is not None:
                self._writing.cancel()
                self._writing = None

        def _watch(self) -> None:
            self._left = self.transport.get_write_buffer_size()
            self._writing = self.loop.call_later(limits.read_seconds, self._judge)

        def _judge(self) -> None:
            """Go on with a client that takes in something, however slow its line is."""
            if self._left - self.transport.get_write_buffer_size() < SLOWEST * limits.read_seconds:
                self.transport.abort()
            else:
                self._watch()

        def send_400_response(self, msg: str) -> None:
            """What is no HTTP at all is refused in the same form as everything else."""
            body = Problem(400, msg).body
            headers = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
            head = h11.Response(status_code=400, headers=[*(headers | HEADERS).items()], reason=b"Bad Request")
            for event in (head, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
            self.transport.close()

    return Patient

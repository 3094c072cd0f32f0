"""A service behind a socket, until it is told to end."""

from __future__ import annotations

import socket

import uvicorn

from kglm.serve.app import make_app
from kglm.serve.limits import protocol
from kglm.serve.service import Service

HEAD_BYTES = 16_384
"""Of the head of a request."""
KEEP_ALIVE_SECONDS = 15
GOODBYE_SECONDS = 5
"""In which answers that are under way may end when the server is told to."""


class Server(uvicorn.Server):
    """Ends at once when told to: answers that are under way say so."""

    def __init__(self, service: Service, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.work.stop()
        await super().shutdown(sockets)


def make_server(service: Service) -> Server:
    """A server that is not started yet: `run(sockets=[…])` serves until a signal or `should_exit`."""
    return Server(
        service,
        uvicorn.Config(
            make_app(service),
            http=protocol(service.config.limits),
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=1024,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GOODBYE_SECONDS,
            h11_max_incomplete_event_size=HEAD_BYTES,
        ),
    )

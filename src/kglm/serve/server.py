"""The HTTP server of a service."""

from __future__ import annotations

import socket

import uvicorn

from kglm.serve.app import make_app
from kglm.serve.limits import protocol
from kglm.serve.service import Service

HEAD_BYTES = 16_384
"""Bytes of the head of a request."""
KEEP_ALIVE_SECONDS = 15
SHUTDOWN_SECONDS = 5
"""Seconds that open responses may take to end after a shutdown signal."""


class Server(uvicorn.Server):
    """A server whose shutdown ends open responses with an error (503) instead of waiting for them."""

    def __init__(self, service: Service, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.queue.stop()
        await super().shutdown(sockets)


def make_server(service: Service) -> Server:
    """Make a server; `run(sockets=[…])` serves until a signal or `should_exit`."""
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
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            h11_max_incomplete_event_size=HEAD_BYTES,
        ),
    )

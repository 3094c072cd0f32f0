"""Open the listening socket before the model is loaded, so that a port in use is reported at once."""

from __future__ import annotations

import socket

from kglm.errors import ConfigError
from kglm.serve.settings import ServeConfig


def listen(config: ServeConfig) -> socket.socket:
    """Listen on the configured address and port."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        listening = socket.create_server((config.host, config.port), family=family, backlog=1024)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # asyncio sets it for its own sockets only
        return listening
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {config.host}, port {config.port} ({error.strerror or error})",
            remedy="give another --host or --port; 0 takes a free port",
        ) from error


def address(config: ServeConfig, listening: socket.socket) -> str:
    """The URL of the server."""
    host = f"[{config.host}]" if ":" in config.host else config.host
    return f"http://{host}:{listening.getsockname()[1]}/"

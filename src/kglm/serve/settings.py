"""Settings of a server: its address, its token, what it allows, and the limits of requests."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from kglm import bundled
from kglm.errors import ConfigError

MIN_TOKEN_LENGTH = 16


@dataclass(frozen=True)
class Limits:
    """Limits of one request and of all requests together. A request beyond a limit is refused, never cut short."""

    body_bytes: int = 1_048_576
    """Bytes of a request body."""
    read_seconds: float = 10.0
    """Seconds for a request to arrive, head and body, and for a client to read the response."""
    queue: int = 256
    """Requests that may wait in the queue; the server answers 429 to one more."""
    wait_seconds: float = 120.0
    """Seconds a request may wait in the queue before the server answers 503."""
    compute_seconds: float = 60.0
    """Seconds one request may compute before the server answers 503."""
    connections: int = 600
    """Concurrent requests."""
    sessions: int = 200
    """Open sessions; one more closes a session without edits, or else the least recently used."""
    session_seconds: float = 7200.0
    """Seconds after which an idle session is closed."""
    edits: int = 100
    """Edits of one session."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < float("inf"):
                raise ConfigError(f"{name} = {value} is not above 0", remedy="give a number above 0")


@dataclass(frozen=True)
class ServeConfig:
    """Settings of `kglm serve`: address, token, whether edits are allowed and stored, limits."""

    host: str = "127.0.0.1"
    port: int = 8391
    """0 takes a free port."""
    token: str | None = None
    """Requests must send it; required on any address but loopback."""
    allow_edit: bool = False
    """True if sessions may edit facts, in memory."""
    persist: bool = False
    """True if a session may write its edits to the graph file."""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"port {self.port} does not exist", remedy="give 0 to 65535")
        if self.token is not None and not (self.token.isascii() and self.token.isprintable() and " " not in self.token):
            raise ConfigError("the token has blanks or characters outside ASCII", remedy="use letters and digits")
        if self.token is not None and len(self.token) < MIN_TOKEN_LENGTH:
            raise ConfigError(
                f"a token of {len(self.token)} characters is too short",
                remedy=f"give at least {MIN_TOKEN_LENGTH}, at random",
            )
        if self.token is None and not self.loopback:
            raise ConfigError(
                f"{self.host} can be reached from other machines, and there is no token",
                remedy="give one with --token or KGLM_TOKEN, or listen on 127.0.0.1",
            )
        if self.persist and not self.allow_edit:
            raise ConfigError("--persist stores edits, but edits are not allowed", remedy="give --allow-edit too")

    @property
    def loopback(self) -> bool:
        """True if only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def name_of(run: Path) -> str:
    """The name of a run on the page and in messages."""
    if run.resolve() == bundled.HEADS.resolve():
        return "SmolLM2 with the facts of a graph"
    return "the model that comes with kglm" if run.resolve() == bundled.RUN.resolve() else run.resolve().name

"""What a server is told when it starts: where it listens, who may ask, and how much of anything."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from kglm import bundled
from kglm.errors import ConfigError

SHORTEST_TOKEN = 16


@dataclass(frozen=True)
class Limits:
    """How much one request, one client and all of them together may take. Beyond, a request is refused, never cut."""

    body_bytes: int = 1_048_576
    """Of a request."""
    read_seconds: float = 10.0
    """In which a request must have arrived, head and body, and in which a client must take in what it is sent."""
    queue: int = 256
    """Requests that wait to be computed; one more is told to come again (429)."""
    wait_seconds: float = 120.0
    """How long one waits before it is given up (503)."""
    compute_seconds: float = 60.0
    """How long the computing of one request may take (503)."""
    connections: int = 600
    """At one time."""
    sessions: int = 200
    """Beyond, one without edits is forgotten, or if all have some, the one that was idle longest."""
    session_seconds: float = 7200.0
    """After which an idle session is forgotten."""
    edits: int = 100
    """Of one session."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < float("inf"):
                raise ConfigError(f"{name} = {value}", remedy="give a number above 0")


@dataclass(frozen=True)
class ServeConfig:
    """Where to listen, and what is allowed."""

    host: str = "127.0.0.1"
    port: int = 8391
    """0 takes a free one."""
    token: str | None = None
    """Whoever asks must know it; needed on any address but loopback."""
    allow_edit: bool = False
    """Whether sessions may try out edits."""
    persist: bool = False
    """Whether a session may write its edits into the graph file."""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"port {self.port}", remedy="give 0 to 65535")
        if self.token is not None and not (self.token.isascii() and self.token.isprintable() and " " not in self.token):
            raise ConfigError("a token with blanks or other than ASCII characters", remedy="use letters and digits")
        if self.token is not None and len(self.token) < SHORTEST_TOKEN:
            raise ConfigError(
                f"a token of {len(self.token)} characters", remedy=f"give at least {SHORTEST_TOKEN}, best random ones"
            )
        if self.token is None and not self.loopback:
            raise ConfigError(
                f"{self.host} can be reached from other machines, and there is no token",
                remedy="give one with --token or KGLM_TOKEN, or listen on 127.0.0.1",
            )
        if self.persist and not self.allow_edit:
            raise ConfigError("edits are to be stored but not allowed", remedy="give --allow-edit too")

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def name_of(run: Path) -> str:
    """What a run is called among people."""
    return "the model that comes with kglm" if run.resolve() == bundled.RUN.resolve() else run.resolve().name

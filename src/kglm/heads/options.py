"""Options of the heads."""

from __future__ import annotations

from dataclasses import dataclass

from kglm import config


@dataclass(frozen=True)
class HeadsConfig:
    """Sizes and options of the heads."""

    state: int = 256
    """Size G of the recurrent state."""
    relation: int = 96
    """Size K of the vectors of relations."""
    dropout: float = 0.4
    """Dropout of the features and of the state."""
    missing: bool = True
    """A relation that the parent lacks can be drawn; it emits a word of the base, and the fact is reported missing."""
    outside: float = -1.0
    """Added to the scores of well-known relations that the graph does not have at all."""
    max_tails: int = 100
    """Tails of a relation up to which its facts are enumerated; the mass of larger ones emits words of the base."""

    def __post_init__(self) -> None:
        for name in ("state", "relation"):
            config.check_range(f"heads.{name}", getattr(self, name), 1, 1 << 14)
        config.check_range("heads.dropout", self.dropout, 0, 0.99)
        config.check_range("heads.outside", self.outside, -100, 100)
        config.check_range("heads.max_tails", self.max_tails, 0, 1 << 31)

"""Settings of a run of heads: `config.toml`."""

from __future__ import annotations

from dataclasses import dataclass, field

from kglm import config
from kglm.heads.options import HeadsConfig


@dataclass(frozen=True)
class HeadsTrainConfig:
    """Training of heads."""

    epochs: int = 3
    """Passes over the training documents."""
    rate: float = 2e-3
    """Highest learning rate; it rises over `warm_up` steps and then falls to 0."""
    scalars: float = 5.0
    """Learning rate of weights of single features, as a multiple."""
    warm_up: int = 100
    """Steps in which the learning rate rises."""
    decay: float = 0.01
    """Weight decay."""
    clip: float = 1.0
    """Longest gradient."""
    batch: int = 1500
    """Subwords of a step, unless one document is longer."""
    joint: float = 0.2
    """Epochs at the beginning in which a mention counts its graph path alone, so that training does not start at
    "always plain"."""
    hide_facts: float = 0.05
    """Share of the facts behind mentions that are hidden, so that the model learns what is missing."""
    hide_asked: float = 0.25
    """The same for texts of at most `short` subwords, which mostly state facts."""
    short: int = 128
    """Subwords of a short text."""
    hide_clauses: float = 0.3
    """Share of mentions for which the sentence encoder's view is hidden, as at positions without a closer look."""
    annotated: float = 0.5
    """Share of the texts of at most `short` subwords whose entities are linked as annotated. In all others, and in
    longer texts, the linker finds them, as in use."""
    validate: int = 1000
    """Steps between validations."""
    checkpoint: float = 5.0
    """Minutes between checkpoints."""
    seed: int = 0
    """Random seed."""

    def __post_init__(self) -> None:
        for name, least, most in (
            ("epochs", 1, 1 << 20), ("rate", 0, 1e3), ("scalars", 0, 1e3), ("warm_up", 1, 1 << 30), ("decay", 0, 1e3),
            ("clip", 1e-6, 1e6), ("batch", 1, 1 << 30), ("joint", 0, 1 << 20), ("hide_facts", 0, 0.99),
            ("hide_asked", 0, 0.99), ("short", 0, 1 << 30), ("hide_clauses", 0, 1), ("annotated", 0, 1),
            ("validate", 1, 1 << 30),
            ("checkpoint", 0, 1e6), ("seed", 0, (1 << 63) - 1),
        ):  # fmt: skip
            config.check_range(f"train.{name}", getattr(self, name), least, most)


@dataclass(frozen=True)
class HeadsRunConfig:
    """All settings of a run of heads."""

    heads: HeadsConfig = field(default_factory=HeadsConfig)
    train: HeadsTrainConfig = field(default_factory=HeadsTrainConfig)

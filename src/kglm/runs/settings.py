"""All settings of a run, and the ones that come with the package."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from kglm import config
from kglm.errors import ConfigError
from kglm.files import exists
from kglm.model.encoders.awd_lstm import EncoderConfig
from kglm.model.options import PAPER, LatentConfig, MentionTypes
from kglm.model.table import MODELS, ModelKind

Batching = Literal["documents", "stream"]
Average = Literal["none", "ema", "triggered"]
MAX_COUNT = 10**9
"""Largest number of words, documents or epochs in a setting."""
MAX_ALIAS_SIZE = 1000
"""Largest number of aliases, or of words of an alias."""
MAX_LEARNING_RATE = 1e6
MAX_SEED = 2**63 - 1
MAX_THREADS = 1 << 16
DEFAULT = "small"
"""Configuration of `kglm train` if none is given."""
SHIPPED = Path(__file__).parent.parent / "configs"
PRESETS: dict[str, LatentConfig] = {
    "best": LatentConfig(),
    "paper": PAPER,
    "nklm": LatentConfig(facts="topic"),
}
TUNABLE = (
    "learning_rate",
    "clip",
    "epochs",
    "patience",
    "checkpoint_minutes",
    "threads",
    "device",
    "tensorboard",
)
"""Settings that may change when training resumes."""


@dataclass(frozen=True)
class DataConfig:
    """Vocabulary, aliases and encoding of documents."""

    min_count: int = 3
    """Words seen less often in training are unknown."""
    max_aliases: int = 4
    """Aliases of an entity that can be copied from."""
    max_alias_tokens: int = 8
    """Words of an alias that can be copied."""
    mention_types: MentionTypes = "continue"
    """continue: the entity is scored once per mention; paper: once per word, as in the paper."""
    parent_window: int | None = None
    """Parents must be mentioned within this many words; without a value, at any distance."""

    def __post_init__(self) -> None:
        for name in ("min_count", "parent_window"):
            config.check_range(f"data.{name}", getattr(self, name), 1, MAX_COUNT)
        for name in ("max_aliases", "max_alias_tokens"):
            config.check_range(f"data.{name}", getattr(self, name), 1, MAX_ALIAS_SIZE)


@dataclass(frozen=True)
class TrainConfig:
    """Training settings."""

    rows: int = 60
    """Documents in a batch."""
    length: int = 70
    """Words per row in one step; gradients do not reach further back."""
    batching: Batching = "documents"
    """Rows of a batch: documents (each read by itself), or stream (all as one text; awd-lstm only)."""
    epochs: int = 40
    """Maximum number of passes over the training documents."""
    optimiser: Literal["adam", "sgd"] = "adam"
    """adam or sgd; sgd with average = "triggered" is NT-ASGD."""
    learning_rate: float = 1e-3
    """Step size: 0.001 suits adam, 30 sgd."""
    schedule: Literal["constant", "linear"] = "constant"
    """Step size over time: constant, or linear (falls to 0 over all epochs)."""
    clip: float = 0.25
    """Norm that gradients are clipped to."""
    average: Average = "none"
    """Weights to save: none (the last), ema (exponential average), triggered (mean since validation stalled)."""
    average_decay: float = 0.999
    """Decay of the exponential average."""
    nonmonotone: int = 5
    """Epochs without a better validation before the triggered average starts."""
    patience: int = 5
    """Epochs without a better validation before training stops."""
    seed: int = 0
    """Random seed of the weights, the order of documents and dropout, and the hidden facts."""
    hide_facts: float = 0.1
    """Share of the related mentions whose facts training also asks for as missing ones, if `latent.missing` is on."""
    checkpoint_minutes: float = 5.0
    """Minutes between checkpoints; a killed run loses at most this much."""
    threads: int = 0
    """Threads of each process; 0: all cores, or 1 if a timed step shows that threads hinder each other."""
    device: str = "auto"
    """cpu, cuda, or auto: a GPU if there is one."""
    tensorboard: bool = False
    """Write curves for TensorBoard into RUN/tensorboard."""

    def __post_init__(self) -> None:
        for name in ("rows", "length", "epochs", "patience", "nonmonotone"):
            config.check_range(f"train.{name}", getattr(self, name), 1, MAX_COUNT)
        config.check_range("train.seed", self.seed, 0, MAX_SEED)
        config.check_range("train.hide_facts", self.hide_facts, 0, 1)
        config.check_range("train.threads", self.threads, 0, MAX_THREADS)
        if not 0 < self.learning_rate <= MAX_LEARNING_RATE:
            remedy = f"give a number above 0 and at most {MAX_LEARNING_RATE:,.0f}"
            raise ConfigError(f"train.learning_rate = {self.learning_rate}", remedy=remedy)
        for name in ("clip", "checkpoint_minutes"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"train.{name} = {getattr(self, name)}", remedy="give a number above 0")
        if not 0 < self.average_decay < 1:
            raise ConfigError(f"train.average_decay = {self.average_decay}", remedy="give a number between 0 and 1")
        if self.average == "triggered" and self.nonmonotone > self.patience:
            raise ConfigError(
                f"train.nonmonotone = {self.nonmonotone} is more than train.patience = {self.patience}",
                remedy="set it at most to the patience: otherwise training ends before averaging starts",
            )


@dataclass(frozen=True)
class RunConfig:
    """All settings of a run."""

    model: str = "kglm"
    """Name of the model: see `kglm.model.table`."""
    data: DataConfig = field(default_factory=DataConfig)
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    latent: LatentConfig = field(default_factory=LatentConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    @property
    def kind(self) -> ModelKind:
        """The model's entry in the table of models."""
        if self.model not in MODELS:
            raise ConfigError(f"there is no model {self.model!r}", remedy=f"use one of {', '.join(MODELS)}")
        return MODELS[self.model]

    def __post_init__(self) -> None:
        if self.kind.facts not in (None, self.latent.facts):
            raise ConfigError(
                f"{self.model} with latent.facts = {self.latent.facts}",
                remedy=f"leave that out, or set {self.kind.facts}",
            )
        if self.latent.facts == "topic" and self.data.parent_window is not None:
            raise ConfigError(
                "latent.facts = topic with data.parent_window",
                remedy="leave out the window: the topic is always a candidate",
            )
        if self.train.batching == "stream" and not self.kind.reads_stream:
            streams = ", ".join(name for name, kind in MODELS.items() if kind.reads_stream)
            raise ConfigError(f"{self.model} with train.batching = stream", remedy=f"only {streams} reads a stream")
        if not self.kind.any_mention_types and self.data.mention_types != "continue":
            raise ConfigError(f"{self.model} with data.mention_types = paper", remedy="leave that out")

    def same_run(self, other: RunConfig) -> bool:
        """True if a run with these settings can resume with the others: they differ in tunable settings only."""
        tuned = {name: getattr(other.train, name) for name in TUNABLE}
        return replace(self, train=replace(self.train, **tuned)) == other


ADDED: dict[str, dict[str, Any]] = {"latent": {"missing": False}, "train": {"hide_facts": 0.0}}
"""Settings that runs of earlier versions lack, with the values that have no effect."""


def shipped_configurations() -> list[str]:
    """Names of the configurations that come with the package."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def parse_settings(content: bytes, place: Path) -> RunConfig:
    """Settings of an existing run, from its TOML file; it has all settings that there were when the run was made."""
    values = config.parse_toml(content, place)
    for section, added in ADDED.items():
        if isinstance(given := values.get(section, {}), dict):
            values[section] = added | given
    return config.from_dict(RunConfig, values, place=place)


def load_config(
    name: str | Path | None, model: str, overrides: Iterable[str] = (), *, preset: str | None = None
) -> RunConfig:
    """Settings from a file or a shipped configuration (`small`), with a preset and overrides `a.b=c` on top."""
    if model not in MODELS:
        raise ConfigError(f"there is no model {model!r}", remedy=f"use one of {', '.join(MODELS)}")
    kind = MODELS[model]
    if preset is not None and preset not in PRESETS:
        raise ConfigError(f"there is no preset {preset!r}", remedy=f"use one of {', '.join(PRESETS)}")
    if preset is not None and not kind.uses_vectors:
        raise ConfigError(f"{model} has no latent variables of the preset {preset!r}", remedy="leave --preset out")
    values: dict[str, Any] = {}
    place: Path | None = None
    if name is not None:
        shipped = SHIPPED / f"{name}.toml"
        place = shipped if shipped.exists() else Path(name)
        if not exists(place):
            raise ConfigError(
                f"there is no configuration {str(name)!r}",
                remedy=f"give a TOML file, or one of {', '.join(shipped_configurations())}",
            )
        values = config.read(place)
    if preset is not None:
        values["latent"] = asdict(PRESETS[preset])
    if kind.facts is not None:
        values["latent"] = {**values.get("latent", {}), "facts": kind.facts}
    return config.from_dict(RunConfig, config.with_overrides(values, [*overrides, f"model={model}"]), place=place)

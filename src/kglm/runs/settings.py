"""All settings of a run, and the ones that come with the package."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from kglm import config
from kglm.errors import ConfigError
from kglm.model.annotation import MentionTypes
from kglm.model.encoders.awd_lstm import EncoderConfig
from kglm.model.options import PAPER, LatentConfig
from kglm.train.loop import TrainConfig

SHIPPED = Path(__file__).parent.parent / "configs"
PRESETS: dict[str, LatentConfig] = {
    "best": LatentConfig(),
    "paper": PAPER,
    "nklm": LatentConfig(facts="topic"),
}
Model = Literal["kglm", "proposal", "entity-copynet", "entity-nlm", "entity-nlm-proposal", "awd-lstm"]
MODELS: tuple[Model, ...] = get_args(Model)
WITHOUT_FACTS = ("entity-copynet", "entity-nlm", "entity-nlm-proposal")
"""Models for which every mention is new, wherever it comes from."""
WITHOUT_LATENT = ("awd-lstm", "entity-nlm", "entity-nlm-proposal")
"""Models that the settings [latent] say nothing of."""
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
"""What may be changed when a run is taken up again."""


@dataclass(frozen=True)
class DataConfig:
    """How documents become numbers."""

    min_count: int = 3
    """Words seen less often in training are unknown."""
    max_aliases: int = 4
    """Aliases of an entity that can be copied from."""
    max_alias_tokens: int = 8
    """Words of an alias that can be copied."""
    mention_types: MentionTypes = "continue"
    """continue: an entity is paid for once a mention; paper: once a word, as the paper has it."""
    parent_window: int | None = None
    """Only entities mentioned in the last so many words can be parents; all, if left out."""

    def __post_init__(self) -> None:
        for name in ("min_count", "max_aliases", "max_alias_tokens", "parent_window"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"data.{name} = {value}", remedy="give at least 1")


@dataclass(frozen=True)
class RunConfig:
    """All settings of a run."""

    model: Model = "kglm"
    data: DataConfig = field(default_factory=DataConfig)
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    latent: LatentConfig = field(default_factory=LatentConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def __post_init__(self) -> None:
        if self.model in WITHOUT_FACTS and self.latent.facts != "none":
            raise ConfigError(
                f"{self.model} with latent.facts = {self.latent.facts}", remedy="leave that out, or set none"
            )
        if self.latent.facts == "topic" and self.data.parent_window is not None:
            raise ConfigError(
                "latent.facts = topic with data.parent_window", remedy="leave the window out: a topic stays"
            )
        if self.train.batching == "stream" and self.model != "awd-lstm":
            raise ConfigError(f"{self.model} with train.batching = stream", remedy="only awd-lstm reads a stream")
        if self.model.startswith("entity-nlm") and self.data.mention_types != "continue":
            raise ConfigError(f"{self.model} with data.mention_types = paper", remedy="leave that out")

    def same_run(self, other: RunConfig) -> bool:
        """Whether a run with these settings can go on with the others: they differ in what is tunable at most."""
        tuned = {name: getattr(other.train, name) for name in TUNABLE}
        return replace(self, train=replace(self.train, **tuned)) == other


def load_config(
    name: str | Path | None, model: str, overrides: Iterable[str] = (), *, preset: str | None = None
) -> RunConfig:
    """Settings from a file, or from one that comes with the package (`small`), a preset and `a.b=c` on top."""
    if model not in MODELS:
        raise ConfigError(f"there is no model {model!r}", remedy=f"use one of {', '.join(MODELS)}")
    if preset is not None and preset not in PRESETS:
        raise ConfigError(f"there is no preset {preset!r}", remedy=f"use one of {', '.join(PRESETS)}")
    if preset is not None and model in WITHOUT_LATENT:
        raise ConfigError(f"{model} has no latent variables of the preset {preset!r}", remedy="leave --preset out")
    values: dict[str, Any] = {}
    place: Path | None = None
    if name is not None:
        shipped = SHIPPED / f"{name}.toml"
        place = shipped if shipped.exists() else Path(name)
        values = config.read(place)
    if preset is not None:
        values["latent"] = asdict(PRESETS[preset])
    if model in WITHOUT_FACTS:
        values["latent"] = {**values.get("latent", {}), "facts": "none"}
    return config.from_dict(RunConfig, config.with_overrides(values, [*overrides, f"model={model}"]), place=place)

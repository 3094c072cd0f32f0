"""Settings from TOML files and `--set` overrides."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kglm import config
from kglm.errors import ConfigError, DataError


@dataclass(frozen=True)
class Encoder:
    layers: int = 3
    """Number of layers."""
    dropout: float = 0.5


@dataclass(frozen=True)
class Settings:
    name: str = "x"
    encoder: Encoder = field(default_factory=Encoder)
    sizes: list[int] = field(default_factory=lambda: [1, 2])
    window: int | None = None
    """Number of last words to use;
    None for all."""


def test_round_trip(tmp_path: Path) -> None:
    settings = Settings(name="ü", encoder=Encoder(layers=1), window=None)
    config.save(settings, tmp_path / "c.toml")
    assert config.load(Settings, tmp_path / "c.toml") == settings


def test_overrides(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("[encoder]\nlayers = 2\n")
    loaded = config.load(
        Settings, tmp_path / "c.toml", ["encoder.layers=5", "name=plain words", "sizes=[4]", "window=30"]
    )
    assert loaded == Settings("plain words", Encoder(layers=5), [4], 30)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"encodr": {}}, "unknown key 'encodr'; did you mean 'encoder'"),
        ({"encoder": {"layer": 1}}, "unknown key 'encoder.layer'; did you mean 'layers'"),
        ({"zzz": 1}, "use one of name, encoder, sizes, window"),
        ({"encoder": {"layers": "two"}}, "encoder.layers: expected `int`, got `str`"),
        ({"encoder": 5}, "encoder: expected `object`"),
    ],
)
def test_error_names_the_wrong_key(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config.from_dict(Settings, values, place="c.toml")


@pytest.mark.parametrize("override", ["encoder.layers", "=3", "name.x=1"])
def test_invalid_override_is_an_error(override: str) -> None:
    with pytest.raises(ConfigError, match="--set"):
        config.with_overrides({"name": "x"}, [override])


def test_missing_or_invalid_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        config.load(Settings, tmp_path / "c.toml")
    (tmp_path / "c.toml").write_text("a = ")
    with pytest.raises(ConfigError, match="is not TOML"):
        config.load(Settings, tmp_path / "c.toml")


def test_describe_returns_the_string_under_each_field() -> None:
    assert config.describe(Settings) == {"window": "Number of last words to use; None for all."}
    assert config.describe(Encoder) == {"layers": "Number of layers."}

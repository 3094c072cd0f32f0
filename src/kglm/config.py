"""Settings: dataclasses <-> TOML. An unknown key or a wrong type is an error that names the key.

>>> @dataclasses.dataclass(frozen=True)
... class Example:
...     words: int = 10
...     '''How many words.'''
>>> from_dict(Example, {"wrds": 3})
Traceback (most recent call last):
kglm.errors.ConfigError: unknown key 'wrds'; did you mean 'words'?
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import inspect
import textwrap
import tomllib
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import tomli_w

from kglm.errors import ConfigError, misfit
from kglm.files import atomic_file, reading

T = TypeVar("T")


def load(cls: type[T], path: Path, overrides: Iterable[str] = ()) -> T:
    """Read `cls` from the TOML file `path`, then apply `a.b=c` overrides."""
    return from_dict(cls, with_overrides(read(path), overrides), place=path)


def parse(cls: type[T], content: bytes, place: Path) -> T:
    """Parse `cls` from the content of a TOML file."""
    return from_dict(cls, parse_toml(content, place), place=place)


def read(path: Path) -> dict[str, Any]:
    """The nested values of a TOML file."""
    with reading(path):
        return parse_toml(path.read_bytes(), path)


def parse_toml(content: bytes, place: Path) -> dict[str, Any]:
    """The nested values of TOML."""
    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:  # malformed, not UTF-8, a number of too many digits
        raise ConfigError(f"is not TOML ({error})", place=place) from error


def save(config: object, path: Path) -> None:
    """Write a dataclass as TOML, atomically."""
    with atomic_file(path) as stream:
        stream.write(to_toml(config))


def to_toml(config: object) -> bytes:
    """A dataclass as TOML. TOML has no null: a field that is None is left out, so its default must be None."""
    return tomli_w.dumps(to_dict(config)).encode()


def to_dict(config: object) -> dict[str, Any]:
    """Nested dataclasses as nested dictionaries of TOML values, with all fields.

    (msgspec alone would leave out those that were not given when it made the dataclass.)
    """
    assert dataclasses.is_dataclass(config) and not isinstance(config, type)
    values: dict[str, Any] = msgspec.to_builtins(dataclasses.asdict(config))
    return _without_none(values)


def from_dict(cls: type[T], values: Mapping[str, Any], *, place: object = None) -> T:
    """Build a dataclass from nested dictionaries; keys and types are checked."""
    _check_keys(cls, values, "", place)
    try:
        return msgspec.convert(values, cls, strict=True)
    except msgspec.ValidationError as error:
        raise ConfigError(misfit(error, "settings"), place=place) from error
    except ConfigError as error:  # raised in __post_init__, where the file is unknown
        raise ConfigError(error.what, place=place, remedy=error.remedy) from error
    except (TypeError, ValueError) as error:
        raise ConfigError(str(error), place=place) from error


def check_range(name: str, value: float | None, least: float, most: float) -> None:
    """Raise an error if a setting has a value outside [least, most], or NaN; None is no value."""
    if value is not None and not least <= value <= most:
        raise ConfigError(f"{name} = {_shortened(value)}", remedy=f"give a number from {least:,} to {most:,}")


def _shortened(value: float) -> str:
    return f"a number of {value.bit_length()} bits" if isinstance(value, int) and abs(value) > 1 << 64 else str(value)


def with_overrides(values: Mapping[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """Apply `--set a.b=c` options; c is parsed as a TOML value, or taken as a string if it is none."""
    result = _copied(values)
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--set {override!r} has no value", remedy="write --set section.key=value")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text
        except (ValueError, RecursionError) as error:  # a number of too many digits, or nested too deeply
            raise ConfigError(f"--set {key.strip()}: {error}", remedy="write --set section.key=value") from error
        *sections, last = key.strip().split(".")
        table = result
        for section in sections:
            table = table.setdefault(section, {})
            if not isinstance(table, dict):
                raise ConfigError(f"--set {override!r}: {section!r} is a value, not a section")
        table[last] = value
    return result


def describe(cls: type) -> dict[str, str]:
    """The string under each field of a dataclass: one source for `--help`, docs and error messages."""
    [definition] = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(definition, ast.ClassDef)
    texts = {}
    for field, doc in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(doc, ast.Expr):
            texts[field.target.id] = " ".join(str(ast.literal_eval(doc.value)).split())
    return texts


def _check_keys(cls: type, values: Mapping[str, Any], prefix: str, place: object) -> None:
    types = typing.get_type_hints(cls)
    names = [field.name for field in dataclasses.fields(cls)]
    for key, value in values.items():
        if key not in names:
            close = difflib.get_close_matches(key, names, 1)
            remedy = f"did you mean {close[0]!r}?" if close else f"use one of {', '.join(names)}"
            raise ConfigError(f"unknown key {prefix + key!r}", place=place, remedy=remedy)
        if dataclasses.is_dataclass(types[key]) and isinstance(value, Mapping):
            _check_keys(typing.cast(type, types[key]), value, f"{prefix}{key}.", place)


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _without_none(value) if isinstance(value, dict) else value
        for key, value in values.items()
        if value is not None
    }


def _copied(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _copied(value) if isinstance(value, Mapping) else value for key, value in values.items()}

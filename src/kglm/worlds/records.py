"""What the bundled world consists of: entities, relations and facts, as they are packed and unpacked."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class WorldEntity(NamedTuple):
    """An entity with its names."""

    id: str
    label: str
    aliases: tuple[str, ...] = ()
    title: str | None = None
    """Title of its article in the English Wikipedia."""
    description: str | None = None


class WorldFact(NamedTuple):
    """A fact with its rank and times; times are ids of dates."""

    head: str
    relation: str
    tail: str
    rank: int = 0
    start: str | None = None
    end: str | None = None
    point: str | None = None


class World(NamedTuple):
    """A whole graph."""

    entities: list[WorldEntity]
    relations: list[tuple[str, str]]
    """Id and label."""
    facts: list[WorldFact]


class Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much of one kind is in the world."""

    name: str
    entities: int
    facts: int
    """Facts whose head is of this kind."""
    examples: tuple[str, ...]


class About(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`about.json`: what the bundled world is."""

    name: str
    date: str
    """Day on which it was made, as in ISO 8601."""
    knowledge: str
    """Until when its facts hold, in words."""
    entities: int
    facts: int
    aliases: int
    relations: int
    literals: int
    """Distinct dates and quantities."""
    kinds: tuple[Kind, ...]
    sources: tuple[str, ...]
    licence: str
    corrections: dict[str, int]
    """Number of corrections by sort."""
    left_out: dict[str, int]
    """Number of facts, entities and names of the sources that were left out, by reason."""

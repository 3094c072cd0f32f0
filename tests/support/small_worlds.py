"""A bundled world of a few facts, in place of the real one."""

from __future__ import annotations

from pathlib import Path

from kglm.files.artefact import new_artefact
from kglm.worlds.columns import pack
from kglm.worlds.records import About, Kind, World, WorldEntity, WorldFact
from kglm.worlds.world import ABOUT, PACKED

SMALL = World(
    [
        WorldEntity("Q5", "human"),
        WorldEntity("Q90", "Paris", (), "Paris", "capital of France"),
        WorldEntity("Q142", "France", ("French Republic",), "France", "country in Europe"),
        WorldEntity("Q184172", "French franc", ("franc",)),
        WorldEntity("Q243", "Eiffel Tower", ("Tour Eiffel",), "Eiffel_Tower", "tower in Paris, France"),
        WorldEntity("Q4916", "euro"),
        WorldEntity("Q_own", "Ada Lumen"),
    ],
    [("P17", "country"), ("P31", "instance of"), ("P36", "capital"), ("P38", "currency"), ("P569", "date of birth")],
    [
        WorldFact("Q90", "P17", "Q142"),
        WorldFact("Q142", "P36", "Q90"),
        WorldFact("Q142", "P38", "Q4916", 1, "T::11::+1999-01-01T00:00:00Z"),
        WorldFact("Q142", "P38", "Q184172", 0, None, "T::9::+2002-00-00T00:00:00Z"),
        WorldFact("Q243", "P17", "Q142"),
        WorldFact("Q_own", "P31", "Q5"),
        WorldFact("Q_own", "P569", "T::11::+1871-05-04T00:00:00Z"),
    ],
)


def write_bundle(folder: Path, world: World = SMALL) -> Path:
    """Write a packed world with its record, as the package has it."""
    kinds = (Kind("people", 1, 2, ("Ada Lumen",)), Kind("other", 6, 5, ("France",)))
    about = About(
        name="a small world",
        date="2026-11-19",
        knowledge="as of 2025",
        entities=len(world.entities),
        facts=len(world.facts),
        aliases=sum(len(entity.aliases) for entity in world.entities),
        relations=len(world.relations),
        literals=1,
        kinds=kinds,
        sources=("made up",),
        licence="CC0",
        corrections={},
        left_out={},
    )
    with new_artefact(folder) as writer:
        writer.bytes(PACKED, pack(world))
        writer.json(ABOUT, about)
    return folder

"""The packed form of a world: it gives back what was packed, and notices damage."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kglm.errors import DamagedError
from kglm.worlds.columns import PackedWorld, pack
from kglm.worlds.records import World, WorldEntity, WorldFact
from support.small_worlds import SMALL

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=12)
IDS = ["Q1", "Q12", "Q5", "Q300", "Q_own", "P7"]
LITERALS = ["T::9::+1990-00-00T00:00:00Z", "T::11::+1990-05-03T00:00:00Z", "V::1.0000::1"]
TIMES = st.none() | st.sampled_from(LITERALS[:2])


@st.composite
def worlds(draw: st.DrawFn) -> World:
    entities = [
        WorldEntity(
            id, draw(TEXT), tuple(draw(st.lists(TEXT, max_size=3))), draw(st.none() | TEXT), draw(st.none() | TEXT)
        )
        for id in IDS
    ]
    keys = st.tuples(st.sampled_from(IDS), st.sampled_from(["P7", "P9"]), st.sampled_from(IDS + LITERALS))
    facts = [
        WorldFact(*key, draw(st.integers(0, 1)), draw(TIMES), draw(TIMES), draw(TIMES))
        for key in sorted(draw(st.sets(keys, max_size=12)))
    ]
    return World(entities, [("P7", "seven"), ("P8", "no facts"), ("P9", "nine")], facts)


@settings(max_examples=25)
@given(worlds())
def test_what_is_packed_comes_back(world: World) -> None:
    found = PackedWorld(pack(world)).world()
    assert sorted(found.entities) == sorted(world.entities)
    assert found.relations == world.relations
    assert sorted(found.facts, key=str) == sorted(world.facts, key=str)


def test_the_order_of_the_parts_does_not_matter() -> None:
    entities, facts = list(SMALL.entities), list(SMALL.facts)
    random.Random(1).shuffle(entities)
    random.Random(2).shuffle(facts)
    assert pack(World(entities, SMALL.relations[::-1], facts)) == pack(SMALL)


def test_batches_have_all_names_and_facts_with_their_times() -> None:
    batches = list(PackedWorld(pack(SMALL)).batches())
    assert ("Q142", 0, "France") in batches[0].names and ("Q142", 1, "French Republic") in batches[0].names
    facts = {(h, r, t): (rank, key) for batch in batches for h, r, t, rank, key in batch.facts}
    assert len(facts) == len(SMALL.facts)
    rank, key = facts["Q142", "P38", "Q4916"]
    assert rank == 1 and key is not None
    assert (key, "P580", "T::11::+1999-01-01T00:00:00Z") in [row for batch in batches for row in batch.qualifiers]
    assert facts["Q142", "P36", "Q90"] == (0, None)


@pytest.mark.parametrize("place", [0.1, 0.5, 0.95])
def test_a_flipped_bit_is_damage(place: float) -> None:
    content = bytearray(pack(SMALL))
    content[int(place * len(content))] ^= 16
    with pytest.raises(DamagedError, match="is no packed world"):
        PackedWorld(bytes(content))


def test_a_truncated_file_is_damage() -> None:
    with pytest.raises(DamagedError, match="is no packed world"):
        PackedWorld(pack(SMALL)[:-7])


def test_a_line_break_in_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="a line break in label"):
        pack(World([WorldEntity("Q1", "a\nb")], [], []))

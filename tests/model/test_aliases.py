"""What comes next in a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.toys import make_toy

NAMES = {"Q1": ("Super Mario Land", "Mario", "Super Mario Land Two Deluxe"), "Q2": ("Game Boy",)}


@pytest.mark.parametrize(
    ("said", "slots"),
    [
        ("", [0, 3]),  # the first word of each alias; the third alias is beyond the limit
        ("Super", [1]),
        ("Super Mario", [2]),
        ("Super Mario Land", []),  # the end
        ("Mario", []),
        ("Land", []),  # no alias begins so
        ("Super Mario Land Two", []),  # longer than any
    ],
)
def test_the_slots_that_come_next(tmp_path: Path, said: str, slots: list[int]) -> None:
    toy = make_toy(tmp_path, names=NAMES)
    assert toy.aliases[toy.graph.number("Q1")].next_slots(said.split()) == slots


def test_an_entity_without_aliases_has_no_next_word(tmp_path: Path) -> None:
    toy = make_toy(tmp_path)
    assert toy.aliases[toy.graph.number("Q3")].next_slots([]) == []

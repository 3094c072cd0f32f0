"""What comes next in a name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kglm.kg.literals.texts import text_id
from support.toys import FACTS, make_toy

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


def test_a_text_is_one_name_whatever_its_length(tmp_path: Path) -> None:
    words = [f"w{number}" for number in range(17)]
    toy = make_toy(tmp_path, names=NAMES, facts=(*FACTS, ("Q1", "P4", text_id(" ".join(words)))))
    text, game = toy.graph.number(text_id(" ".join(words))), toy.graph.number("Q2")
    aliases = toy.aliases[text]
    for place, word in enumerate(words):
        [slot] = aliases.next_slots(words[:place])
        assert aliases.surface[slot] == word
        assert aliases.can_follow(words[:place])[0]
    assert aliases.next_slots(words) == []
    assert aliases.next_slots(words[3:5]) == []  # it is copied from its beginning
    stacked = toy.aliases.stack([game, text])
    rows, length = toy.aliases.shape
    assert stacked.shape == (2, -(-17 // length), length)
    assert np.array_equal(stacked[0, :rows], toy.aliases[game].words_AL)
    assert (stacked[0, rows:] == toy.vocabulary.padding).all()

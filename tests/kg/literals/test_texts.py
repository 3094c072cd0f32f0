"""Plain texts as literals: their ids, and that they stay whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kglm.errors import LiteralError
from kglm.kg.ids import is_entity_id
from kglm.kg.literals.literal import LiteralIndex, canonical_literal, is_literal, render_literal
from kglm.kg.literals.texts import LONGEST, text_id, text_of


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200).filter(str.strip))
def test_a_text_is_recovered_from_its_id(text: str) -> None:
    id = text_id(text)
    assert text_of(id) == text.strip()
    assert is_entity_id(id) and is_literal(id)
    assert canonical_literal(id) == id


def test_the_label_of_a_text_is_on_one_line() -> None:
    assert render_literal(text_id("12 Harbour Street,\n20457  Hamburg")) == ["12 Harbour Street, 20457 Hamburg"]


def test_equal_texts_have_one_canonical_id() -> None:
    assert canonical_literal("S::100%") == canonical_literal("S::100%25") == text_id("100%")


@pytest.mark.parametrize("text", ["", " \n", "x" * (LONGEST + 1)])
def test_a_text_has_a_length(text: str) -> None:
    with pytest.raises(LiteralError):
        text_id(text)


def test_a_text_is_not_found_as_a_name() -> None:
    index = LiteralIndex()
    index.add(text_id("We build what turns"))
    assert index.find("We build what turns") == []

"""Names in small letters in prompts without any other name."""

from __future__ import annotations

from pathlib import Path

import pytest

from kglm.kg.graph import KnowledgeGraph
from kglm.linking.common_names import P_NAME, common_names
from kglm.linking.linker import Linker
from support.worlds import make_store

NAMES = {
    "Q1": ("carrot",), "Q2": ("sweet potato",), "Q3": ("Paris",), "Q4": ("orange",), "Q5": ("USA",),
    "Q6": ("The Godfather",), "Q7": ("Henry VIII",), "Q8": ("protein",), "P1": ("protein",),
}  # fmt: skip


@pytest.fixture(scope="module")
def linker(tmp_path_factory: pytest.TempPathFactory) -> Linker:
    home: Path = tmp_path_factory.mktemp("foods")
    facts = [(id, "P1", f"V::{n}.0000::1") for n, id in enumerate(("Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7", "Q8"), 1)]
    return Linker(KnowledgeGraph.open(make_store(home, facts, NAMES)))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The protein of carrot is", {"Q1"}),
        ("How much protein do carrots have ?", {"Q1"}),
        ("The protein of sweet potatoes is", {"Q2"}),
        ("Which city is it ?", set()),
        ("the protein of paris is", {"Q3"}),
        ("what is in the usa ?", {"Q5"}),
        ("who directed the godfather ?", {"Q6"}),
        ("the wife of henry viii was", {"Q7"}),
        ("the protein of xyz is", {"Q8"}),  # there is no other name
    ],
)
def test_names_in_small_letters(linker: Linker, text: str, found: set[str]) -> None:
    names = common_names(linker, text.split())
    assert {linker.graph.id(candidate.node) for name in names for candidate in name.candidates} == found
    assert all(name.candidates[0].p == pytest.approx(P_NAME) for name in names)

"""Training of an adapter on a small encoder: clauses come nearer to the names of their relation."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kglm.text.encoder import SentenceEncoder
from kglm.train.adapter import AdapterConfig, RelationTexts, train_adapter
from support.tiny_encoder import tiny_encoder

CONFIG = AdapterConfig(rank=8, steps=500, rate=4e-3, warm_up=5, batch=6, negatives=4, refresh=20)
RELATIONS = [
    RelationTexts((f"n{k}", f"m{k}"), (f"it c{k}", f"d{k} it of"), table)
    for k, table in enumerate((None, None, None, "zoo", "zoo", "zoo"))
]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> SentenceEncoder:
    words = " ".join(text for each in RELATIONS for text in (*each.names, *each.clauses)).split()
    return tiny_encoder(tmp_path_factory.mktemp("tiny") / "encoder", words)


def right(encoder: SentenceEncoder) -> int:
    """Clauses that are nearest to a name of their relation."""
    names = torch.from_numpy(encoder.encode([name for each in RELATIONS for name in each.names]))
    count = 0
    for k, each in enumerate(RELATIONS):
        nearest = (torch.from_numpy(encoder.encode(each.clauses)) @ names.T).argmax(-1)
        count += int((nearest // 2 == k).sum())
    return count


def test_clauses_find_the_names_of_their_relation(encoder: SentenceEncoder) -> None:
    before = right(encoder)
    adapter = train_adapter(encoder, RELATIONS, CONFIG)
    assert right(encoder.adapted(adapter)) >= max(10, before + 3)
    assert right(encoder) == before


def test_training_is_a_function_of_its_seed(encoder: SentenceEncoder) -> None:
    config = AdapterConfig(rank=2, steps=5, batch=6, negatives=4)
    first, second = (train_adapter(encoder, RELATIONS, config) for _ in range(2))
    other = train_adapter(encoder, RELATIONS, AdapterConfig(rank=2, steps=5, batch=6, negatives=4, seed=1))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


def test_nothing_is_learned_without_clauses(tmp_path: Path) -> None:
    encoder = tiny_encoder(tmp_path / "encoder", ["a"])
    found = train_adapter(encoder, [RelationTexts(("a",), ("it a",)), RelationTexts(("b",), ())], CONFIG)
    assert all(torch.isfinite(value).all() for value in found.values())

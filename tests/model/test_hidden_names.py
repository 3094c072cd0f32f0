"""In training, words of names may be hidden: all is then as if they were not in the vocabulary."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kglm.model import base
from kglm.model.base import ChunkModel
from kglm.model.chunk import Chunk
from kglm.text.vocabulary import UNKNOWN_INDEX
from kglm.train.chunks import whole
from support.toys import Toy, make_toy, random_documents

NEARLY_ALL = 0.99999


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Toy, Toy]:
    """Two that differ in their words: in the second, others stand in the places of those that names have."""
    homes: list[Path] = [tmp_path_factory.mktemp("toy") for _ in range(2)]
    return make_toy(homes[0]), make_toy(homes[1], words=("_Mario", "_is", "_Boy"))


@pytest.fixture(params=["model", "proposal", "plain"])
def model(request: pytest.FixtureRequest, toys: tuple[Toy, Toy], monkeypatch: pytest.MonkeyPatch) -> ChunkModel:
    monkeypatch.setattr(base, "COMMON", 4)  # the marks
    found: ChunkModel = getattr(toys[0], request.param)
    monkeypatch.setattr(found.encoder, "config", replace(found.encoder.config, unknown_dropout=NEARLY_ALL))
    return found


def chunk_of(toy: Toy, documents: Toy, model: ChunkModel) -> Chunk:
    pieces = [whole(toy.encoder.encode(document)) for document in random_documents(documents, 20)]
    return toy.builder.build(pieces, ahead=model.ahead)


def names(chunk: Chunk, model: ChunkModel) -> torch.Tensor:
    """Which of the words that are read are words of names, one by one."""
    inside = chunk.mention_BT.clone()
    if not model.ahead:
        for row in range(len(inside)):
            inside[row] = torch.tensor([False, *chunk.mention_BT[row].tolist()[:-1]])
    return inside


def test_it_is_as_if_they_were_not_in_the_vocabulary(toys: tuple[Toy, Toy], model: ChunkModel) -> None:
    known, without = (chunk_of(toy, toys[0], model) for toy in toys)
    hidden = model.train().hide(known, torch.Generator().manual_seed(0))
    inside = names(known, model)
    assert torch.equal(hidden.words.input_BT[inside], without.words.input_BT[inside])
    assert not torch.equal(known.words.input_BT[inside], without.words.input_BT[inside])
    assert torch.equal(hidden.words.input_BT[~inside], known.words.input_BT[~inside])
    copied = known.mention_words.position_I[known.mention_words.match_IJ.any(-1)]
    other = torch.ones(known.words.target_BT.numel(), dtype=torch.bool).index_fill(0, copied, False)
    if model.copies:
        assert torch.equal(hidden.mention_words.alias_UAL, without.mention_words.alias_UAL)
        assert torch.equal(hidden.words.target_BT.flatten()[copied], without.words.target_BT.flatten()[copied])
        assert bool((hidden.words.target_BT.flatten()[copied] == UNKNOWN_INDEX).all())
    else:
        assert torch.equal(hidden.words.target_BT, known.words.target_BT) and torch.equal(
            hidden.mention_words.alias_UAL, known.mention_words.alias_UAL
        )
    assert torch.equal(hidden.words.target_BT.flatten()[other], known.words.target_BT.flatten()[other])


def test_nothing_is_hidden_in_evaluation_or_without_the_setting(toys: tuple[Toy, Toy], model: ChunkModel) -> None:
    chunk = chunk_of(toys[0], toys[0], model)
    assert model.eval().hide(chunk, None) is chunk
    with pytest.raises(ValueError, match="Generator"):
        model.train().hide(chunk, None)
    scores = [model.train().score(chunk, generator=torch.Generator().manual_seed(seed)).total_BT for seed in (1, 1)]
    assert torch.equal(*scores)
    model.eval()


def test_a_share_of_the_types_is_hidden_each_wherever_it_stands(toys: tuple[Toy, Toy], model: ChunkModel) -> None:
    chunk = chunk_of(toys[0], toys[0], model)
    model.encoder.config = replace(model.encoder.config, unknown_dropout=0.5)
    inside, seen = names(chunk, model), set()
    for seed in range(20):
        hidden = model.train().hide(chunk, torch.Generator().manual_seed(seed))
        changed = hidden.words.input_BT != chunk.words.input_BT
        types = chunk.words.input_BT[changed].unique().tolist()
        assert all(bool(changed[inside & (chunk.words.input_BT == word)].all()) for word in types)
        seen.add(tuple(types))
    assert len(seen) > 2
    model.eval()

"""The forward pass against that of transformers, and its independence of caches, batches and windows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from kglm.errors import DataError
from kglm.pretrained.base import BaseModel, windows
from kglm.pretrained.matrices import Dense, EightBit, FourBit, pack_eight_bit, pack_four_bit
from support.causal import save_english

pytest.importorskip("transformers", reason="the extra hf is not installed")
TEXT = 4 * "It isn't a side-scrolling game, it's the 1961 game. Zoë's dogs' bowls (two) are full. "


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_english(tmp_path_factory.mktemp("english"), context=96)


@pytest.fixture(scope="module")
def base(home: Path, tmp_path_factory: pytest.TempPathFactory) -> BaseModel:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KGLM_CACHE", str(tmp_path_factory.mktemp("cache")))
        return BaseModel.open(home, dtype=torch.float32)


@pytest.fixture(scope="module")
def ids(base: BaseModel) -> list[int]:
    return base.subwords.encode(TEXT).ids[:60]


def reference(home: Path, ids: list[int]) -> Any:
    from transformers import LlamaForCausalLM

    with torch.no_grad():
        return LlamaForCausalLM.from_pretrained(home)(torch.tensor([ids]), output_hidden_states=True)


def test_states_and_scores_are_those_of_transformers(home: Path, base: BaseModel, ids: list[int]) -> None:
    expected = reference(home, ids)
    found = base.model.hidden(torch.tensor([ids]), after=(1, 2))
    torch.testing.assert_close(found.after[1], expected.hidden_states[1], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.last_BTD, expected.hidden_states[2], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(base.model.logits(found.last_BTD), expected.logits, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cuts", [(1, 2, 3), (20, 21), (59,), tuple(range(1, 60))])
def test_a_text_may_be_read_in_pieces(base: BaseModel, ids: list[int], cuts: tuple[int, ...]) -> None:
    whole = base.model.hidden(torch.tensor([ids])).last_BTD[0]
    cache, parts = base.model.new_cache(), []
    for begin, end in zip((0, *cuts), (*cuts, len(ids)), strict=True):
        parts.append(base.model.hidden(torch.tensor([ids[begin:end]]), cache).last_BTD[0])
    torch.testing.assert_close(torch.cat(parts), whole, rtol=1e-4, atol=1e-5)


def test_rows_do_not_depend_on_each_other(base: BaseModel, ids: list[int]) -> None:
    rows = torch.tensor([ids[:20], ids[20:40], ids[40:60]])
    together = base.model.hidden(rows).last_BTD
    for row, alone in zip(together, rows, strict=True):
        torch.testing.assert_close(row, base.model.hidden(alone[None]).last_BTD[0], rtol=1e-4, atol=1e-5)


def test_padding_at_the_end_changes_nothing(base: BaseModel, ids: list[int]) -> None:
    padded = base.model.hidden(torch.tensor([[*ids[:20], 0, 0, 0]])).last_BTD[:, :20]
    torch.testing.assert_close(padded, base.model.hidden(torch.tensor([ids[:20]])).last_BTD, rtol=1e-4, atol=1e-5)


def test_branches_of_a_cache_do_not_touch_each_other(base: BaseModel, ids: list[int]) -> None:
    cache = base.model.new_cache()
    base.model.hidden(torch.tensor([ids[:10]]), cache)
    two = cache.select(torch.tensor([0, 0]))
    base.model.hidden(torch.tensor([[5], [6]]), two)
    base.model.hidden(torch.tensor([[7]]), cache)
    for row, id in enumerate((5, 6)):
        found = base.model.hidden(torch.tensor([[8]]), two.rewound(11).select(torch.tensor([row]))).last_BTD[0, -1]
        expected = base.model.hidden(torch.tensor([[*ids[:10], id, 8]])).last_BTD[0, -1]
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("given", [0, 1, 12])
def test_branches_of_a_tree_do_not_see_each_other(base: BaseModel, ids: list[int], given: int) -> None:
    tree, before = ids[20:27], [-1, 0, 0, -1, 1, 3, 4]
    cache = base.model.new_cache()
    if given:
        base.model.hidden(torch.tensor([ids[:given]]), cache)
    found = base.model.hidden(torch.tensor([tree]), cache, before=before).last_BTD[0]
    for t in range(len(tree)):
        branch = [t]
        while before[branch[0]] >= 0:
            branch.insert(0, before[branch[0]])
        alone = base.model.hidden(torch.tensor([[*ids[:given], *(tree[each] for each in branch)]])).last_BTD[0, -1]
        torch.testing.assert_close(found[t], alone, rtol=1e-4, atol=1e-5)


def test_more_than_the_context_is_refused(base: BaseModel) -> None:
    with pytest.raises(DataError, match="97 subwords are more than the model reads; give at most 96"):
        base.model.hidden(torch.zeros(1, 97, dtype=torch.int64))


class TestLogProbs:
    def test_of_a_short_text_are_those_of_transformers(self, home: Path, base: BaseModel, ids: list[int]) -> None:
        expected = reference(home, [base.subwords.start, *ids]).logits[0, :-1].double().log_softmax(-1)
        expected = expected.gather(1, torch.tensor(ids)[:, None])[:, 0]
        torch.testing.assert_close(base.log_probs(ids), expected, rtol=1e-4, atol=1e-4)

    def test_of_a_long_text_see_the_words_of_their_window(self, base: BaseModel, ids: list[int]) -> None:
        found = base.log_probs(ids, window=20, stride=12)
        fed = [base.subwords.start, *ids]
        for position, log_p in enumerate(found.tolist()):
            begin = max(0, (position - 20) // 12 + 1) * 12
            alone = base.model.hidden(torch.tensor([fed[begin : position + 1]])).last_BTD[0, -1]
            expected = base.model.logits(alone).double().log_softmax(-1)[ids[position]]
            assert log_p == pytest.approx(float(expected), abs=1e-4)


@pytest.mark.parametrize(("count", "window", "stride"), [(0, 5, 3), (1, 5, 3), (5, 5, 5), (23, 7, 2), (100, 9, 9)])
def test_windows_cover_each_position_once(count: int, window: int, stride: int) -> None:
    found = list(windows(count, window, stride))
    assert [position for each in found for position in range(each.first, each.end)] == list(range(count))
    assert all(each.end - each.begin <= window for each in found)
    assert all(each.first - each.begin >= window - stride for each in found[1:])


class TestPackedWeights:
    q = torch.randint(0, 16, (64, 96), generator=torch.Generator().manual_seed(0))
    scale = torch.rand(64, 3, generator=torch.Generator().manual_seed(1)) / 10
    minimum = -torch.rand(64, 3, generator=torch.Generator().manual_seed(2))
    rows = torch.randn(40, 96, generator=torch.Generator().manual_seed(3)).bfloat16()

    @property
    def weight(self) -> torch.Tensor:
        return self.q * self.scale.repeat_interleave(32, 1) + self.minimum.repeat_interleave(32, 1)

    @pytest.mark.parametrize("count", [1, 7, 40])
    def test_four_bits(self, count: int) -> None:
        packed = pack_four_bit(self.q, self.scale, self.minimum)
        matrix = FourBit(packed["packed"], packed["scale"].bfloat16(), self.weight.bfloat16())
        expected = self.rows[:count].float() @ self.weight.T
        torch.testing.assert_close(matrix(self.rows[:count]).float(), expected, rtol=0.03, atol=0.05)

    @pytest.mark.parametrize("count", [1, 7, 40])
    def test_eight_bits(self, count: int) -> None:
        packed = pack_eight_bit(self.weight)
        matrix = EightBit(packed["value"], packed["scale"].bfloat16(), self.weight.bfloat16())
        torch.testing.assert_close(
            matrix(self.rows[:count]).float(), Dense(self.weight)(self.rows[:count].float()), rtol=0.03, atol=0.08
        )

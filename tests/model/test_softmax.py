"""The blocked log-sum-exp against the plain one, values and gradients."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kglm.model import softmax
from kglm.model.softmax import Changes, linear_logsumexp, pair_logsumexp


def inputs(rows: int, columns: int, seed: int, changed: int = 0) -> tuple[Tensor, Tensor, Tensor, Changes]:
    generator = torch.Generator().manual_seed(seed)
    h, weight, bias = (
        torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in ((rows, 3), (columns, 3), (columns,))
    )
    place = torch.randperm(rows * columns, generator=generator)[:changed]
    amount = torch.randn(len(place), generator=generator, dtype=torch.float64).requires_grad_()
    return h, weight, bias, Changes(place // columns, place % columns, amount)


def plain(h: Tensor, weight: Tensor, bias: Tensor, changes: Changes) -> Tensor:
    scores = h @ weight.T + bias
    return scores.index_put((changes.row_Y, changes.column_Y), changes.amount_Y, accumulate=True).logsumexp(-1)


@pytest.fixture(params=[1 << 23, 12], ids=["one block", "many"])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(softmax, "BLOCK", request.param)


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("weights", ["one", "even", "different"])
def test_values_and_gradients_are_those_of_the_plain_formula(uneven: bool, weights: str) -> None:
    h, weight, bias, changes = inputs(7, 5, 0, changed=6)
    gradient = {"one": torch.ones(7), "even": torch.full((7,), -0.3), "different": torch.arange(7.0) - 2}[weights]
    results = []
    for value in (linear_logsumexp(h, weight, bias, changes, uneven=uneven), plain(h, weight, bias, changes)):
        gradients = torch.autograd.grad(value, (h, weight, bias, changes.amount_Y), gradient.double())
        results.append((value, *gradients))
    for fast, slow in zip(*results, strict=True):
        torch.testing.assert_close(fast, slow, rtol=1e-12, atol=1e-12)


@settings(max_examples=40)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 10), st.integers(0, 99))
def test_gradients_check_numerically(rows: int, columns: int, changed: int, seed: int) -> None:
    h, weight, bias, changes = inputs(rows, columns, seed, changed)

    def value(h: Tensor, weight: Tensor, bias: Tensor, amount: Tensor) -> Tensor:
        lse = linear_logsumexp(h, weight, bias, changes._replace(amount_Y=amount))
        return (lse * torch.arange(1.0, rows + 1)).sum()

    assert torch.autograd.gradcheck(value, (h, weight, bias, changes.amount_Y))


@pytest.mark.parametrize("needed", range(4))
def test_what_needs_no_gradient_gets_none(needed: int) -> None:
    tensors = inputs(4, 5, 1, changed=3)
    values = [tensor.detach() for tensor in (*tensors[:3], tensors[3].amount_Y)]
    values[needed].requires_grad_()
    lse = linear_logsumexp(*values[:3], tensors[3]._replace(amount_Y=values[3]))
    lse.sum().backward()
    assert [value.grad is not None for value in values] == [place == needed for place in range(4)]


def test_scores_far_from_zero_do_not_overflow() -> None:
    h, weight = torch.full((2, 3), 30.0), torch.tensor([[20.0] * 3, [-20.0] * 3])
    torch.testing.assert_close(linear_logsumexp(h, weight), torch.full((2,), 1800.0))


def test_no_rows() -> None:
    h = torch.zeros(0, 3, requires_grad=True)
    lse = linear_logsumexp(h, torch.zeros(4, 3))
    lse.sum().backward()
    assert lse.shape == (0,) and h.grad is not None


@pytest.mark.parametrize("blocks", [(1 << 23, 1 << 25), (30, 40)])
@pytest.mark.parametrize("scale", [1.0, 300.0], ids=["near", "with peaks far apart"])
def test_sums_of_pairs(monkeypatch: pytest.MonkeyPatch, blocks: tuple[int, int], scale: float) -> None:
    monkeypatch.setattr(softmax, "BLOCK", blocks[0])
    monkeypatch.setattr(softmax, "PAIR_BLOCK", blocks[1])
    draw = torch.Generator().manual_seed(0)
    left, right = (scale * torch.randn(count, 4, generator=draw) for count in (9, 7))
    weight, bias = torch.randn(11, 4, generator=draw), torch.randn(11, generator=draw)
    pairs = torch.randint(63, (50,), generator=draw)
    t, u = pairs // 7, pairs % 7
    truth = linear_logsumexp(left[t] + right[u], weight, bias)
    torch.testing.assert_close(pair_logsumexp(left, right, weight, bias, t, u), truth, rtol=2e-5, atol=1e-4)

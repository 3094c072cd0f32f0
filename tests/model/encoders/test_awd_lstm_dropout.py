"""What regularises the encoder: dropped weights, words and features, and penalties; none of it in evaluation."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import Generator

from kglm.model.encoders.awd_lstm import locked_dropout
from kglm.model.encoders.encoder import EncoderOutput
from support.encoders import PLAIN, WORDS, make, seeded, words

pytestmark = pytest.mark.usefixtures("one_thread")


class TestWeightDrop:
    ONLY = dataclasses.replace(PLAIN, weight_drop=0.5)

    def test_two_training_forwards_differ_and_the_same_draws_agree(self) -> None:
        encoder, generator = make(self.ONLY, training=True), seeded(1)
        first, second = encoder(words(2, 5), None, generator), encoder(words(2, 5), None, generator)
        assert not torch.allclose(first.h_BTD, second.h_BTD)
        assert torch.equal(first.h_BTD, encoder(words(2, 5), None, seeded(1)).h_BTD)

    def test_acts_on_recurrent_matrices_only(self) -> None:
        """From a zero state the first word meets no recurrent matrix: its output is exact, the second's is not."""
        encoder = make(self.ONLY, training=True)
        dropped, exact = encoder(words(2, 2), None, seeded(1)).h_BTD, make()(words(2, 2)).h_BTD
        assert torch.equal(dropped[:, 0], exact[:, 0])
        assert not torch.allclose(dropped[:, 1], exact[:, 1])

    def test_is_the_lstm_with_that_dropped_matrix(self) -> None:
        """Whatever is drawn: dropping entries of W_hh by hand and scaling the others up gives the same."""
        config = dataclasses.replace(self.ONLY, layers=1, weight_drop=0.3)
        encoder, by_hand = make(config, training=True), make(config)
        dropped = encoder(words(2, 5), None, seeded(3)).h_BTD
        [layer] = by_hand.layers
        kept_GH = torch.rand(layer.weight_hh.shape, generator=seeded(3)) >= 0.3
        with torch.no_grad():
            layer.weight_hh.mul_(kept_GH / 0.7)
        assert torch.allclose(by_hand(words(2, 5)).h_BTD, dropped, atol=1e-6)
        assert not torch.allclose(make(config)(words(2, 5)).h_BTD, dropped, atol=1e-3)

    def test_gradient_reaches_the_raw_matrix_where_it_was_kept(self) -> None:
        config = dataclasses.replace(self.ONLY, layers=1)
        encoder = make(config, training=True)
        encoder(words(3, 6), None, seeded(3)).h_BTD.square().sum().backward()
        [layer] = encoder.layers
        kept_GH = torch.rand(layer.weight_hh.shape, generator=seeded(3)) >= 0.5
        assert layer.weight_hh.grad[~kept_GH].eq(0).all()
        assert layer.weight_hh.grad[kept_GH].ne(0).all()
        assert kept_GH.float().mean() == pytest.approx(0.5, abs=0.1)

    def test_a_step_moves_the_raw_matrix(self) -> None:
        encoder = make(training=True)
        before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
        optimiser = torch.optim.SGD(encoder.parameters(), lr=0.1)
        output = encoder(words(3, 6), None, seeded(3))
        for name, tensor in encoder.state_dict().items():
            assert torch.equal(tensor, before[name]), f"forward wrote into {name}"
        output.h_BTD.square().sum().backward()
        optimiser.step()
        assert all(not torch.equal(tensor, before[name]) for name, tensor in encoder.state_dict().items())

    def test_off_in_evaluation(self) -> None:
        encoder = make(self.ONLY, training=True)
        encoder(words(2, 5), None, seeded(1))
        assert torch.equal(encoder.eval()(words(2, 5), None, seeded(1)).h_BTD, make(PLAIN)(words(2, 5)).h_BTD)


class TestDropouts:
    def test_locked_masks_are_constant_over_time_and_differ_between_rows(self) -> None:
        mask_TBI = locked_dropout(torch.ones(9, 20, 50), 0.4, seeded(1))
        assert torch.equal(mask_TBI, mask_TBI[:1].expand_as(mask_TBI))
        assert mask_TBI[0].unique(dim=0).shape[0] == 20
        assert mask_TBI.unique().tolist() == pytest.approx([0, 1 / 0.6])
        assert mask_TBI.eq(0).float().mean() == pytest.approx(0.4, abs=0.05)

    def test_output(self) -> None:
        encoder = make(dataclasses.replace(PLAIN, output_dropout=0.4), training=True)
        output = encoder(words(6, 5), None, seeded(1))
        mask_BTD = output.h_BTD / output.raw_h_BTD
        assert torch.allclose(mask_BTD, mask_BTD[:, :1].expand_as(mask_BTD))
        assert mask_BTD[:, 0].round(decimals=3).unique(dim=0).shape[0] > 1
        assert torch.equal(output.raw_h_BTD, make()(words(6, 5)).h_BTD)
        assert torch.equal(output.state[-1].h_BH, output.raw_h_BTD[:, -1]), "the carried state is never dropped"

    @pytest.mark.parametrize("which", ["input_dropout", "hidden_dropout", "embedding_dropout"])
    def test_below_the_output(self, which: str) -> None:
        encoder = make(dataclasses.replace(PLAIN, **{which: 0.5}), training=True)
        output = encoder(words(6, 5), None, seeded(1))
        assert torch.equal(output.h_BTD, output.raw_h_BTD)
        assert not torch.allclose(output.h_BTD, make()(words(6, 5)).h_BTD)

    def test_input_drops_whole_features(self) -> None:
        """Word gradients show the mask: per row the same features of every word, in both rows different ones."""
        encoder = make(dataclasses.replace(PLAIN, input_dropout=0.5), training=True)
        words_BT = torch.arange(12).view(2, 6)
        encoder(words_BT, None, seeded(1)).h_BTD.square().sum().backward()
        assert encoder.embedding.weight.grad is not None
        dropped_BTE = encoder.embedding.weight.grad[words_BT].eq(0)
        assert torch.equal(dropped_BTE, dropped_BTE[:, :1].expand_as(dropped_BTE))
        assert not torch.equal(dropped_BTE[0], dropped_BTE[1])

    def test_embedding_drops_whole_types(self) -> None:
        """A dropped word reads as zeros wherever it stands in the batch, the others are scaled up."""
        config = dataclasses.replace(PLAIN, embedding_dropout=0.4)
        encoder = make(config, training=True)
        words_BT = torch.arange(WORDS).repeat(4).view(4, WORDS)
        output = encoder(words_BT, None, seeded(1))
        output.h_BTD.square().sum().backward()
        assert encoder.embedding.weight.grad is not None
        grad_VE = encoder.embedding.weight.grad
        dropped_V = grad_VE.eq(0).all(1)
        assert 0 < dropped_V.sum() < WORDS
        assert grad_VE[~dropped_V].ne(0).all()
        by_hand = make(PLAIN)
        with torch.no_grad():
            by_hand.embedding.weight.mul_(~dropped_V[:, None] / 0.6)
        assert torch.allclose(by_hand(words_BT).h_BTD, output.h_BTD, atol=1e-6)

    def test_order_of_draws_is_reproducible_mid_run(self) -> None:
        """A generator restored to a saved state gives the bits that an uninterrupted run has seen."""
        encoder, generator = make(training=True), seeded(4)
        encoder(words(2, 5), None, generator)
        saved = generator.get_state()
        uninterrupted = encoder(words(2, 5), None, generator).h_BTD
        resumed = Generator()
        resumed.set_state(saved)
        assert torch.equal(encoder(words(2, 5), None, resumed).h_BTD, uninterrupted)

    def test_training_needs_a_generator(self) -> None:
        with pytest.raises(ValueError, match=r"pass a torch\.Generator"):
            make(training=True)(words(2, 3))


class TestRegularisation:
    def test_by_hand_with_padding(self) -> None:
        config = dataclasses.replace(PLAIN, activation_regularisation=2, temporal_regularisation=3)
        encoder = make(config, training=True)
        h = torch.tensor([[[1.0, 2.0], [3.0, 0.0], [9.0, 9.0]], [[1.0, 1.0], [9.0, 9.0], [9.0, 9.0]]])
        raw = torch.tensor([[[1.0, 0.0], [2.0, 3.0], [7.0, 7.0]], [[5.0, 5.0], [7.0, 7.0], [7.0, 7.0]]])
        real = torch.tensor([[True, True, False], [True, False, False]])
        # activation: (1 + 4 + 9 + 0 + 1 + 1) / 6; temporal: the one real pair, (1 + 9) / 2
        value = encoder.regularisation(EncoderOutput(h, raw, ()), real).mean()
        assert value.item() == pytest.approx(2 * 16 / 6 + 3 * 10 / 2)
        everything = encoder.regularisation(EncoderOutput(h, raw, ())).mean()
        assert everything.item() == pytest.approx(2 * h.square().mean().item() + 3 * raw.diff(dim=1).square().mean())

    def test_nothing_real_and_single_words_are_no_division_by_zero(self) -> None:
        encoder = make(PLAIN, training=True)
        output = encoder(words(2, 3))
        value = encoder.regularisation(output, torch.zeros(2, 3, dtype=torch.bool)).mean()
        value.backward()
        assert value == 0
        assert all(tensor.grad.eq(0).all() for tensor in encoder.parameters())
        one = encoder(words(2, 1))
        assert encoder.regularisation(one).mean().item() == pytest.approx(2 * one.h_BTD.square().mean().item())

    def test_padding_that_is_not_a_number_does_not_matter(self) -> None:
        encoder = make(PLAIN, training=True)
        h = torch.tensor([[[1.0], [torch.nan]]], requires_grad=True)
        value = encoder.regularisation(EncoderOutput(h, h, ()), torch.tensor([[True, False]])).mean()
        assert value.item() == 2

    def test_is_no_part_of_evaluation(self) -> None:
        encoder = make()
        assert encoder.regularisation(encoder(words(2, 3))).mean() == 0

    def test_zero_weights_give_zero(self) -> None:
        off = dataclasses.replace(PLAIN, activation_regularisation=0, temporal_regularisation=0)
        encoder = make(off, training=True)
        assert encoder.regularisation(encoder(words(2, 3))).mean() == 0

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Generator, Tensor, nn

from kglm import config as settings
from kglm.errors import ConfigError
from kglm.model.encoder import Encoder, EncoderConfig, EncoderOutput, LayerState, Share, detach_state, locked_dropout

WORDS = 30
SMALL = EncoderConfig(embedding=8, hidden=12, layers=3, output=10)
PLAIN = dataclasses.replace(
    SMALL, output_dropout=0, hidden_dropout=0, input_dropout=0, embedding_dropout=0, weight_drop=0
)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def seeded(seed: int) -> Generator:
    return Generator().manual_seed(seed)


def make(config: EncoderConfig = SMALL, *, training: bool = False) -> Encoder:
    return config.build(WORDS, generator=seeded(0)).train(training)


def words(rows: int, length: int, seed: int = 1) -> Tensor:
    return torch.randint(0, WORDS, (rows, length), generator=seeded(seed))


def in_chunks(encoder: Encoder, words_BT: Tensor, length: int) -> Tensor:
    state, outputs = None, []
    for chunk in words_BT.split(length, dim=1):
        output: EncoderOutput = encoder(chunk, state)
        outputs.append(output.h_BTD)
        state = detach_state(output.state)
    return torch.cat(outputs, dim=1)


class TestEvaluation:
    def test_equals_stacked_lstms(self) -> None:
        """Equation by equation what `nn.LSTM` computes, and the raw weights are used."""
        encoder = make()
        x_BTI = encoder.embedding.weight[words_BT := words(3, 7)]
        for layer in encoder.layers:
            lstm = nn.LSTM(x_BTI.shape[-1], layer.hidden_size, batch_first=True)
            with torch.no_grad():
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                    getattr(lstm, f"{name}_l0").copy_(getattr(layer, name))
            x_BTI, _ = lstm(x_BTI)
        assert torch.allclose(encoder(words_BT).h_BTD, x_BTI, atol=1e-6)

    def test_is_deterministic_and_draws_nothing(self) -> None:
        encoder, generator = make(), seeded(5)
        before = generator.get_state()
        first, second = encoder(words(4, 9), None, generator), encoder(words(4, 9))
        assert torch.equal(first.h_BTD, second.h_BTD)
        assert torch.equal(first.h_BTD, first.raw_h_BTD)
        assert torch.equal(generator.get_state(), before)

    def test_training_without_dropout_is_the_same(self) -> None:
        encoder = make(PLAIN)
        evaluated = encoder(words(4, 9)).h_BTD
        assert torch.equal(encoder.train()(words(4, 9)).h_BTD, evaluated)

    @pytest.mark.parametrize("length", [1, 7, 70])
    def test_chunk_length_does_not_matter(self, length: int) -> None:
        encoder, words_BT = make(), words(3, 150)
        with torch.no_grad():
            whole = encoder(words_BT).h_BTD
            assert torch.allclose(in_chunks(encoder, words_BT, length), whole, rtol=0, atol=1e-6)

    def test_neighbours_do_not_matter(self) -> None:
        encoder, words_BT = make(), words(60, 20)
        with torch.no_grad():
            together = encoder(words_BT).h_BTD
            for row in (0, 17, 59):
                alone = encoder(words_BT[row : row + 1]).h_BTD[0]
                assert torch.allclose(together[row], alone, rtol=0, atol=1e-6)

    def test_padding_at_the_end_does_not_matter(self) -> None:
        encoder, words_BT = make(), words(5, 12)
        padded = torch.cat([words_BT, torch.zeros(5, 6, dtype=torch.long)], dim=1)
        assert torch.allclose(encoder(padded).h_BTD[:, :12], encoder(words_BT).h_BTD, rtol=0, atol=1e-6)

    def test_global_randomness_is_untouched(self) -> None:
        before = torch.get_rng_state()
        make(training=True)(words(2, 3), None, seeded(1))
        assert torch.equal(torch.get_rng_state(), before)


class TestState:
    def test_reset_clears_only_flagged_rows(self) -> None:
        encoder = make()
        first, second = words(4, 6), words(4, 5, seed=2)
        state = encoder(first).state
        reset_B = torch.tensor([False, True, False, True])
        output = encoder(second, state, reset_B=reset_B)
        fresh, carried = encoder(second), encoder(second, state)
        assert not torch.allclose(fresh.h_BTD, carried.h_BTD)
        assert torch.equal(output.h_BTD[reset_B], fresh.h_BTD[reset_B])
        assert torch.equal(output.h_BTD[~reset_B], carried.h_BTD[~reset_B])
        for layer, new, old in zip(output.state, fresh.state, carried.state, strict=True):
            for tensor, new_BH, old_BH in zip(layer, new, old, strict=True):
                assert torch.equal(tensor, torch.where(reset_B[:, None], new_BH, old_BH))

    def test_reset_forgets_even_what_is_not_a_number(self) -> None:
        encoder = make()
        state = tuple(LayerState(h.fill_(torch.nan), c.fill_(torch.nan)) for h, c in encoder.zero_state(2))
        output = encoder(words(2, 3), state, reset_B=torch.tensor([True, False]))
        assert torch.equal(output.h_BTD[0], encoder(words(2, 3)).h_BTD[0])
        assert output.h_BTD[1].isnan().all()

    def test_none_is_zeros(self) -> None:
        encoder = make()
        assert torch.equal(encoder(words(2, 3)).h_BTD, encoder(words(2, 3), encoder.zero_state(2)).h_BTD)

    def test_the_given_state_is_not_written_to(self) -> None:
        encoder = make()
        state = encoder.zero_state(2)
        encoder(words(2, 3), state, reset_B=torch.tensor([True, False]))
        assert all(not tensor.any() for layer in state for tensor in layer)

    def test_gradients_pass_until_detached(self) -> None:
        encoder = make()
        state = encoder(words(2, 3)).state
        assert all(tensor.requires_grad for layer in state for tensor in layer)
        assert not any(tensor.requires_grad for layer in detach_state(state) for tensor in layer)
        assert torch.equal(detach_state(state)[1].c_BH, state[1].c_BH)

    @pytest.mark.parametrize("rows", [1, 3])
    def test_a_state_of_another_batch_is_refused(self, rows: int) -> None:
        encoder = make()
        with pytest.raises(ValueError, match=rf"\({rows}, 12\).* expected \[\(2, 12\)"):
            encoder(words(2, 3), encoder.zero_state(rows))
        with pytest.raises(ValueError, match="expected"):
            encoder(words(2, 3), encoder.zero_state(2)[:2])

    def test_bad_words_and_flags_are_refused(self) -> None:
        encoder = make()
        for bad in (words(2, 3)[0], words(2, 3)[:, :0], words(2, 3)[:0]):
            with pytest.raises(ValueError, match="expected"):
                encoder(bad)
        for flags in (torch.ones(3, dtype=torch.bool), torch.ones(2)):
            with pytest.raises(ValueError, match="expected bool"):
                encoder(words(2, 3), reset_B=flags)


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


class TestGradients:
    def test_numerically(self) -> None:
        """Weights of every kind and the incoming state, all masks fixed by the seed, in float64."""
        tiny = dataclasses.replace(SMALL, embedding=2, hidden=3, layers=2, output=2, weight_drop=0.3)
        encoder = tiny.build(5, generator=seeded(0)).double().train()
        words_BT = torch.tensor([[0, 3, 1], [4, 3, 3]])
        names = [name for name, _ in encoder.named_parameters()]
        weights = [tensor.detach().requires_grad_() for tensor in encoder.parameters()]
        start = [torch.randn(2, size, generator=seeded(9)).double().requires_grad_() for size in encoder.sizes * 2]

        def loss(*tensors: Tensor) -> tuple[Tensor, Tensor]:
            h_0, h_1, c_0, c_1 = tensors[len(names) :]
            arguments = (words_BT, (LayerState(h_0, c_0), LayerState(h_1, c_1)), seeded(1))
            parameters = dict(zip(names, tensors, strict=False))
            output = torch.func.functional_call(encoder, parameters, arguments)
            return output.h_BTD, encoder.regularisation(output).mean()

        assert torch.autograd.gradcheck(loss, (*weights, *start))

    def test_float32_agrees_with_float64(self) -> None:
        """The fused kernels of float32 are other code: same draws, same gradients."""
        gradients = []
        for dtype in (torch.float32, torch.float64):
            encoder = make(training=True).to(dtype)
            state = encoder(words(4, 6, seed=2), None, seeded(7)).state
            output = encoder(words(4, 6), state, seeded(8), torch.tensor([True, False, False, False]))
            (output.h_BTD.square().sum() + encoder.regularisation(output).mean()).backward()
            gradients.append([tensor.grad.double() for tensor in encoder.parameters()])
        for single, double in zip(*gradients, strict=True):
            assert torch.allclose(single, double, rtol=1e-3, atol=1e-5)

    def test_later_words_do_not_reach_earlier_outputs(self) -> None:
        encoder = make()
        encoder(torch.arange(8)[None]).h_BTD[:, :4].square().sum().backward()
        assert encoder.embedding.weight.grad is not None
        assert encoder.embedding.weight.grad[:4].ne(0).all()
        assert encoder.embedding.weight.grad[4:].eq(0).all()

    def test_evaluation_mode_has_gradients_too(self) -> None:
        encoder = make()
        encoder(words(2, 3)).h_BTD.sum().backward()
        assert all(tensor.grad is not None for tensor in encoder.parameters())


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


class TestWeights:
    def test_saved_and_loaded(self, tmp_path: Path) -> None:
        encoder = make(training=True)
        encoder(words(2, 5), None, seeded(1)).h_BTD.sum().backward()
        torch.optim.SGD(encoder.parameters(), lr=0.1).step()
        save_file(encoder.state_dict(), tmp_path / "weights.safetensors")
        loaded = SMALL.build(WORDS, generator=seeded(99)).eval()
        assert not torch.allclose(loaded(words(2, 5)).h_BTD, encoder.eval()(words(2, 5)).h_BTD)
        loaded.load_state_dict(load_file(tmp_path / "weights.safetensors"))
        assert torch.equal(loaded(words(2, 5)).h_BTD, encoder(words(2, 5)).h_BTD)
        # the raw matrices and nothing else: no copies, no masks
        expected = [f"layers.{k}.{name}" for k in range(3) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        assert list(encoder.state_dict()) == ["embedding.weight", *expected]
        assert list(dict(encoder.named_parameters())) == list(encoder.state_dict())

    def test_start_where_awd_lstm_does(self) -> None:
        encoder = EncoderConfig(embedding=50, hidden=100, output=64).build(500, generator=seeded(0))
        assert encoder.embedding.weight.abs().max().item() == pytest.approx(0.1, rel=0.01)
        for layer, size in zip(encoder.layers, (100, 100, 64), strict=True):
            for tensor in layer.parameters():
                assert tensor.abs().max().item() == pytest.approx(size**-0.5, rel=0.05)
        again = EncoderConfig(embedding=50, hidden=100, output=64).build(500, generator=seeded(0))
        assert all(torch.equal(a, b) for a, b in zip(encoder.parameters(), again.parameters(), strict=True))

    def test_tied_matrix_is_one_tensor(self) -> None:
        encoder = make()
        decoder = nn.Linear(8, WORDS)
        decoder.weight = encoder.embedding.weight
        assert len(list(nn.ModuleList([encoder, decoder]).parameters())) == len(list(encoder.parameters())) + 1

    def test_layers_of_the_paper(self) -> None:
        shapes = [tuple(layer.weight_ih.shape) for layer in make(EncoderConfig(hidden=115, output=912)).layers]
        assert shapes == [(460, 400), (460, 115), (3648, 115)]
        assert make(dataclasses.replace(SMALL, layers=1)).layers[0].weight_ih.shape == (40, 8)


class TestConfig:
    @pytest.mark.parametrize(
        ("setting", "value"),
        [
            ("hidden", -1),
            ("embedding", 0),
            ("layers", 0),
            ("output", -400),
            ("output_dropout", 1.0),
            ("hidden_dropout", -0.1),
            ("input_dropout", float("nan")),
            ("embedding_dropout", 1.5),
            ("weight_drop", 1),
            ("activation_regularisation", -2),
            ("temporal_regularisation", float("inf")),
        ],
    )
    def test_wrong_values_are_named(self, setting: str, value: float) -> None:
        with pytest.raises(ConfigError, match=f"{setting} = {value}"):
            settings.from_dict(EncoderConfig, {setting: value})

    def test_a_vocabulary_has_words(self) -> None:
        with pytest.raises(ConfigError, match="a vocabulary of 0 words"):
            SMALL.build(0, generator=seeded(0))

    def test_round_trip_and_descriptions(self) -> None:
        assert settings.from_dict(EncoderConfig, settings.to_dict(SMALL)) == SMALL
        assert set(settings.describe(EncoderConfig)) == {field.name for field in dataclasses.fields(EncoderConfig)}

    def test_without_a_size_the_output_is_that_of_the_words(self) -> None:
        assert make(dataclasses.replace(SMALL, output=0)).sizes[-1] == SMALL.embedding


def test_a_share_of_the_rows_has_the_masks_it_would_have_among_all() -> None:
    """So the number of processes that share a batch does not change what is trained."""
    encoder, text = make(training=True), words(5, 4)
    generator = seeded(3)
    whole = encoder(text, None, generator)
    for rows in ([0, 2, 4], [1, 3], [3]):
        own = seeded(3)
        part = encoder(text[rows], None, own, share=Share(torch.tensor(rows), 5))
        torch.testing.assert_close(part.h_BTD, whole.h_BTD[rows])
        assert torch.equal(own.get_state(), generator.get_state())

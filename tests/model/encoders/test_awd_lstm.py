"""The encoder computes what stacked LSTMs compute, in any chunks and batches, and its gradients are right."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import Tensor, nn

from kglm.model.encoders.awd_lstm import AwdLstmEncoder, LayerState, LstmState
from kglm.model.encoders.encoder import EncoderOutput, Share
from support.encoders import PLAIN, SMALL, make, seeded, words

pytestmark = pytest.mark.usefixtures("one_thread")


def in_chunks(encoder: AwdLstmEncoder, words_BT: Tensor, length: int) -> Tensor:
    state, outputs = None, []
    for chunk in words_BT.split(length, dim=1):
        output: EncoderOutput = encoder(chunk, state)
        outputs.append(output.h_BTD)
        state = output.state.detach()
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
        state = LstmState(LayerState(h.fill_(torch.nan), c.fill_(torch.nan)) for h, c in encoder.zero_state(2))
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
        assert not any(tensor.requires_grad for layer in state.detach() for tensor in layer)
        assert torch.equal(state.detach()[1].c_BH, state[1].c_BH)

    @pytest.mark.parametrize("rows", [1, 3])
    def test_a_state_of_another_batch_is_refused(self, rows: int) -> None:
        encoder = make()
        with pytest.raises(ValueError, match=rf"\({rows}, 12\).* expected \[\(2, 12\)"):
            encoder(words(2, 3), encoder.zero_state(rows))
        with pytest.raises(ValueError, match="expected"):
            encoder(words(2, 3), LstmState(encoder.zero_state(2)[:2]))

    def test_bad_words_and_flags_are_refused(self) -> None:
        encoder = make()
        for bad in (words(2, 3)[0], words(2, 3)[:, :0], words(2, 3)[:0]):
            with pytest.raises(ValueError, match="expected"):
                encoder(bad)
        for flags in (torch.ones(3, dtype=torch.bool), torch.ones(2)):
            with pytest.raises(ValueError, match="expected bool"):
                encoder(words(2, 3), reset_B=flags)


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
            arguments = (words_BT, LstmState((LayerState(h_0, c_0), LayerState(h_1, c_1))), seeded(1))
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

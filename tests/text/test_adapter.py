"""Low-rank changes of a sentence encoder."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kglm.errors import DataError
from kglm.text.adapter import DOWN, UP, adapted, adapter_digest
from support.tiny_encoder import tiny_encoder

NAME = "encoder.layer.1.output.dense.weight"


def test_matrices_change_by_the_product() -> None:
    weight, other = torch.randn(4, 6), torch.randn(3)
    down, up = torch.randn(2, 6), torch.randn(4, 2)
    changed = adapted({"a": weight, "b": other}, {f"a{DOWN}": down, f"a{UP}": up})
    assert torch.allclose(changed["a"], weight + up @ down) and changed["b"] is other


@pytest.mark.parametrize(
    ("adapter", "message"),
    [
        ({f"a{DOWN}": torch.zeros(2, 6)}, "incomplete"),
        ({f"c{DOWN}": torch.zeros(2, 6), f"c{UP}": torch.zeros(4, 2)}, "does not fit"),
        ({f"a{DOWN}": torch.zeros(2, 5), f"a{UP}": torch.zeros(4, 2)}, "does not fit"),
        ({f"a{DOWN}": torch.zeros(2, 6), f"a{UP}": torch.zeros(4, 3)}, "does not fit"),
    ],
)
def test_what_does_not_fit_is_refused(adapter: dict[str, torch.Tensor], message: str) -> None:
    with pytest.raises(DataError, match=message):
        adapted({"a": torch.zeros(4, 6)}, adapter)


def test_an_adapted_encoder_has_other_vectors_and_another_name(tmp_path: Path) -> None:
    encoder = tiny_encoder(tmp_path / "encoder", ["a", "b"])
    rows, columns = encoder.tensors[NAME].shape
    nothing = {NAME + DOWN: torch.ones(2, columns), NAME + UP: torch.zeros(rows, 2)}
    something = {**nothing, NAME + UP: torch.ones(rows, 2).cumsum(0)}
    before = encoder.encode(["a b", "b"])
    assert encoder.adapted(nothing).encode(["a b", "b"]) == pytest.approx(before, abs=1e-6)
    changed = encoder.adapted(something)
    assert abs(changed.encode(["a b", "b"]) - before).max() > 1e-2
    assert encoder.encode(["a b", "b"]) == pytest.approx(before, abs=1e-6)
    assert len({encoder.name, encoder.adapted(nothing).name, changed.name}) == 3
    assert adapter_digest(something) == adapter_digest({name: value.half() for name, value in something.items()})

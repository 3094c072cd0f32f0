"""Every reader reads or refuses mutated inputs: no other exception, no hang. `benchmarks.faults.fuzz` tries more."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2]))

from benchmarks.faults import fuzz as fuzzing
from benchmarks.faults.fuzz import fuzz, fuzz_reader, limited_memory
from benchmarks.faults.mutations import mutate_bytes
from benchmarks.faults.reader import Reader
from benchmarks.faults.readers import READERS

from kglm.errors import DataError

INPUTS, SECONDS = 15, 0.1
"""Inputs of each reader, and the time after which it gets no further input."""
SLOW_SECONDS = 10.0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with limited_memory():
        yield tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("name", READERS)
def test_mutated_inputs_are_read_or_refused(name: str, home: Path) -> None:
    result = fuzz([name], home, seconds=SECONDS, inputs=INPUTS)[name]
    assert result["examples"] == []
    assert result["inputs"] == result["ok"] + result["refused"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_more_mutated_inputs_are_read_or_refused(name: str, home: Path) -> None:
    assert fuzz([name], home, seconds=SLOW_SECONDS, seed=1)[name]["examples"] == []


def test_outcomes_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzing, "SECONDS", 0.05)

    def read(data: bytes) -> None:
        match data[0] % 4 if data != b"sample" else 0:
            case 1:
                raise DataError("refused")
            case 2:
                raise KeyError("a bug")
            case 3:
                while True:
                    pass

    values = iter(range(1000))
    reader = Reader([b"sample"], lambda _, __: bytes([next(values) % 256]), read)
    result = fuzz_reader(reader, "a reader", seconds=60, seed=0, inputs=12)
    assert {name: result[name] for name in ("ok", "refused", "traceback", "hang")} == {
        "ok": 3,
        "refused": 3,
        "traceback": 3,
        "hang": 3,
    }
    assert [example["count"] for example in result["examples"]] == [3, 3]


def test_a_sample_that_is_refused_is_an_error() -> None:
    def read(data: bytes) -> None:
        raise DataError("refused")

    with pytest.raises(RuntimeError, match="a valid sample is refused"):
        fuzz_reader(Reader([b"x"], mutate_bytes, read), "a reader", seconds=1, seed=0)

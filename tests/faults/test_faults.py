"""A short form of the attacks in `benchmarks/faults`: none may give a silent wrong answer, a loss or a leftover."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.faults import calls, flips, verbs


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("faults")
    verbs.make_input(home)
    return home


def no_bad(result: dict[str, object]) -> None:
    assert not [name for name in calls.BAD if result.get(name)], result


@pytest.mark.parametrize("flips_wanted", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_flipped_bits(tmp_path: Path, flips_wanted: int) -> None:
    result = flips.attack(tmp_path, flips_wanted, seed=1, shown=False, sampled=flips_wanted < 100)
    total = result["total"]
    assert isinstance(total, dict) and not total.get("silent") and not total.get("traceback"), result["examples"]


@pytest.mark.parametrize("verb", verbs.VERBS)
@pytest.mark.parametrize("how", ["errors", "kills"])
@pytest.mark.parametrize("attempts", [1, pytest.param(15, marks=pytest.mark.slow)])
def test_failing_calls_and_kills(world: Path, verb: str, how: str, attempts: int) -> None:
    if calls.compiler() is None:
        pytest.skip("no C compiler")
    no_bad(calls.attack(verb, how, attempts, seed=attempts, world=world))

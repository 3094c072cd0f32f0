"""A text that grows: the same numbers as for the whole passage, and a distribution of the next subword."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from kglm.heads.features import Features, next_log_probs
from kglm.heads.following import Following
from kglm.heads.growing import BaseStates, States
from kglm.heads.lattice import score_text
from kglm.heads.local import Link
from kglm.heads.prepared import prepare
from kglm.heads.reading import Reader, Reading
from kglm.heads.scoring import PassageScores
from support.causal import LETTERS
from support.letters import LetterWorld, letters

pytest.importorskip("transformers", reason="the extra hf is not installed")
V = len(LETTERS)
TEXTS = [(1, 6, 5, 2), (6, 5, 1, 3), (5, 6, 4, 1), (2, 2, 6, 6), (0, 7, 8, 5), (3, 5, 3, 5)]


@pytest.fixture(scope="module", params=["missing", "no missing", "few tails", "no encoder"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LetterWorld:
    home = tmp_path_factory.mktemp("letters")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KGLM_CACHE", str(home / "cache"))
        return LetterWorld(
            home / "world",
            missing=request.param != "no missing",
            max_tails=1 if request.param == "few tails" else 1000,
            encoder=request.param != "no encoder",
        )


def reader(world: LetterWorld, trust: float = 0.0) -> Reader:
    return Reader(world.heads, world.tables, trust)


def some_links(world: LetterWorld) -> list[Link]:
    return world.links((1, "Q1", 1.0), (2, "Q2", 0.4), (2, "Q4", 0.7))


def grown(world: LetterWorld, ids: Sequence[int], given: int, trust: float = 0.0) -> list[Reading]:
    """Readings after the first `given` subwords of a text, and after each further one."""
    start = reader(world, trust).read(letters(world, ids[:given]), some_links(world))
    found = [replace(start, at_end=False, reads_labels=False)]
    for id in ids[given:]:
        found.append(found[-1].step(id))
    return found


@pytest.mark.parametrize("trust", [0.0, 1.5])
@pytest.mark.parametrize("ids", TEXTS)
def test_both_forms_are_equal(
    world: LetterWorld, ids: tuple[int, ...], trust: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In full precision: the passage takes p_B of names from its features, which are stored in half precision."""
    monkeypatch.setattr(torch.Tensor, "half", torch.Tensor.float)
    states = BaseStates(world.base).last(ids, len(ids) + 1)
    ids_T, last_TD = torch.tensor(ids), states.last_TD[:-1]
    features = Features(ids_T, states.middle_TD[:-1], last_TD, *next_log_probs(world.base, last_TD, ids_T))
    prepared = prepare(world.passage(ids), features, world.tables, some_links(world), world.heads.config.max_tails)
    expected = score_text(PassageScores.of(world.heads, prepared, trust=trust))
    for given in (2, 3):
        readings = grown(world, ids, given, trust)
        for t in range(given, len(ids)):
            found = Following.of(readings[t - given])
            assert math.log(float(found.p_V[ids[t]])) == pytest.approx(float(expected.log_p_T[t]), abs=1e-5)
            assert readings[t - given].weights == pytest.approx(expected.states[t], abs=1e-5)
        assert readings[-1].weights == pytest.approx(expected.end, abs=1e-5)


@pytest.mark.parametrize("ids", TEXTS)
def test_what_is_read_at_once_equals_what_is_read_in_steps(world: LetterWorld, ids: tuple[int, ...]) -> None:
    whole, stepped = grown(world, ids, len(ids))[0], grown(world, ids, 2)[-1]
    assert torch.allclose(whole.g_1G, stepped.g_1G, atol=1e-5)
    assert torch.allclose(whole.log_p_V, stepped.log_p_V, atol=1e-5)
    assert whole.begun == stepped.begun


@pytest.mark.parametrize("ids", [(), *TEXTS])
def test_the_next_subword_sums_to_one(world: LetterWorld, ids: tuple[int, ...]) -> None:
    inside = [link for link in some_links(world) if link.end <= len(ids)]
    found = Following.of(reader(world).read(letters(world, ids), inside))
    assert float(found.p_V.sum()) == pytest.approx(1, abs=1e-5)
    for subword in range(V):
        assert sum(each.p for each in found.derivations(subword)) == pytest.approx(float(found.p_V[subword]), abs=1e-6)
    masses = found.plain + found.begun + float(found.facts.p_F.sum()) + sum(p for _, p in found.running)
    assert masses == pytest.approx(1, abs=1e-5)


def test_what_is_missing_is_a_part_of_the_words_of_the_base(world: LetterWorld) -> None:
    reading = grown(world, TEXTS[0], 4)[0]
    found = Following.of(reading)
    by_base = sum(each.p for each in [*found.missing, *found.large])
    share = float(reading.scores.plain_share_T[0])
    assert by_base == pytest.approx(found.related * share, abs=1e-4)
    if world.heads.config.missing:
        assert {each.relation for each in found.missing} - set(range(world.graph.relation_count))
    else:
        assert not found.missing


def test_without_trust_it_is_the_base(world: LetterWorld) -> None:
    for reading in grown(world, TEXTS[1], 2, trust=-math.inf):
        assert torch.equal(Following.of(reading).p_V, reading.log_p_V.exp())


def test_without_links_only_names_go_on(world: LetterWorld) -> None:
    reading = reader(world).read(letters(world, TEXTS[1]))
    found = Following.of(reading)
    assert not len(found.facts.p_F) and not found.running and found.related == 0
    assert float(found.p_V.sum()) == pytest.approx(1, abs=1e-5)


def test_a_fork_goes_on_by_itself(world: LetterWorld) -> None:
    start = grown(world, TEXTS[0], 3)[0]
    one, other = start.fork().step(5), start.fork().step(2)
    again = start.step(5)
    assert torch.allclose(one.step(1).log_p_V, again.step(1).log_p_V, atol=1e-5)
    assert not torch.allclose(other.step(1).log_p_V, again.step(1).log_p_V, atol=1e-3)


def test_readings_of_one_text_do_not_depend_on_their_order(world: LetterWorld) -> None:
    start = grown(world, TEXTS[0], 3)[0]
    first = start.step(5).step(2).log_p_V
    start.step(1).step(1)
    assert torch.allclose(start.step(5).step(2).log_p_V, first, atol=1e-5)


def test_what_nobody_looks_at_is_read_at_once_and_stays_the_same(
    world: LetterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = grown(world, TEXTS[0], 2)[0]
    looked_at = [start.fork()]
    for id in (5, 6, 1):
        looked_at.append(looked_at[-1].step(id, {None: 1.0}))
        assert looked_at[-1].log_p_V is not None
    counts = []
    last = BaseStates.last

    def counted(states: BaseStates, ids: Sequence[int], count: int) -> States:
        counts.append(count)
        return last(states, ids, count)

    monkeypatch.setattr(BaseStates, "last", counted)
    ways = [start.fork()]
    for id in (5, 6, 1):
        ways.append(ways[-1].step(id, {None: 1.0}))
    for expected, found in reversed(list(zip(looked_at, ways, strict=True))):
        assert torch.allclose(found.g_1G, expected.g_1G, atol=1e-5)
        assert torch.allclose(found.log_p_V, expected.log_p_V, atol=1e-5)
    assert counts == [3]
    assert torch.allclose(ways[2].step(1, {None: 1.0}).g_1G, looked_at[3].g_1G, atol=1e-5)


def test_facts_matter(world: LetterWorld) -> None:
    """Otherwise the tests above would hold for the base as well."""
    reading = grown(world, TEXTS[0], 3)[0]
    found = Following.of(reading)
    assert np.abs((found.p_V - reading.log_p_V.exp()).numpy()).max() > 0.02

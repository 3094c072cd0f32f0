"""Labels of tails as read by the base, and their part in the choice among the values of a relation."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from kglm.heads import scoring, tail_names
from kglm.heads.following import Following
from kglm.heads.reading import Reader, Reading
from kglm.heads.scoring import PassageScores
from kglm.heads.tail_names import FAR, MOST_TAILS, WEIGHT, LabelReader
from kglm.heads.tails import TailGroup, TailInputs
from kglm.kg.tail_features import NAMES
from support.letters import LetterWorld, letters

pytest.importorskip("transformers", reason="the extra hf is not installed")
TEXT = (1, 6, 5, 2)
LABELS = (" ab a", "b", " ab ab", " ab ab b", " a")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> LetterWorld:
    home = tmp_path_factory.mktemp("letters")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KGLM_CACHE", str(home / "cache"))
        return LetterWorld(home / "world")


@pytest.fixture
def reading(world: LetterWorld, monkeypatch: pytest.MonkeyPatch) -> Reading:
    """The end of a prompt, with a relation of two values."""
    monkeypatch.setattr(scoring, "LEAST_READ", 0.0)
    return Reader(world.heads, world.tables).read(letters(world, TEXT), world.links((1, "Q1", 1.0)))


def reader_of(reading: Reading) -> LabelReader:
    return LabelReader(reading.states.base, reading.text.passage, reading.log_p_V, reading.reader.tables.graph)


def by_base(world: LetterWorld, label: str, most: int = 99) -> float:
    """log p_B of the first subwords of a label behind the text."""
    ids = world.base.subwords.encode(label).ids[:most]
    return float(world.base.log_probs([*TEXT, *ids])[len(TEXT) :].sum())


def test_labels_are_as_probable_as_in_texts(world: LetterWorld, reading: Reading) -> None:
    found = reader_of(reading).log_probs(LABELS)
    assert found.tolist() == pytest.approx([by_base(world, label) for label in LABELS], abs=1e-4)


def test_long_labels_are_read_in_part(world: LetterWorld, reading: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(world.base.subwords.encode(LABELS[3]).ids) > 2
    for most, length in ((0, 1), (1, 2)):
        monkeypatch.setattr(tail_names, "MOST_SUBWORDS", most)
        found = reader_of(reading).log_probs(LABELS[2:])
        assert found.tolist() == pytest.approx([by_base(world, label, length) for label in LABELS[2:]], abs=1e-4)


def test_a_text_as_long_as_the_context_has_no_room_for_labels(world: LetterWorld) -> None:
    ids = [1, 6] * 31 + [5]
    reading = Reader(world.heads, world.tables).read(letters(world, ids), world.links((1, "Q1", 1.0)))
    assert reader_of(reading).log_probs(LABELS).tolist() == pytest.approx(
        [float(reading.log_p_V[world.base.subwords.encode(label).ids[0]]) for label in LABELS], abs=1e-4
    )


def test_gains_are_bounded(world: LetterWorld, reading: Reading) -> None:
    gain = reader_of(reading).gains(list(range(len(world.graph) - 4, len(world.graph))))
    assert float(gain.max()) == 0 and float(gain.min()) == pytest.approx(-WEIGHT * FAR)
    assert math.exp(WEIGHT * FAR) < 9


def test_values_of_a_relation_gain_by_their_labels(world: LetterWorld, reading: Reading) -> None:
    graph = world.graph
    relation = graph.find_relation("P1")
    assert relation is not None
    group = TailGroup(0, graph.number("Q1"), relation)
    tails = [graph.number(id) for id in ("Q2", "Q3")]
    without = replace(reading, reads_labels=False).scores
    before = [without.tail_prob(group, tail, 2) for tail in tails]
    found = [reading.scores.tail_prob(group, tail, 2) for tail in tails]
    labels = [by_base(world, f" {graph.label(tail)}") for tail in tails]
    gain = [WEIGHT * max(label - max(labels), -FAR) for label in labels]
    weights = [p * math.exp(each) for p, each in zip(before, gain, strict=True)]
    assert found == pytest.approx([weight / sum(weights) for weight in weights], abs=1e-4)
    assert sum(found) == pytest.approx(1, abs=1e-6)
    assert abs(found[0] - before[0]) > 0.01


def test_the_next_subword_sums_to_one(reading: Reading) -> None:
    assert float(Following.of(reading).p_V.sum()) == pytest.approx(1, abs=1e-5)


def test_the_text_goes_on_as_if_no_label_had_been_read(world: LetterWorld, reading: Reading) -> None:
    expected = replace(reading, reads_labels=False).step(5).step(2).log_p_V
    Following.of(reading)
    torch.testing.assert_close(reading.step(5).step(2).log_p_V, expected, rtol=1e-4, atol=1e-5)
    Following.of(reading)
    torch.testing.assert_close(reading.step(5).log_p_V, replace(reading).step(5).log_p_V, rtol=1e-4, atol=1e-5)


def test_the_posterior_is_that_of_the_distribution(reading: Reading) -> None:
    """One asks for all values of all relations, the other only for those that begin with the subword."""
    found = Following.of(reading)
    for id in (1, 5, 6):
        total, _ = scoring.step(replace(reading).scores, 0, id, reading.weights, float(reading.log_p_V[id].exp()))
        assert total == pytest.approx(float(found.p_V[id]), abs=1e-5)


def test_improbable_relations_are_not_read(reading: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(LabelReader, "gains", none)
    monkeypatch.setattr(scoring, "LEAST_READ", 1.1)
    Following.of(replace(reading))
    monkeypatch.setattr(scoring, "LEAST_READ", 0.0)
    with pytest.raises(AssertionError):
        Following.of(replace(reading))


def inputs(tails: list[int], told: list[list[float]] | None = None) -> tuple[TailInputs, torch.Tensor]:
    count = len(tails)
    fact_YQ = torch.zeros(count, len(NAMES))
    if told is not None:
        fact_YQ[:, :3] = torch.tensor(told)
    everywhere = torch.ones(count, dtype=torch.bool)
    return TailInputs(torch.zeros(count), torch.tensor(tails), fact_YQ, torch.zeros(count)), everywhere


def test_ranks_and_times_decide_where_the_graph_has_them(reading: Reading) -> None:
    reader = reader_of(reading)
    assert reader.reads(*inputs([0, 1]))
    assert not reader.reads(*inputs([0, 1], [[1.0, 0, 0], [0.0, 0, 0]]))
    assert not reader.reads(*inputs([0, 1], [[0, 1.0, 0], [0, 0.0, 0]]))
    assert reader.reads(*inputs([0, 1], [[1.0, 0, 0], [1.0, 0, 0]]))


def test_labels_of_many_tails_or_of_one_are_not_read(reading: Reading) -> None:
    reader = reader_of(reading)
    assert not reader.reads(*inputs([0]))
    assert reader.reads(*inputs([0, 1] * (MOST_TAILS // 2)))
    assert not reader.reads(*inputs([0, 1] * (MOST_TAILS // 2) + [2]))


def test_positions_inside_of_texts_have_no_labels(world: LetterWorld, reading: Reading) -> None:
    assert reading.step(5).scores.labels is None
    prepared = world.prepared(TEXT, world.links((1, "Q1", 1.0)))
    assert PassageScores.of(world.heads, prepared).labels is None

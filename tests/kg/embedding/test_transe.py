"""TransE: steps equal autograd, training is reproducible bit for bit and can be resumed."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from typer.testing import CliRunner

from kglm.cli.embed import embed
from kglm.config import describe
from kglm.errors import ConfigError, DataError, KglmError
from kglm.kg.embedding import transe
from kglm.kg.embedding.ranking import metrics
from kglm.kg.embedding.transe import StateKey, TransE, TransEConfig, embed_graph
from kglm.kg.embedding.transe_step import EPSILON, Pairs, Table
from kglm.kg.embedding.triples import FIRST_ENTITY, MEAN, GraphTriples, graph_triples
from kglm.kg.embedding.vectors import Vectors
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.snapshots import newest
from support.rings import SMALL, as_set, ring
from support.worlds import BORN, make_store

# A step


def unit(array: np.ndarray) -> np.ndarray:
    return (array / np.linalg.norm(array, axis=1, keepdims=True)).astype(np.float32)


def toy_pairs(generator: np.random.Generator, count: int, relations: int, entities: int) -> Pairs:
    """Few rows and many pairs: every row occurs several times, also twice in one pair."""
    draw = generator.integers
    return Pairs(
        relations + draw(0, entities, count),
        draw(0, relations, count),
        np.where(draw(0, 2, count), 1, -1).astype(np.float32),
        relations + draw(0, entities, count),
        relations + draw(0, entities, count),
    )


def delta(table: torch.Tensor, p: np.ndarray, r: np.ndarray, e: np.ndarray) -> torch.Tensor:
    return ((table[p] + table[r] - table[e]) ** 2).sum(1)


@pytest.mark.parametrize("optimiser", ["adagrad", "sgd"])
def test_steps_equal_autograd_with_a_dense_optimiser(optimiser: str) -> None:
    generator = np.random.default_rng(3)
    relations, entities, dim, rate, margin = 3, 7, 5, 0.05, 1.0
    start = generator.standard_normal((relations + entities, dim)).astype(np.float32)
    start[relations:] = unit(start[relations:])
    table = Table(start.copy(), np.full_like(start, EPSILON) if optimiser == "adagrad" else None, relations)
    oracle = torch.nn.Parameter(torch.from_numpy(start.copy()))
    descent: torch.optim.Optimizer
    if optimiser == "adagrad":
        descent = torch.optim.Adagrad([oracle], lr=rate, initial_accumulator_value=EPSILON, eps=0)
    else:
        descent = torch.optim.SGD([oracle], lr=rate)
    for _ in range(6):
        pairs = toy_pairs(generator, 40, relations, entities)
        x, r, s, y, n = pairs
        tail = s > 0
        true = delta(oracle, np.where(tail, x, y), r, np.where(tail, y, x))
        noise = delta(oracle, np.where(tail, x, n), r, np.where(tail, n, x))
        loss = (margin + true - noise).clamp_min(0)
        descent.zero_grad()
        loss.sum().backward()
        descent.step()
        with torch.no_grad():
            oracle[relations:] /= oracle[relations:].norm(dim=1, keepdim=True)
        active = table.step(pairs, margin, rate)
        assert active == int((loss > 0).sum()) and 0 < active < 40
        np.testing.assert_allclose(table.vector_RD, oracle.detach().numpy(), atol=2e-5)
    assert table.squares_RD is None or np.allclose(table.squares_RD, descent.state[oracle]["sum"], rtol=1e-4)


def test_step_changes_only_its_rows_and_keeps_unit_norm() -> None:
    generator = np.random.default_rng(0)
    start = unit(generator.standard_normal((50, 16)))
    table = Table(start.copy(), np.full_like(start, EPSILON), 10)
    rows = np.array([12, 13, 14])
    pairs = Pairs(rows[:1], np.array([4]), np.ones(1, np.float32), rows[1:2], rows[2:])
    assert table.step(pairs, 100.0, 0.5) == 1
    touched = {4, 12, 13, 14}
    assert {n for n in range(50) if not np.array_equal(table.vector_RD[n], start[n])} == touched
    np.testing.assert_allclose(np.linalg.norm(table.vector_RD[10:], axis=1), 1, rtol=1e-6)
    assert table.step(pairs, -1e9, 0.5) == 0


# Training


def trained(data: GraphTriples, config: TransEConfig) -> TransE:
    run = TransE(data, config)
    run.train()
    return run


def test_training_learns_the_structure_of_the_ring(data: GraphTriples) -> None:
    untrained = TransE(data, replace(SMALL, dim=16))
    run = trained(data, replace(SMALL, dim=16, epochs=150))
    before = metrics(data, data.triples.take(data.triples.tail > MEAN), *untrained.vectors())
    after = metrics(data, data.triples.take(data.triples.tail > MEAN), *run.vectors())
    assert after["mrr"] > 5 * before["mrr"] and run.active < 0.5


def test_shared_rows_of_dates_quantities_and_the_mean(data: GraphTriples) -> None:
    entity_RD, relation_RD = trained(data, SMALL).vectors()
    assert entity_RD.shape == (data.rows, 8) and relation_RD.shape == (data.relations, 8)
    assert not relation_RD[:2].any()
    used = np.unique(data.triples.relation)
    assert relation_RD[used].any(1).all()
    assert not np.delete(relation_RD, used, 0).any()
    np.testing.assert_allclose(entity_RD[MEAN], entity_RD[FIRST_ENTITY:].mean(0), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(np.delete(entity_RD, MEAN, 0), axis=1), 1, rtol=1e-6)
    knows, known_by = used[0], used[0] + 1
    assert known_by in used and not np.allclose(relation_RD[knows], -relation_RD[known_by], atol=0.01)


@pytest.mark.parametrize("optimiser", ["adagrad", "sgd"])
def test_same_seed_gives_identical_vectors(data: GraphTriples, optimiser: str) -> None:
    config = replace(SMALL, optimiser=optimiser, negatives=2)
    first, again = trained(data, config), trained(data, config)
    assert np.array_equal(first.table.vector_RD, again.table.vector_RD)
    other = trained(data, replace(config, seed=1))
    assert not np.array_equal(first.table.vector_RD, other.table.vector_RD)


def test_every_triple_is_used_once_per_epoch(data: GraphTriples, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transe, "ROUND_PAIRS", 64)
    run = TransE(data, replace(SMALL, negatives=2, epochs=2))
    seen: list[tuple[int, int, int]] = []
    first = data.relations

    def note(pairs: Pairs, margin: float, rate: float) -> int:
        for x, r, s, y, n in zip(*pairs, strict=True):
            seen.append((x - first, r, y - first) if s > 0 else (y - first, r, x - first))
            assert FIRST_ENTITY <= n - first < data.rows
        return 0

    monkeypatch.setattr(run.table, "step", note)
    run.train()
    assert run.rounds > 5 and len(seen) == 2 * 2 * len(run.training)
    half = len(seen) // 2
    assert set(seen[:half]) == set(seen[half:]) == as_set(run.training)
    assert seen[:half] != seen[half:]


def test_resumed_training_equals_uninterrupted_training(
    data: GraphTriples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transe, "ROUND_PAIRS", 64)
    whole = trained(data, SMALL)
    run = TransE(data, SMALL)
    key, other = (StateKey(transe.FORMAT, letter * 16, SMALL.determining()) for letter in "ab")
    while run.done < run.rounds * SMALL.epochs:
        run.train(seconds=1e-9)  # one round
        run.save(tmp_path / "state", key)
        run = TransE(data, SMALL)
        assert not run.restore(tmp_path / "state", other)
        assert run.restore(tmp_path / "state", key)
    assert np.array_equal(run.table.vector_RD, whole.table.vector_RD)
    assert np.array_equal(run.table.squares_RD, whole.table.squares_RD)


def test_damaged_state_is_ignored(data: GraphTriples, tmp_path: Path) -> None:
    run = trained(data, SMALL)
    key = StateKey(transe.FORMAT, "a" * 16, SMALL.determining())
    run.save(tmp_path / "state", key)
    directory = newest(tmp_path / "state")
    assert directory is not None
    (directory / "squares.npy").write_bytes((directory / "squares.npy").read_bytes()[:-9])
    again = TransE(data, SMALL)
    assert not again.restore(tmp_path / "state", key) and again.done == 0
    (directory / "meta.json").write_text("[]")
    assert not again.restore(tmp_path / "state", key)


def test_training_works_outside_the_main_thread(path: Path) -> None:
    reports: list[object] = []
    worker = threading.Thread(target=lambda: reports.append(embed_graph(path, SMALL)))
    worker.start()
    worker.join()
    assert len(reports) == 1


def test_embed_graph_reports_and_saves(tmp_path: Path) -> None:
    path = make_store(tmp_path, ring())
    threads = torch.get_num_threads()
    report = embed_graph(path, SMALL)
    assert torch.get_num_threads() == threads
    assert report.mrr is not None and 0 < report.mrr <= 1 and report.triples_per_second > 0
    assert report.held_out == 3 and report.entities == 64 and report.relations == 7 and not report.resumed
    vectors = Vectors.load(path)
    assert vectors.meta.metrics["mrr"] == report.mrr and vectors.meta.config["dim"] == 8
    with KnowledgeGraph.open(path) as graph:
        entity_RD, relation_RD = trained(graph_triples(graph), SMALL).vectors()
    assert np.array_equal(vectors.entity_RD, entity_RD) and np.array_equal(vectors.relation_RD, relation_RD)


def test_no_metrics_without_held_out_facts(tmp_path: Path) -> None:
    report = embed_graph(make_store(tmp_path, ring()), replace(SMALL, held_out=0))
    assert report.mrr is report.hits10 is None and report.held_out == 0
    json.dumps(report.mrr)


def test_graph_whose_tails_are_all_literals(tmp_path: Path) -> None:
    path = make_store(tmp_path, [("Q1", "P569", BORN)])
    report = embed_graph(path, SMALL)
    assert report.entities == 1 and report.mrr is None


# Bad input


@pytest.mark.parametrize(
    ("name", "value"),
    [("dim", 0), ("epochs", 0), ("learning_rate", 0.0), ("learning_rate", float("nan")), ("margin", -1.0),
     ("batch", 0), ("seed", -1), ("optimiser", "adam"), ("save_every", float("nan"))],
)  # fmt: skip
def test_invalid_settings_are_an_error(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        TransEConfig(**{name: value})  # type: ignore[arg-type]


def test_every_setting_has_a_description() -> None:
    assert set(describe(TransEConfig)) == set(TransEConfig.__dataclass_fields__)


def test_diverged_vectors_are_not_saved(tmp_path: Path) -> None:
    path = make_store(tmp_path, ring())
    with pytest.raises(KglmError, match="are not finite"):
        embed_graph(path, replace(SMALL, optimiser="sgd", learning_rate=1e38))
    assert newest(Path(f"{path}.vectors")) is None


def test_graph_without_facts_is_refused(tmp_path: Path) -> None:
    path = make_store(tmp_path, [("Q1", "P1", "Q2")])
    with KnowledgeGraph.open(path, writable=True) as graph:
        graph.remove("Q1", "P1", "Q2")
    with pytest.raises(DataError, match="no facts"):
        embed_graph(path, SMALL)


# The verb


def run(*arguments: object) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(embed)
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout


def test_embed_command_prints_metrics(tmp_path: Path) -> None:
    path = make_store(tmp_path, ring())
    code, output = run(path, "--dim", 8, "--epochs", 2, "--learning-rate", 0.05, "--batch", 32, "--seed", 3, "--json")
    report = json.loads(output)
    assert code == 0 and {"mrr", "hits1", "hits3", "hits10", "triples_per_second", "seconds"} <= set(report)
    config = Vectors.load(path).meta.config
    expected = TransEConfig(dim=8, epochs=2, learning_rate=0.05, batch=32, seed=3)
    assert config == asdict(expected)
    code, output = run(path, "--dim", 8, "--epochs", 2, "--force")
    assert code == 0 and "mrr" in output and "triples_per_second" in output


def test_help_of_the_embed_command_does_not_import_torch() -> None:
    code = "import sys, kglm.cli.embed; print('torch' in sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "False"

"""TransE: each step equals autograd, training is repeatable to the bit and survives a kill, ranks equal brute force."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
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
from kglm.kg import ranking, transe
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ranking import filtered_ranks, metrics
from kglm.kg.snapshots import newest
from kglm.kg.transe import TransE, TransEConfig, embed_graph
from kglm.kg.transe_step import TINY, Pairs, Table
from kglm.kg.triples import DATE, FIRST_ENTITY, MEAN, QUANTITY, GraphTriples, Triples, graph_triples, split
from kglm.kg.vectors import Vectors
from worlds import BORN, make_store

SMALL = TransEConfig(dim=8, epochs=3, batch=16, held_out=20, learning_rate=0.1)


def world(count: int = 60) -> list[tuple[str, str, str]]:
    """People who know their neighbours on a ring, live in one of four towns, and were born."""
    facts = [(f"Q{n}", "P1", f"Q{(n + step) % count}") for n in range(count) for step in (1, 2, 3)]
    facts += [(f"Q{n}", "P2", f"Q{1000 + n % 4}") for n in range(count)]
    facts += [(f"Q{n}", "P569", f"T::9::+{1900 + n}-00-00T00:00:00Z") for n in range(count)]
    facts += [(f"Q{n}", "P569", f"T::9::+{1901 + n}-00-00T00:00:00Z") for n in range(count)]
    facts += [(f"Q{n}", "P1082", f"V::{n}.0000::1") for n in range(0, count, 2)]
    facts += [(f"Q{n}", "P2:P1082", f"V::{n + 1}.0000::1") for n in range(0, count, 3)]
    return facts


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_store(tmp_path_factory.mktemp("world"), world(), {"Q5000": ("nobody",)})


@pytest.fixture
def data(path: Path) -> GraphTriples:
    with KnowledgeGraph.open(path) as graph:
        return graph_triples(graph)


def as_set(triples: Triples) -> set[tuple[int, int, int]]:
    return set(zip(*(column.tolist() for column in triples), strict=True))


# Triples


def test_rows_are_entities_with_facts_and_literals_share_two(path: Path) -> None:
    with KnowledgeGraph.open(path) as graph:
        data = graph_triples(graph)
        for node in range(len(graph)):
            row, id = data.row_of_node[node], graph.id(node)
            if id.startswith("T::"):
                assert row == DATE
            elif id.startswith("V::"):
                assert row == QUANTITY
            else:
                assert (row == MEAN) == (id == "Q5000")
        assert sorted(set(data.row_of_node.tolist())) == list(range(data.rows))


def test_triples_are_all_edges_but_reflexive_ones_each_once(path: Path) -> None:
    with KnowledgeGraph.open(path) as graph:
        data = graph_triples(graph)
        edges = {
            (int(data.row_of_node[node]), int(r), int(data.row_of_node[tail]))
            for node in range(len(graph))
            for r, tail in zip(*graph.edges(node), strict=True)
            if r > 1
        }
        assert as_set(data.known) == edges and len(data.known) == len(edges)
        born, qualifier = graph.find_relation("P569"), graph.find_relation("P2:P1082")
        assert (data.known.relation == born).sum() == 60  # two dates each: one triple
        assert (data.known.relation == qualifier).sum() == 20


def test_edits_are_in_the_triples(path: Path) -> None:
    with KnowledgeGraph.open(path) as stored:
        graph = stored.fork()
        graph.add("Q5000", "P1", "Q3")
        graph.add("Q5000", "P569", "1887")
        data = graph_triples(graph)
        nobody, other = data.row_of_node[graph.number("Q5000")], data.row_of_node[graph.number("Q3")]
        knows = graph.find_relation("P1")
        assert knows is not None
        assert {(nobody, knows, other), (other, knows + 1, nobody)} <= as_set(data.known)
        assert (nobody, graph.find_relation("P569"), DATE) in as_set(data.known)


def test_held_out_facts_go_with_their_reverses(data: GraphTriples) -> None:
    training, held_out = split(data, 50, np.random.default_rng(0))
    assert len(held_out) == 3  # 1 % of 240, rounded up
    reverse = Triples(held_out.tail, held_out.relation ^ 1, held_out.head)
    assert as_set(held_out) <= as_set(data.known) and (held_out.tail >= FIRST_ENTITY).all()
    assert as_set(training) == as_set(data.known) - as_set(held_out) - as_set(reverse)
    assert as_set(split(data, 50, np.random.default_rng(0)).held_out) == as_set(held_out)
    assert as_set(split(data, 50, np.random.default_rng(1)).held_out) != as_set(held_out)


def test_nothing_loses_its_last_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kglm.kg.triples.LARGEST_SHARE", 1.0)
    with KnowledgeGraph.open(make_store(tmp_path, world(12))) as graph:
        data = graph_triples(graph)
    for seed in range(10):
        training, held_out = split(data, 10_000, np.random.default_rng(seed))
        assert len(held_out) > 20
        assert set(training.head.tolist()) == set(data.known.head.tolist())
        assert set(training.relation.tolist()) == set(data.known.relation.tolist())


# A step


def unit(array: np.ndarray) -> np.ndarray:
    return (array / np.linalg.norm(array, axis=1, keepdims=True)).astype(np.float32)


def toy_pairs(generator: np.random.Generator, count: int, relations: int, entities: int) -> Pairs:
    """Few rows and many pairs: every row is met several times, also twice in one pair."""
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
    table = Table(start.copy(), np.full_like(start, TINY) if optimiser == "adagrad" else None, relations)
    oracle = torch.nn.Parameter(torch.from_numpy(start.copy()))
    descent: torch.optim.Optimizer
    if optimiser == "adagrad":
        descent = torch.optim.Adagrad([oracle], lr=rate, initial_accumulator_value=TINY, eps=0)
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


def test_a_step_leaves_other_rows_alone_and_entities_at_unit_norm() -> None:
    generator = np.random.default_rng(0)
    start = unit(generator.standard_normal((50, 16)))
    table = Table(start.copy(), np.full_like(start, TINY), 10)
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


def test_training_finds_the_structure(data: GraphTriples) -> None:
    untrained = TransE(data, replace(SMALL, dim=16))
    run = trained(data, replace(SMALL, dim=16, epochs=150))
    before = metrics(data, data.known.take(data.known.tail > MEAN), *untrained.vectors())
    after = metrics(data, data.known.take(data.known.tail > MEAN), *run.vectors())
    assert after["mrr"] > 5 * before["mrr"] and run.active < 0.5


def test_special_rows(data: GraphTriples) -> None:
    entity_RD, relation_RD = trained(data, SMALL).vectors()
    assert entity_RD.shape == (data.rows, 8) and relation_RD.shape == (data.relations, 8)
    assert not relation_RD[:2].any()
    used = np.unique(data.known.relation)
    assert relation_RD[used].any(1).all()
    assert not np.delete(relation_RD, used, 0).any()
    np.testing.assert_allclose(entity_RD[MEAN], entity_RD[FIRST_ENTITY:].mean(0), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(np.delete(entity_RD, MEAN, 0), axis=1), 1, rtol=1e-6)
    knows, known_by = used[0], used[0] + 1
    assert known_by in used and not np.allclose(relation_RD[knows], -relation_RD[known_by], atol=0.01)


@pytest.mark.parametrize("optimiser", ["adagrad", "sgd"])
def test_the_same_seed_gives_the_same_bits(data: GraphTriples, optimiser: str) -> None:
    config = replace(SMALL, optimiser=optimiser, negatives=2)
    first, again = trained(data, config), trained(data, config)
    assert np.array_equal(first.table.vector_RD, again.table.vector_RD)
    other = trained(data, replace(config, seed=1))
    assert not np.array_equal(first.table.vector_RD, other.table.vector_RD)


def test_every_triple_is_seen_once_in_an_epoch(data: GraphTriples, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transe, "ROUND", 64)
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


def test_going_on_from_a_state_is_never_stopping(
    data: GraphTriples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transe, "ROUND", 64)
    whole = trained(data, SMALL)
    run = TransE(data, SMALL)
    while run.done < run.rounds * SMALL.epochs:
        run.train(seconds=1e-9)  # one round
        run.save(tmp_path / "state", {"key": 1})
        run = TransE(data, SMALL)
        assert not run.restore(tmp_path / "state", {"key": 2})
        assert run.restore(tmp_path / "state", {"key": 1})
    assert np.array_equal(run.table.vector_RD, whole.table.vector_RD)
    assert np.array_equal(run.table.squares_RD, whole.table.squares_RD)


def test_a_damaged_state_is_passed_over(data: GraphTriples, tmp_path: Path) -> None:
    run = trained(data, SMALL)
    run.save(tmp_path / "state", {})
    directory = newest(tmp_path / "state")
    assert directory is not None
    (directory / "squares.npy").write_bytes((directory / "squares.npy").read_bytes()[:-9])
    again = TransE(data, SMALL)
    assert not again.restore(tmp_path / "state", {}) and again.done == 0
    (directory / "meta.json").write_text("[]")
    assert not again.restore(tmp_path / "state", {})


EMBED = """
import sys
from kglm.kg import transe
transe.ROUND = 64
config = transe.TransEConfig(dim=32, epochs=int(sys.argv[2]), batch=16, save_every=float(sys.argv[3]))
print("start", flush=True)
print(transe.embed_graph(sys.argv[1], config).resumed)
"""


def started(path: Path, epochs: int = 40, save_every: float = 0) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", EMBED, str(path), str(epochs), str(save_every)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def wait_for_state(path: Path) -> None:
    deadline = time.monotonic() + 60
    while newest(Path(f"{path}.vectors.partial")) is None and time.monotonic() < deadline:
        time.sleep(0.01)


def finished(path: Path) -> tuple[str, bytes]:
    output, _ = started(path, save_every=1e9).communicate()
    directory = newest(Path(f"{path}.vectors"))
    assert directory is not None and not Path(f"{path}.vectors.partial").exists()
    return output.strip(), b"".join((directory / f"{name}.npy").read_bytes() for name in ("entity", "relation"))


def test_killed_and_run_again_is_never_killed(tmp_path: Path) -> None:
    whole, killed = (make_store(tmp_path / name, world()) for name in ("whole", "killed"))
    for pause in (0.0, 0.15):
        process = started(killed)
        wait_for_state(killed)
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert newest(Path(f"{killed}.vectors")) is None
    resumed, vectors = finished(killed)
    assert resumed == "True"
    assert ("False", vectors) == finished(whole)


def test_ctrl_c_leaves_a_state_to_go_on_from(tmp_path: Path) -> None:
    path = make_store(tmp_path, world())
    process = started(path, 100_000)
    wait_for_state(path)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0 and "KeyboardInterrupt" in errors
    assert newest(Path(f"{path}.vectors.partial")) is not None
    assert not Path(f"{path}.vectors.lock").exists()


def test_a_thread_can_train(path: Path) -> None:
    reports: list[object] = []
    worker = threading.Thread(target=lambda: reports.append(embed_graph(path, SMALL)))
    worker.start()
    worker.join()
    assert len(reports) == 1


def test_embedding_a_graph(tmp_path: Path) -> None:
    path = make_store(tmp_path, world())
    threads = torch.get_num_threads()
    report = embed_graph(path, SMALL)
    assert torch.get_num_threads() == threads
    assert report.mrr is not None and 0 < report.mrr <= 1 and report.triples_per_second > 0
    assert report.held_out == 3 and report.entities == 64 and report.relations == 7 and not report.resumed
    vectors = Vectors.load(path)
    assert vectors.meta["metrics"]["mrr"] == report.mrr and vectors.meta["config"]["dim"] == 8
    with KnowledgeGraph.open(path) as graph:
        entity_RD, relation_RD = trained(graph_triples(graph), SMALL).vectors()
    assert np.array_equal(vectors.entity_RD, entity_RD) and np.array_equal(vectors.relation_RD, relation_RD)


def test_nothing_held_out_means_nothing_measured(tmp_path: Path) -> None:
    report = embed_graph(make_store(tmp_path, world()), replace(SMALL, held_out=0))
    assert report.mrr is report.hits10 is None and report.held_out == 0
    json.dumps(report.mrr)


def test_a_graph_of_literals_only_has_vectors(tmp_path: Path) -> None:
    path = make_store(tmp_path, [("Q1", "P569", BORN)])
    report = embed_graph(path, SMALL)
    assert report.entities == 1 and report.mrr is None


# Ranks


def brute_force_ranks(
    data: GraphTriples, facts: Triples, entity: np.ndarray, relation: np.ndarray
) -> list[list[float]]:
    known = as_set(data.known)
    result: list[list[float]] = [[], []]
    for p, r, e in zip(*facts, strict=True):
        for side in (0, 1):
            better = same = 0
            own = ((entity[p] + relation[r] - entity[e]) ** 2).sum()
            for other in range(FIRST_ENTITY, data.rows):
                triple = (p, r, other) if side == 0 else (other, r, e)
                if triple in known:
                    continue
                distance = ((entity[triple[0]] + relation[r] - entity[triple[2]]) ** 2).sum()
                better += distance < own
                same += distance == own
            result[side].append(1 + better + same / 2)
    return result


@pytest.mark.parametrize("at_once", [1, 100, 1 << 20])
def test_ranks_equal_brute_force(data: GraphTriples, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole numbers: distances are exact, and there are many ties. Not of unit norm, which ranks do not rely on."""
    monkeypatch.setattr(ranking, "SCORES_AT_ONCE", at_once)
    generator = np.random.default_rng(5)
    entity = generator.integers(-1, 2, (data.rows, 3)).astype(np.float32)
    relation = generator.integers(-1, 2, (data.relations, 3)).astype(np.float32)
    facts = split(data, 50, generator).held_out
    more = data.known.take(generator.permutation(np.flatnonzero(data.known.tail > MEAN))[:30])
    for asked in (facts, more):
        found = filtered_ranks(data, asked, entity, relation)
        assert found.tolist() == brute_force_ranks(data, asked, entity, relation)
        measured = metrics(data, asked, entity, relation)
        assert measured["mrr"] == pytest.approx(np.mean(1 / found))
        assert measured["hits3"] == pytest.approx(np.mean(found <= 3))


# Bad input


@pytest.mark.parametrize(
    ("name", "value"),
    [("dim", 0), ("epochs", 0), ("learning_rate", 0.0), ("learning_rate", float("nan")), ("margin", -1.0),
     ("batch", 0), ("seed", -1), ("optimiser", "adam"), ("save_every", float("nan"))],
)  # fmt: skip
def test_wrong_settings_are_named(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        TransEConfig(**{name: value})  # type: ignore[arg-type]


def test_every_setting_is_described() -> None:
    assert set(describe(TransEConfig)) == set(TransEConfig.__dataclass_fields__)


def test_vectors_that_diverge_are_not_saved(tmp_path: Path) -> None:
    path = make_store(tmp_path, world())
    with pytest.raises(KglmError, match="no longer numbers"):
        embed_graph(path, replace(SMALL, optimiser="sgd", learning_rate=1e38))
    assert newest(Path(f"{path}.vectors")) is None


def test_a_graph_without_facts_is_refused(tmp_path: Path) -> None:
    path = make_store(tmp_path, [("Q1", "P1", "Q2")])
    with KnowledgeGraph.open(path, writable=True) as graph:
        graph.remove("Q1", "P1", "Q2")
    with pytest.raises(DataError, match="no facts"):
        embed_graph(path, SMALL)


def test_two_at_once_are_told(tmp_path: Path) -> None:
    path = make_store(tmp_path, world())
    process = started(path, 100_000)
    try:
        wait_for_state(path)
        with pytest.raises(KglmError, match="being made"):
            embed_graph(path, SMALL)
    finally:
        process.kill()
        process.communicate()


# The verb


def run(*arguments: object) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(embed)
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout


def test_the_verb_prints_measures(tmp_path: Path) -> None:
    path = make_store(tmp_path, world())
    code, output = run(path, "--dim", 8, "--epochs", 2, "--learning-rate", 0.05, "--batch", 32, "--seed", 3, "--json")
    report = json.loads(output)
    assert code == 0 and {"mrr", "hits1", "hits3", "hits10", "triples_per_second", "seconds"} <= set(report)
    config = Vectors.load(path).meta["config"]
    expected = TransEConfig(dim=8, epochs=2, learning_rate=0.05, batch=32, seed=3)
    assert config == asdict(expected)
    code, output = run(path, "--dim", 8, "--epochs", 2)
    assert code == 0 and "mrr" in output and "triples_per_second" in output


def test_the_verb_does_not_wait_for_torch_to_show_its_help() -> None:
    code = "import sys, kglm.cli.embed; print('torch' in sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "False"

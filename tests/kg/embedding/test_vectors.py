"""Vectors beside a graph: loaded after edits, refused for another graph, induced for later nodes."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pytest

from kglm.errors import DataError, KglmError, VersionError
from kglm.kg.compiled import compile_store
from kglm.kg.edits import FactEdit, NewEntity
from kglm.kg.embedding import vectors as module
from kglm.kg.embedding.triples import DATE, FIRST_ENTITY, MEAN, QUANTITY, graph_triples
from kglm.kg.embedding.vectors import GraphVectors, Vectors, VectorsMeta, graph_identity
from kglm.kg.graph import KnowledgeGraph, RaggedEdges
from kglm.kg.snapshots import newest
from kglm.kg.store import Store
from support.artefacts import accept
from support.steps import steps
from support.worlds import make_store

FACTS = [
    ("Q1", "P1", "Q2"),
    ("Q2", "P1", "Q3"),
    ("Q3", "P2", "Q1"),
    ("Q1", "P569", "T::9::+1961-00-00T00:00:00Z"),
    ("Q2", "P2048", "V::2.0000::1"),
]
NAMES = {"Q1": ("one",), "Q10": ("ten",), "Q11": ("eleven",), "P7": ("seven",), "P8": ("eight",), "P9": ("nine",)}
DIM = 6


def random_vectors(graph: KnowledgeGraph, seed: int = 0) -> Vectors:
    """Untrained vectors in the format of the trainer."""
    data = graph_triples(graph)
    generator = np.random.default_rng(seed)
    entity_RD = generator.standard_normal((data.rows, DIM)).astype(np.float32)
    entity_RD /= np.linalg.norm(entity_RD, axis=1, keepdims=True)
    entity_RD[MEAN] = entity_RD[FIRST_ENTITY:].mean(0)
    relation_RD = np.zeros((data.relations, DIM), np.float32)
    used = np.unique(data.triples.relation)
    relation_RD[used] = generator.standard_normal((len(used), DIM))
    return Vectors(
        entity_RD, relation_RD, data.row_of_node, VectorsMeta(graph=graph_identity(graph), metrics={"mrr": 0.5})
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = make_store(tmp_path, FACTS, NAMES)
    with KnowledgeGraph.open(path) as graph:
        random_vectors(graph).save(path)
    return path


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def of(vectors: GraphVectors, graph: KnowledgeGraph, id: str) -> np.ndarray:
    return vectors.entity_vectors([graph.number(id)])[0]


def relation(vectors: GraphVectors, graph: KnowledgeGraph, id: str) -> np.ndarray:
    index = graph.find_relation(id)
    assert index is not None
    return vectors.relation_RD[index]


# On disk


def test_save_and_load(path: Path) -> None:
    with KnowledgeGraph.open(path) as graph:
        made, loaded = random_vectors(graph), Vectors.load(path)
        for name in ("entity_RD", "relation_RD", "row_of_node"):
            assert np.array_equal(getattr(made, name), getattr(loaded, name))
            assert not getattr(loaded, name).flags.writeable
        assert loaded.meta.metrics == {"mrr": 0.5} and loaded.dim == DIM
        vectors = loaded.for_graph(graph)
        assert vectors.entity_RD is loaded.entity_RD and vectors.relation_RD is loaded.relation_RD
        numbers = np.arange(len(graph))
        assert np.array_equal(vectors.rows(numbers), loaded.row_of_node)
        assert np.array_equal(vectors.entity_vectors(numbers), made.entity_RD[made.row_of_node])
        assert [graph.id(int(node)) for node in loaded.node_of_row] == ["Q1", "Q2", "Q3"]
        assert not vectors.relation_RD[0].any()


def test_dates_quantities_and_entities_without_facts_share_vectors(path: Path) -> None:
    with KnowledgeGraph.open(path) as graph:
        vectors = Vectors.load(path).for_graph(graph)
        ids = ["T::9::+1961-00-00T00:00:00Z", "V::2.0000::1", "Q10", "Q11"]
        assert vectors.rows([graph.number(id) for id in ids]).tolist() == [DATE, QUANTITY, MEAN, MEAN]
        assert np.array_equal(of(vectors, graph, "Q10"), vectors.entity_RD[MEAN])


def test_reader_keeps_old_vectors_when_new_ones_are_saved(path: Path) -> None:
    old = Vectors.load(path)
    before = old.entity_RD.copy()
    leftover = Path(f"{path}.vectors/.2.killed.tmp")
    leftover.mkdir()
    with KnowledgeGraph.open(path) as graph:
        random_vectors(graph, seed=1).save(path)
        assert np.array_equal(Vectors.load(path).entity_RD, random_vectors(graph, seed=1).entity_RD)
    assert np.array_equal(old.entity_RD, before)
    assert [directory.name for directory in Path(f"{path}.vectors").iterdir()] == ["2"]


def test_reader_during_a_replacement_finds_the_new_vectors(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = iter([Path(f"{path}.vectors/0")])
    monkeypatch.setattr(module, "newest", lambda home: next(seen, newest(home)))
    assert Vectors.load(path).dim == DIM


def test_missing_vectors_are_an_error(tmp_path: Path) -> None:
    path = make_store(tmp_path, FACTS)
    with pytest.raises(DataError, match="has no vectors; make them with: kglm kg embed"):
        Vectors.load(path)
    Path(f"{path}.vectors").mkdir()
    with pytest.raises(DataError, match="has no vectors"):
        Vectors.load(path)


def change_meta(path: Path, **values: object) -> None:
    file = Path(f"{path}.vectors/1/meta.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | values))
    accept(file.parent)


def test_vectors_of_another_format_are_an_error(path: Path) -> None:
    change_meta(path, format=99)
    with pytest.raises(VersionError, match=r"format 99.*reads format 1.*embed"):
        Vectors.load(path)


@pytest.mark.parametrize(
    ("file", "content"),
    [("meta.json", b"{"), ("meta.json", b'{"format": 1}'),
     ("meta.json", b'{"format": 1, "nodes": 10, "rows": 6, "relations": 16, "dim": 6, "graph": {}}'),
     ("entity.npy", None), ("entity.npy", b""),
     ("relation.npy", b"not an array"), ("row_of_node.npy", b"\x93NUMPY\x01")],
)  # fmt: skip
def test_damaged_file_is_named(path: Path, file: str, content: bytes | None) -> None:
    damaged = Path(f"{path}.vectors/1/{file}")
    damaged.unlink()
    if content is not None:
        damaged.write_bytes(content)
    with pytest.raises(KglmError, match=file):
        Vectors.load(path)


@pytest.mark.parametrize("file", ["entity.npy", "relation.npy", "row_of_node.npy"])
def test_truncated_file_is_named(path: Path, file: str) -> None:
    damaged = Path(f"{path}.vectors/1/{file}")
    damaged.write_bytes(damaged.read_bytes()[:-5])
    with pytest.raises(DataError, match=f"{file}.*embed"):
        Vectors.load(path)


@pytest.mark.parametrize("wrong", [np.zeros((2, DIM), np.float32), np.zeros((6, DIM), np.float64)])
def test_wrong_shape_is_an_error(path: Path, wrong: np.ndarray) -> None:
    np.save(f"{path}.vectors/1/entity.npy", wrong)
    with pytest.raises(DataError, match=r"entity.npy: is damaged: has .* bytes instead of"):
        Vectors.load(path)
    accept(Path(f"{path}.vectors/1"))
    with pytest.raises(DataError, match=r"entity has shape \(2, 6\)|has float64 values"):
        Vectors.load(path)


# Whose they are


def test_vectors_of_another_graph_are_refused(path: Path, tmp_path: Path) -> None:
    smaller = make_store(tmp_path / "smaller", FACTS[:2])
    renamed = make_store(tmp_path / "renamed", [(h.replace("Q3", "Q4"), r, t.replace("Q3", "Q4")) for h, r, t in FACTS], NAMES)  # fmt: skip # noqa: E501
    for other, message in ((smaller, "vectors of 10 nodes"), (renamed, "another graph")):
        with KnowledgeGraph.open(other) as graph, pytest.raises(DataError, match=message):
            Vectors.load(path).for_graph(graph)


def test_vectors_fit_the_graph_after_edits_and_a_new_import(path: Path, tmp_path: Path) -> None:
    vectors = Vectors.load(path)
    with KnowledgeGraph.open(path, writable=True) as graph:
        graph.set("Q1", "P1", "Q3")
        before = vectors.for_graph(graph).entity_vectors(np.arange(len(graph)))
        graph.undo()
        assert np.array_equal(vectors.for_graph(graph).entity_vectors(np.arange(len(graph))), before)
    with KnowledgeGraph.open(make_store(tmp_path / "again", FACTS, NAMES)) as graph:
        vectors.for_graph(graph)


def test_vectors_trained_after_edits_fit_the_recompiled_graph(path: Path) -> None:
    with KnowledgeGraph.open(path, writable=True) as graph:
        graph.edit([NewEntity("Q20", ("twenty",)), FactEdit("add", "Q20", "P9", "Q1")])
        made = random_vectors(graph)
        made.save(path)
        numbers = np.arange(len(graph))
        expected = made.for_graph(graph).entity_vectors(numbers)
    with Store.open(path) as store:
        compile_store(store)
    with KnowledgeGraph.open(path) as graph:
        loaded = Vectors.load(path)
        trained_on = msgspec.structs.replace(loaded.meta.graph, digest="0" * 16)
        object.__setattr__(loaded, "meta", msgspec.structs.replace(loaded.meta, graph=trained_on))
        assert np.array_equal(loaded.for_graph(graph).entity_vectors(numbers), expected)


# What was added since


def test_edit_does_not_change_trained_vectors(path: Path) -> None:
    with KnowledgeGraph.open(path) as stored:
        graph, trained = stored.fork(), Vectors.load(path)
        numbers = np.arange(len(graph))
        before = trained.for_graph(stored).entity_vectors(numbers)
        graph.remove("Q1", "P1", "Q2")
        graph.add("Q2", "P2", "Q1")
        graph.set("Q1", "P569", "1999")
        vectors = trained.for_graph(graph)
        assert np.array_equal(vectors.entity_vectors(numbers), before)
        assert vectors.rows([len(graph) - 1]).tolist() == [DATE]


def test_new_entity_gets_the_mean_of_the_estimates_of_its_facts(path: Path) -> None:
    with KnowledgeGraph.open(path) as stored:
        graph = stored.fork()
        graph.edit([NewEntity("Q20", ("twenty",)), NewEntity("Q21", ("idle",))])
        graph.add("Q20", "P1", "Q2")
        graph.add("Q3", "P2", "Q20")
        graph.add("Q20", "P569", "1970")
        graph.add("Q20", "P2048", "V::7.0000::1")
        vectors = Vectors.load(path).for_graph(graph)
        v, r = (lambda id: of(vectors, graph, id)), (lambda id: relation(vectors, graph, id))
        table = vectors.entity_RD
        estimates = [v("Q2") - r("P1"), v("Q3") + r("P2"), table[DATE] - r("P569"), table[QUANTITY] - r("P2048")]
        np.testing.assert_allclose(v("Q20"), unit(np.mean(estimates, 0)), atol=1e-6)
        assert np.array_equal(v("Q21"), table[MEAN])
        assert vectors.rows([graph.number("Q20")]).tolist() == [len(table)]
        assert np.array_equal(vectors.late_LD, [v("Q20")])


def test_first_fact_of_an_entity_gives_it_a_vector(path: Path) -> None:
    with KnowledgeGraph.open(path) as stored:
        graph = stored.fork()
        graph.add("Q1", "P1", "Q10")
        vectors = Vectors.load(path).for_graph(graph)
        expected = unit(of(vectors, graph, "Q1") + relation(vectors, graph, "P1"))
        np.testing.assert_allclose(of(vectors, graph, "Q10"), expected, atol=1e-6)
        assert np.array_equal(of(vectors, graph, "Q11"), vectors.entity_RD[MEAN])
        later = len(graph)  # a node that is made after `for_graph` is not yet known to it
        assert (
            vectors.rows([graph.number("Q1"), later]).tolist() == [FIRST_ENTITY, MEAN]
            and vectors.rows(0).dtype == np.int32
        )
        graph.undo()
        assert np.array_equal(of(Vectors.load(path).for_graph(graph), graph, "Q10"), vectors.entity_RD[MEAN])


def test_new_entities_whose_neighbours_are_new(path: Path) -> None:
    """Vectors spread from trained nodes; new nodes without a path to one get the mean vector."""
    with KnowledgeGraph.open(path) as stored:
        graph = stored.fork()
        graph.edit([NewEntity(f"Q{n}", (str(n),)) for n in (30, 31, 32, 40, 41)])
        for head, tail in (("Q32", "Q31"), ("Q31", "Q30"), ("Q30", "Q1"), ("Q40", "Q41"), ("Q41", "Q40")):
            graph.add(head, "P1", tail)
        vectors = Vectors.load(path).for_graph(graph)
        v, r = (lambda id: of(vectors, graph, id)), relation(vectors, graph, "P1")
        for head, tail in (("Q30", "Q1"), ("Q31", "Q30"), ("Q32", "Q31")):
            np.testing.assert_allclose(v(head), unit(v(tail) - r), atol=1e-6)
        assert np.array_equal(v("Q40"), vectors.entity_RD[MEAN]) and np.array_equal(v("Q41"), vectors.entity_RD[MEAN])


def test_new_relation_is_the_mean_difference_of_tail_and_head(path: Path) -> None:
    with KnowledgeGraph.open(path) as stored:
        graph = stored.fork()
        graph.edit([NewEntity("Q20", ("twenty",)), NewEntity("Q22", ("other",))])
        for head, r, tail in (("Q1", "P7", "Q2"), ("Q3", "P7", "Q1"), ("Q20", "P7", "Q3"), ("Q20", "P8", "Q22")):
            graph.add(head, r, tail)
        vectors = Vectors.load(path).for_graph(graph)
        v, r = (lambda id: of(vectors, graph, id)), relation(vectors, graph, "P7")
        np.testing.assert_allclose(r, (v("Q2") - v("Q1") + v("Q1") - v("Q3")) / 2, atol=1e-6)
        np.testing.assert_allclose(relation(vectors, graph, "R:P7"), -r, atol=1e-6)
        np.testing.assert_allclose(v("Q20"), unit(v("Q3") - r), atol=1e-6)
        assert not relation(vectors, graph, "P8").any() and not relation(vectors, graph, "R:P8").any()
        np.testing.assert_allclose(v("Q22"), v("Q20"), atol=1e-6)
        assert len(vectors.relation_RD) == graph.relation_count


def test_compiled_edits_give_the_same_vectors_as_the_overlay(path: Path) -> None:
    edits = [
        NewEntity("Q20", ("twenty",)),
        FactEdit("add", "Q20", "P7", "Q2"),
        FactEdit("add", "Q1", "P7", "Q10"),
        FactEdit("add", "Q1", "P7", "Q2"),
    ]
    with KnowledgeGraph.open(path, writable=True) as graph:
        graph.edit(edits)
        in_overlay = Vectors.load(path).for_graph(graph)
        numbers = np.arange(len(graph))
    with Store.open(path) as store:
        compile_store(store)
    with KnowledgeGraph.open(path) as graph:
        assert len(graph.overlay.base) == len(graph)
        compiled = Vectors.load(path).for_graph(graph)
        assert np.array_equal(compiled.entity_vectors(numbers), in_overlay.entity_vectors(numbers))
        assert np.array_equal(compiled.relation_RD, in_overlay.relation_RD)
        twin = graph.fork()
        twin.remove("Q1", "P7", "Q2")
        assert not relation(Vectors.load(path).for_graph(twin), twin, "P7").any()


def test_late_nodes_are_processed_in_batches(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with KnowledgeGraph.open(path) as stored:
        graph = stored.fork()
        graph.edit([NewEntity(f"Q{n}", (str(n),)) for n in range(100, 120)])
        for n in range(100, 120):
            graph.add(f"Q{n}", "P1", "Q1" if n % 3 else f"Q{100 + (n + 1) % 20}")
        numbers = np.arange(len(graph))
        whole = Vectors.load(path).for_graph(graph).entity_vectors(numbers)
        monkeypatch.setattr(module, "NODES_AT_ONCE", 3)
        assert np.array_equal(Vectors.load(path).for_graph(graph).entity_vectors(numbers), whole)


def test_work_for_new_nodes_does_not_grow_with_the_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the edges of edited and new nodes are read."""
    read, edges_of = [], KnowledgeGraph.edges_of

    def counted(self: KnowledgeGraph, numbers: npt.ArrayLike) -> RaggedEdges:
        read.append(len(np.asarray(numbers)))
        return edges_of(self, numbers)

    facts = [(f"Q{n}", "P1", f"Q{n * 7 % 5000}") for n in range(1, 5000)]
    with KnowledgeGraph.open(make_store(tmp_path, facts, NAMES)) as stored:
        trained, graph = random_vectors(stored), stored.fork()
        graph.edit([NewEntity(f"Q_{n}", (str(n),)) for n in range(5)])
        for n in range(5):
            graph.add(f"Q_{n}", "P1", f"Q{n + 1}")
            graph.add(f"Q_{n}", "P7", f"Q{n + 9}")
        monkeypatch.setattr(KnowledgeGraph, "edges_of", counted)
        trained.for_graph(graph)
        assert 0 < sum(read) < 50, "5 new nodes and their 10 neighbours"
        assert steps(lambda: trained.for_graph(graph)) < 2000


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["entity", "relation"])
def test_vectors_that_are_not_finite_are_refused(path: Path, name: str, value: float) -> None:
    file = Path(f"{path}.vectors/1/{name}.npy")
    array = np.load(file)
    array[3, 1] = value
    np.save(file, array)
    accept(file.parent)
    with pytest.raises(DataError, match=f"row 3 of the {name} vectors is not finite.*embed"):
        Vectors.load(path, whole=True)
    with KnowledgeGraph.open(path) as graph:
        made = random_vectors(graph)
        (made.entity_RD if name == "entity" else made.relation_RD)[2, 0] = value
        with pytest.raises(DataError, match="is not finite"):
            made.save(path)
    assert newest(Path(f"{path}.vectors")) == Path(f"{path}.vectors/1")

"""The index of names: lookup, spans of a text, the cache on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kglm.kg.edits import FactEdit, NewEntity
from kglm.kg.graph import KnowledgeGraph
from kglm.linking.name_index import MAX_WORDS, NameIndex, _sorted
from support.worlds import make_store

FACTS = [("Q1", "P1", "Q2"), ("Q2", "P2", "T::11::+1989-04-21T00:00:00Z"), ("Q3", "P1", "Q1")]
NAMES = {"Q1": ("Mario Land", "Mario"), "Q2": ("Game Boy",), "Q3": ("Mario", "x " * (MAX_WORDS + 1))}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make_store(tmp_path, FACTS, NAMES)


def index(path: Path) -> NameIndex:
    with KnowledgeGraph.open(path) as graph:
        return NameIndex.for_graph(graph)


def names_of(names: NameIndex) -> list[Sequence[int]]:
    return [names["Mario",], names["Mario", "Land"], names["Game", "Boy"], names["Boy",]]


def ids(path: Path, nodes: object) -> set[str]:
    with KnowledgeGraph.open(path) as graph:
        return {graph.id(node) for node in nodes}  # type: ignore[attr-defined]


def test_lookup_of_names(store: Path) -> None:
    names = index(store)
    assert ids(store, names["Game", "Boy"]) == {"Q2"}
    assert ids(store, names["Mario",]) == {"Q1", "Q3"}
    assert not names["Boy",] and not names["game", "boy"], "a lookup needs the whole name in its case"
    assert len(names) == 3 and names.longest == 2


def test_spans_of_a_text(store: Path) -> None:
    found = [(start, end) for start, end, _ in index(store).spans(["the", "Mario", "Land", "on", "Game", "Boy"])]
    assert found == [(1, 2), (1, 3), (4, 6)]


WORDS = st.sampled_from(["a", "b", "of", "A", "", "ü", "\ud800"])


@given(st.lists(st.lists(WORDS, min_size=1, max_size=4), max_size=12), st.lists(WORDS, max_size=12))
def test_spans_are_those_of_a_search_of_every_span(names: list[list[str]], text: list[str]) -> None:
    split = len(names) // 2
    first = NameIndex(*_sorted((tuple(words), node) for node, words in enumerate(names[:split])), split)
    both = first.including(((tuple(words), split + node) for node, words in enumerate(names[split:])), len(names))
    parts = [(start, end) for start in range(len(text)) for end in range(start + 1, len(text) + 1)]
    expected = [
        (start, end, nodes)
        for start, end in parts
        if (nodes := [node for node, words in enumerate(names) if words == text[start:end]])
    ]
    assert list(both.spans(text)) == expected
    assert len(both) == len({tuple(words) for words in names})


def test_index_is_cached_beside_the_graph(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = index(store)
    monkeypatch.setattr(
        "kglm.linking.name_index._tokenized_names", lambda graph, nodes, words_of: iter(()) if not nodes else None
    )
    again = index(store)
    assert names_of(again) == names_of(first)


def test_index_has_entities_added_later(store: Path) -> None:
    index(store)
    with KnowledgeGraph.open(store, writable=True) as graph:
        graph.edit([NewEntity("Q9", ("Zora Quist",)), FactEdit("add", "Q9", "P1", "Q1")])
    assert ids(store, index(store)["Zora", "Quist"]) == {"Q9"}
    with KnowledgeGraph.open(store) as graph:
        fork = graph.fork()
        fork.edit([NewEntity("Q10", ("Ada Q.",))])
        names = NameIndex.for_graph(fork, str.split)
        assert [fork.id(node) for node in names["Ada", "Q."]] == ["Q10"]


def test_several_processes_may_build_the_cache_at_once(store: Path, forks: Any) -> None:
    """Each process builds the index without a lock: all succeed, and one index stays."""
    running = [forks.Process(target=index, args=(store,)) for _ in range(2)]
    for process in running:
        process.start()
    for process in running:
        process.join()
    assert [process.exitcode for process in running] == [0, 0]
    assert len(list(Path(f"{store}.names").iterdir())) == 1


def test_index_works_without_a_writable_cache(store: Path) -> None:
    Path(f"{store}.names").write_text("in the way")
    assert index(store)["Game", "Boy"]


def test_damaged_cache_or_that_of_another_graph_is_rebuilt(store: Path, tmp_path: Path) -> None:
    expected = names_of(index(store))
    [nodes] = Path(f"{store}.names").glob("*/node_X.npy")
    np.save(nodes, np.zeros(1, np.int32))
    assert names_of(index(store)) == expected
    [hashes] = Path(f"{store}.names").glob("*/hash_K.npy")
    hashes.write_bytes(b"rubbish")
    assert names_of(index(store)) == expected
    other = make_store(tmp_path / "other", FACTS, {"Q1": ("Luigi",)})
    Path(f"{store}.names").rename(f"{other}.names")
    assert ids(other, index(other)["Luigi",]) == {"Q1"}


@given(st.lists(st.sampled_from(["Paris", "Town", "Hall", "Marie", "Curie", "of", "City", "x"]), max_size=20))
def test_spans_found_word_by_word_are_those_of_the_whole_text(words: list[str]) -> None:
    entries = [("Paris",), ("Paris", "Town", "Hall"), ("Town",), ("Marie", "Curie"), ("City", "of", "Paris")]
    empty, _ = _sorted(())
    index = NameIndex(empty, 0, 0).including((name, node) for node, name in enumerate(entries))
    found, beginnings = [], []
    for position, word in enumerate(words):
        ended, beginnings = index.grown(beginnings, position, word)
        found += [(start, position + 1, index.nodes(name)) for start, name in ended]
    assert sorted(found) == list(index.spans(words))


def test_nodes_can_be_without_names() -> None:
    empty, _ = _sorted(())
    index = NameIndex(empty, 0, 0).including([(("Paris",), 1), (("Paris",), 2), (("Rome",), 3)]).without([2, 3])
    assert index[["Paris"]] == [1] and index[["Rome"]] == []
    assert [span[:2] for span in index.spans(["Paris", "Rome"])] == [(0, 1)]

"""Export and import give the same graph, byte for byte."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kglm.errors import ConfigError
from kglm.kg.export import WRITERS, export_graph
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.imports import import_graph
from kglm.kg.literals.texts import text_id
from support.worlds import content, make_store

words = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\\"), min_size=1, max_size=12)
names = words.map(lambda text: " ".join(text.split())).filter(bool)
items = st.sampled_from(["Q1", "Q2", "Q42", "Q_ada", "Q_Köln_(Stadt)", "Q_50%", "Q_<b>", "P_boss"])
literals = st.one_of(
    st.sampled_from(
        [
            "T::11::+1990-01-01T00:00:00Z", "T::10::+1990-05-00T00:00:00Z", "T::9::-0044-00-00T00:00:00Z",
            "T::7::+1900-00-00T00:00:00Z", "T::9::+1990-01-01T00:00:00Z", "V::27.5000::1", "V::-3.0000::Q_paces",
            "V::27::http://www.wikidata.org/entity/Q828224",
        ]
    ),
    words.filter(str.strip).map(text_id),
    st.sampled_from(["a >> <b> .", 'say "so"', "two\nlines\tand a tab", "100 %", "back\\slash"]).map(text_id),
)  # fmt: skip
relations = st.sampled_from(["P1", "P26", "P_height", "P_born:in"]).filter(lambda id: id.count(":") == 0)


@st.composite
def lines(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Entities, relations and facts in JSON lines."""
    found: list[dict[str, Any]] = []
    for id in draw(st.sets(items, max_size=5)):
        found.append({"id": id, "label": draw(names), "aliases": draw(st.lists(names, max_size=2))})
        if draw(st.booleans()):
            found[-1] |= {"description": draw(names), "title": draw(names)}
    for id in draw(st.sets(relations, max_size=2)):
        found.append({"relation": id, "label": draw(names), "datatype": "quantity:metre"})
    heads = st.tuples(items, relations, items | literals).filter(lambda fact: fact[0] != fact[2])
    for head, relation, tail in draw(st.lists(heads, min_size=1, max_size=6)):
        fact: dict[str, Any] = {"head": head, "relation": relation, "tail": tail}
        if draw(st.booleans()):
            fact["rank"] = draw(st.sampled_from(["normal", "preferred"]))
        if draw(st.booleans()):
            fact["qualifiers"] = draw(st.dictionaries(relations, st.lists(items | literals, max_size=2), max_size=2))
        found.append(fact)
    return found


@settings(max_examples=8, deadline=None)
@given(lines())
def test_import_export_import_is_identical(found: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "g.jsonl").write_text("".join(json.dumps(line) + "\n" for line in found))
        import_graph([home / "g.jsonl"], home / "g.kg", format="jsonl", workers=1)
        for ending in WRITERS:
            export_graph(home / "g.kg", home / f"out{ending}")
            report = import_graph([home / f"out{ending}"], home / f"{ending}.kg", workers=1)
            assert report.problems == [] and report.skipped == {}
            assert content(home / f"{ending}.kg") == content(home / "g.kg"), ending


def test_the_format_is_recognised_and_counted(tmp_path: Path) -> None:
    make_store(tmp_path)
    for ending in WRITERS:
        counts = export_graph(tmp_path / "toy.kg", tmp_path / f"out{ending}")
        with KnowledgeGraph.open(tmp_path / "toy.kg") as graph:
            assert counts["facts"] == graph.store.counts()["facts"]
    with pytest.raises(ConfigError, match=r"end it in \.tsv, \.jsonl, \.nt"):
        export_graph(tmp_path / "toy.kg", tmp_path / "out.xlsx")


def test_edits_are_exported(tmp_path: Path) -> None:
    kg = make_store(tmp_path / "one", [("Q1", "P1", "Q2")], {"Q1": ("One",), "Q2": ("Two",)})
    with KnowledgeGraph.open(kg, writable=True) as graph:
        graph.set("Q1", "P1", text_id("a new value"))
    export_graph(kg, tmp_path / "out.tsv")
    import_graph([tmp_path / "out.tsv"], tmp_path / "new.kg")
    with KnowledgeGraph.open(tmp_path / "new.kg") as graph:
        assert [fact.tail for fact in graph.store.facts_of("Q1")] == [text_id("a new value")]

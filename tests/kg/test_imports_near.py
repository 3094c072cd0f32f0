"""Imports of entities near those of a corpus."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kglm.errors import DataError
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.imports import import_graph
from kglm.text.document import mentioned_entities
from support.worlds import content, leftovers, write_entities, write_facts


class TestNear:
    facts = (
        ("Q1", "P1", "Q2"), ("Q2", "P1", "Q3"), ("Q3", "P1", "Q4"), ("Q4", "P1", "Q5"),
        ("Q10", "P1", "Q1"), ("Q11", "P1", "Q10"), ("Q12", "P1", "Q11"),
        ("Q1", "P2", "T::9::+1999-00-00T00:00:00Z"), ("Q99", "P2", "T::9::+1999-00-00T00:00:00Z"),
    )  # fmt: skip

    def near(self, tmp_path: Path, hops: int, facts: tuple[tuple[str, ...], ...] | None = None) -> set[str]:
        mention = {"source": "KG", "id": "Q1", "relation": ["@@NEW@@"], "parent_id": ["Q1"], "span": [1, 2]}
        document = {"title": "t", "tokens": ["@@START@@", "x", "@@END@@"], "annotations": [mention]}
        (tmp_path / "docs.jsonl").write_text(json.dumps(document) + "\n")
        source = write_facts(tmp_path / "f.tsv", facts or self.facts)
        import_graph(
            [source], tmp_path / "g.kg", near=mentioned_entities([tmp_path / "docs.jsonl"]), hops=hops, replace=True
        )
        with KnowledgeGraph.open(tmp_path / "g.kg") as graph:
            return {graph.id(n) for n in range(len(graph))}

    def test_hops_follow_facts_in_both_directions(self, tmp_path: Path) -> None:
        year = "T::9::+1999-00-00T00:00:00Z"
        assert self.near(tmp_path, 0) == {"Q1", year}
        assert self.near(tmp_path, 1) == {"Q1", "Q2", "Q10", year}
        assert self.near(tmp_path, 2) == {"Q1", "Q2", "Q3", "Q10", "Q11", year}, "a date does not connect entities"

    def test_no_reverse_hops_from_a_hub(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("kglm.kg.staging.HUB", 3)
        humans = tuple((f"Q{n}", "P31", "Q5") for n in (1, 21, 22, 23))
        assert self.near(tmp_path, 2, (*humans, ("Q2", "P1", "Q1"))) == {"Q1", "Q2", "Q5"}

    def test_names_of_relations_and_units_are_kept(self, tmp_path: Path) -> None:
        document = {"title": "t", "tokens": ["x"], "annotations": [
            {"source": "KG", "id": "Q1", "relation": ["@@NEW@@"], "parent_id": ["Q1"], "span": [0, 1]}]}  # fmt: skip
        (tmp_path / "docs.jsonl").write_text(json.dumps(document))
        facts = write_facts(tmp_path / "f.tsv", [("Q1", "P2048", "V::2.0000::http://www.wikidata.org/entity/Q11573")])
        names = {"Q11573": ("metre",), "P2048": ("height",), "Q777": ("far away",)}
        entities = [write_entities(tmp_path / "e.jsonl", names)]
        import_graph([facts], tmp_path / "g.kg", entities=entities, near=mentioned_entities([tmp_path / "docs.jsonl"]))
        with KnowledgeGraph.open(tmp_path / "g.kg") as graph:
            assert "Q777" not in graph and graph.relation_name("P2048") == "height"
            [height] = [n for n in range(len(graph)) if graph.id(n).startswith("V::")]
            assert "2 metres" in graph.aliases(height)

    def test_empty_result_is_an_error(self, tmp_path: Path) -> None:
        """An empty graph is refused and does not replace an existing one."""
        facts = write_facts(tmp_path / "f.tsv", self.facts)
        import_graph([facts], tmp_path / "g.kg")
        before = content(tmp_path / "g.kg")
        with pytest.raises(DataError, match="no fact is near the entities of the documents"):
            import_graph([facts], tmp_path / "g.kg", near=["Q777"], replace=True)
        assert content(tmp_path / "g.kg") == before and not leftovers(tmp_path)

    def test_mentioned_date_adds_no_entities(self, tmp_path: Path) -> None:
        facts = write_facts(tmp_path / "f.tsv", self.facts)
        import_graph([facts], tmp_path / "g.kg", near=["Q1", "T::9::+1999-00-00T00:00:00Z"], hops=1)
        with KnowledgeGraph.open(tmp_path / "g.kg") as graph:
            assert "Q99" not in graph

    def test_documents_without_mentions_are_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "docs.jsonl").write_text('{"title": "t", "tokens": ["x"]}\n')
        facts = write_facts(tmp_path / "f.tsv", self.facts)
        with pytest.raises(DataError, match="mention no entity"):
            import_graph([facts], tmp_path / "g.kg", near=mentioned_entities([tmp_path / "docs.jsonl"]))

"""Pruning of a corpus: rare, broad and listed relations are removed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from kglm.annotate.prune import PruneConfig, prune_file, pruned, unwanted_relations
from kglm.kg.ids import NEW, REFLEXIVE
from kglm.text.document import END, START, Document, Mention, read_documents, write_documents

DATE = "T::9::+1989-00-00T00:00:00Z"


def mention(at: int, id: str, *pairs: tuple[str, str], source: str = "WIKI") -> Mention:
    relations, parents = zip(*(pairs or ((NEW, id),)), strict=True)
    return Mention(at, at + 1, id, source, relations, parents)


def document(*mentions: Mention, words: int = 9) -> Document:
    return Document("d", [START, *["w"] * words, END], list(mentions))


def test_rare_broad_and_listed_relations_are_unwanted() -> None:
    common = [document(mention(1, "Q1"), mention(2, "Q2", ("P1", "Q1")), mention(3, "Q1", (REFLEXIVE, "Q1")))] * 5
    broad = document(mention(1, "Q1"), *(mention(n, f"Q{n}", ("R:P17", "Q1")) for n in range(2, 9)))
    marked = [document(mention(1, "Q1"), mention(2, "Q3", ("P6:P585", "Q1")), mention(3, "Q4", ("R:P530", "Q1")))] * 5
    rare = [document(mention(1, "Q1"), mention(2, "Q3", ("P9", "Q1")))] * 4
    found = unwanted_relations([*common, broad, *marked, *rare], PruneConfig(max_fan_out=7))
    assert found == {"R:P17", "P6:P585", "R:P530", "P9"}
    assert unwanted_relations([*common, broad], PruneConfig(max_fan_out=7.5)) == set()


def test_mention_without_explanations_becomes_new_or_is_removed() -> None:
    text = document(
        mention(1, "Q1"),
        mention(2, "Q2", ("P9", "Q1"), ("P1", "Q1")),
        mention(3, "Q3", ("P9", "Q1")),
        mention(4, "Q4", ("P9", "Q1"), source="KG"),
        mention(5, DATE, ("P9", "Q1"), source="WIKI"),
        mention(6, "Q5", ("P1", "Q4")),
    )
    counts: Counter[str] = Counter()
    [left] = pruned([text], {"P9"}, counts)
    assert left.mentions == [
        mention(1, "Q1"),
        mention(2, "Q2", ("P1", "Q1")),
        mention(3, "Q3"),
        mention(6, "Q5"),
    ], "Q4 is removed, so it explains no other mention"
    assert counts == {"pruned explanations": 5, "pruned mentions": 2, "source WIKI": 4}


def test_mentions_without_a_letter_or_digit_are_removed(tmp_path: Path) -> None:
    text = Document("d", [START, ",", "w", END], [mention(1, "Q1"), mention(2, "Q2")])
    write_documents(tmp_path / "d.jsonl", [text])
    assert prune_file(tmp_path / "d.jsonl")["pruned signs"] == 1
    assert [each.mentions for each in read_documents(tmp_path / "d.jsonl")] == [[mention(2, "Q2")]]


def test_remaining_parent_must_be_within_the_cutoff() -> None:
    far = document(
        mention(1, "Q2"),
        mention(52, "Q2", ("P9", "Q3"), source="KG"),
        mention(54, "Q1", ("P1", "Q2")),
        words=60,
    )
    [left] = pruned([far], {"P9"}, Counter())
    assert left.mentions == [mention(1, "Q2"), mention(54, "Q1")]
    [wide] = pruned([far], {"P9"}, Counter(), cutoff=60)
    assert wide.mentions[-1].explanations == (("Q2", "P1"),)

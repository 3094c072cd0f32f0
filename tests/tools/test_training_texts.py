"""The texts that heads are trained on, made from a few relations of tables: graph, statements, questions, clauses."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

import kglm
from kglm.kg.graph import KnowledgeGraph
from kglm.text.document import ANSWER, read_documents

TOOLS = Path(__file__).resolve().parents[2] / "tools"
RELATIONS = [
    ("lamp", "product", "made by", {"tail_kind": "organisation", "tail": {"noun": "maker"}}),
    ("lamp", "product", "weight", {"tail_kind": "quantity", "tail": {"unit": "kg", "from": 1, "to": 9, "decimals": 1}}),
    ("lamp", "product", "cost", {"tail_kind": "quantity", "tail": {"unit": "shells", "from": 1, "to": 9}}),
    ("lamp", "product", "first sold", {"tail_kind": "date", "tail": {"from": 1990, "to": 2000}}),
    ("lamp", "product", "motto", {"tail_kind": "text", "tail": {"like": ["Light first, then heaven", "call 12-34"]}}),
    ("clerk", "person", "author", {"tail_kind": "choice", "tail": {"values": ["day shift", "night shift"]}}),
    ("clerk", "person", "secret", {"tail_kind": "year", "tail": {"from": 1990, "to": 2000}}),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("texts")
    lines = [
        {
            "domain": "shop", "head": head, "head_kind": kind, "label": label, "aliases": [f"{label} of it"],
            "statements": [f"The {label} of the XXXX is ____", f"____ is what XXXX has as {label}"],
            "questions": [f"What is the {label} of XXXX?"], **tail,
        }
        for head, kind, label, tail in RELATIONS
    ]  # fmt: skip
    (home / "own.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (home / "relations.tsv").write_text("P50\tauthor\nP570\t\n")
    (home / "without.txt").write_text("# labels\nSecret\n\n")
    run("invented_world.py", "--wordings", "own.jsonl", "--relations", "relations.tsv", "--to", "invented",
        "--without", "without.txt", home=home)  # fmt: skip
    return home


def run(tool: str, *arguments: str, home: Path) -> str:
    command = [sys.executable, str(TOOLS / tool), *arguments]
    return subprocess.run(command, cwd=home, check=True, capture_output=True, text=True).stdout


def test_relations_get_the_id_of_wikidata_or_one_of_their_own(home: Path) -> None:
    with KnowledgeGraph.open(home / "invented/invented.kg") as graph:
        labels = {graph.relation_label(r) for r in range(2, graph.relation_count, 2)}
    assert labels == {label for _, _, label, _ in RELATIONS} - {"secret"}
    facts = [line.split("\t") for line in (home / "invented/invented.tsv").read_text().splitlines()]
    relations = {relation for _, relation, _ in facts}
    assert "P50" in relations and "P_made_by" in relations and "P_author" not in relations
    tails = {relation: tail for _, relation, tail in facts}
    assert tails["P_weight"].startswith("V::") and tails["P_first_sold"].startswith("T::11::")
    assert tails["P_motto"].startswith("S::") and tails["P_cost"].startswith("S::")  # shells are no known unit


def test_texts_are_linked_and_say_facts_of_the_graph(home: Path) -> None:
    kglm.import_graph(home / "invented/invented.tsv", home / "train.kg", entities=home / "invented/names.jsonl")
    (home / "wordings.json").write_text("{}")
    author = {"id": "P50", "label": "author", "aliases": [], "statements": ["XXXX works by ____"], "questions": []}
    (home / "wikidata.jsonl").write_text(json.dumps(author))
    with gzip.open(home / "trex.jsonl.gz", "wt") as stream:
        stream.write("")
    run("training_texts.py", "--kg", "train.kg", "--wordings", "wordings.json", "--own", "wikidata.jsonl",
        "--invented", "invented", "--trex", "trex.jsonl.gz", "--to", "texts", "--statements", "20",
        "--questions", "20", "--invented-texts", "60", home=home)  # fmt: skip
    documents = list(read_documents(home / "texts/invented.jsonl"))
    assert len(documents) == 60 and sum(ANSWER in document.tokens for document in documents) == 30
    facts = 0
    with KnowledgeGraph.open(home / "train.kg") as graph:
        for mention in (mention for document in documents for mention in document.mentions):
            relation = graph.find_relation(mention.relations[0])
            if relation is not None and not mention.relations[0].startswith("R:"):
                assert graph.number(mention.id) in graph.tails(graph.number(mention.parents[0]), relation)
                facts += 1
    assert facts >= 30
    assert not any("the The" in " ".join(document.tokens) for document in documents)

"""Evaluate a tiny pretrained language model on a toy graph."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from kglm.evaluate.completion import TOP, table
from kglm.evaluate.pretrained import complete_pretrained, evaluate_pretrained
from kglm.evaluate.prompts import SCORERS, Prompt
from kglm.kg.graph import KnowledgeGraph
from kglm.model.encoders.pretrained import Pretrained
from kglm.text.document import END, START, Document, Mention
from support.causal import save_english
from support.worlds import make_store

pytest.importorskip("transformers", reason="the extra hf is not installed")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Pretrained:
    return Pretrained.open(save_english(tmp_path_factory.mktemp("english")))


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    return KnowledgeGraph.open(make_store(tmp_path_factory.mktemp("kg")))


BORN = Prompt(("Barack", "Obama", "was", "born", "on"), 0, 2, "Q76", '"1961-08-04"', "birthdate")
MARRIED = Prompt(("Barack", "Obama", "is", "married", "to"), 0, 2, "Q76", "Michelle Obama", "spouse")
UNKNOWN = Prompt(("Zork", "is", "married", "to"), 0, 1, "Q999", "Ann", "spouse")


class TestCompletion:
    def test_rows_are_those_of_a_plain_model(self, model: Pretrained, graph: KnowledgeGraph) -> None:
        rows = complete_pretrained(model, graph, [BORN, MARRIED, UNKNOWN])
        assert [row.prompt for row in rows] == [BORN, MARRIED, UNKNOWN]
        assert {(row.model, row.mode, row.from_fact) for row in rows} == {(model.name, "plain", False)}
        assert [row.in_graph for row in rows] == [True, True, False]
        for row in rows:
            shown = json.loads(json.dumps(row.to_json()))["words"]
            assert len(shown) == TOP and all(word["reason"] is None and 0 < word["p"] <= 1 for word in shown)
        cells = table(rows)
        assert {cell["scorer"] for cell in cells} == set(SCORERS)
        assert {cell["relation"] for cell in cells} == {"birthdate", "spouse", "average"}

    def test_words_are_scored_by_the_graph(
        self, model: Pretrained, graph: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls = []

        def predict(words: tuple[str, ...], k: int) -> list[tuple[str, float]]:
            calls.append((words, k))
            return [("the", 0.5), ("August", 0.2), ("Michelle", 0.1)]

        monkeypatch.setattr(model, "next_words", predict)
        born, married = complete_pretrained(model, graph, [BORN, MARRIED])
        assert calls == [(BORN.words, TOP), (MARRIED.words, TOP)]
        assert not born.at1["strict"] and born.at5["strict"] and married.at5["any-token"]


TOKENS = [START, "It", "is", "n't", "the", "1961", "game", ".", END, "I", "can", "not", "stay", ".", END]


class TestPerplexity:
    def documents(self) -> list[Document]:
        game = Mention(5, 7, "Q1", "WIKI", ("@@NEW@@",), ("@@NEW@@",))
        return [
            Document("game", TOKENS, [game]),
            Document("plain", [START, "Zoë", "stay", END], annotated=False),
            Document("empty", [START, END]),
        ]

    def test_the_report(self, model: Pretrained) -> None:
        report = evaluate_pretrained(model, self.documents())
        result = json.loads(json.dumps(report.to_json()))
        words = [word for word in TOKENS if word not in (START, END)]
        total = model.word_log_probs(words).sum() + model.word_log_probs(["Zoë", "stay"]).sum()
        assert result["tokens"] == len(words) + 2 and result["unknown_tokens"] == 0
        assert result["ppl"] == pytest.approx(math.exp(-total / (len(words) + 2)))
        low, high = result["ppl_interval"]
        assert low <= result["ppl"] <= high
        assert {key: result[key] for key in result if key.startswith("upp")} == dict.fromkeys(
            ("upp", "upp_interval", "upp_mention", "upp_other")
        )
        assert (result["model"], result["method"], result["documents"]) == (model.name, "exact", 3)
        assert result["window"] == model.window and "not comparable" in result["note"]

    def test_words_of_mentions(self, model: Pretrained) -> None:
        [document, *_] = self.documents()
        result = evaluate_pretrained(model, [document]).to_json()
        log_p_W = model.word_log_probs(TOKENS)
        inside = [5, 6]
        others = [place for place, word in enumerate(TOKENS) if word not in (START, END) and place not in inside]
        assert result["ppl_mention"] == pytest.approx(np.exp(-log_p_W[inside].mean()))
        assert result["ppl_other"] == pytest.approx(np.exp(-log_p_W[others].mean()))
        assert result["ppl_interval"] is None, "no interval for one document"

    def test_results_do_not_depend_on_document_order(self, model: Pretrained) -> None:
        forward = evaluate_pretrained(model, self.documents()).to_json()
        backward = evaluate_pretrained(model, self.documents()[::-1]).to_json()
        timed = {"tokens_per_second": None}
        assert {**forward, **timed} == {**backward, **timed}

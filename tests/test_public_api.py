"""The public names of kglm on the model that comes with the package."""

from __future__ import annotations

from pathlib import Path

import pytest

import kglm
from kglm import bundled
from kglm.errors import ConfigError

PROMPT = "The capital of France is"


@pytest.fixture(scope="module")
def model() -> kglm.FactAwareLM:
    return kglm.load(bundled.RUN)


def test_names_are_listed() -> None:
    assert set(kglm.__all__) <= set(dir(kglm))


def test_complete_with_one_edit_or_several(model: kglm.FactAwareLM) -> None:
    assert kglm.complete(PROMPT, model).words[0].word == "Paris"
    for edits in (
        "France capital Lyon",
        kglm.FactEdit("set", "France", "capital", "Lyon"),
        ["France | capital | Lyon"],
    ):
        found = kglm.complete(PROMPT, model, edits=edits, top=1)
        assert str(found).startswith("Lyon  ") and "France —capital→ Lyon" in str(found)


def test_a_fork_with_unsaved_edits(model: kglm.FactAwareLM) -> None:
    fork = model.graph.fork()
    assert kglm.load(bundled.RUN, kg=fork).complete(PROMPT).words[0].word == "Paris"
    fork.set("France", "capital", "Lyon")
    edited = kglm.load(bundled.RUN, kg=fork)
    assert edited.complete(PROMPT).words[0].word == "Lyon"
    assert "unsaved" in repr(edited) and "unsaved" not in repr(model)


def test_generate_by_keywords(model: kglm.FactAwareLM) -> None:
    options = kglm.GenerateConfig(words=4, seed=1, temperature=0.5, top_p=0.8)
    found = list(kglm.generate("France is", model, words=4, seed=1, temperature=0.5, top_p=0.8))
    assert found == list(model.generate("France is", config=options))
    assert all(isinstance(each, kglm.GeneratedWord) and str(each).startswith(each.word) for each in found)
    assert set(found[0].to_json()) == {"word", "p", "reason"}
    [best] = kglm.generate(PROMPT, model, words=1, beam=1)
    assert best.reason.relation is not None and best.reason.relation.label == "capital"
    with pytest.raises(ConfigError):
        model.generate("France is", words=-1)


def test_link(model: kglm.FactAwareLM) -> None:
    [mention] = kglm.link("France is", model)
    assert mention.id == "Q142" and mention.p + mention.p_nil == pytest.approx(1)
    assert str(mention) == f"France = France (Q142) – country in Europe, {mention.p:.1%}"
    [unknown] = kglm.link("Paris Hilton", model)
    assert (unknown.id, str(unknown)) == (None, "Paris Hilton = no entity of the graph, 100.0%")


def test_from_facts_to_a_model(tmp_path: Path) -> None:
    kg = str(tmp_path / "world.kg")
    report = kglm.import_graph([bundled.FACTS], kg, entities=[bundled.ENTITIES], relations=[bundled.RELATIONS])
    assert report.facts > 1000
    assert kglm.embed(kg, dim=4, epochs=1, held_out=0).dim == 4
    (tmp_path / "France.txt").write_text("France is a country. The capital of France is Paris.\n")
    docs = tmp_path / "docs.jsonl"
    assert kglm.annotate_articles(tmp_path / "France.txt", kg, docs).documents == 1
    documents = list(kglm.read_documents(docs))
    assert kglm.corpus_statistics(documents).mention_spans and not kglm.examine(docs)
    to = tmp_path / "run"
    overrides = {"train.epochs": 1, "data.min_count": 1}
    metrics = kglm.train_model(data=docs, valid=docs, kg=kg, to=to, config="tiny", overrides=overrides)
    assert len(metrics) == 1
    assert kglm.evaluate_model(to, docs, samples=2).to_json()["ppl"] > 1

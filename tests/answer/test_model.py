"""A model that was trained on a small world answers, with reasons, and follows edits at once: the paper's example."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

import kglm
from kglm.answer.generate import GenerateConfig
from kglm.answer.model import FactAwareLM
from kglm.answer.reading import Span
from kglm.errors import ConfigError, DataError, KglmError, UnknownIdError
from kglm.evaluate.completion import complete_all, table
from kglm.evaluate.editing import measure_edits, summary
from kglm.evaluate.prompts import Prompt
from kglm.kg.edits import FactEdit, NewEntity
from kglm.kg.embedding.transe import TransEConfig, embed_graph
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.dates import Date
from kglm.runs.run import Run
from kglm.runs.settings import load_config
from kglm.text.document import END, START, write_documents
from kglm.train.start import train
from kglm.writing.verbalise import VerbaliseConfig, verbalise
from support.worlds import make_store

FIRST = ["Ann", "Ben", "Cid", "Dan", "Eva", "Fay", "Gus", "Hal", "Ida", "Jon", "Kay", "Leo", "Mia", "Ned", "Ola", "Pam"]
LAST = ["Alder", "Birch", "Cedar", "Elm", "Fir", "Hazel", "Larch", "Maple", "Oak", "Pine", "Rowan", "Willow"]
CITIES = ["Aberdeen", "Bristol", "Cardiff", "Dover", "Exeter", "Falmouth"]
RELATIONS = {
    "P569": ("date of birth", "born on"),
    "P19": ("home",),
    "P26": ("spouse", "married to"),
}
BEFORE, AFTER = {"August", "4", "1961"}, {"March", "21", "2013"}
PROMPT = "Barack Obama was born on"


def world(home: Path) -> Path:
    """Sixty people with birthdays, birthplaces and spouses; Barack Obama is one."""
    rng = random.Random(0)
    facts, names = [], dict(RELATIONS)
    names |= {f"Q{900 + place}": (city,) for place, city in enumerate(CITIES)}
    people = [f"Q{100 + number}" for number in range(60)]
    for id in people:
        names[id] = (f"{rng.choice(FIRST)} {rng.choice(LAST)}",)
        birth = Date(11, rng.randrange(1900, 2000), rng.randrange(1, 13), rng.randrange(1, 29))
        facts += [(id, "P569", birth.id), (id, "P19", f"Q{900 + rng.randrange(len(CITIES))}")]
    facts += [fact for a, b in zip(people[::2], people[1::2], strict=True) for fact in ((a, "P26", b), (b, "P26", a))]
    names["Q76"] = ("Barack Obama",)
    facts += [("Q76", "P569", Date(11, 1961, 8, 4).id), ("Q76", "P19", "Q900")]
    return make_store(home, facts, names)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("live")
    kg = world(home)
    embed_graph(kg, TransEConfig(dim=8, epochs=5, held_out=0))
    short = VerbaliseConfig(sentences=1)
    said = list(verbalise(KnowledgeGraph.open(kg), 300, config=short))
    write_documents(home / "said.jsonl", said)
    write_documents(home / "some.jsonl", said[:30])
    options = ["train.rows=24", "train.length=16", "train.epochs=12", "train.learning_rate=0.04", "data.min_count=5"]
    settings = load_config("tiny", "kglm", options)
    train(settings, [home / "said.jsonl"], [home / "some.jsonl"], kg, home / "run")
    return home / "run"


@pytest.fixture
def model(run: Path) -> FactAwareLM:
    return kglm.load(run)


def best(model: FactAwareLM, prompt: str = PROMPT, count: int = 5, **options: object) -> set[str]:
    return {found.word for found in model.complete(prompt, top=count, **options).words}  # type: ignore[arg-type]


class TestThePapersExample:
    def test_the_words_come_from_the_fact(self, model: FactAwareLM) -> None:
        found = model.complete(PROMPT)
        assert {each.word for each in found.words} >= BEFORE
        assert found.words[0].word in BEFORE
        for each in found.words:
            if each.word not in BEFORE:
                continue
            reason = each.reasons[0]
            assert reason.type == "related" and reason.copied
            assert str(reason) == "related Barack Obama —date of birth→ August 4, 1961, copied"
        assert [(m.start, m.end, m.id) for m in found.mentions] == [(0, 2, "Q76")]
        assert found.distribution.p_N.sum() + sum(found.rest.values()) == pytest.approx(1, abs=1e-6)

    def test_an_edit_changes_them_at_once(self, model: FactAwareLM) -> None:
        assert best(model, edits=["Barack Obama | date of birth | 21 March 2013"]) > AFTER
        assert best(model, edits=["Q76 P569 2013-03-21"]) > AFTER
        assert best(model) > BEFORE, "the model that was asked is as it was"

    def test_a_stored_edit_too(self, run: Path, model: FactAwareLM, tmp_path: Path) -> None:
        path = model.graph.store.path
        with KnowledgeGraph.open(path, writable=True) as graph:
            graph.set("Q76", "P569", "2013-03-21")
            try:
                assert best(kglm.load(run)) > AFTER
            finally:
                graph.undo()
        assert best(kglm.load(run)) > BEFORE

    def test_without_the_fact_it_is_not_said(self, model: FactAwareLM) -> None:
        gone = model.edited([FactEdit("remove", "Q76", "P569", "1961-08-04")])
        assert "1961" not in best(gone, count=10)
        reasons = [reason for found in gone.complete(PROMPT, top=5).words for reason in found.reasons]
        of_the_fact = {
            reason.type for reason in reasons if reason.relation is not None and reason.relation.id == "P569"
        }
        assert of_the_fact == {"missing"}

    def test_someone_new_needs_no_training(self, model: FactAwareLM) -> None:
        edits = [NewEntity("Q_me", ("Zoe Quill",)), FactEdit("add", "Q_me", "P569", "1999-05-17")]
        assert best(model.edited(edits), "Zoe Quill was born on") > {"May", "17", "1999"}

    def test_what_has_nothing_to_do_with_it_is_as_it_was(self, model: FactAwareLM) -> None:
        other = model.graph.label(model.graph.number("Q101"))
        apart = [
            each.complete(f"{other} is married to").distribution for each in (model, model.edited(["Q76 P19 Q903"]))
        ]
        assert max(abs(apart[0][word] - apart[1][word]) for word in apart[0].words) < 1e-9


class TestPrompts:
    def test_by_places_by_words_and_linked(self, model: FactAwareLM) -> None:
        linked, given = model.complete(PROMPT), model.complete(PROMPT, ["0:2=Q76"], links="none")
        named = model.complete(PROMPT, ["Barack Obama=Q76"], links="none")
        assert given.words == named.words
        assert linked.words[0].word == given.words[0].word and linked.words[0].p < given.words[0].p, "it may be NIL"

    def test_without_links_nothing_is_known_of_anyone(self, model: FactAwareLM) -> None:
        assert not best(model, links="none") >= BEFORE

    def test_drawn_from_the_posterior(self, model: FactAwareLM) -> None:
        assert best(model, links="sampled") > BEFORE
        assert model.complete(PROMPT, links="sampled").mentions[0].id == "Q76"
        assert model.complete(PROMPT, links="sampled", edits=["Q76 P569 2013-03-21"]).words[0].word in AFTER
        with pytest.raises(ConfigError, match="links are sampled"):
            model.complete(PROMPT, ["0:2=Q76"], links="sampled")

    def test_a_way_to_link_that_is_none(self, model: FactAwareLM) -> None:
        with pytest.raises(ConfigError, match="links 'guess'"):
            model.complete(PROMPT, links="guess")  # type: ignore[arg-type]

    def test_reasons_that_json_leaves_out_are_told(self, model: FactAwareLM) -> None:
        for word in model.complete(PROMPT, top=50).to_json(reasons=2)["words"]:
            shown = sum(reason["p"] for reason in word["reasons"])
            assert len(word["reasons"]) <= 2
            assert shown + word["further_reasons"]["p"] == pytest.approx(word["p"], rel=1e-6)
            assert (word["further_reasons"]["count"] == 0) == (word["further_reasons"]["p"] == 0)

    def test_start_changes_nothing(self, model: FactAwareLM) -> None:
        words = PROMPT.split()
        assert model.complete([START, *words]).words == model.complete(words).words == model.complete(PROMPT).words

    @pytest.mark.parametrize("prompt", ["", "Zork", "\x00 \x07", "🙂 🙂", "a " * 2000, "Barack", "@@UNKNOWN@@"])
    def test_odd_prompts(self, model: FactAwareLM, prompt: str) -> None:
        found = model.complete(prompt)
        assert found.distribution.p_N.sum() + sum(found.rest.values()) == pytest.approx(1, abs=1e-5)

    @pytest.mark.parametrize(
        ("entity", "error"),
        [
            ("0:2=Q404", UnknownIdError),
            ("0:9=Q76", DataError),
            ("2:1=Q76", DataError),
            ("Michelle=Q76", DataError),
            ("Q76", DataError),
        ],
    )
    def test_bad_entities(self, model: FactAwareLM, entity: str, error: type[KglmError]) -> None:
        with pytest.raises(error):
            model.complete(PROMPT, [entity])

    @pytest.mark.parametrize(
        "edit",
        [
            "Q76 P404 Q900",
            "Q76 P569 2013-13-45",
            "Q76 P26 Q76",
            "Q404 P26 Q76",
            "Q76",
            FactEdit("add", "Q76", "P19", "Q900"),
        ],
    )
    def test_bad_edits_change_nothing(self, model: FactAwareLM, edit: str | FactEdit) -> None:
        before = model.graph.hash
        with pytest.raises(KglmError):
            model.complete(PROMPT, edits=[edit])
        assert model.graph.hash == before
        assert best(model) > BEFORE

    def test_a_run_that_knows_no_entities(self, run: Path) -> None:
        opened = Run.open(run)
        opened.model = object()  # type: ignore[assignment]
        with pytest.raises(ConfigError, match="is a run of kglm"):
            FactAwareLM(opened)

    def test_an_edit_that_changes_nothing_is_answered_too(self, model: FactAwareLM) -> None:
        assert model.complete(PROMPT, edits=["Q76 P569 1961-08-04"]).words == model.complete(PROMPT).words

    def test_sentences_are_marked_as_in_the_corpus(self, model: FactAwareLM) -> None:
        assert model.words("He is here. Barack Obama was born on")[3:6] == [".", END, "Barack"]
        assert model.words("He is here.")[-1] == "."


class TestGenerating:
    def test_bad_settings(self) -> None:
        for options in ({"seed": -1}, {"temperature": -1.0}, {"top_p": 0.0}, {"words": -1}):
            with pytest.raises(ConfigError):
                GenerateConfig(**options)  # type: ignore[arg-type]

    def test_hardly_any_temperature_is_none(self, model: FactAwareLM) -> None:
        cold, zero = (
            [s.word for s in model.generate(PROMPT, config=GenerateConfig(words=3, temperature=t))] for t in (1e-310, 0)
        )
        assert cold == zero and not any(word.startswith("@@P") for word in cold)

    def test_it_goes_on_with_the_fact(self, model: FactAwareLM) -> None:
        said = list(model.generate(PROMPT, config=GenerateConfig(words=3, beam=1)))
        assert said[0].word in BEFORE
        assert said[0].reason.type == "related"
        assert said[1].reason.type == "continue"

    def test_after_an_edit_it_says_what_training_never_saw(self, model: FactAwareLM) -> None:
        edited = model.edited(["Q76 P569 2013-03-21"])
        assert "2013" not in model.run.vocabulary
        words = {
            spoken.word for seed in range(5) for spoken in edited.generate(PROMPT, config=GenerateConfig(8, seed=seed))
        }
        assert "2013" in words

    def test_from_nothing(self, model: FactAwareLM) -> None:
        assert len([s for s in model.generate(config=GenerateConfig(words=5)) if not s.word.startswith("@@")]) == 5


class TestTables:
    def prompts(self, model: FactAwareLM) -> list[Prompt]:
        graph = model.graph
        relation = graph.find_relation("P569") or 0
        found = []
        for number in range(100, 130):
            [birth] = graph.tails(graph.number(f"Q{number}"), relation).tolist()
            date = Date.parse_id(graph.id(birth))
            name = graph.label(graph.number(f"Q{number}")).split()
            tail = f'"{date.year:04d}-{date.month:02d}-{date.day:02d}"'
            shortlist = (f"Q{number}", "Q76")
            found.append(Prompt((*name, "was", "born", "on"), 0, 2, f"Q{number}", tail, "birthdate", shortlist))
        return found

    def test_completion(self, model: FactAwareLM) -> None:
        rows = complete_all("kglm", model.run, self.prompts(model))
        cells = {(c["mode"], c["relation"], c["scorer"]): c for c in table(rows)}
        oracle = cells["oracle", "birthdate", "strict"]
        assert oracle["n"] == 30 and oracle["at1"] >= 90 and oracle["at5"] >= oracle["at1"]
        assert oracle["from_fact"] >= 95
        assert cells["oracle", "average", "strict"]["at1"] == oracle["at1"]
        assert cells["linked", "birthdate", "strict"]["at5"] >= 60
        row = rows[0].to_json()
        assert row["words"][0]["reason"]["relation"] == "P569"

    def test_a_shortlist_that_no_prompt_has_is_no_mode(self, model: FactAwareLM) -> None:
        prompts = [replace(prompt, shortlist=()) for prompt in self.prompts(model)]
        assert {row.mode for row in complete_all("kglm", model.run, prompts)} == {"oracle", "linked"}

    def test_an_empty_shortlist_is_a_plain_prompt(self, model: FactAwareLM) -> None:
        prompt = Prompt(("Barack", "Obama", "was", "born", "on"), 0, 2, "Q76", "x", "birthdate")
        [row] = complete_all("kglm", model.run, [prompt], ["shortlist"])
        plain = model.complete(PROMPT, links="none")
        assert [word for word, _ in row.prediction.words] == [each.word for each in plain.words]

    def test_modes_that_it_does_not_have(self, model: FactAwareLM) -> None:
        with pytest.raises(ConfigError, match="there is no mode 'foo'"):
            complete_all("kglm", model.run, self.prompts(model), ["oracle", "foo"])  # type: ignore[list-item]
        with pytest.raises(ConfigError, match="has no mode plain"):
            complete_all("kglm", model.run, self.prompts(model), ["plain"])

    def test_editing(self, model: FactAwareLM) -> None:
        result = summary(measure_edits(model, 15))
        assert result["edits"] == 15
        assert result["efficacy"] >= 80 and result["locality"] == 100 and result["neighbourhood"] >= 80
        assert result["first"] >= 60 and result["before"] >= 60


def test_a_span_may_be_given(model: FactAwareLM) -> None:
    span = Span(0, 2, model.graph.number("Q76"))
    assert model.complete(PROMPT, [span]).words == model.complete(PROMPT, ["0:2=Q76"]).words


def test_what_does_not_exist() -> None:
    with pytest.raises(DataError, match="is not a run"):
        kglm.load("nowhere")

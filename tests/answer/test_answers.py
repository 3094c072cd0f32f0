"""Whole answers against brute force: their probabilities, facts and names; and what people see of them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

import kglm
from kglm.answer.answers import MAX_LEADS, MIN_LEAD, Answers, RankedAnswer
from kglm.answer.completion import NOTABLE_MISSING, Completion
from kglm.answer.model import FactAwareLM
from kglm.answer.names import most_probable_name
from kglm.answer.next_word import MissingFact, NextWordConfig, next_words
from kglm.answer.reading import Reading, Span, read
from kglm.model.types import Type
from kglm.text.document import START
from kglm.text.function_words import is_content
from support.brute_force import enumerate_log_joint
from support.toys import DAY, FACTS, MORE_FACTS, OPTIONS, Step, Toy, legal_steps, make_toy, random_texts, sayable

LONG_NAMES = {"Q1": ("Mario Land", "Mario"), "Q2": ("Game Boy", "Game Boy Color")}
PROMPT = "Barack Obama was born on"


def spans(steps: list[Step]) -> list[Span]:
    found: list[Span] = []
    for t, step in enumerate(steps):
        if step.type == Type.CONTINUE:
            found[-1] = found[-1]._replace(end=t + 2)
        elif step.node >= 0:
            found.append(Span(t + 1, t + 2, step.node))
    return found


def after(toy: Toy, steps: list[Step]) -> Reading:
    return read(toy, toy.model, [START, *(step.word for step in steps)], [(1.0, spans(steps))])


def conditional(toy: Toy, steps: list[Step], more: Iterable[Step]) -> float:
    """p(z, x of these steps | what is before) by enumeration."""
    before = enumerate_log_joint(toy, steps) if steps else 0.0
    return math.exp(enumerate_log_joint(toy, [*steps, *more]) - before)


def following(toy: Toy, steps: list[Step]) -> tuple[dict[int, float], dict[str, float], float]:
    """p of starting each entity, of each plain word, and of going on with the running mention, by enumeration."""
    entities: dict[int, float] = defaultdict(float)
    plain: dict[str, float] = {}
    continued = 0.0
    for step in legal_steps(toy, steps):
        for said in sayable(toy, step):
            p = conditional(toy, steps, [said])
            if step.type == Type.NONE:
                plain[said.word] = p
            elif step.type == Type.CONTINUE:
                continued += p
            else:
                entities[step.node] += p
    return entities, plain, continued


def continued_p(answer: RankedAnswer) -> float:
    """The part of an answer's probability that goes on with a mention."""
    return sum(reason.p for reason in answer.reasons if reason.type == Type.CONTINUE)


def all_answers(reading: Reading) -> tuple[list[RankedAnswer], float]:
    found = Answers(reading, next_words(reading))
    return found.top(10_000), found.rest


@pytest.mark.parametrize("name", OPTIONS)
def test_they_are_brute_force(tmp_path: Path, name: str) -> None:
    """The toys have one function word, so the leads are "is", "is is" and so on, while they are probable enough."""
    toy = make_toy(tmp_path, **OPTIONS[name])  # type: ignore[arg-type]
    assert [word for word in toy.vocabulary.words if word.isalpha() and not is_content(word)] == ["is"]
    for steps in [[], *random_texts(toy, 3, 1)]:
        entities: dict[int, float] = defaultdict(float)
        plain: dict[str, float] = {}
        p, continues = 1.0, 0.0
        lead: tuple[Step, ...] = ()
        for number in range(1 + MAX_LEADS):
            starts, words, continued = following(toy, [*steps, *lead])
            continues += p * continued
            for node, q in starts.items():
                entities[node] += p * q
            plain |= {" ".join([*("is",) * number, word]): p * q for word, q in words.items()}
            if p * words["is"] < MIN_LEAD or number == MAX_LEADS:
                break
            p *= words["is"]
            lead = (*lead, Step("is", Type.NONE))
            del plain[" ".join(["is"] * len(lead))]
        ranked, rest = all_answers(after(toy, steps))
        assert sum(answer.p for answer in ranked) + rest == pytest.approx(1, abs=1e-9)
        assert ranked == sorted(ranked, key=lambda answer: -answer.p)
        assert sum(map(continued_p, ranked)) == pytest.approx(continues, abs=1e-12)
        started = {each.node: each.p - continued_p(each) for each in ranked if each.node >= 0}
        assert started == pytest.approx(entities, rel=1e-8, abs=1e-12)
        said = {answer.text: answer.p for answer in ranked if answer.node < 0}
        wanted = {text: q for text, q in plain.items() if q and "@@" not in text}
        assert {text: said[text] for text in wanted} == pytest.approx(wanted, rel=1e-8)
        for answer in ranked:
            assert sum(reason.p for reason in answer.reasons) == pytest.approx(answer.p, rel=1e-9)
            if answer.node >= 0 and not continued_p(answer):
                named = toy.graph.aliases(answer.node) or [toy.graph.label(answer.node)]
                assert answer.text in named, "without the function words before it"


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    return make_toy(tmp_path_factory.mktemp("names"), names=LONG_NAMES, facts=MORE_FACTS + FACTS)


def name_probability(toy: Toy, steps: list[Step], node: int, name: tuple[str, ...], said: int) -> float:
    """p(the mention has this name | its entity and its first `said` words), by enumeration; times a constant."""
    first = Step(name[0], Type.NEW, node)
    mention = [first, *(Step(word, Type.CONTINUE, node) for word in name[1:])]
    ended = sum(
        conditional(toy, [*steps, *mention], [word])
        for step in legal_steps(toy, [*steps, *mention])
        if step.type != Type.CONTINUE
        for word in sayable(toy, step)
    )
    return conditional(toy, [*steps, *mention[:said]], mention[said:]) * ended


@pytest.mark.parametrize("go_on", [0.0, 12.0])
def test_the_name_is_the_most_probable(tmp_path: Path, go_on: float) -> None:
    """By enumeration; where mentions go on as long as a name does, that is a long name."""
    best = set()
    for seed in range(2):
        toy = make_toy(tmp_path / str(seed), names=LONG_NAMES, seed=seed)
        toy.model.latent.types.state_QC.data[3, Type.CONTINUE] += go_on  # where a name ends and another goes on
        for id in ("Q1", "Q2"):
            node = toy.graph.number(id)
            wanted = max(toy.aliases[node].names, key=lambda name: name_probability(toy, [], node, name, 0))
            assert most_probable_name(after(toy, []), node) == wanted
            best.add(wanted)
    assert (("Game", "Boy", "Color") in best) == bool(go_on)


def test_the_rest_of_a_name(toy: Toy) -> None:
    """Of the names that go on after the words so far, the most probable one."""
    node = toy.graph.number("Q2")
    steps = [Step("Game", Type.NEW, node)]
    wanted = max(toy.aliases[node].names, key=lambda name: name_probability(toy, [], node, name, 1))
    assert most_probable_name(after(toy, steps), node, ("Game",)) == wanted
    assert most_probable_name(after(toy, steps), node, ("Game", "Boy")) == ("Game", "Boy", "Color")
    assert most_probable_name(after(toy, steps), node, ("Boy",)) is None


def test_a_date_is_written_in_full(toy: Toy) -> None:
    day = toy.graph.number(DAY)
    full, short = ("April", "21,", "1989"), ("21", "April", "1989")
    assert toy.aliases[day].names == (full, short)
    assert most_probable_name(after(toy, []), day) == full
    assert most_probable_name(after(toy, [Step("21", Type.NEW, day)]), day, ("21",)) == short


def test_the_facts_that_began_a_mention(toy: Toy) -> None:
    """p(fact | a mention that runs) is p(fact | its start): two histories, in one of which another entity is known."""
    mario, game = (toy.graph.number(id) for id in ("Q1", "Q2"))
    words = ["Mario", "is", "Game"]
    both = [[Span(0, 1, mario), Span(2, 3, game)], [Span(2, 3, game)]]
    reading = read(toy, toy.model, words, [(0.7, both[0]), (0.3, both[1])])
    [answer] = filter(continued_p, all_answers(reading)[0])
    histories = [
        [Step("Mario", Type.NEW, mario), Step("is", Type.NONE)],
        [Step("Mario", Type.NONE), Step("is", Type.NONE)],
    ]
    wanted: dict[tuple[int, int], float] = defaultdict(float)
    for weight, steps in zip((0.7, 0.3), histories, strict=True):
        ways = [step for step in legal_steps(toy, steps) if step.node == game]
        mass = {
            (step.parent, step.relation): math.fsum(conditional(toy, steps, [word]) for word in sayable(toy, step))
            for step in ways
        }
        began = [*steps, replace(ways[0], word="Game")]
        continued = [step for step in legal_steps(toy, began) if step.type == Type.CONTINUE]
        p = math.fsum(conditional(toy, began, [word]) for step in continued for word in sayable(toy, step))
        for fact, q in mass.items():
            wanted[fact] += weight * p * q / sum(mass.values())
    reasons = [reason for reason in answer.reasons if reason.type == Type.CONTINUE]
    assert {(reason.parent, reason.relation): reason.p for reason in reasons} == pytest.approx(wanted, rel=1e-8)
    assert len({parent for parent, _ in wanted}) > 1


def test_what_is_not_enumerated_is_the_rest(toy: Toy) -> None:
    reading = after(toy, [Step("Mario", Type.NEW, toy.graph.number("Q1"))])
    limits = NextWordConfig(max_new=1, max_related=1)
    found = Answers(reading, next_words(reading, limits), limits)
    assert sum(answer.p for answer in found.top(1000)) + found.rest == pytest.approx(1, abs=1e-9)
    assert found.rest > all_answers(reading)[1]
    none = NextWordConfig(max_new=0, max_related=0)
    [answer] = [each for each in Answers(reading, next_words(reading, none), none).top(1000) if each.node >= 0]
    assert sum(reason.p for reason in answer.reasons) == pytest.approx(answer.p), "also if its start is not enumerated"
    assert [answer.p for answer in found.top(2)] == [answer.p for answer in found.top(1000)[:2]]
    assert found.top(0) == []


@pytest.fixture(scope="module")
def model() -> FactAwareLM:
    return kglm.load()


class TestWhatPeopleSee:
    def test_a_date_is_one_answer(self, model: FactAwareLM) -> None:
        found = model.complete(PROMPT)
        best = found.answers[0]
        assert best.text == "August 4, 1961" and best.entity is not None and best.entity.label == best.text
        words = {word: found.distribution[word] for word in ("August", "4", "1961")}
        assert best.p == pytest.approx(sum(words.values()), abs=0.02) and best.p > max(words.values())
        [fact] = best.facts
        assert str(fact) == "Barack Obama —date of birth→ August 4, 1961" and fact.p == pytest.approx(best.p)
        assert str(found).splitlines()[0] == f"August 4, 1961  {best.p:.1%}  {fact}"

    def test_the_end_of_a_prompt_is_part_of_the_answer(self, model: FactAwareLM) -> None:
        for prompt in (f"{PROMPT} August", f"{PROMPT} August 4,"):
            best = model.complete(prompt).answers[0]
            assert best.text == "August 4, 1961" and best.p > 0.9
            assert [str(fact) for fact in best.facts] == ["Barack Obama —date of birth→ August 4, 1961"]

    def test_an_article_is_no_answer(self, model: FactAwareLM) -> None:
        found = model.complete("Barack Obama is a citizen of")
        assert found.words[0].word == "the"
        assert found.answers[0].entity is not None and found.answers[0].entity.id == "Q30"
        assert found.answers[0].p > 0.6 and "the" not in [answer.text for answer in found.answers]

    def test_an_edit_changes_them(self, model: FactAwareLM) -> None:
        best = model.complete(PROMPT, edits="Q76 P569 2013-03-21").answers[0]
        assert best.text in ("March 21, 2013", "21 March 2013") and best.p > 0.5

    def test_json_has_answers_missing_and_words(self, model: FactAwareLM) -> None:
        record = model.complete(PROMPT, top=3).to_json()
        assert list(record) == ["prompt", "answers", "missing", "words", "rest", "mentions"]
        assert [len(record[name]) for name in ("answers", "missing", "words")] == [3, 0, 3]
        assert {"text", "p", "entity", "facts"} <= record["answers"][0].keys()
        assert {"p", "parent", "relation", "entity"} <= record["answers"][0]["facts"][0].keys()
        assert record["answers"][0]["facts"][0]["copied"] is None
        few = model.complete("Tokyo has a population of", top=1).to_json(reasons=1)["answers"][0]
        assert len(few["reasons"]) == 1 and few["further_reasons"]["count"] > 0
        assert few["reasons"][0]["p"] + few["further_reasons"]["p"] == pytest.approx(few["p"])

    @pytest.mark.parametrize("links", ["average", "best", "sampled", "none"])
    def test_however_names_are_linked(self, model: FactAwareLM, links: str) -> None:
        found = model.complete(PROMPT, links=links, top=100)  # type: ignore[arg-type]
        assert sum(answer.p for answer in found.answers) <= 1 + 1e-9
        assert (found.answers[0].text == "August 4, 1961") == (links != "none")


class TestMissing:
    def with_missing(self, model: FactAwareLM, *missing: tuple[float, str, str]) -> Completion:
        """The completion as it would be if the model had found that these facts are asked for."""
        reading, linked = model.read("Angela Merkel is married to")
        facts = []
        for p, parent, relation in missing:
            index = model.graph.find_relation(relation)
            assert index is not None
            facts.append(MissingFact(p, model.graph.number(parent), index))
        distribution = replace(next_words(reading), missing=tuple(facts))
        return Completion.of(model.graph, reading, linked, distribution, top=5)

    def test_it_is_said_first_if_it_outweighs_the_facts(self, model: FactAwareLM) -> None:
        found = self.with_missing(model, (0.8, "Q567", "P26"), (0.01, "Q567", "P40"))
        text = "the text asks for the spouse of Angela Merkel (p 0.80); the graph has none"
        assert found.asks_for_missing and str(found).splitlines()[0] == text
        assert [(each.p, each.parent.id, each.relation.id) for each in found.missing] == [
            (0.8, "Q567", "P26"),
            (0.01, "Q567", "P40"),
        ]
        assert found.missing[0].edit == "Angela Merkel | spouse | …"
        assert found.to_json()["missing"][0] | {"text": ""} == {
            "p": 0.8,
            "parent": "Q567",
            "parent_label": "Angela Merkel",
            "relation": "P26",
            "relation_label": "spouse",
            "text": "",
        }

    def test_it_is_said_last_if_a_fact_outweighs_it(self, model: FactAwareLM) -> None:
        found = self.with_missing(model, (NOTABLE_MISSING, "Q567", "P26"))
        assert not found.asks_for_missing and str(found).splitlines()[-1].startswith("the text asks for the spouse")

    def test_it_is_not_said_if_it_is_improbable(self, model: FactAwareLM) -> None:
        found = self.with_missing(model, (NOTABLE_MISSING - 0.01, "Q567", "P26"), (1e-5, "Q567", "P40"))
        assert len(found.missing) == 1 and found.notable_missing is None and "asks for" not in str(found)

    def test_a_reverse_relation(self, model: FactAwareLM) -> None:
        [missing] = self.with_missing(model, (0.5, "Q567", "R:P26")).missing
        assert str(missing).startswith("the text asks for what has Angela Merkel as its spouse")
        assert missing.edit == "… | spouse | Angela Merkel"

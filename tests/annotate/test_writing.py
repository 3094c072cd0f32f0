"""Articles about a graph: true, varied, annotated as the pipeline annotates them, held-out wordings kept apart."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kglm.annotate.annotator import AnnotateConfig
from kglm.annotate.coreference import PRONOUNS
from kglm.annotate.english import indefinite, possessive_mark, separators, verb
from kglm.annotate.pipeline import Recipe, annotate
from kglm.annotate.speaker import forward
from kglm.annotate.wordings import BUNDLED, Slot, Wording, Wordings, read_wordings
from kglm.annotate.writing import Writer
from kglm.errors import DataError
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import REFLEXIVE, REVERSE
from kglm.kg.imports import import_graph
from kglm.kg.literals import LiteralIndex, is_literal
from kglm.text.article import ReadingReport
from kglm.text.document import Document, read_documents
from kglm.text.records import article_from_json
from worlds import make_store

KM2 = "http://www.wikidata.org/entity/Q712226"
NAMES: dict[str, tuple[str, ...]] = {
    "Q76": ("Barack Obama", "Obama"),
    "Q13133": ("Michelle Obama",),
    "Q3335": ("George Orwell", "Orwell"),
    "Q30": ("United States", "USA"),
    "Q142": ("France",),
    "Q145": ("United Kingdom",),
    "Q61": ("Washington, D.C.",),
    "Q90": ("Paris",),
    "Q84": ("London",),
    "Q18094": ("Honolulu",),
    "Q782": ("Hawaii",),
    "Q46": ("Europe",),
    "Q4917": ("United States dollar",),
    "Q4916": ("euro",),
    "Q150": ("French",),
    "Q1860": ("English",),
    "Q208460": ("Nineteen Eighty-Four", "1984"),
    "Q1396889": ("Animal Farm",),
    "Q647249": ("Super Mario Land",),
    "Q8093": ("Nintendo",),
    "Q186437": ("Game Boy",),
    "Q13371": ("Harvard University",),
    "Q35637": ("Nobel Peace Prize",),
    "Q29468": ("Democratic Party",),
    "Q1299": ("The Beatles",),
    "Q1203": ("John Lennon", "Lennon"),
    "Q5": ("human",),
    "Q6581097": ("male",),
    "Q6581072": ("female",),
    "Q6256": ("country",),
    "Q515": ("city",),
    "Q35657": ("state",),
    "Q5107": ("continent",),
    "Q8142": ("currency",),
    "Q34770": ("language",),
    "Q8261": ("novel",),
    "Q7889": ("video game",),
    "Q210167": ("video game company",),
    "Q941818": ("handheld game console",),
    "Q3918": ("university",),
    "Q618779": ("award",),
    "Q7278": ("political party",),
    "Q5741069": ("rock band",),
    "Q82955": ("politician",),
    "Q40348": ("lawyer",),
    "Q36180": ("writer",),
    "Q177220": ("singer",),
    "Q712226": ("square kilometre", "km²"),
    "P31": ("instance of",),
    "P36": ("capital",),
    "P569": ("date of birth",),
    "P19": ("place of birth",),
    "P26": ("spouse",),
    "P50": ("author",),
}
_FACTS = f"""
Q76 P31 Q5 | Q76 P21 Q6581097 | Q76 P569 1961-08-04 | Q76 P19 Q18094 | Q76 P26 Q13133 | Q76 P106 Q82955
Q76 P106 Q40348 | Q76 P27 Q30 | Q76 P69 Q13371 | Q76 P166 Q35637 | Q76 P102 Q29468 | Q13133 P31 Q5
Q13133 P21 Q6581072 | Q13133 P569 1964-01-17 | Q13133 P26 Q76 | Q13133 P106 Q40348 | Q13133 P27 Q30
Q13133 P69 Q13371 | Q3335 P31 Q5 | Q3335 P21 Q6581097 | Q3335 P569 1903-06-25 | Q3335 P570 1950-01-21
Q3335 P20 Q84 | Q3335 P106 Q36180 | Q3335 P27 Q145 | Q3335 P800 Q208460 | Q208460 P31 Q8261 | Q208460 P50 Q3335
Q208460 P577 1949-06-08 | Q208460 P407 Q1860 | Q208460 P495 Q145 | Q1396889 P31 Q8261 | Q1396889 P50 Q3335
Q1396889 P577 1945-08-17 | Q1396889 P407 Q1860 | Q30 P31 Q6256 | Q30 P36 Q61 | Q30 P38 Q4917 | Q30 P37 Q1860
Q30 P1082 V::331449281.0000::1 | Q30 P2046 V::9826675.0000::{KM2} | Q142 P31 Q6256 | Q142 P36 Q90 | Q142 P30 Q46
Q142 P38 Q4916 | Q142 P37 Q150 | Q142 P1082 V::68000000.0000::1 | Q145 P31 Q6256 | Q145 P36 Q84 | Q145 P30 Q46
Q145 P37 Q1860 | Q61 P31 Q515 | Q61 P17 Q30 | Q61 P1082 V::689545.0000::1 | Q90 P31 Q515 | Q90 P17 Q142
Q90 P1082 V::2145906.0000::1 | Q84 P31 Q515 | Q84 P17 Q145 | Q18094 P31 Q515 | Q18094 P131 Q782 | Q18094 P17 Q30
Q782 P31 Q35657 | Q782 P17 Q30 | Q782 P36 Q18094 | Q46 P31 Q5107 | Q4917 P31 Q8142 | Q4916 P31 Q8142
Q150 P31 Q34770 | Q1860 P31 Q34770 | Q647249 P31 Q7889 | Q647249 P577 1989-04-21 | Q647249 P123 Q8093
Q647249 P178 Q8093 | Q647249 P400 Q186437 | Q8093 P31 Q210167 | Q8093 P571 1889-09-23 | Q186437 P31 Q941818
Q186437 P176 Q8093 | Q186437 P577 1989-04-21 | Q13371 P31 Q3918 | Q13371 P17 Q30 | Q13371 P571 1636-09-08
Q35637 P31 Q618779 | Q29468 P31 Q7278 | Q29468 P17 Q30 | Q1299 P31 Q5741069 | Q1299 P495 Q145 | Q1299 P527 Q1203
Q1203 P31 Q5 | Q1203 P21 Q6581097 | Q1203 P106 Q177220 | Q1203 P569 1940-10-09 | Q1203 P570 1980-12-08
"""


def _fact(text: str) -> tuple[str, str, str]:
    head, relation, tail = text.split()
    return head, relation, f"T::11::+{tail}T00:00:00Z" if tail[0].isdigit() else tail


FACTS = [_fact(text) for text in re.split(r"[|\n]", _FACTS) if text.strip()]


def _bundled_store(home: Path) -> Path | None:
    """The world that comes with the package, if it is there."""
    world = BUNDLED.parent
    facts, entities, relations = (world / name for name in ("facts.tsv", "entities.jsonl", "relations.tsv"))
    if not (facts.exists() and entities.exists() and relations.exists()):
        return None
    import_graph([facts], home / "world.kg", entities=[entities], relations=[relations], workers=1, replace=True)
    return home / "world.kg"


@pytest.fixture(scope="module", params=["toy", "bundled"])
def graph(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    home = tmp_path_factory.mktemp(request.param)
    path = make_store(home, FACTS, NAMES) if request.param == "toy" else _bundled_store(home)
    if path is None:
        pytest.skip("the bundled world is not there")
    return KnowledgeGraph.open(path)


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    return KnowledgeGraph.open(make_store(tmp_path_factory.mktemp("toy"), FACTS, NAMES))


@pytest.fixture(scope="module")
def wordings() -> Wordings:
    return read_wordings()


@pytest.fixture(scope="module")
def writer(graph: KnowledgeGraph, wordings: Wordings) -> Writer:
    return Writer(graph, wordings, seed=0)


@pytest.fixture(scope="module")
def nodes(writer: Writer) -> list[int]:
    topics = writer.topics()
    return topics[:: max(len(topics) // 40, 1)]


@pytest.fixture(scope="module")
def documents(writer: Writer, nodes: list[int]) -> list[Document]:
    return list(writer.texts(nodes, each=2))


def test_the_same_seed_gives_the_same_texts(writer: Writer, nodes: list[int], documents: list[Document]) -> None:
    assert list(Writer(writer.graph, writer.wordings, seed=0).texts(nodes[:10], each=2)) == documents[:20]
    others = list(Writer(writer.graph, writer.wordings, seed=1).texts(nodes[:10], each=2))
    assert [each.tokens for each in others] != [each.tokens for each in documents[:20]]
    assert len({" ".join(document.tokens) for document in documents}) > 0.9 * len(documents)


def test_every_mention_is_what_the_graph_says(graph: KnowledgeGraph, documents: list[Document]) -> None:
    for document in documents:
        seen: set[str] = set()
        for mention in document.mentions:
            node = graph.number(mention.id)
            for parent, relation in mention.explanations:
                assert parent in seen
                index = graph.find_relation(relation) if relation != REFLEXIVE else 0
                assert index is not None and node in graph.tails(graph.number(parent), index)
            assert not (mention.is_new and mention.id in seen and is_literal(mention.id))
            seen.add(mention.id)


def test_mentions_say_names_literals_pronouns_and_kinds(graph: KnowledgeGraph, documents: list[Document]) -> None:
    for document in documents:
        for mention in document.mentions:
            text, node = document.text(mention), graph.number(mention.id)
            if is_literal(mention.id):
                index = LiteralIndex(graph.unit_names)
                index.add(mention.id)
                assert mention.source == "KG" and index.find(text) == [mention.id]
            elif mention.source == "COREF":
                short = any(text.replace(" - ", "-") in name.split() for name in graph.names(node))
                assert text.casefold() in PRONOUNS or text.casefold().startswith("the ") or short
            else:
                names = {name.replace(" ", "").replace(" ", "").casefold() for name in graph.names(node)}
                assert text.replace(" ", "").casefold() in names


def test_an_article_begins_with_its_subject(writer: Writer, documents: list[Document], nodes: list[int]) -> None:
    for document, node in zip(documents[::2], nodes, strict=True):
        assert document.mentions[0].is_new
        assert writer.graph.id(node) in [mention.id for mention in document.mentions[:3]]
        assert writer.graph.store.by_title(document.title) in (writer.graph.id(node), None)


def test_what_is_said_is_a_fact(graph: KnowledgeGraph, writer: Writer, nodes: list[int]) -> None:
    same = writer.wordings.same
    for node in nodes:
        for head, relation, tail in writer._draft(node, 0, "train").said:
            ways = [forward(head, each, tail) for each in (relation, *same.get(relation, ()))]
            ways += [forward(tail, each, head) for each in same.get(f"{REVERSE}{relation}", ())]
            assert any(_is_fact(graph, *way) for way in ways)


def _is_fact(graph: KnowledgeGraph, head: int, relation: str, tail: int) -> bool:
    index = graph.find_relation(relation)
    return index is not None and tail in graph.tails(head, index)


def test_records_link_what_documents_link(writer: Writer, nodes: list[int], documents: list[Document]) -> None:
    for node, document in zip(nodes, documents[::2], strict=True):
        record = writer.record(node)
        article = article_from_json(json.dumps(record).encode(), "here", ReadingReport())
        assert article is not None and article.tokens == document.tokens
        linked = [(mention.start, mention.end) for mention in document.mentions if mention.source == "WIKI"]
        assert [(link.start, link.end) for link in article.links] == linked
        first = {mention.id: mention for mention in reversed(document.mentions) if mention.source in ("WIKI", "NEL")}
        assert all(mention.source == "WIKI" for mention in first.values())


def test_the_pipeline_finds_most_of_it(
    graph: KnowledgeGraph, writer: Writer, nodes: list[int], documents: list[Document], tmp_path: Path
) -> None:
    records = tmp_path / "records.jsonl"
    records.write_text("".join(json.dumps(writer.record(node)) + "\n" for node in nodes))
    annotate([records], tmp_path / "found.jsonl", Recipe(str(graph.store.path), AnnotateConfig()))
    found, wanted, told, alike = 0, 0, 0, 0
    for mine, theirs in zip(documents[::2], read_documents(tmp_path / "found.jsonl"), strict=True):
        by_span = {(mention.start, mention.end, mention.id): mention for mention in theirs.mentions}
        both = [(mention, by_span.get((mention.start, mention.end, mention.id))) for mention in mine.mentions]
        wanted, told = wanted + len(both), told + len(theirs.mentions)
        found += sum(other is not None for _, other in both)
        alike += sum(other is not None and set(other.explanations) == set(each.explanations) for each, other in both)
    print(f"recall {found / wanted:.3f}, precision {found / told:.3f}, same explanations {alike / found:.3f}")
    assert found / wanted > 0.93
    assert found / told > 0.9
    assert alike / found > 0.93


# Held-out wordings


def skeleton(wording: Wording, preposition: str = "on") -> str:
    """A wording without what it is about, whichever end of whichever relation; dates come with "on" or "in"."""
    bones = [piece if isinstance(piece, str) else _bone(piece, preposition) for piece in wording.pieces]
    return "".join(bones).casefold()


def _bone(slot: Slot, preposition: str) -> str:
    if slot.kind == "fact":
        return {"a": "a N", "on": f"{preposition} N"}.get(slot.form, "N")
    names = {"subject": "N", "object": "N", "possessive": "N's", "kind": "kind", "verb": slot.form, "who": "who"}
    return names.get(slot.kind) or slot.options[0]


_WORD = r"[A-Z0-9][^\s,;()]*"
_NAME = rf"{_WORD}(?: (?:{_WORD}|of|the|and|for|in|da|van|de|[–&]))*(?:, \d{{4}})?"
_SUBJECT = rf"(?:He|She|It|They|His|Her|Its|Their|(?:The )?{_NAME}|The(?: [a-z]+){{1,3}}(?:'s)?)"
_OBJECT = rf"(?:an? [\w. -]+|(?:on |in )?(?:the )?{_NAME}(?:(?:, | and )(?:the )?{_NAME})*|(?:the )?[a-z -]+)"


def as_pattern(wording: Wording) -> re.Pattern[str]:
    """What a sentence of a wording looks like."""
    parts = [re.escape(piece) if isinstance(piece, str) else _gap(piece) for piece in wording.pieces]
    return re.compile("".join(parts))


def _gap(slot: Slot) -> str:
    if slot.kind in ("number", "gender"):
        return f"(?:{'|'.join(map(re.escape, slot.options))})"
    if slot.kind == "verb":
        ways = {verb(slot.form, plural=plural, past=past) for plural in (True, False) for past in (True, False)}
        return f"(?:{'|'.join(sorted(ways))})"
    return _SUBJECT if slot.kind in ("subject", "possessive") else _OBJECT


def sentences(writer: Writer, nodes: list[int], split: str) -> list[str]:
    texts = [writer.record(node, number, wordings=split)["text"] for node in nodes for number in range(2)]  # type: ignore[arg-type]
    return [line for text in texts for line in re.split(r"(?<=\.) |\n\n", text)]


def test_a_fifth_of_the_wordings_is_held_out(wordings: Wordings) -> None:
    every = list(wordings.all())
    assert 0.15 < sum(wording.held for wording in every) / len(every) < 0.3
    frequent = "P36 P30 P17 P131 P37 P38 P47 P571 P1082 P569 P570 P19 P20 P26 P27 P106 P69 P166 P50 P577 P57 P161"
    for relation in frequent.split():
        spoken = wordings.sentences[relation]
        assert sum(wording.held for wording in spoken) >= 2
        assert sum(not wording.held for wording in spoken) >= 9
        assert any(wording.held and wording.asks for wording in spoken)
    assert len(wordings.fillers) >= 60


def test_nothing_held_out_stands_inside_a_wording_to_train_on(wordings: Wordings) -> None:
    train = "\n".join(skeleton(w, with_) for w in wordings.all() if not w.held for with_ in ("on", "in"))
    held = [wording for wording in wordings.all() if wording.held and wording.role == "sentence"]
    assert [wording.text for wording in held if skeleton(wording) in train] == []
    questions = [skeleton(wording).removesuffix("n").rstrip() + " " for wording in held if wording.asks]
    assert [question for question in questions if question in train] == []


def test_held_wordings_are_never_in_texts_to_train_on(writer: Writer, nodes: list[int]) -> None:
    held = [as_pattern(wording) for wording in writer.wordings.all() if wording.held and wording.role == "sentence"]
    said = sentences(writer, nodes, "train")
    for line in said:
        assert not any(pattern.fullmatch(line.rstrip(".")) for pattern in held), line
    kept = sentences(writer, nodes, "held")
    assert sum(any(pattern.fullmatch(line.rstrip(".")) for pattern in held) for line in kept) > len(kept) / 5


def test_one_fact_is_said_in_many_ways(toy: KnowledgeGraph, wordings: Wordings) -> None:
    writer = Writer(toy, wordings)
    shapes = set()
    for number in range(80):
        text = writer.record(toy.number("Q142"), number)["text"]
        shapes |= {line.replace("It", "France") for line in re.split(r"(?<=\.) |\n\n", text) if "Paris" in line}
    assert len(shapes) >= 25


def test_what_is_left_out_is_not_said(toy: KnowledgeGraph, wordings: Wordings) -> None:
    without = [("Q142", "P36", "Q90"), ("Q76", "P569", "T::11::+1961-08-04T00:00:00Z")]
    writer = Writer(toy, wordings, without=without)
    for number in range(15):
        for id in ("Q142", "Q90", "Q76", "Q13133"):
            draft = writer._draft(toy.number(id), number, "all")
            for head, _, tail in without:
                assert not any({toy.number(head), toy.number(tail)} == {one, other} for one, _, other in draft.said)
            assert "1961" not in draft.text


# Grammar


def test_small_words() -> None:
    assert [indefinite(noun) for noun in ("author", "university", "hour", "MP", "one-act play", "European")] == [
        "an", "a", "an", "an", "a", "a",
    ]  # fmt: skip
    assert [possessive_mark(name) for name in ("Obama", "The Beatles")] == ["'s", "'"]
    assert separators(1) == [""] and separators(3) == ["", ", ", " and "]
    forms = [("is", True, False), ("is", True, True), ("shares", True, False), ("carries", True, False)]
    forms += [("belongs", False, True)]
    said = [verb(word, plural=plural, past=past) for word, plural, past in forms]
    assert said == ["are", "were", "share", "carry", "belonged"]


def test_sentences_are_english(toy: KnowledgeGraph, wordings: Wordings) -> None:
    writer = Writer(toy, wordings)
    texts = [writer.record(node, number, wordings="all")["text"] for node in writer.topics() for number in range(8)]
    together = "\n".join(texts)
    for wrong in ("  ", " ,", "..", " .", "{", "}", "a a ", " human", " of he ", "of she", "the The", "the the"):
        assert wrong not in together, wrong
    assert "the United States" in together and "The United States" in together
    assert not re.search(r"(?<!the )(?<!The )United States (?!dollar)", together.replace("(United", ""))
    assert not re.search(r"\ba (?:American|English|[aeio]\w+ )", together)
    assert "George Orwell is a writer" not in together and "George Orwell was " in together
    assert "Barack Obama was a politician" not in together
    assert "The Beatles are " in together or "The Beatles were " in together
    assert " She " in together and "He " in together and "the game" in together


# Questions


def test_prompts_end_right_before_the_object(toy: KnowledgeGraph, wordings: Wordings) -> None:
    writer = Writer(toy, wordings)
    rows = writer.prompts(FACTS, each=3)
    assert {row["relation_id"] for row in writer.prompts(FACTS, alone=True)} >= {"P36", "P569", "P19"}
    assert not any(
        row["relation_id"] == "P106" and row["entity_id"] == "Q76" for row in writer.prompts(FACTS, alone=True)
    )
    texts = {" ".join(row["prefix"]): row for row in rows}
    assert texts["The capital of France is"]["expected_tail"] == "Paris"
    assert texts["Barack Obama was born on"]["expected_tail"] == '"1961-08-04"'
    assert any(text in texts for text in ("The author of Animal Farm is", "Animal Farm was authored by"))
    assert len({row["relation_id"] for row in rows}) >= 15
    names = {id: label for id, (label, *_) in NAMES.items()}
    for row in rows:
        start, end = row["entity_indices"]
        label = names[row["entity_id"]]
        assert "".join(row["prefix"][start:end]) == label.replace(" ", "")
        assert (row["entity_id"], row["relation_id"], row["tail_id"]) in FACTS
        if not is_literal(row["tail_id"]):
            assert row["expected_tail"] == names[row["tail_id"]]
            assert row["expected_tail"] not in " ".join(row["prefix"])


# The file


GOOD = """
[sorts]
city = ["city"]
[[opening]]
say = ["{X} {is} {a P31}"]
[[relation.P36]]
say = ["{X's} capital is {Y}"]
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + 'held = ["The capital of {X} is {Z}"]', r"relation\.P36 1, held 1: unknown slot \{Z\}; use"),
        (GOOD + 'held = ["The capital of {X} is {Y"]', "a brace without its partner"),
        (GOOD + 'held = ["The capital of {X}"]', "says no fact"),
        (GOOD + 'held = ["The capital is {Y}"]', "does not say who it is about"),
        (GOOD + 'held = ["{X\'s} capital is {Y}"]', "held out and used as well"),
        (GOOD + 'held = ["The capital of {X} is {Y}."]', "ends in a full stop"),
        (GOOD + 'aside = ["{X}, whose capital is {Y}"]', "names X"),
        (GOOD + 'of = ["town"]', "unknown sort 'town'; use one of city"),
        (GOOD + 'objects = "many"', r"relation.*objects.*invalid enum value"),
        (GOOD + "colour = 3", "unknown field"),
        (GOOD.replace("relation.P36", "relation.capital"), "is no relation; write P"),
        (GOOD.replace("{a P31}", "{a Y}"), "without a relation; name it"),
        (GOOD + '[the]\npatterns = ["("]', "is no pattern"),
        (GOOD + "say = [", "is not TOML"),
        ("", "missing required field"),
    ],
)
def test_a_malformed_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "wordings.toml"
    path.write_text(text)
    with pytest.raises(DataError, match=message) as error:
        read_wordings(path)
    assert str(path) in str(error.value) and error.value.remedy


def test_a_small_file_is_enough(toy: KnowledgeGraph, tmp_path: Path) -> None:
    path = tmp_path / "wordings.toml"
    path.write_text(GOOD)
    writer = Writer(toy, read_wordings(path))
    assert writer.record(toy.number("Q142"))["text"] == "France is a country. Its capital is Paris."

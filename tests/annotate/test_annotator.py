"""All annotation steps on one article: links, linker, coreference, story."""

from __future__ import annotations

from pathlib import Path

import pytest

from kglm.annotate.annotator import AnnotateConfig, Annotator
from kglm.errors import ConfigError
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import NEW
from kglm.text.article import Article, Link
from kglm.text.document import END, START, Mention
from support.worlds import make_store

FACTS = (
    ("Q1", "P31", "Q5"),
    ("Q1", "P21", "Q6581072"),
    ("Q1", "P19", "Q2"),
    ("Q2", "P17", "Q3"),
    ("Q4", "P17", "Q3"),
    ("Q9", "P31", "Q202444"),
)
NAMES = {
    "Q1": ("Clara Dunn",),
    "Q2": ("Ulm",),
    "Q3": ("Germany",),
    "Q4": ("Bonn",),
    "Q5": ("human",),
    "Q6581072": ("female",),
    "Q8": ("Hotel",),
    "Q9": ("David",),
    "Q202444": ("given name",),
    "Q10": ("7",),
    "Q11": ("hotel", "Inn"),
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    more = [(id, "P31", "Q100") for id in ("Q8", "Q10", "Q11")]
    return KnowledgeGraph.open(make_store(tmp_path_factory.mktemp("kg"), (*FACTS, *more), NAMES))


def article(text: str, *links: tuple[int, int, str], title: str = "Untitled") -> Article:
    sentences = text.split(" | ")
    tokens = [START, *(token for sentence in sentences for token in [*sentence.split(), END])]
    return Article(title, tokens, [Link(*link) for link in links])


def marked(graph: KnowledgeGraph, text: Article, **options: bool | float | str) -> list[tuple[str, str, str]]:
    document = Annotator(graph, AnnotateConfig(**options)).annotate(text)  # type: ignore[arg-type]
    assert document.tokens == text.tokens and document.title == text.title
    return [(document.text(mention), mention.id, mention.source) for mention in document.mentions]


def test_each_step_marks_unmarked_words(graph: KnowledgeGraph) -> None:
    text = article("Clara Dunn came from Ulm . | She liked Bonn in Germany .", (1, 3, "Clara_Dunn"))
    assert marked(graph, text) == [
        ("Clara Dunn", "Q1", "WIKI"),
        ("Ulm", "Q2", "NEL"),
        ("She", "Q1", "COREF"),
        ("Bonn", "Q4", "NEL"),
        ("Germany", "Q3", "NEL"),
    ]
    assert marked(graph, text, linker=False) == [
        ("Clara Dunn", "Q1", "WIKI"),
        ("Ulm", "Q2", "KG"),
        ("She", "Q1", "COREF"),
        ("Germany", "Q3", "KG"),
    ]
    assert marked(graph, text, linker=False, coreference="none") == [
        ("Clara Dunn", "Q1", "WIKI"),
        ("Ulm", "Q2", "KG"),
        ("Germany", "Q3", "KG"),
    ]


def test_subject_is_found_by_the_title(graph: KnowledgeGraph) -> None:
    text = article("A city is Ulm .", title="Ulm")
    assert marked(graph, text, linker=False) == [("Ulm", "Q2", "KG")]
    assert marked(graph, article("A city is Ulm ."), linker=False) == []


def test_parts_of_longer_names_and_numbers_are_not_names(graph: KnowledgeGraph) -> None:
    assert marked(graph, article("the old Hotel Bonn Palace and 7 ships of David and an Inn")) == []
    assert marked(graph, article("in Bonn and Ulm"))[0] == ("Bonn", "Q4", "NEL")


def test_facts_lead_to_no_name_inside_a_longer_unknown_one(graph: KnowledgeGraph) -> None:
    """The linker knows the longer name; without it, the fact that Ulm is in Germany marks its first word."""
    text = article("in Ulm near the Germany Grand Palace", (2, 3, "Q2"))
    assert marked(graph, text) == [("Ulm", "Q2", "WIKI")]
    assert marked(graph, text, linker=False) == [("Ulm", "Q2", "WIKI"), ("Germany", "Q3", "KG")]


def test_mentions_given_with_a_text_are_kept(graph: KnowledgeGraph) -> None:
    text = article("Ann saw Bonn and Ulm")
    text.mentions = [
        Mention(1, 2, "Q777", "NEL", (NEW,), ("Q777",)),
        Mention(3, 4, "Q2", "COREF", (NEW,), ("Q2",)),
    ]
    found = Annotator(graph).annotate(text).mentions
    assert [(each.id, each.source) for each in found] == [("Q777", "NEL"), ("Q2", "COREF"), ("Q2", "NEL")]
    assert found[0].is_new and found[1].is_new and not found[2].is_new


def test_links_are_counted(graph: KnowledgeGraph) -> None:
    annotator = Annotator(graph)
    annotator.annotate(article("Clara Dunn and Atlantis", (1, 3, "Q1"), (4, 5, "Atlantis")))
    assert annotator.counts["links"] == annotator.counts["links to no entity"] == 1


def test_min_p_decides_on_ambiguous_names(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="min_p = 2"):
        AnnotateConfig(min_p=2)
    namesakes = make_store(tmp_path, [("Q1", "P1", "Q3"), ("Q2", "P1", "Q3")], {"Q1": ("Rome",), "Q2": ("Rome",)})
    text = article("in Rome")
    with KnowledgeGraph.open(namesakes) as ambiguous:
        assert marked(ambiguous, text) == [], "two namesakes with equal probability"
        assert [name for name, _, _ in marked(ambiguous, text, min_p=0.2)] == ["Rome"]


def given(*mentions: tuple[int, int, str]) -> list[Mention]:
    return [Mention(start, end, id, "NEL", (NEW,), (id,)) for start, end, id in mentions]


class TestOutsideEntities:
    """Mentions given with a text, of entities outside the graph."""

    def test_given_mention_prevents_other_links(self, graph: KnowledgeGraph) -> None:
        text = article("Here Clara Dunn left Ulm .")
        text.mentions = given((2, 4, "Q999"))
        found = Annotator(graph).annotate(text).mentions
        assert [(each.id, each.is_new) for each in found] == [("Q999", True), ("Q2", True)], "no mention of Q1"

    def test_repeated_mention_is_reflexive_within_the_cutoff(self, graph: KnowledgeGraph) -> None:
        text = article("Foo met Foo " + "w " * 40 + "Foo")
        text.mentions = given((1, 2, "Q999"), (3, 4, "Q999"), (44, 45, "Q999"))
        found = Annotator(graph).annotate(text).mentions
        assert [each.explanations for each in found] == [(), (("Q999", "@@REFLEXIVE@@"),), ()]

    def test_mentions_across_sentences_are_cut_or_dropped(self, graph: KnowledgeGraph) -> None:
        text = article("Foo Bar | Clara")
        text.mentions = given((1, 4, "Q999"))
        assert [(each.start, each.end) for each in Annotator(graph).annotate(text).mentions] == [(1, 3)]
        text.mentions = given((1, 5, "Q999"))
        annotator = Annotator(graph)
        assert annotator.annotate(text).mentions == []
        assert annotator.counts["given mentions over the end of a sentence"] == 1


def test_given_mentions_take_precedence_over_links(graph: KnowledgeGraph) -> None:
    text = article("in Bonn", (2, 3, "Ulm"))
    text.mentions = given((2, 3, "Q4"))
    assert [each.id for each in Annotator(graph).annotate(text).mentions] == ["Q4"]


def test_annotator_uses_a_snapshot_of_the_graph(tmp_path: Path) -> None:
    with KnowledgeGraph.open(make_store(tmp_path, FACTS, NAMES), writable=True) as graph:
        annotator = Annotator(graph)
        text = article("Clara Dunn was born on May 4 , 1871", (1, 3, "Q1"))
        assert [each.id for each in annotator.annotate(text).mentions] == ["Q1"]
        graph.set("Q1", "P19", "T::11::+1871-05-04T00:00:00Z")
        assert [each.id for each in annotator.annotate(text).mentions] == ["Q1"]
        assert [each.id[:4] for each in Annotator(graph).annotate(text).mentions] == ["Q1", "T::1"]


def test_alias_does_not_resolve_a_link(tmp_path: Path) -> None:
    names = {"Q1": ("Tampa Bay Lightning", "Lightning"), "Q2": ("rain",), "Q3": ("Snow",), "Q4": ("snow",)}
    store = make_store(tmp_path, [("Q1", "P1", "Q2"), ("Q3", "P1", "Q4")], names)
    with KnowledgeGraph.open(store) as graph:
        links = [(1, 2, "Lightning"), (2, 3, "Rain"), (3, 4, "Snow")]
        found = Annotator(graph, AnnotateConfig(linker=False)).links(article("Lightning Rain Snow", *links))
        assert [graph.id(each.node) for each in found] == ["Q2"], "an alias is not enough, nor is one of two labels"

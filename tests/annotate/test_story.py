"""Explanations of mentions by facts; the example of the paper is one of the cases."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kglm.annotate.local_graph import Matcher
from kglm.annotate.story import Story, StoryConfig
from kglm.errors import ConfigError
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import NEW, REFLEXIVE
from kglm.kg.literals.literal import is_literal
from kglm.linking.name_index import NameIndex
from kglm.linking.spans import LinkedSpan, without_overlaps
from kglm.text.document import END, START, Mention
from support.worlds import make_store

RELEASE = "T::11::+1989-04-21T00:00:00Z"
LENGTH = "V::27.0500::http://www.wikidata.org/entity/Q828224"
FACTS = (
    ("Q647249", "P577", RELEASE),
    ("Q647249", "P136", "Q828322"),
    ("Q647249", "P123", "Q8093"),
    ("Q647249", "P400", "Q186437"),
    ("Q186437", "P176", "Q8093"),
    ("Q186437", "P31", "Q941818"),
    ("Q1", "P2043", LENGTH),
    ("Q1", "P131", "Q2"),
    ("Q3", "P131", "Q2"),
    ("Q4", "P50", "Q5"),
    ("Q4", "P57", "Q5"),
    ("Q9", "P1", "Q10"),
)
NAMES = {
    "Q647249": ("Super Mario Land", "Mario Land"),
    "Q2048": ("side-scrolling",),
    "Q828322": ("platform video game", "platformer"),
    "Q8093": ("Nintendo",),
    "Q1066707": ("launch title",),
    "Q186437": ("Game Boy",),
    "Q941818": ("handheld game console",),
    "Q1": ("Long Road",),
    "Q2": ("Ohio", "the"),
    "Q3": ("Short Road",),
    "Q4": ("It",),
    "Q5": ("iPerson",),
    "Q828224": ("kilometre",),
    "Q9": ("One", "."),
    "Q10": ("Two", ""),
}
MARIO = (
    "Super Mario Land is a 1989 side - scrolling platform video game developed and published by Nintendo as a launch "
    "title for their Game Boy handheld game console ."
)


LINKS = {
    "Super Mario Land": "Q647249",
    "side - scrolling": "Q2048",
    "platform video game": "Q828322",
    "Nintendo": "Q8093",
    "launch title": "Q1066707",
    "Game Boy": "Q186437",
    "handheld game console": "Q941818",
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    facts = (*FACTS, ("Q2048", "P31", "Q7889"), ("Q1066707", "P31", "Q7889"))
    return KnowledgeGraph.open(make_store(tmp_path_factory.mktemp("kg"), facts, NAMES))


def story_of(graph: KnowledgeGraph, **options: int | bool) -> Story:
    return Story(Matcher(graph, NameIndex.for_graph(graph)), StoryConfig(**options))  # type: ignore[arg-type]


def tokens_of(*sentences: str) -> list[str]:
    return [START, *(token for sentence in sentences for token in [*sentence.split(), END])]


def places(tokens: Sequence[str], name: str) -> tuple[int, int]:
    words = name.split()
    return next((i, i + len(words)) for i in range(len(tokens)) if tokens[i : i + len(words)] == words)


def explained(
    graph: KnowledgeGraph, tokens: list[str], links: dict[str, str], subject: str | None = None, **options: int | bool
) -> dict[str, Mention]:
    """Mentions by their words; `links` maps words to ids."""
    found = [LinkedSpan(*places(tokens, name), graph.number(id), "WIKI") for name, id in links.items()]
    story = story_of(graph, **options)
    mentions = story.explained_mentions(tokens, found, None if subject is None else graph.number(subject))
    return {" ".join(tokens[mention.start : mention.end]): mention for mention in mentions}


class TestPaperExample:
    def test_explanations_are_those_of_the_paper(self, graph: KnowledgeGraph) -> None:
        found = explained(graph, tokens_of(MARIO), LINKS)
        assert {words: (mention.id, mention.explanations) for words, mention in found.items()} == {
            "Super Mario Land": ("Q647249", ()),
            "1989": (RELEASE, (("Q647249", "P577"),)),
            "side - scrolling": ("Q2048", ()),
            "platform video game": ("Q828322", (("Q647249", "P136"),)),
            "Nintendo": ("Q8093", (("Q647249", "P123"),)),
            "launch title": ("Q1066707", ()),
            "Game Boy": ("Q186437", (("Q8093", "R:P176"), ("Q647249", "P400"))),
            "handheld game console": ("Q941818", (("Q186437", "P31"),)),
        }
        assert {words for words, mention in found.items() if mention.is_new} == {
            "Super Mario Land",
            "side - scrolling",
            "launch title",
        }
        assert {mention.source for words, mention in found.items() if words != "1989"} == {"WIKI"}
        assert found["1989"].source == "KG"

    def test_unlinked_entities_are_found_by_name(self, graph: KnowledgeGraph) -> None:
        found = explained(graph, tokens_of(MARIO), {"Super Mario Land": "Q647249"})
        assert set(found) == {
            "Super Mario Land",
            "1989",
            "platform video game",
            "Nintendo",
            "Game Boy",
            "handheld game console",
        }
        assert all(mention.source == "KG" for words, mention in found.items() if words != "Super Mario Land")

    def test_without_matching_only_links_are_mentions(self, graph: KnowledgeGraph) -> None:
        assert set(explained(graph, tokens_of(MARIO), {"Nintendo": "Q8093"}, match=False)) == {"Nintendo"}


class TestExplanations:
    def test_repeated_entity_is_explained_by_itself(self, graph: KnowledgeGraph) -> None:
        found = explained(graph, tokens_of("Nintendo made it .", "Later Game Boy and Nintendo"), {"Nintendo": "Q8093"})
        assert found["Game Boy"].explanations == (("Q8093", "R:P176"),)
        assert found["Nintendo"].explanations == (("Q186437", "P176"), ("Q8093", REFLEXIVE))

    @pytest.mark.parametrize("between", [9, 10, 11])
    def test_cutoff_counts_words_but_not_sentence_ends(self, graph: KnowledgeGraph, between: int) -> None:
        words = ["w"] * between
        tokens = tokens_of(" ".join(["Nintendo", *words[:3]]), " ".join([*words[3:], "Game", "Boy"]))
        found = explained(graph, tokens, {"Nintendo": "Q8093"}, cutoff=10)
        assert ("Game Boy" in found) == (between <= 10)
        linked = explained(graph, tokens, {"Nintendo": "Q8093", "Game Boy": "Q186437"}, cutoff=10)
        assert linked["Game Boy"].is_new == (between > 10), "the same rule for links"

    def test_nearest_parents_come_first_up_to_the_limit(self, graph: KnowledgeGraph) -> None:
        tokens = tokens_of("Long Road and Short Road are in Ohio")
        links = {"Long Road": "Q1", "Short Road": "Q3"}
        assert explained(graph, tokens, links)["Ohio"].explanations == (("Q3", "P131"), ("Q1", "P131"))
        assert explained(graph, tokens, links, max_parents=1)["Ohio"].explanations == (("Q3", "P131"),)

    def test_two_relations_of_one_parent(self, graph: KnowledgeGraph) -> None:
        found = explained(graph, tokens_of("It is by iPerson"), {"It": "Q4"})
        assert found["iPerson"].explanations == (("Q4", "P50"), ("Q4", "P57"))

    def test_quantity_with_its_unit(self, graph: KnowledgeGraph) -> None:
        assert explained(graph, tokens_of("Long Road is 27.05 km long"), {"Long Road": "Q1"})["27.05 km"].id == LENGTH
        assert "27.05" not in explained(graph, tokens_of("Short Road is 27.05 km long"), {"Short Road": "Q3"})

    def test_date_of_several_words_is_one_mention(self, graph: KnowledgeGraph) -> None:
        links = {"Super Mario Land": "Q647249"}
        found = explained(graph, tokens_of("Super Mario Land appeared on April 21 , 1989 ."), links)
        assert found["April 21 , 1989"].id == RELEASE


class TestUnlinkedNames:
    def test_unlinked_name_never_introduces_an_entity(self, graph: KnowledgeGraph) -> None:
        assert explained(graph, tokens_of("Nintendo made Game Boy"), {}) == {}

    def test_unlinked_name_introduces_the_subject(self, graph: KnowledgeGraph) -> None:
        found = explained(graph, tokens_of("Nintendo made Game Boy"), {}, "Q8093")
        assert found["Nintendo"].is_new and found["Game Boy"].explanations == (("Q8093", "R:P176"),)

    def test_subject_is_found_beyond_the_cutoff(self, graph: KnowledgeGraph) -> None:
        tokens = tokens_of("Mario Land " + "w " * 60 + "Super Mario Land")
        found = explained(graph, tokens, {}, "Q647249")
        assert found["Mario Land"].is_new and found["Super Mario Land"].is_new

    def test_function_words_and_signs_are_not_names(self, graph: KnowledgeGraph) -> None:
        found = explained(graph, tokens_of("Long Road in the north .", "One . Two"), {"Long Road": "Q1", "One": "Q9"})
        assert set(found) == {"Long Road", "One", "Two"}

    def test_capital_at_the_start_of_a_sentence_is_ignored(self, graph: KnowledgeGraph) -> None:
        links = {"It": "Q4", "Super Mario Land": "Q647249"}
        tokens = tokens_of("It and Super Mario Land", "Platformer", "IPerson")
        assert {"Platformer", "IPerson"} <= set(explained(graph, tokens, links))
        later = tokens_of("It and Super Mario Land", "a Platformer", "an IPerson Iperson")
        assert set(explained(graph, later, links)) == {"It", "Super Mario Land"}

    def test_longest_name_wins_and_links_are_kept(self, graph: KnowledgeGraph) -> None:
        tokens = tokens_of("Nintendo : Super Mario Land on Game Boy")
        found = explained(graph, tokens, {"Nintendo": "Q8093", "Mario": "Q186437"})
        assert found["Mario"].id == "Q186437" and "Super Mario Land" not in found
        assert "Super Mario Land" in explained(graph, tokens, {"Nintendo": "Q8093"})

    def test_no_mention_contains_the_end_of_a_sentence(self, graph: KnowledgeGraph) -> None:
        tokens = [START, "Nintendo", "Game", END, "Boy", END]
        assert set(explained(graph, tokens, {"Nintendo": "Q8093"})) == {"Nintendo"}


PLACES = st.integers(0, 8)


class TestOverlaps:
    WORDS = tokens_of("the Tuckahoe River is long")

    def test_determiner_and_name_become_one_mention_of_the_stronger_source(self) -> None:
        link, short, whole = LinkedSpan(2, 4, 7, "WIKI"), LinkedSpan(1, 2, 7, "COREF"), LinkedSpan(1, 4, 7, "COREF")
        assert (
            without_overlaps(self.WORDS, [short, link])
            == without_overlaps(self.WORDS, [link, whole])
            == [LinkedSpan(1, 4, 7, "WIKI")]
        )
        assert without_overlaps(self.WORDS, [link, LinkedSpan(1, 2, 8, "COREF")]) == [
            LinkedSpan(1, 2, 8, "COREF"),
            link,
        ]

    def test_stronger_source_or_longer_span_wins(self) -> None:
        assert without_overlaps(self.WORDS, [LinkedSpan(2, 4, 1, "NEL"), LinkedSpan(3, 4, 2, "WIKI")]) == [
            LinkedSpan(3, 4, 2, "WIKI")
        ]
        assert without_overlaps(self.WORDS, [LinkedSpan(2, 3, 1, "NEL"), LinkedSpan(2, 4, 2, "NEL")]) == [
            LinkedSpan(2, 4, 2, "NEL")
        ]

    def test_span_beyond_the_text_or_sentence_is_cut_or_dropped(self) -> None:
        assert (
            without_overlaps(
                self.WORDS, [LinkedSpan(0, 2, 1, "WIKI"), LinkedSpan(6, 9, 1, "WIKI"), LinkedSpan(4, 4, 1, "WIKI")]
            )
            == []
        )
        assert without_overlaps(self.WORDS, [LinkedSpan(5, 9, 1, "WIKI")]) == [LinkedSpan(5, 6, 1, "WIKI")]

    @given(
        st.lists(st.tuples(st.integers(0, 7), st.integers(0, 8), st.integers(1, 2), st.sampled_from(["WIKI", "KG"])))
    )
    def test_result_is_sorted_without_overlaps(self, spans: list[tuple[int, int, int, str]]) -> None:
        result = without_overlaps(self.WORDS, [LinkedSpan(*span) for span in spans])
        assert result == sorted(result)
        assert all(one.end <= two.start for one, two in pairwise(result))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_explanations_are_facts_for_any_text(graph: KnowledgeGraph, data: st.DataObject) -> None:
    """Explanations are facts of the graph, parents were mentioned before, and mentions do not overlap."""
    vocabulary = [
        "Nintendo",
        "Game",
        "Boy",
        "Super",
        "Mario",
        "Land",
        "1989",
        "27.05",
        "km",
        "the",
        "Ohio",
        END,
        "",
        ".",
    ]
    tokens = [START, *data.draw(st.lists(st.sampled_from(vocabulary), max_size=25)), END]
    nodes = [graph.number(id) for id in NAMES if id in graph]
    spans = st.tuples(st.integers(1, len(tokens)), st.integers(1, 3), st.sampled_from(nodes))
    found = [LinkedSpan(a, a + n, node, "WIKI") for a, n, node in data.draw(st.lists(spans, max_size=5))]
    cutoff = data.draw(st.integers(1, 12))
    mentions = story_of(graph, cutoff=cutoff).explained_mentions(
        tokens, found, data.draw(st.sampled_from([None, *nodes]))
    )
    ended: dict[str, int] = {}
    for mention in mentions:
        assert END not in tokens[mention.start : mention.end]
        near = [
            parent
            for parent, end in ended.items()
            if len(between := tokens[end : mention.start]) - between.count(END) <= cutoff
        ]
        reached = any(graph.number(mention.id) in graph.edges(graph.number(parent)).tail for parent in near)
        assert mention.is_new == (not reached), "new exactly if no entity mentioned shortly before leads to it"
        assert (NEW in mention.relations) == mention.is_new and 0 < len(mention.relations) <= 10
        for parent, relation in mention.explanations:
            index = 0 if relation == REFLEXIVE else graph.find_relation(relation)
            assert index is not None and graph.find(mention.id) in graph.tails(graph.number(parent), index).tolist()
            between = tokens[ended[parent] : mention.start]
            assert len(between) - between.count(END) <= cutoff
        if not is_literal(mention.id):  # no fact starts at a date or a quantity
            ended[mention.id] = mention.end
    assert all(one.end <= two.start for one, two in pairwise(mentions))


def test_facts_of_a_hub_are_found_from_the_other_end(tmp_path: Path) -> None:
    """Facts of a hub are not listed; its tails, heads and dates are found nevertheless."""
    many = [(f"Q{n}", "P17", "Q1") for n in range(10, 6_010)]
    names = {"Q1": ("Union",), "Q2": ("Moon",), "Q3": ("Capital City",), "Q77": ("Village",)}
    facts = (*many, ("Q1", "P36", "Q3"), ("Q2", "P17", "Q1"), ("Q1", "P571", "T::9::+1776-00-00T00:00:00Z"))
    graph = KnowledgeGraph.open(make_store(tmp_path, facts, names))
    tokens = tokens_of("Union of 1776 , Capital City , Village and Moon and Union")
    found = explained(graph, tokens, {"Union": "Q1"})
    assert {words: mention.explanations for words, mention in found.items()} | {"Union": ()} == {
        "Union": (),
        "1776": (("Q1", "P571"),),
        "Capital City": (("Q1", "P36"),),
        "Village": (("Q1", "R:P17"),),
        "Moon": (("Q1", "R:P17"),),
    }
    assert ("Q1", REFLEXIVE) in found["Union"].explanations


def test_invalid_settings_are_an_error() -> None:
    with pytest.raises(ConfigError, match="cutoff 0"):
        StoryConfig(cutoff=0)

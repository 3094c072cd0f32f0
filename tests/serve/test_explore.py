"""Looking through documents and names: what is found is what a plain search over all of them finds."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kglm.kg.graph import KnowledgeGraph
from kglm.serve.explore import DocumentFilter, Library, words_of
from kglm.serve.lookup import Lookup
from kglm.text.document import END, START, Document, Mention
from support.worlds import make_store

WORDS = ("Mario", "mario", "land", "Land", ".", "é", "island")
IDS, RELATIONS, SOURCES = ("Q1", "Q2"), ("P1", "P2", "R:P1"), ("WIKI", "NEL", "KG", "COREF")


@st.composite
def documents(draw: st.DrawFn) -> list[Document]:
    found = []
    for number in range(draw(st.integers(0, 6))):
        tokens = [START, *draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4)), END]
        mention = st.builds(
            Mention, st.just(1), st.just(2), st.sampled_from(IDS), st.sampled_from(SOURCES),
            st.tuples(st.sampled_from(RELATIONS)), st.just(("Q9",)),
        )  # fmt: skip
        found.append(Document(f"Title{number}", tokens, draw(st.lists(mention, max_size=2))))
    return found


@given(
    documents(),
    st.sampled_from(["", "mar", "land mario", "l", "title1", "zzz", "."]),
    st.sampled_from([None, *SOURCES]),
    st.sampled_from([None, *RELATIONS]),
    st.sampled_from([None, *IDS]),
)
def test_all_that_fit_and_no_other(
    corpus: list[Document], text: str, source: str | None, relation: str | None, entity: str | None
) -> None:
    library, wanted = Library(corpus), DocumentFilter(text, source, relation, entity)
    expected = []
    for number, document in enumerate(corpus, 1):
        words = [token.casefold() for token in document.tokens] + words_of(document.title)
        fits = all(any(word.startswith(sought) for word in words) for sought in words_of(text))
        if wanted.mention_conditions:
            fits &= any(
                source in (None, m.source) and entity in (None, m.id) and (relation is None or relation in m.relations)
                for m in document.mentions
            )
        if fits:
            expected.append(number)
    assert list(library.find(wanted)) == expected
    for number in range(len(corpus) + 2):
        before, after = library.neighbours(library.find(wanted), number)
        assert before == max((each for each in expected if each < number), default=None)
        assert after == min((each for each in expected if each > number), default=None)


def test_an_excerpt_shows_what_was_looked_for() -> None:
    tokens = [START, *(f"w{number}" for number in range(200)), "Honolulu", *(f"v{n}" for n in range(50)), END]
    library = Library([Document("Far", tokens)])
    shown = library.excerpt(1, DocumentFilter("honol"))
    assert "Honolulu" in shown and shown.startswith("… ") and shown.endswith(" …") and len(shown.split()) < 40
    assert library.excerpt(1, DocumentFilter()).startswith("w0 w1")


def test_entities_by_any_of_their_words(tmp_path: Path) -> None:
    facts = [("Q1", "P1", "Q2"), ("Q3", "P1", "Q2"), ("Q3", "P1", "Q1")]
    names = {
        "Q1": ("Super Mario Land",),
        "Q2": ("Game Boy", "the Land Rover"),
        "Q3": ("Mario", "Jumpman"),
        "P1": ("on",),
    }
    with KnowledgeGraph.open(make_store(tmp_path, facts, names)) as graph:
        lookup = Lookup(graph)

        def found(text: str, limit: int = 10) -> list[str]:
            return [graph.id(node) for node in lookup.entities(graph, text, limit)]

        assert found("mario") == ["Q3", "Q1"], "who is called so, then who has the word"
        assert found("land mario") == ["Q1"] and found("LAN") == ["Q1", "Q2"] and found("mario land") == ["Q1"]
        assert found("and") == [] and found("") == [] and found("?!") == []
        assert found("lan", 1) == ["Q1"]
        assert lookup.relations(graph, "o", 5) == ["P1"] and lookup.relations(graph, "R:P1", 5) == ["P1"]
        assert lookup.relations(graph, "zzz", 5) == []

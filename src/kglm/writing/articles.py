"""Write articles about the entities of a graph: varied English, every statement a fact, annotated by construction.

writer = Writer(graph, read_wordings(), seed=0)
document = writer.article(graph.number("Q76"))
record = writer.record(graph.number("Q76"))       # the same as text with links, for `kglm annotate`

An article begins with the name and kind of its entity. Its facts follow, one or several per sentence, with pronouns and
nouns ("the game") where they are unambiguous, with facts about other mentioned entities, and with sentences without
facts. `Story`, as for any other text, finds the facts that explain each mention.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from kglm.annotate.local_graph import Matcher
from kglm.annotate.story import Story
from kglm.errors import GraphError
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import REVERSE
from kglm.kg.literals.dates import DAY, Date
from kglm.kg.literals.literal import is_date, is_literal
from kglm.linking.links import LinkResolver
from kglm.linking.name_index import NameIndex
from kglm.linking.spans import LinkedSpan
from kglm.text.article import article_from
from kglm.text.document import Document
from kglm.text.marked import Passage
from kglm.text.tokenizer import tokenizer
from kglm.writing.composer import Composer, WritingConfig
from kglm.writing.draft import Draft, Split
from kglm.writing.english import capitalised
from kglm.writing.speaker import Fact, Speaker, forward
from kglm.writing.wordings import Wording, Wordings


class Writer:
    """Writes articles and questions about the entities of one graph."""

    def __init__(
        self,
        graph: KnowledgeGraph,
        wordings: Wordings,
        seed: int = 0,
        *,
        excluded: Iterable[tuple[str, str, str]] = (),
        config: WritingConfig | None = None,
    ) -> None:
        """`excluded` are facts by ids: neither they nor other facts between the same two entities are stated."""
        self.graph = graph
        self.wordings = wordings
        self.seed = seed
        self.speaker = Speaker(graph, wordings)
        names = NameIndex.for_graph(graph)
        self._story = Story(Matcher(graph, names))
        self._links = LinkResolver(graph, names)
        self._composer = Composer(self.speaker, config or WritingConfig(), self._facts_between(excluded))
        self._draft = lru_cache(16)(self._compose)

    def _facts_between(self, facts: Iterable[tuple[str, str, str]]) -> frozenset[Fact]:
        """All facts between the head and the tail of each given fact."""
        found = set()
        for head, _, tail in facts:
            one, other = self.graph.number(head), self.graph.number(tail)
            relations, tails = self.graph.edges(one)
            for index in relations[tails == other].tolist():
                found.add(forward(one, self.graph.relation_id(index), other))
        return frozenset(found)

    def _compose(self, node: int, number: int, split: Split) -> Draft:
        return self._composer.compose(node, split, random.Random(f"{self.seed} {self.graph.id(node)} {number} {split}"))

    def topics(self, min_relations: int = 2) -> list[int]:
        """Entities to write about: they have a proper name, a sort, and facts of enough relations with wordings."""
        return [
            node
            for node in range(len(self.graph))
            if not is_literal(self.graph.id(node))
            and self.speaker.is_proper(node)
            and self.speaker.sorts(node)
            and self.relations(node) >= min_relations
        ]

    def relations(self, node: int) -> int:
        """Number of relations of an entity that have wordings."""
        return sum(relation in self.wordings.sentences for relation in self.speaker.facts(node))

    def article(self, node: int, number: int = 0, *, wordings: Split = "train") -> Document:
        """An annotated article about one entity; another `number` gives another article."""
        draft = self._draft(node, number, wordings)
        spans = [(mark.start, mark.end, str(place)) for place, mark in enumerate(draft.marks)]
        article = article_from(self._title(node), Passage(draft.text, spans))
        if article is None:
            raise GraphError(
                f"no wording fits a fact of {self.graph.id(node)}",
                place=self.graph.store.path,
                remedy="choose an entity of Writer.topics()",
            )
        marked = [(link, draft.marks[int(link.target)]) for link in article.links]
        found = [LinkedSpan(link.start, link.end, mark.node, mark.source) for link, mark in marked]
        return Document(article.title, article.tokens, self._story.explained_mentions(article.tokens, found, node))

    def texts(self, nodes: Iterable[int], *, wordings: Split = "train", per_entity: int = 1) -> Iterator[Document]:
        """`per_entity` articles about each of the entities."""
        for node in nodes:
            for number in range(per_entity):
                yield self.article(node, number, wordings=wordings)

    def record(self, node: int, number: int = 0, *, wordings: Split = "train") -> dict[str, Any]:
        """The same article as a text with links, an input record of `kglm annotate`."""
        draft = self._draft(node, number, wordings)
        links = [
            {"start": mark.start, "end": mark.end, "target": self._target(mark.node)}
            for mark in draft.marks
            if mark.source == "WIKI"
        ]
        return {"title": self._title(node), "text": draft.text, "links": links}

    def _title(self, node: int) -> str:
        """Title of an article about an entity: its Wikipedia title in the graph, else its name."""
        rows = self.graph.store.rows("SELECT title FROM entity WHERE id = ?", (self.graph.id(node),))
        return str(rows[0][0]).replace("_", " ") if rows and rows[0][0] else self.speaker.label(node)

    def _target(self, node: int) -> str:
        """Link target for an entity: its title if that resolves to it, else its id."""
        title = self._title(node)
        return title if self._links.entity(title) == node else self.graph.id(node)

    def prompts(
        self, facts: Iterable[tuple[str, str, str]], *, per_fact: int = 1, single_answer: bool = False
    ) -> list[dict[str, Any]]:
        """Prompts for facts (head, relation, tail) by ids: a sentence in a held-out wording, up to the tail.

        A fact gets up to `per_fact` prompts, none if no held-out wording that ends in the tail fits it. `single_answer`
        skips facts whose head and relation have further tails.
        """
        rows: list[dict[str, Any]] = []
        for head, relation, tail in facts:
            if single_answer and len(self.speaker.facts(self.graph.number(head)).get(relation, ())) > 1:
                continue
            rng = random.Random(f"{self.seed} {head} {relation} {tail}")
            held = [w for w in self.wordings.sentences.get(relation, ()) if w.held and w.ends_in_object]
            rng.shuffle(held)
            made = (self._prompt(wording, self.graph.number(head), self.graph.number(tail), rng) for wording in held)
            rows += [row for row in made if row is not None][:per_fact]
        return [row | {"row": place} for place, row in enumerate(rows)]

    def _prompt(self, wording: Wording, head: int, tail: int, rng: random.Random) -> dict[str, Any] | None:
        [relation] = wording.relations
        subject = self.speaker.by_name(head)
        others = {forward(head, relation, each) for each in self.speaker.facts(head).get(relation, ()) if each != tail}
        fits = self.speaker.fits(wording, head) and (wording.objects in ("some", "any") or not others)
        chosen = self.speaker.choose_objects(wording, head, rng, others, limit=1) if fits else None
        segments = None if chosen is None else self.speaker.fill(wording, head, subject, chosen, rng)
        if segments is None or [segment.node for segment in segments if segment.node >= 0] != [head, tail]:
            return None
        segments = [segments[0]._replace(text=capitalised(segments[0].text)), *segments[1:]]
        words: list[str] = []
        span = (0, 0)
        for segment in segments[:-1]:
            cut = tokenizer().words(segment.text)
            if segment.node == head:
                span = (len(words), len(words) + len(cut))
            words += cut
        return {
            "prefix": words,
            "expected_tail": self._expected(tail, segments[-1].text),
            "entity_id": self.graph.id(head),
            "entity_indices": list(span),
            "shortlist": [self.graph.id(head)],
            "relation": self.graph.relation_name(relation.removeprefix(REVERSE)),
            "relation_id": relation,
            "tail_id": self.graph.id(tail),
            "wording": wording.text,
        }

    def _expected(self, tail: int, words: str) -> str:
        """Expected continuation: a name, or a date in the format of the published question files."""
        id = self.graph.id(tail)
        if is_date(id) and (date := Date.parse_id(id)).precision == DAY and date.year > 0 and not words.isdigit():
            return f'"{date.year:04d}-{date.month:02d}-{date.day:02d}"'
        return words

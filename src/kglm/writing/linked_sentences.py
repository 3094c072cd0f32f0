"""Sentences with two slots, filled with a fact: linked by construction, for any wording of a relation.

    "XXXX was born in ____"      the wording: XXXX is the head of the fact, ____ its tail

Wordings come from a file (`--wordings`) or from `questions`. A date takes the form that the wording asks for: a day
after "on", a year or month after "in".
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kglm.errors import DataError
from kglm.files import read_lines
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import NEW, REFLEXIVE, REVERSE
from kglm.kg.literals.literal import is_date, is_literal, is_quantity
from kglm.text.document import END, START, Document, Mention
from kglm.text.tokenizer import tokenizer

HEAD, TAIL = "XXXX", "____"
ALIASES = 0.2
"""Probability that an entity is named by one of its aliases."""
_DAY = re.compile(r"\b[A-Z]?\w+ \d{1,2}, -?\d+|\d{1,2} [A-Z]\w+ -?\d+")
_YEAR = re.compile(r"-?\d{1,4}(?: BC)?")

Wordings = Mapping[str, Sequence[str]]
"""Sentences for each relation id."""


class Fact(NamedTuple):
    """Nodes of head and tail, and the number of the relation (of the stored direction)."""

    head: int
    relation: int
    tail: int


def read_wordings(path: Path) -> dict[str, list[str]]:
    """Wordings of a JSON file: {relation id: [[sentence, count], …]} or {relation id: [sentence, …]}."""
    content = b"".join(line for _, line in read_lines(path))
    try:
        found = {
            id: [each if isinstance(each, str) else each[0] for each in sentences]
            for id, sentences in json.loads(content).items()
        }
    except (ValueError, AttributeError, TypeError, IndexError, KeyError) as error:
        raise DataError(
            f"is no file of wordings ({error})", place=path, remedy='give {"P569": ["XXXX was born on ____", …], …}'
        ) from error
    return {id: [text for text in texts if is_wording(text)] for id, texts in found.items()}


def is_wording(text: object) -> bool:
    """True if a text has both slots, once each."""
    return isinstance(text, str) and text.count(HEAD) == 1 and text.count(TAIL) == 1


class SentenceWriter:
    """Fills wordings with facts of one graph."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self.graph = graph

    def fill(self, wording: str, fact: Fact, rng: random.Random, *, alias: float = ALIASES) -> LinkedSentence | None:
        """The sentence of a fact; None if a name of an entity is missing."""
        before, after = (wording.index(HEAD), HEAD, fact.head), (wording.index(TAIL), TAIL, fact.tail)
        parts, spans, last, length = [], [], 0, 0
        for place, slot, node in sorted([before, after]):
            lead = wording[last:place]
            name = self.name(node, rng, lead, alias)
            if not name:
                return None
            parts += [lead, name]
            length += len(lead)
            spans.append((length, length + len(name), node))
            length += len(name)
            last = place + len(slot)
        return LinkedSentence("".join([*parts, wording[last:]]), tuple(spans), fact)

    def name(self, node: int, rng: random.Random, lead: str, alias: float) -> str | None:
        """A name of an entity; a date in the form that the words before it ask for."""
        names = self.graph.aliases(node)
        if not names:
            return None
        id = self.graph.id(node)
        if is_date(id):
            word = lead.split()[-1:] and lead.split()[-1].casefold()
            form = _DAY if word == "on" else None
            if word == "in":
                form = _YEAR
            fitting = [name for name in names if form.fullmatch(name)] if form else names[:2]
            return rng.choice(fitting or list(names[:1]))
        if is_literal(id):
            return names[0] if not is_quantity(id) or rng.random() < 0.5 else rng.choice(names[:2])
        if len(names) > 1 and rng.random() < alias:
            return rng.choice(names[1:4])
        return names[0]


class LinkedSentence(NamedTuple):
    """A sentence, and its entities as spans of characters (begin, end, node), in order."""

    text: str
    spans: tuple[tuple[int, int, int], ...]
    fact: Fact


def document(sentences: Sequence[LinkedSentence], graph: KnowledgeGraph, title: str) -> Document:
    """Sentences as a linked document."""
    tokens: list[str] = [START]
    mentions: list[Mention] = []
    seen: set[int] = set()
    for sentence in sentences:
        add_tokens(tokens, mentions, sentence, graph, seen)
        tokens.append(END)
    return Document(title, tokens, mentions)


def add_tokens(
    tokens: list[str], mentions: list[Mention], sentence: LinkedSentence, graph: KnowledgeGraph, seen: set[int]
) -> None:
    """Append the tokens and mentions of a sentence; `seen` are the entities mentioned before."""
    head, relation, tail = sentence.fact
    boundaries = [edge for begin, end, _ in sentence.spans for edge in (begin, end)]
    found = tokenizer().tokens(sentence.text, boundaries)
    offset = len(tokens)
    tokens += [token.text for token in found]
    for n, (begin, end, node) in enumerate(sentence.spans):
        inside = [k for k, token in enumerate(found) if begin <= token.start and token.end <= end]
        if not inside:
            continue
        id = graph.id(node)
        stored = graph.relation_id(relation)
        if n == 0:
            relations, parents = ((REFLEXIVE,), (id,)) if node in seen else ((NEW,), (id,))
        elif node == tail:
            relations, parents = (stored,), (graph.id(head),)
        else:
            relations, parents = (REVERSE + stored,), (graph.id(tail),)
        mentions.append(Mention(offset + inside[0], offset + inside[-1] + 1, id, "KG", relations, parents))
        seen.add(node)


class FactDrawer:
    """Draws facts of one graph: a relation in proportion to a power of its number of facts, then one of its facts."""

    def __init__(
        self, heads: Sequence[int], relations: Sequence[int], tails: Sequence[int], chosen: Collection[int],
        *, smooth: float = 0.4,
    ) -> None:  # fmt: skip
        """`chosen`: relations to draw from, by number."""
        self._of: dict[int, list[int]] = {}
        wanted = set(chosen)
        for place, relation in enumerate(relations):
            if relation in wanted:
                self._of.setdefault(relation, []).append(place)
        self._heads, self._tails = heads, tails
        self._relations = sorted(self._of)
        self._weights = [len(self._of[relation]) ** smooth for relation in self._relations]

    def draw(self, rng: random.Random) -> Fact:
        """A fact."""
        [relation] = rng.choices(self._relations, self._weights)
        place = rng.choice(self._of[relation])
        return Fact(self._heads[place], relation, self._tails[place])

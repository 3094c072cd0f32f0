"""How often people mean whom by a name: counts of links in articles, by their texts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from kglm.errors import DataError
from kglm.files import reading, write_json
from kglm.kg.graph import KnowledgeGraph
from kglm.linking.name_index import hash_name

FORMAT = 1
UNSEEN = 0.5
"""Links that each entity is given to begin with."""
MIN_LINKS, MIN_SHARE = 2, 0.02
"""Links, and share of a name's links, that make the name one of the entity's."""


class _Table(msgspec.Struct):
    format: int
    links: dict[str, dict[str, int]]


class Anchors:
    """Counts of (name, entity). What was never linked says nothing."""

    def __init__(self) -> None:
        self._of: dict[int, Counter[int]] = {}
        self._text: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._of)

    def add(self, words: Sequence[str], node: int) -> None:
        """A link with this text led to the entity."""
        name = hash_name(words)
        self._of.setdefault(name, Counter())[node] += 1
        self._text.setdefault(name, " ".join(words))

    def names(self) -> Iterator[tuple[list[str], int]]:
        """What people call whom in links, but for what was a slip: (words, node)."""
        for name, counts in self._of.items():
            for node, times in counts.items():
                if times >= MIN_LINKS and times >= MIN_SHARE * counts.total():
                    yield self._text[name].split(" "), node

    def log_share(self, name: int, node: int) -> float:
        """log of the share of a name's links (given as H) that lead to the entity; 0 for a name without links."""
        counts = self._of.get(name)
        if not counts:
            return 0.0
        return math.log((counts[node] + UNSEEN) / (counts.total() + UNSEEN * (len(counts) + 1)))

    @classmethod
    def count(cls, texts: Iterable[tuple[Sequence[str], Sequence[tuple[int, int, int]]]]) -> Anchors:
        """Of texts with their links (start, end, node)."""
        anchors = cls()
        for words, links in texts:
            for start, end, node in links:
                anchors.add(words[start:end], node)
        return anchors

    def save(self, path: Path, graph: KnowledgeGraph) -> None:
        """As JSON: {"format": 1, "links": {"Obama": {"Q76": 3}}}."""
        links = {
            self._text[name]: {graph.id(node): times for node, times in sorted(counts.items())}
            for name, counts in self._of.items()
        }
        write_json(path, {"format": FORMAT, "links": dict(sorted(links.items()))})

    @classmethod
    def load(cls, path: Path, graph: KnowledgeGraph) -> Anchors:
        """From JSON; entities that the graph does not have are left out."""
        try:
            with reading(path):
                record = msgspec.json.decode(path.read_bytes(), type=_Table)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataError(
                f"is no table of link texts ({error})", place=path, remedy="make one with: kglm annotate --anchors-to"
            ) from error
        if record.format != FORMAT:
            raise DataError(f"is of format {record.format}, not {FORMAT}", place=path, remedy="make it again")
        anchors = cls()
        for text, counts in record.links.items():
            words = text.split(" ")
            known = {node: times for id, times in counts.items() if (node := graph.find(id)) is not None}
            if known:
                name = hash_name(words)
                anchors._of[name], anchors._text[name] = Counter(known), text
        return anchors

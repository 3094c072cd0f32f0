"""Anchor counts: how often links with a given text lead to each entity."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from kglm.errors import DataError
from kglm.files import reading, write_json
from kglm.files.records import MAX_COUNT, decode_record
from kglm.kg.graph import KnowledgeGraph
from kglm.linking.name_index import hash_name

FORMAT = 1
UNSEEN = 0.5
"""Pseudo-count that smooths each entity's share."""
MIN_LINKS, MIN_SHARE = 2, 0.02
"""Least number of links, and least share of the anchor text's links, that make the text an alias of the entity."""


class _Table(msgspec.Struct):
    """The JSON file: anchor text -> entity id -> number of links."""

    format: int
    links: dict[str, dict[str, Annotated[int, msgspec.Meta(ge=1, le=MAX_COUNT)]]]


class Anchors:
    """Link counts by (anchor text, entity); anchor texts are stored by their hash H."""

    def __init__(self) -> None:
        self._counts: dict[int, Counter[int]] = {}
        self._text: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, words: Sequence[str], node: int) -> None:
        """Count one link with this text to the entity."""
        name = hash_name(words)
        self._counts.setdefault(name, Counter())[node] += 1
        self._text.setdefault(name, " ".join(words))

    def names(self) -> Iterator[tuple[list[str], int]]:
        """Anchor texts and the entities they link to, rare mistakes removed: (words, node)."""
        for name, counts in self._counts.items():
            for node, times in counts.items():
                if times >= MIN_LINKS and times >= MIN_SHARE * counts.total():
                    yield self._text[name].split(" "), node

    def log_share(self, name: int, node: int) -> float:
        """Log of the smoothed share of links with text hash `name` that lead to the entity; 0 if there are none."""
        counts = self._counts.get(name)
        if not counts:
            return 0.0
        return math.log((counts[node] + UNSEEN) / (counts.total() + UNSEEN * (len(counts) + 1)))

    @classmethod
    def count(cls, texts: Iterable[tuple[Sequence[str], Sequence[tuple[int, int, int]]]]) -> Anchors:
        """Count the links (start, end, node) of texts."""
        anchors = cls()
        for words, links in texts:
            for start, end, node in links:
                anchors.add(words[start:end], node)
        return anchors

    def save(self, path: Path, graph: KnowledgeGraph) -> None:
        """Write JSON: {"format": 1, "links": {"Obama": {"Q76": 3}}}."""
        links = {
            self._text[name]: {graph.id(node): times for node, times in sorted(counts.items())}
            for name, counts in self._counts.items()
        }
        write_json(path, {"format": FORMAT, "links": dict(sorted(links.items()))})

    @classmethod
    def load(cls, path: Path, graph: KnowledgeGraph) -> Anchors:
        """Read JSON; entities outside the graph are skipped."""
        with reading(path):
            content = path.read_bytes()
        try:
            record = decode_record(content, _Table, path)
        except DataError as error:
            what = f"is not a table of link texts ({error.what})"
            raise DataError(what, place=path, remedy="build one with: kglm annotate --anchors-to FILE") from error
        if record.format != FORMAT:
            raise DataError(
                f"has format {record.format}; this version reads format {FORMAT}",
                place=path,
                remedy="rebuild it with: kglm annotate --anchors-to FILE",
            )
        anchors = cls()
        for text, counts in record.links.items():
            words = text.split(" ")
            found = {node: times for id, times in counts.items() if (node := graph.find(id)) is not None}
            if found:
                name = hash_name(words)
                anchors._counts[name], anchors._text[name] = Counter(found), text
        return anchors

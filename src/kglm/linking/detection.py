"""Mention detection: the names without a link that the linker is sure about.

Many words of a text match a name in the graph without referring to it: "Hotel" in the name of a hotel, "David"
before an unknown surname. The linker's probability of NIL says so; the least probability of a link is a setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kglm.linking.linker import Linker
from kglm.linking.ner import SpacyNames
from kglm.linking.spans import LinkedSpan
from kglm.linking.unknown import with_unknown_names


class DetectedNames(NamedTuple):
    """Names of a text: those with an entity, and the spans of longer names that the graph does not have."""

    linked: list[LinkedSpan]
    unknown: list[tuple[int, int]]


class NameDetector:
    """Finds names without a link in a text and links them to the entities of one graph."""

    def __init__(self, linker: Linker, *, min_p: float, names: SpacyNames | None = None) -> None:
        """`min_p`: least probability of the best candidate. `names`: only names that spaCy detects, too."""
        self._names = names
        self._linker = linker
        self._min_p = min_p

    def find(self, tokens: Sequence[str], given: Sequence[LinkedSpan]) -> DetectedNames:
        """Names outside the given spans whose best candidate is more probable than NIL and reaches `min_p`."""
        linked = self._linker.link(tokens, [(each.start, each.end, each.node) for each in given])
        given_starts = {each.start for each in given}
        detected = [
            LinkedSpan(each.start, each.end, each.node, "NEL")
            for each in linked
            if each.start not in given_starts and each.node is not None and each.candidates[0].p >= self._min_p
        ]
        unknown = [(name.start, name.end) for name in with_unknown_names(tokens, linked) if not name.candidates]
        if self._names is not None:
            spans = self._names.spans(tokens)
            detected = [each for each in detected if (each.start, each.end) in spans]
        return DetectedNames(detected, unknown)

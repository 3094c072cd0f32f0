"""Names in small letters, for prompts in which no other name is found: "The protein of carrots is".

The linker reads a word in small letters as a common noun. A question without any name asks about such a word, if the
graph has an entity of that name. Singular forms of plurals are tried as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from kglm.kg.ids import is_relation_id
from kglm.linking.linker import Candidate, LinkedName, LinkedText, Linker
from kglm.text.function_words import is_content

P_NAME = 0.8
"""Probability of the entities of the most likely name."""
P_OTHER = 0.2
"""The same of further names: words of the question that happen to be names."""


def common_names(linker: Linker, words: Sequence[str]) -> list[LinkedName]:
    """Names in small letters, in order; the longest where they overlap."""
    spans: dict[tuple[int, int], list[int]] = {}
    for forms in (list(words), [_singular(word) for word in words]):
        for start, end, nodes in linker.names.spans(forms):
            named = [node for node in nodes if not is_relation_id(linker.graph.id(node))]
            if named and words[start].islower() and any(map(is_content, words[start:end])):
                spans.setdefault((start, end), named)
    kept: list[tuple[int, int]] = []
    for start, end in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
        if all(end <= other[0] or other[1] <= start for other in kept):
            kept.append((start, end))
    text = LinkedText(linker, words, (), kept)
    found = [text.linked(start, end, linker.highest_degree(spans[start, end])) for start, end in sorted(kept)]
    found = [name for name in found if name.candidates]
    best = max(found, key=_odds, default=None)
    return [_weighted(name, P_NAME if name is best else P_OTHER) for name in found]


def _weighted(name: LinkedName, p: float) -> LinkedName:
    total = sum(candidate.p for candidate in name.candidates)
    candidates = tuple(Candidate(each.node, p * each.p / total) for each in name.candidates) if total else ()
    return LinkedName(name.start, name.end, candidates)


def _odds(name: LinkedName) -> float:
    """Probability that it is no plain word."""
    return sum(candidate.p for candidate in name.candidates)


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("oes", "ches", "shes", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word

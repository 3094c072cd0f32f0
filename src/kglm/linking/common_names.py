"""Names in small letters, for prompts in which no other name is found: "The protein of carrots is", "where is france?"

The linker reads a word in small letters as a common noun. A question without any name asks about such a word, if the
graph has an entity of that name. Singular forms of plurals are tried as well, and forms with capital letters. A word
that is a name with capital letters only ("france") is a proper name, and more probable than common nouns. A word that
names a relation ("currency") says what is asked for; it is no name if the prompt has another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kglm.kg.ids import is_relation_id
from kglm.linking.linker import Candidate, LinkedName, LinkedText, Linker, raised_word
from kglm.text.common_words import is_common
from kglm.text.function_words import is_content

ARTICLES = frozenset(("the", "a", "an"))

P_NAME = 0.8
"""Probability of the entities of the most likely name, and of each proper name."""
P_OTHER = 0.2
"""The same of further names: words of the question that happen to be names."""
LONGEST_ABBREVIATION = 4
Span = tuple[int, int]


def common_names(linker: Linker, words: Sequence[str]) -> list[LinkedName]:
    """Names in small letters, in order; the longest where they overlap."""
    small, of_relations = _spans(linker, words, (words, [_singular(word) for word in words]))
    capital, _ = _spans(linker, words, _with_capitals(words))
    proper = {span for span in capital if span not in small and span not in of_relations}
    spans = {span: [*dict.fromkeys([*small.get(span, ()), *capital.get(span, ())])] for span in {**small, **capital}}
    kept: list[Span] = []
    for start, end in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
        if all(end <= other[0] or other[1] <= start for other in kept):
            kept.append((start, end))
    text = LinkedText(linker, words, (), kept)
    found = [text.linked(start, end, linker.highest_degree(spans[start, end])) for start, end in sorted(kept)]
    found = [name for name in found if name.candidates]
    entities = [name for name in found if (name.start, name.end) not in of_relations] or found
    best = max(entities, key=lambda name: ((name.start, name.end) in proper, _odds(name)), default=None)
    return [
        _weighted(name, P_NAME if name is best or (name.start, name.end) in proper else P_OTHER) for name in entities
    ]


def _spans(
    linker: Linker, words: Sequence[str], forms: Iterable[Sequence[str]]
) -> tuple[dict[Span, list[int]], set[Span]]:
    """Entities of the spans in small letters that are names in one of the forms; the spans that name a relation."""
    spans, of_relations = dict[Span, list[int]](), set[Span]()
    for form in forms:
        for start, end, nodes in linker.names.spans(form):
            if words[start].islower() and any(map(is_content, words[start:end])):
                named = [node for node in nodes if not is_relation_id(linker.graph.id(node))]
                if named:
                    spans.setdefault((start, end), named)
                if len(named) < len(nodes):
                    of_relations.add((start, end))
    return spans, of_relations


def _with_capitals(words: Sequence[str]) -> Iterator[list[str]]:
    """The words as in proper names, without those that are plain words: "Germany", "USA", "The Godfather"."""
    plain = [not word.islower() or is_common(word) for word in words]
    raised = [word if keep else raised_word(word) for word, keep in zip(words, plain, strict=True)]
    yield raised
    yield [word.capitalize() if word in ARTICLES else word for word in raised]
    yield [
        word.upper() if not keep and is_content(word) and len(word) <= LONGEST_ABBREVIATION else word
        for word, keep in zip(words, plain, strict=True)
    ]


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

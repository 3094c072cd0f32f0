"""Repair known annotation errors of linked corpora and count them.

Reading never changes a document; `repair` returns a corrected copy:

* remove `@@END@@` at the end of a span; an inner `@@END@@` stays, because the mention is real;
* merge a mention that was split into two annotations because its tokens had different sources;
* drop a mention whose id has an unknown prefix;
* remove repeated (parent, relation) pairs;
* add a missing `@@START@@` or final `@@END@@`.
"""

from __future__ import annotations

from collections import Counter

from kglm.kg.ids import is_entity_id
from kglm.text.document import END, SOURCES, START, Document, Mention

STRONGEST_FIRST = ("WIKI", "NEL", "COREF", "KG")
"""Source of a merged mention, by preference: human link, entity linker, coreference, string match."""
assert set(STRONGEST_FIRST) == set(SOURCES)


def repair(document: Document) -> tuple[Document, Counter[str]]:
    """Return a corrected copy of the document and the number of repairs by type."""
    repairs: Counter[str] = Counter()
    tokens, shift = _with_markers(document.tokens, repairs)
    mentions: list[Mention] = []
    for mention in document.mentions:
        if not is_entity_id(mention.id):
            repairs["unknown_prefix"] += 1
            continue
        if shift:
            mention = mention.moved(mention.start + shift, mention.end + shift)
        trimmed = _without_trailing_end(mention, tokens)
        if trimmed is not mention:
            repairs["trimmed_end"] += 1
        if trimmed.start == trimmed.end:
            continue
        if END in tokens[trimmed.start : trimmed.end]:
            repairs["inner_end"] += 1
        trimmed = _without_repeated_pairs(trimmed, repairs)
        if mentions and is_split(mentions[-1], trimmed):
            repairs["merged"] += 1
            mentions[-1] = _merged(mentions[-1], trimmed)
        else:
            mentions.append(trimmed)
    return Document(document.title, tokens, mentions, document.annotated, dict(document.extra)), repairs


def is_split(left: Mention, right: Mention) -> bool:
    """True if two annotations are halves of one mention.

    They are adjacent, share the id, and either one of them is new (an entity is not introduced in the middle of its
    name) or both have the same explanations.
    """
    return (
        left.end == right.start
        and left.id == right.id
        and (left.is_new or right.is_new or set(left.explanations) == set(right.explanations))
    )


def _merged(left: Mention, right: Mention) -> Mention:
    """Join the halves of a mention, with the explanations of the first."""
    source = min(left.source, right.source, key=STRONGEST_FIRST.index)
    return Mention(left.start, right.end, left.id, source, left.relations, left.parents)


def _without_trailing_end(mention: Mention, tokens: list[str]) -> Mention:
    end = mention.end
    while end > mention.start and tokens[end - 1] == END:
        end -= 1
    return mention if end == mention.end else mention.moved(mention.start, end)


def _without_repeated_pairs(mention: Mention, repairs: Counter[str]) -> Mention:
    pairs = list(dict.fromkeys(zip(mention.parents, mention.relations, strict=True)))
    if len(pairs) == len(mention.parents):
        return mention
    repairs["repeated_pair"] += 1
    parents, relations = zip(*pairs, strict=True)
    return Mention(mention.start, mention.end, mention.id, mention.source, relations, parents)


def _with_markers(tokens: list[str], repairs: Counter[str]) -> tuple[list[str], int]:
    """Tokens with both markers, and the number of tokens added in front."""
    marked = list(tokens)
    shift = 0
    if not marked or marked[0] != START:
        marked.insert(0, START)
        shift = 1
        repairs["missing_start"] += 1
    if marked[-1] != END:
        marked.append(END)
        repairs["missing_end"] += 1
    return marked, shift

"""The quirks of linked corpora: found, counted, and mended where a model needs it.

Reading never changes a document; `repair` returns a mended copy and counts what it did:

* a span that ends in `@@END@@` loses it; an inner `@@END@@` stays (the mention is real, it cannot be copied);
* one mention split in two annotations, because its tokens had different sources, is made whole;
* an id with an unknown prefix is dropped;
* a parent listed twice with one relation is listed once;
* `@@START@@` and the last `@@END@@` are added where they are missing.
"""

from __future__ import annotations

from collections import Counter

from kglm.kg.ids import is_entity_id
from kglm.text.document import END, SOURCES, START, Document, Mention

STRONGEST_FIRST = ("WIKI", "NEL", "COREF", "KG")
"""Which source a merged mention keeps: a human link before a linker before coreference before a string match."""
assert set(STRONGEST_FIRST) == set(SOURCES)


def repair(document: Document) -> tuple[Document, Counter[str]]:
    """A copy of the document that a model can use, and how often each quirk was mended."""
    done: Counter[str] = Counter()
    tokens, shift = _with_markers(document.tokens, done)
    mentions: list[Mention] = []
    for mention in document.mentions:
        if not is_entity_id(mention.id):
            done["unknown_prefix"] += 1
            continue
        if shift:
            mention = mention.moved(mention.start + shift, mention.end + shift)
        trimmed = _without_trailing_end(mention, tokens)
        if trimmed is not mention:
            done["trimmed_end"] += 1
        if trimmed.start == trimmed.end:
            continue
        if END in tokens[trimmed.start : trimmed.end]:
            done["inner_end"] += 1
        trimmed = _without_repeated_parents(trimmed, done)
        if mentions and is_split(mentions[-1], trimmed):
            done["merged"] += 1
            mentions[-1] = _merged(mentions[-1], trimmed)
        else:
            mentions.append(trimmed)
    return Document(document.title, tokens, mentions, document.annotated, dict(document.extra)), done


def is_split(left: Mention, right: Mention) -> bool:
    """Whether two annotations are the halves of one mention: adjacent, of one id, and either one is new (an
    entity is not introduced in the middle of its name) or they differ in nothing but the source."""
    return (
        left.end == right.start
        and left.id == right.id
        and (left.is_new or right.is_new or set(left.explanations) == set(right.explanations))
    )


def _merged(left: Mention, right: Mention) -> Mention:
    """The first half says why the entity is mentioned; the second only continues it."""
    source = min(left.source, right.source, key=STRONGEST_FIRST.index)
    return Mention(left.start, right.end, left.id, source, left.relations, left.parents)


def _without_trailing_end(mention: Mention, tokens: list[str]) -> Mention:
    end = mention.end
    while end > mention.start and tokens[end - 1] == END:
        end -= 1
    return mention if end == mention.end else mention.moved(mention.start, end)


def _without_repeated_parents(mention: Mention, done: Counter[str]) -> Mention:
    pairs = list(dict.fromkeys(zip(mention.parents, mention.relations, strict=True)))
    if len(pairs) == len(mention.parents):
        return mention
    done["repeated_pair"] += 1
    parents, relations = zip(*pairs, strict=True)
    return Mention(mention.start, mention.end, mention.id, mention.source, relations, parents)


def _with_markers(tokens: list[str], done: Counter[str]) -> tuple[list[str], int]:
    mended = list(tokens)
    shift = 0
    if not mended or mended[0] != START:
        mended.insert(0, START)
        shift = 1
        done["missing_start"] += 1
    if mended[-1] != END:
        mended.append(END)
        done["missing_end"] += 1
    return mended, shift

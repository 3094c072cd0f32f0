"""What users give with a prompt: its words, the entities of some of them, and edits of the graph."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kglm.answer.completion import GeneratedWord
from kglm.answer.reading import Span
from kglm.errors import DataError
from kglm.kg.edits import FactEdit, NewEntity
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.resolve import parse_fact
from kglm.text.document import END, START
from kglm.text.tokenizer import detokenize, tokenizer

Edit = str | FactEdit | NewEntity
"""A text such as "France | capital | Lyon" becomes the only fact of its head and relation."""
_WORD_RANGE = re.compile(r"(\d+)\s*:\s*(\d+)")


def text_words(text: str) -> list[str]:
    """The words of a text, `@@END@@` between sentences as in the corpus."""
    sentences = [[token.text for token in sentence] for sentence in tokenizer().sentences(text)]
    words = [word for sentence in sentences for word in (*sentence, END)][:-1]
    return words[1:] if words[:1] == [START] else words


def continued(prompt: str, tokens: Sequence[str], words: Sequence[GeneratedWord]) -> str:
    """The prompt and the generated words as one text; `tokens` are the words of the prompt."""
    if any(word.text is None for word in words):
        return detokenize([*tokens, *(word.word for word in words)])
    return prompt + "".join(word.text or "" for word in words)


def parse_spans(graph: KnowledgeGraph, words: Sequence[str], entities: Sequence[str | Span]) -> list[Span]:
    """Parse given mentions: "0:2=Q76" by word positions, "Barack Obama=Q76" by the words themselves."""
    return [each if isinstance(each, Span) else _span(graph, words, each) for each in entities]


def _span(graph: KnowledgeGraph, words: Sequence[str], text: str) -> Span:
    where, equals, id = text.rpartition("=")
    if not equals:
        raise DataError(f"{text!r} names no entity", remedy='write it like "0:2=Q76" or "Barack Obama=Q76"')
    node = graph.number(id.strip())
    if match := _WORD_RANGE.fullmatch(where.strip()):
        return Span(int(match[1]), int(match[2]), node)
    name = tokenizer().words(where)
    for start in range(len(words) - len(name) + 1):
        if name and list(words[start : start + len(name)]) == name:
            return Span(start, start + len(name), node)
    raise DataError(f"the prompt does not contain {where!r}", remedy="give words of the prompt, or their positions")


def edited_graph(graph: KnowledgeGraph, edits: Edit | Sequence[Edit]) -> KnowledgeGraph:
    """A fork of a graph with one edit or several."""
    fork = graph.fork()
    for edit in [edits] if isinstance(edits, Edit) else edits:
        step = FactEdit("set", *parse_fact(fork, edit)) if isinstance(edit, str) else edit
        if not (isinstance(edit, str) and _holds(fork, step)):
            fork.edit([step])
    return fork


def _holds(graph: KnowledgeGraph, step: FactEdit | NewEntity) -> bool:
    """True if the graph already has this fact as the only one of its head and relation."""
    if not isinstance(step, FactEdit):
        return False
    head, relation, tail = graph.find(step.head), graph.find_relation(step.relation), graph.find(step.tail)
    if head is None or relation is None or tail is None:
        return False
    tails = graph.tails(head, relation)
    return len(tails) == 1 and int(tails[0]) == tail

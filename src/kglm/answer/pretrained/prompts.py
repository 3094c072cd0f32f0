"""A prompt as words and subwords, with the entities that its names refer to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kglm.answer.reading import Span
from kglm.heads.local import Link
from kglm.heads.passage import Passage, question_passage, text_passage
from kglm.kg.graph import KnowledgeGraph
from kglm.linking.common_names import common_names
from kglm.linking.linker import LinkedName, is_name
from kglm.linking.prompts import PromptLinker
from kglm.pretrained.subwords import Subwords
from kglm.text.document import ANSWER
from kglm.text.tokenizer import detokenize

LEAST_LINK = 0.01
"""Probability below which a candidate of a name is no parent of facts."""


@dataclass(frozen=True)
class LinkedPrompt:
    """A text or a question, and its names."""

    passage: Passage
    names: tuple[LinkedName, ...]
    links: tuple[Link, ...]

    @property
    def words(self) -> list[str]:
        """The words that positions of names count."""
        return prompt_words(self.passage)


def prompt_words(passage: Passage) -> list[str]:
    """The words of a prompt, `@@END@@` between sentences."""
    words = passage.surface[1:]
    return words[: words.index(ANSWER)] if ANSWER in words else words


def read_prompt(prompt: str | Sequence[str], subwords: Subwords, *, question: bool = False) -> Passage:
    """The passage of a text or a question; words are joined to a text."""
    text = prompt if isinstance(prompt, str) else detokenize(prompt)
    return question_passage(text, subwords) if question else text_passage(text, subwords)


def names_of_prompt(words: Sequence[str], linker: PromptLinker, given: Sequence[Span] = ()) -> list[LinkedName]:
    """The names of a prompt; those in small letters if there are no others. Spans `given` stay.

    A name with a capital letter counts even if the graph lacks it: in "the headquarters of Adidas", Adidas is the name.
    """
    names = linker.link(words, given)
    if any(name.node is not None or is_name(words[name.start : name.end]) for name in names):
        return names
    covered = {position for name in names for position in range(name.start, name.end)}
    common = common_names(linker.linker, words)
    return sorted([*names, *(name for name in common if covered.isdisjoint(range(name.start, name.end)))])


def link_prompt(
    passage: Passage, names: Sequence[LinkedName], graph: KnowledgeGraph, *, best: bool = False
) -> LinkedPrompt:
    """The links of a prompt, from its names. `best`: each name has its most probable entity alone."""
    if best:
        names = [name if name.node is None else LinkedName.certain(name.start, name.end, name.node) for name in names]
    return LinkedPrompt(passage, tuple(names), tuple(subword_links(passage, names, graph)))


def subword_links(passage: Passage, names: Sequence[LinkedName], graph: KnowledgeGraph) -> list[Link]:
    """The candidates of names, at the subwords of their words."""
    found = []
    for name in names:
        start = int(np.searchsorted(passage.word_T, name.start + 1))
        end = max(int(np.searchsorted(passage.word_T, name.end, side="right")), start + 1)
        for node, p in name.candidates:
            if p >= LEAST_LINK and node < len(graph) and not graph.are_literals([node])[0]:
                found.append(Link(start, min(end, len(passage.ids)), node, p))
    return found

"""What every model on a graph does with the texts of users: it finds their words, and links their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Self

from kglm.answer.given import parse_spans, text_words
from kglm.answer.mentions import LinkedMention, linked_mentions
from kglm.answer.reading import Span, check_annotation
from kglm.kg.graph import KnowledgeGraph
from kglm.linking.linker import LinkedName, Linker
from kglm.linking.name_index import NameIndex
from kglm.linking.prompts import NIL_BIAS, PROMPT_SHARPNESS, PromptLinker
from kglm.text.document import START


class OnGraph:
    """A model on a graph, or on a fork of it with edits."""

    def __init__(
        self, graph: KnowledgeGraph, before: Self | None, introductions: Mapping[int, int] | None = None
    ) -> None:
        """`before` is the model before edits, if there are any: the two share the name index.
        `introductions`: number of training mentions by node."""
        self.graph = graph
        """The graph that facts come from, with the edits of this model."""
        self._before, self._introductions = before, introductions

    @cached_property
    def linker(self) -> Linker:
        return Linker(self.graph, self._names(), self._introductions, nil_bias=NIL_BIAS, sharpness=PROMPT_SHARPNESS)

    @cached_property
    def _prompt_linker(self) -> PromptLinker:
        return PromptLinker(self.linker)

    def _names(self) -> NameIndex | None:
        if self._before is None:
            return None
        names = self._before.linker.names
        return names.on(self.graph) if len(self.graph) > len(self._before.graph) else names

    def words(self, prompt: str | Sequence[str]) -> list[str]:
        """The words of a prompt, `@@END@@` between sentences as in the corpus; a list only loses `@@START@@`."""
        if not isinstance(prompt, str):
            return list(prompt[1:] if list(prompt[:1]) == [START] else prompt)
        return text_words(prompt)

    def spans(self, words: Sequence[str], entities: Sequence[str | Span]) -> list[Span]:
        """Parse given mentions: "0:2=Q76" by word positions, "Barack Obama=Q76" by the words themselves."""
        return parse_spans(self.graph, words, entities)

    def given(self, words: Sequence[str], entities: Sequence[str | Span]) -> list[Span]:
        """As `spans`, of mentions that are in the text and do not overlap."""
        given = self.spans(words, entities)
        check_annotation(len(words), given)
        return given

    def link(self, prompt: str | Sequence[str], entities: Sequence[str | Span] = ()) -> list[LinkedMention]:
        """Find names in a text and list the entities they may refer to, with probabilities."""
        words = self.words(prompt)
        return linked_mentions(self.graph, words, self._linked_names(words, self.given(words, entities)))

    def _linked_names(self, words: Sequence[str], given: Sequence[Span]) -> list[LinkedName]:
        return self._prompt_linker.link(words, given)

"""Generated subwords as words, each with its reason and whether it is supported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kglm.answer.completion import GeneratedWord, Reason
from kglm.answer.next_word import Derivation
from kglm.answer.pretrained.generate import Draft, Piece
from kglm.answer.pretrained.support import Support, is_claim
from kglm.heads.model import Type as SubwordType
from kglm.kg.graph import KnowledgeGraph
from kglm.model.types import Type
from kglm.text.tokenizer import Token, tokenizer

TYPES = {SubwordType.PLAIN: Type.NONE, SubwordType.RELATED: Type.RELATED, SubwordType.CONTINUE: Type.CONTINUE}


class WordStream:
    """Turns drafts into words: a word is given out when the text shows that it has ended."""

    def __init__(self, graph: KnowledgeGraph, support: Support, prompt: Sequence[str]) -> None:
        self._graph, self._support = graph, support
        self._before: str | None = prompt[-1] if prompt else None
        self._done = 0
        """Characters of the added text that were given out."""

    def words(self, drafts: Iterable[Draft], count: int) -> Iterator[GeneratedWord]:
        """At most `count` words."""
        given, draft = 0, None
        for draft in drafts:
            for word in self._until(draft, _last_blank(draft.text)):
                yield word
                given += 1
                if given >= count:
                    return
        if draft is not None:
            for word in self._until(draft, len(draft.text)):
                yield word
                given += 1
                if given >= count:
                    return

    def _until(self, draft: Draft, end: int) -> Iterator[GeneratedWord]:
        """The words of the added text from where the last ones ended to a character."""
        if end <= self._done:
            return
        begin = self._done
        for token in tokenizer().tokens(draft.text[begin:end]):
            text, self._done = draft.text[self._done : begin + token.end], begin + token.end
            yield self._word(draft, token, begin, text)
            self._before = token.text

    def _word(self, draft: Draft, token: Token, shift: int, text: str) -> GeneratedWord:
        start, end = token.start + shift, token.end + shift
        pieces = [piece for piece in draft.pieces if piece.begin < end and piece.end > start]
        named = next((piece for piece in pieces if piece.way.after is not None), None)
        p = 1.0
        for piece in pieces:
            p *= piece.p
        supported: bool | None = None
        if is_claim(token.text, self._before):
            supported = named is not None or self._support.supports(token.text, draft.reading.linked)
        reason = Reason.of(self._graph, _derivation(named or pieces[0], p))
        return GeneratedWord(token.text, p, reason, text, supported)


def _derivation(piece: Piece, p: float) -> Derivation:
    """The way to a word, as the reason of all of its probability."""
    way = piece.way
    if way.after is None:
        return Derivation(p, Type.NONE)
    parent, relation = piece.fact
    return Derivation(p, TYPES[way.kind], way.after.node, parent, relation, copied=True)


def _last_blank(text: str) -> int:
    """Characters before the last word, which may go on."""
    stripped = text.rstrip()
    if stripped != text:
        return len(stripped)
    return len(text) - len(text.split()[-1]) if text.split() else 0

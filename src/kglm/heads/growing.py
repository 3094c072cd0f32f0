"""A passage that grows by one subword at a time, and the base's states along it.

    text = GrowingText.of(passage, subwords)
    longer = text.extended(id)

The subwords of a text that is generated are those that were drawn, which need not be those of its tokenisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from kglm.heads.passage import Passage
from kglm.pretrained.base import STRIDE, WINDOW, BaseModel
from kglm.pretrained.subwords import Subwords
from kglm.text.document import ANSWER, END, START
from kglm.text.tokenizer import tokenizer

if TYPE_CHECKING:
    from kglm.heads.model import Heads

STOPS = frozenset(".!?…")
INCOMPLETE = "\ufffd"
"""Stands for a character of which a part of the bytes has been read."""


class Growing(Protocol):
    """A passage that can be extended."""

    @property
    def passage(self) -> Passage:
        """The text so far."""
        ...

    @property
    def begins_V(self) -> Tensor | None:
        """True for the subwords that begin a word; None if all may."""
        ...

    def extended(self, id: int) -> Growing:
        """The text with one more subword."""
        ...


@dataclass(frozen=True, eq=False)
class GrowingText:
    """A text of a user or a question, and what was added to it."""

    passage: Passage
    subwords: Subwords
    given: Passage
    """What was given; the rest was added."""
    head: tuple[str, ...]
    """Tokens before the last sentence."""
    sentence: int
    """Character at which the last sentence begins."""

    @classmethod
    def of(cls, passage: Passage, subwords: Subwords) -> GrowingText:
        """A given text: a text of a user, or a question in the chat format."""
        if ANSWER in passage.surface:
            return cls(passage, subwords, passage, tuple(passage.surface), len(passage.text))
        sentences = tokenizer().sentences(passage.text)
        count = len(sentences[-1]) if sentences else 0
        begin = sentences[-1][0].start if sentences else 0
        return cls(passage, subwords, passage, tuple(passage.surface[: len(passage.surface) - count]), begin)

    @property
    def begins_V(self) -> Tensor:
        """True for the subwords that begin a word after a blank."""
        return _blank_before(self.subwords)

    @property
    def added(self) -> str:
        """The text that was added."""
        return self.passage.text[len(self.given.text) :]

    def extended(self, id: int) -> GrowingText:
        """The text with one more subword."""
        before = self.passage
        ids = [*before.ids, id]
        added = self.subwords.decode(ids[len(self.given.ids) :]).rstrip(INCOMPLETE)
        text = self.given.text + added
        end_T = np.append(before.end_T, len(text))
        head, begin = self.head, self.sentence
        surface, ends = list(head), list[int]()
        for number, sentence in enumerate(tokenizer().sentences(text[self.sentence :])):
            if number:
                surface.append(END)
                ends.append(ends[-1])
                head, begin = tuple(surface), self.sentence + sentence[0].start
            surface += [token.text for token in sentence]
            ends += [self.sentence + token.end for token in sentence]
        first = int(np.searchsorted(end_T, self.sentence, side="right"))
        own_T = len(self.head) + np.searchsorted(np.array(ends, np.int64), end_T[first:])
        word_T = np.concatenate([before.word_T[:first], np.minimum(own_T, max(len(surface) - 1, 0))])
        begins_T = np.append(before.begins_T, _begins(before, text, word_T, surface))
        longer = Passage(before.title, text, ids, end_T, word_T, begins_T, surface)
        return GrowingText(longer, self.subwords, self.given, head, begin)


@lru_cache(4)
def _blank_before(subwords: Subwords) -> Tensor:
    """True for the subwords whose text begins with a blank."""
    return torch.tensor([text[:1].isspace() for text in subwords.texts])


def _begins(before: Passage, text: str, word_T: np.ndarray, surface: Sequence[str]) -> bool:
    """True if the last subword begins a word. A blank alone begins the word after it."""
    piece = text[len(before.text) :]
    if piece and piece.isspace():
        return not before.text[-1:].isspace()
    if len(word_T) > 1 and len(before.text) and before.text[-1].isspace():
        return bool(int(before.end_T[-1]) - (int(before.end_T[-2]) if len(before.end_T) > 1 else 0) > 1)
    own = surface[int(word_T[-1])] not in (START, END, ANSWER)
    return own and (len(word_T) == 1 or bool(word_T[-1] != word_T[-2]))


def words_before(passage: Passage) -> list[str]:
    """The surface before the next word: a full stop ends the sentence."""
    surface = passage.surface
    return [*surface, END] if surface and surface[-1] in STOPS else list(surface)


class States(NamedTuple):
    """States of the base at some positions."""

    middle_TD: Tensor
    last_TD: Tensor


class BaseStates:
    """States of the base along a text, in the windows of `pretrained.base`; reads only what it has not just read."""

    def __init__(self, base: BaseModel) -> None:
        self.base = base
        context = base.model.config.context
        self._window = min(WINDOW, context)
        self._stride = min(STRIDE, max(2 * context // 3, 1))
        self._begin = 0
        self._fed: list[int] = []
        self._cache = base.model.new_cache()

    def fork(self) -> BaseStates:
        """A copy that can go on by itself."""
        other = BaseStates(self.base)
        other._begin, other._fed = self._begin, list(self._fed)
        other._cache = self._cache.select(torch.tensor([0])) if self._fed else self._cache
        return other

    def last(self, ids: Sequence[int], count: int) -> States:
        """States at the last `count` positions of a text; the last one has read all of its subwords."""
        fed = [self.base.subwords.start, *ids]
        middle, _ = self.base.feature_layers
        parts, at = [], len(fed) - count
        while at < len(fed):
            begin = self._window_of(at)
            end = min(begin + self._window, len(fed))
            known = self._common(fed, begin, at)
            self._cache = self._cache.rewound(known)
            found = self.base.model.hidden(torch.tensor([fed[begin + known : end]]), self._cache, after=(middle,))
            self._begin, self._fed = begin, fed[begin:end]
            skip = at - begin - known
            parts.append(States(found.after[middle][0, skip:].half(), found.last_BTD[0, skip:]))
            at = end
        return States(*(torch.cat(columns) for columns in zip(*parts, strict=True)))

    def branches(self, ids: Sequence[int], tree: Sequence[int], before: Sequence[int]) -> Tensor:
        """Last states at subwords that may follow a text, as a tree: each follows an earlier one or the text (−1)."""
        fed = [self.base.subwords.start, *ids]
        begin = self._window_of(len(ids))
        if (self._begin, self._fed) != (begin, fed[begin:]):
            self.last(ids, 1)
        length = self._cache.length
        last_TD = self.base.model.hidden(torch.tensor([tree]), self._cache, before=before).last_BTD[0]
        self._cache = self._cache.rewound(length)
        return last_TD

    def room(self, ids: Sequence[int]) -> int:
        """Subwords that the base can read behind a text."""
        return self.base.model.config.context - (len(ids) + 1 - self._window_of(len(ids)))

    def _window_of(self, at: int) -> int:
        """Where the window of a position begins."""
        return 0 if at < self._window else self._stride * (1 + (at - self._window) // self._stride)

    def _common(self, fed: Sequence[int], begin: int, at: int) -> int:
        """Number of subwords of the window that are in the cache, at most those before position `at`."""
        if begin != self._begin:
            self._cache = self.base.model.new_cache()
            return 0
        known = 0
        for own, new in zip(self._fed, fed[begin:at], strict=False):
            if own != new:
                break
            known += 1
        return known


class HeadStates:
    """States of the base and of the heads at the end of a text, computed when they are first asked for.

    Subwords that follow each other without a look at what may come next, as in a name of the graph, are read at once.
    """

    def __init__(self, heads: Heads, base: BaseStates, ids: Sequence[int], before: HeadStates | None = None) -> None:
        """`before` are the states one subword earlier; without them, the whole text is read."""
        self._heads, self.base, self._ids, self._before = heads, base, ids, before
        self._found: tuple[States, Tensor, Tensor] | None = None

    @property
    def states(self) -> States:
        """States of the base after the last subword."""
        return self._computed[0]

    @property
    def g_1G(self) -> Tensor:
        """g after the last subword."""
        return self._computed[1]

    def longer(self, ids: Sequence[int]) -> HeadStates:
        """Those after one more subword."""
        return HeadStates(self._heads, self.base, ids, self)

    def fork(self) -> HeadStates:
        """A copy whose base can go on by itself."""
        other = HeadStates(self._heads, self.base.fork(), self._ids, self._before)
        other._found = self._found
        return other

    def read_all(self) -> tuple[States, Tensor]:
        """Read a given text; return the states of the base and g at all positions."""
        return self._read([self], None)

    @property
    def _computed(self) -> tuple[States, Tensor, Tensor]:
        if self._found is None:
            unread, before = [self], self._before
            while before is not None and before._found is None:
                unread, before = [before, *unread], before._before
            self._read(unread, before)
        assert self._found is not None
        return self._found

    def _read(self, unread: Sequence[HeadStates], before: HeadStates | None) -> tuple[States, Tensor]:
        recurrent = None if before is None or before._found is None else before._found[2]
        count = len(self._ids) + 1 if recurrent is None else len(unread)
        found = self.base.last(self._ids, count)
        with torch.no_grad():
            g_1TG, end = self._heads.states(found.middle_TD[None], found.last_TD.half()[None], recurrent)
        for t, each in zip(range(count - len(unread), count), unread, strict=True):
            at = slice(t, t + 1)
            own = end if each is self else g_1TG[:, at].transpose(0, 1)
            each._found = States(found.middle_TD[at], found.last_TD[at]), g_1TG[0, at], own
            each._before = None
        return found, g_1TG

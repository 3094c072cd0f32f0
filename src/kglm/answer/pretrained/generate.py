"""Text of a pretrained model, subword by subword, by sampling or beam search; its names come from facts of the graph.

A subword is drawn from its distribution, and then one of the ways to it in proportion to its share: a plain subword,
the beginning of a name by a fact, or the next subword of a name. Three rules keep names, dates and numbers as the graph
writes them: a name that has begun goes on until it is one; nothing is added to a name without a blank; no digit follows
a number. In grounded mode, other words that state a name, a date or a number are not drawn at all, unless the prompt
has them.

Names that the base says are linked when the next word shows that they have ended; names that come from the graph are
linked at once. From then on, their facts can be said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from kglm.answer.generate import GenerateConfig, repeated
from kglm.answer.pretrained.support import Support, begins_sentence, is_claim
from kglm.heads.following import Derivation, Following
from kglm.heads.local import Link
from kglm.heads.model import Type
from kglm.heads.passage import Passage
from kglm.heads.reading import Reading
from kglm.heads.scoring import Running
from kglm.pretrained.subwords import Subwords

MOST_PROBABLE = 256
"""Subwords among which one is drawn."""
Linking = Callable[[Passage, Sequence[Link]], list[Link]]
"""Links the names of a text; links of earlier names are given."""


class Piece(NamedTuple):
    """A generated subword: its characters in the added text, its probability, and the way to it."""

    begin: int
    end: int
    p: float
    way: Derivation
    fact: tuple[int, int]
    """Parent and relation of the fact that began the name; −1 without one."""


@dataclass(frozen=True, eq=False)
class Draft:
    """A text that is being generated."""

    reading: Reading
    pieces: tuple[Piece, ...] = ()
    fact: tuple[int, int] = (-1, -1)
    """The fact that began the running mention."""
    after_number: bool = False
    """True right after a number of the graph, and a point or comma."""
    after_name: bool = False
    """True right after the end of a name of the graph."""
    log_p: float = 0.0
    links: tuple[Link, ...] = ()
    """Links of names that have ended."""

    @property
    def running(self) -> Running | None:
        """The name of the graph that is being said."""
        return next(iter(self.reading.weights)) if self.pieces else None

    @property
    def text(self) -> str:
        """The text that was added."""
        return self.reading.text.added  # type: ignore[attr-defined,no-any-return]


class Generator:
    """Draws subwords."""

    def __init__(
        self, support: Support, linking: Linking, config: GenerateConfig, *, grounded: bool, trust: float = 0.0
    ) -> None:
        """`trust` is added to the log odds of facts against other names, dates and numbers (`Following.in_text`)."""
        self._support, self._linking, self._config, self._grounded = support, linking, config, grounded
        self._trust = trust
        self._rng = np.random.default_rng(config.seed)

    def sample(self, reading: Reading, pause: Callable[[], None]) -> Iterator[Draft]:
        """Drafts, each one subword longer; ends with the end of the text."""
        draft = Draft(reading, links=reading.linked.links)
        while True:
            pause()
            following = self._following(draft)
            ids, p_N = self._candidates(draft, following)
            chosen = self._draw(p_N)
            if chosen is None or ids[chosen] in self._ends(draft):
                return
            draft = self._extended(draft, following, ids[chosen], float(p_N[chosen]))
            yield draft

    def beam(self, reading: Reading, words: int, pause: Callable[[], None]) -> Draft:
        """The most probable text that beam search finds."""
        beam = [Draft(reading.fork(), links=reading.linked.links)]
        for _ in range(4 * words + 8):
            if all(self._is_long(draft, words) for draft in beam):
                break
            found: list[tuple[float, Draft, Following | None, int, float]] = []
            for draft in beam:
                if self._is_long(draft, words):
                    found.append((draft.log_p, draft, None, -1, 1.0))
                    continue
                pause()
                following = self._following(draft)
                ids, p_N = self._candidates(draft, following)
                for k in np.argsort(-p_N, kind="stable")[: self._config.beam].tolist():
                    if p_N[k] > 0 and ids[k] not in self._ends(draft):
                        found.append((draft.log_p + math.log(p_N[k]), draft, following, ids[k], float(p_N[k])))
            if not found:
                break
            found.sort(key=lambda each: -each[0])
            beam = [
                draft if id < 0 else self._extended(replace(draft, reading=draft.reading.fork()), following, id, p)
                for _, draft, following, id, p in found[: self._config.beam]
            ]
        return beam[0]

    @staticmethod
    def _is_long(draft: Draft, words: int) -> bool:
        return len(draft.text.split()) > words

    @staticmethod
    def _ends(draft: Draft) -> frozenset[int]:
        return draft.reading.reader.tables.base.subwords.special

    # Candidates

    def _following(self, draft: Draft) -> Following | None:
        """What can follow in fluent text; None where only a name goes on."""
        if _next_of_name(draft):
            return None
        reading = draft.reading
        begin = reading.sentence
        near = {link.node for link in draft.links if link.start >= begin}
        said = near.union(piece.way.after.node for piece in draft.pieces if piece.way.after is not None)
        words = reading.surface
        claim_V = _claims(reading.reader.tables.base.subwords, begins_sentence(words[-1] if words else None))
        return Following.of(reading).in_text(claim_V, self._trust, said)

    def _candidates(self, draft: Draft, following: Following | None) -> tuple[list[int], np.ndarray]:
        """The most probable subwords that may follow, with their probabilities."""
        if following is None:
            p_of = _next_of_name(draft)
            return list(p_of), np.array(list(p_of.values()))
        p_V = following.p_V
        if self._grounded or draft.after_name or draft.after_number:
            plain_V = following.plain * following.reading.base_V if self._grounded else following.outside_V
            p_V = p_V - following.outside_V + torch.where(self._allowed(draft, plain_V), plain_V, 0.0)
        best = p_V.topk(min(MOST_PROBABLE, len(p_V)))
        ids, p_N = best.indices.tolist(), best.values.double().clamp(min=0).numpy().copy()
        if draft.reading.text.passage.text[-1:].isspace():
            texts = draft.reading.reader.tables.base.subwords.texts
            p_N[[k for k, id in enumerate(ids) if texts[id][:1] == " "]] = 0
        if self._config.repeat and (self._config.beam or not self._config.temperature):
            again = _repeated_ids(draft.reading.text.passage.ids, self._config.repeat)
            p_N[[k for k, id in enumerate(ids) if id in again]] = 0
        return ids, p_N

    def _allowed(self, draft: Draft, outside_V: Tensor) -> Tensor:
        """Mask of the plain subwords that may follow; only probable ones are examined."""
        texts = draft.reading.reader.tables.base.subwords.texts
        allowed_V = torch.zeros(len(outside_V), dtype=torch.bool)
        ends = self._ends(draft)
        if self._grounded and (unfinished := self._rest_of_word(draft)):
            allowed_V[unfinished] = True
            return allowed_V
        for id in outside_V.topk(min(2 * MOST_PROBABLE, len(outside_V))).indices.tolist():
            allowed_V[id] = id in ends or self._may_follow(draft, texts[id])
        return allowed_V

    def _may_follow(self, draft: Draft, piece: str) -> bool:
        """True if a plain subword may be said now."""
        if not piece:
            return False
        if draft.after_name and (piece[0].isalnum() or (piece[0] == "-" and piece[1:2].isalnum())):
            return False
        if draft.after_number and piece[0].isdigit():
            return False
        return not self._grounded or self._is_grounded(draft, piece)

    def _is_grounded(self, draft: Draft, piece: str) -> bool:
        """True if a plain subword states no name, date or number that the prompt does not have."""
        text = draft.text
        word, before = _last_word(text)
        if "\ufffd" in piece:  # a part of a character, which may become a letter
            return False
        stripped = piece.lstrip()
        begins = piece[0].isspace() or not word
        if begins or not stripped[0].isalnum():  # the word before has ended
            if not self._is_complete(draft, word, before):
                return False
            if not stripped:
                return piece != " "  # it begins a number
            if not stripped[0].isalnum():  # a mark, perhaps with the beginning of a word
                return not any(char.isupper() or char.isdigit() for char in stripped)
            new, previous = stripped, word or before
        else:
            new, previous = word + stripped, before
            if any(char.isupper() or char.isdigit() for char in stripped):  # it may be a name behind a mark
                return any(each.startswith(new) for each in self._support.prompt)
        if not is_claim(new, previous):
            return not (new[:1].isupper() and not begins_sentence(previous) and len(new) > 1)
        return any(each.startswith(new) for each in self._support.prompt)

    def _rest_of_word(self, draft: Draft) -> list[int]:
        """First subwords of what completes a name or a number of the prompt that has begun; empty if none has."""
        word, before = _last_word(draft.text)
        if self._is_complete(draft, word, before):
            return []
        rests = [each[len(word) :] for each in self._support.prompt if each.startswith(word)]
        return [ids[0] for ids in draft.reading.reader.tables.base.subwords.encode_many(rests) if ids]

    def _is_complete(self, draft: Draft, word: str, before: str | None) -> bool:
        """True if the last word may end here: it is no claim, a word of the prompt, or a name of the graph."""
        return not word or word in self._support.prompt or not is_claim(word, before) or self._is_name(draft)

    @staticmethod
    def _is_name(draft: Draft) -> bool:
        """True if the last word was said by a fact."""
        return draft.after_name or bool(draft.pieces and draft.pieces[-1].way.after is not None)

    def _draw(self, p_N: np.ndarray) -> int | None:
        """Index of the next subword; None if none has probability."""
        if not p_N.any():
            return None
        if not self._config.temperature:
            return int(p_N.argmax())
        with np.errstate(divide="ignore"):
            share_N = np.exp((np.log(p_N) - np.log(p_N.max())) / self._config.temperature)
        order = np.argsort(-share_N, kind="stable")
        until = np.cumsum(share_N[order])
        kept = order[: int(np.searchsorted(until, self._config.top_p * until[-1])) + 1]
        until = np.cumsum(share_N[kept])
        place = int(np.searchsorted(until, self._rng.random() * until[-1], side="right"))
        return int(kept[min(place, len(kept) - 1)])

    def _way(self, draft: Draft, following: Following | None, id: int) -> Derivation:
        """Draw one of the ways to a subword; the most probable one without temperature."""
        running = draft.running
        if following is None:
            assert running is not None
            return Derivation(1.0, Type.CONTINUE, Running(running.node, (*running.prefix, id)), running)
        ways = following.derivations(id)
        if not self._may_follow(draft, draft.reading.reader.tables.base.subwords.texts[id]):
            ways = [way for way in ways if way.after is not None] or ways
        if not self._config.temperature or self._config.beam:
            return _best_way(ways)
        until = np.cumsum([way.p for way in ways])
        return ways[min(int(np.searchsorted(until, self._rng.random() * until[-1], side="right")), len(ways) - 1)]

    # Extension

    def _extended(self, draft: Draft, following: Following | None, id: int, p: float) -> Draft:
        """The draft with one more subword."""
        way = self._way(draft, following, id)
        reading = draft.reading.step(id, {way.after: 1.0})
        tables = reading.reader.tables
        before = len(draft.text)
        fact = (way.parent, way.relation) if way.kind == Type.RELATED else draft.fact if way.after else (-1, -1)
        piece = Piece(before, len(reading.text.added), p, way, fact)  # type: ignore[attr-defined]
        links, changed = draft.links, False
        if way.after is not None:
            children = tables.names.children(*way.after)
            start, end = reading.position - len(way.after.prefix), reading.position
            kept = tuple(link for link in links if link.start < start or link.end <= start)
            links, changed = kept, kept != links
            if children.complete and not tables.graph.are_literals([way.after.node])[0]:
                links, changed = (*links, Link(start, end, way.after.node)), True
        elif draft.running is None and self._ends_name(draft, reading):
            linked = self._linking(draft.reading.text.passage, links)
            changed = len(linked) != len(links)
            links = tuple(linked)
        if changed:
            reading = reading.with_links(links)
        ended = draft.running is not None and way.after is None
        text = tables.base.subwords.texts[id]
        number = draft.text[-1:].isdigit() if ended else draft.after_number
        after_number = way.after is None and number and text in (",", ".")
        complete = way.after is not None and tables.names.children(*way.after).complete
        return Draft(
            reading, (*draft.pieces, piece), fact, after_number, complete, draft.log_p + math.log(max(p, 1e-30)), links
        )

    @staticmethod
    def _ends_name(draft: Draft, reading: Reading) -> bool:
        """True if a word begins after a capitalized one, and is not capitalized itself."""
        if not draft.pieces or not bool(reading.text.passage.begins_T[-1]):
            return False
        word, _ = _last_word(draft.text)
        new = reading.text.added[len(draft.text) :].lstrip()  # type: ignore[attr-defined]
        return word[:1].isupper() and not new[:1].isupper()


@lru_cache(4)
def _claims(subwords: Subwords, begins: bool) -> Tensor:
    """Mask of the subwords that begin a name, a date or a number; `begins`: at the beginning of a sentence."""
    before = None if begins else "a"
    return torch.tensor([text[:1] == " " and (text == " " or is_claim(text[1:], before)) for text in subwords.texts])


def _next_of_name(draft: Draft) -> dict[int, float]:
    """p(next subword) where a name of the graph has begun and is not complete: it goes on. Empty elsewhere."""
    reading, running = draft.reading, draft.running
    if running is None:
        return {}
    children = reading.reader.tables.names.children(*running)
    if children.complete or not children.kinds:
        return {}
    return dict.fromkeys(children.kinds, 1.0) if len(children.kinds) == 1 else reading.name_probs(children)


def _best_way(ways: Sequence[Derivation]) -> Derivation:
    """The most probable way; facts that lead to the same name count together."""
    mass: dict[object, float] = {}
    for way in ways:
        mass[way.after] = mass.get(way.after, 0.0) + way.p
    return max(ways, key=lambda way: (mass[way.after], way.p))


def _last_word(text: str) -> tuple[str, str | None]:
    """The word that a text ends with, without punctuation before it, and the word before; "" after a blank."""
    if not text or text[-1].isspace():
        before = text.split()
        return "", before[-1] if before else None
    words = text.split()
    return words[-1].lstrip("\"'“‘("), words[-2] if len(words) > 1 else None


def _repeated_ids(ids: Sequence[int], length: int) -> set[int]:
    """Subwords that would repeat an earlier sequence."""
    return {int(id) for id in repeated([str(id) for id in ids], length)}

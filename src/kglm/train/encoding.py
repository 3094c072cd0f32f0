"""A linked document as arrays: the latent variables of each position, and the facts that can explain them.

Position t predicts word t + 1 and has a type; the first position of a mention also has an entity, and the facts
(parent, relation) that reach it. `Start.paths` lists *every* fact of the local graph that reaches the entity, those
that the annotation names marked as listed: the model sums over all or over these. At some starts of a training document
these facts are also hidden (see `hidden`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kglm.kg.arrays import run_starts
from kglm.kg.literals.literal import is_literal
from kglm.model.arrays import Bools, Floats, Ints
from kglm.model.cues import NamedRelation
from kglm.model.graph_features import GraphFeatures
from kglm.model.mention_state import document_states
from kglm.model.text import Components, HistoryConfig, boundaries
from kglm.model.types import Type
from kglm.progress import progress
from kglm.text.document import Document, Mention
from kglm.text.vocabulary import Vocabulary
from kglm.train.hidden import Hiding

NEVER = 1 << 30
"""More than any distance."""
Fact = tuple[int, int, int]
"""Parent, relation, number of the relation's tails."""
CUE_BLOCK = 500
"""Positions whose cues of all relations are held at once."""


class Path(NamedTuple):
    """A fact that reaches a mention's entity: from the parent in slot `parent`, by `relation`, one of `tails`."""

    parent: int
    relation: int
    tails: int
    listed: bool


@dataclass(slots=True)
class Start:
    """The first position of a mention. Slots are indices in the document's `entities`."""

    target: int
    type: Type
    node: int
    length: int
    """Words of the mention."""
    entity_count: int
    """Number of entities mentioned before."""
    paths: list[Path]
    boundary: int
    """Index of the word before the sentence, or -1."""
    hides: bool = False
    """True if training also asks for the listed facts as missing ones."""


class NamedRelations(NamedTuple):
    """Relations that the words before positions name, by position, with m and a: see `model.cues`."""

    position_Y: npt.NDArray[np.int32]
    relation_Y: npt.NDArray[np.int32]
    value_Y2: Floats

    @classmethod
    def none(cls) -> NamedRelations:
        """No relations."""
        return cls(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros((0, 2)))

    @classmethod
    def of(cls, cue_TK2: Floats, position_T: Ints) -> NamedRelations:
        """From the scores of all relations at some positions."""
        row_Y, relation_Y = np.nonzero(cue_TK2.any(-1))
        return cls(position_T[row_Y].astype(np.int32), relation_Y.astype(np.int32), cue_TK2[row_Y, relation_Y])

    def between(self, start: int, end: int) -> NamedRelations:
        """Those at the positions [start, end)."""
        here = slice(*np.searchsorted(self.position_Y, [start, end]))
        return NamedRelations(self.position_Y[here], self.relation_Y[here], self.value_Y2[here])


@dataclass(slots=True)
class EncodedDocument:
    """All that a model needs of a document; made once, used in every epoch."""

    title: str
    words_N: Ints
    surface: list[str]
    type_T: npt.NDArray[np.int8]
    node_T: Ints
    """The entity that position t is a word of, or -1."""
    slot_T: Ints
    """Its index in `entities`, or -1."""
    state_T: npt.NDArray[np.int8]
    """The mention state before t: see `model.mention_state`."""
    boundary_T: npt.NDArray[np.int32]
    """Index of the word before the sentence of t, or -1."""
    named: NamedRelation
    """The relation that the words before t name best."""
    cues: NamedRelations
    """All relations that the words before name: at mention starts, or at all positions if facts may be missing."""
    related_T: Bools
    """True where `related` is legal: there is a candidate parent."""
    continue_T: Bools
    """True where `continue` is legal: the word before is inside a mention."""
    slots_T: dict[int, list[int]]
    """For positions inside mentions, the alias slots that hold the word."""
    order_T: dict[int, tuple[bool, list[int]]]
    """For these, whether it is the first word of the mention, and the alias slots that come next."""
    entities: list[int]
    """Nodes mentioned, in order of first mention, without literals, which are never parents. If only the topic can be a
    parent, it alone, mentioned or not."""
    starts: list[Start]
    mention_words_I3: Ints
    """Position and slot of every word of an entity, in order, and the number of entities mentioned so far."""
    introduced: list[int]
    """Distinct nodes that the annotation calls new."""
    given: int = 0
    """Number of entities that are candidate parents before they are mentioned: 1 if the model is given the topic."""
    counted: bool = False
    """True for training documents: the model's frequencies include their introductions."""
    counts: Counter[str] = field(default_factory=Counter)
    """Mentions that could not be used, by reason."""

    @classmethod
    def plain(cls, title: str, words_N: Ints, surface: list[str]) -> EncodedDocument:
        """A document without mentions."""
        length = max(len(words_N) - 1, 0)
        none_T, never_T = np.full(length, -1, np.int64), np.zeros(length, np.bool_)
        return cls(
            title=title,
            words_N=words_N,
            surface=surface,
            type_T=np.zeros(length, np.int8),
            node_T=none_T,
            slot_T=none_T.copy(),
            state_T=np.zeros(length, np.int8),
            boundary_T=np.full(length, -1, np.int32),
            named=NamedRelation(np.zeros((length, 3)), np.zeros(length, np.int64)),
            cues=NamedRelations.none(),
            related_T=never_T,
            continue_T=never_T.copy(),
            slots_T={},
            order_T={},
            entities=[],
            starts=[],
            mention_words_I3=np.zeros((0, 3), np.int64),
            introduced=[],
        )

    def after_mention(self, start: int, end: int) -> Bools:
        """For the positions [start, end): True if the word before is a word of an entity."""
        before = self.slot_T[max(start - 1, 0) : max(end - 1, 0)] >= 0
        return np.concatenate([np.zeros(end - start - len(before), np.bool_), before])

    def current(self, start: int, end: int) -> Ints:
        """For the positions [start, end): slot of the entity mentioned last before, or -1."""
        words_I3 = self.mention_words_I3
        slot_I = np.concatenate([[-1], words_I3[:, 1]])
        return np.asarray(slot_I[np.searchsorted(words_I3[:, 0], np.arange(start, end))], np.int64)

    def entities_before(self, t: int) -> int:
        """Number of entities mentioned before position t."""
        count = int(np.searchsorted(self.mention_words_I3[:, 0], t))
        return int(self.mention_words_I3[count - 1, 2]) if count else 0

    def __len__(self) -> int:
        """Number of positions."""
        return max(len(self.words_N) - 1, 0)


class DocumentEncoder:
    """Encodes linked documents, for one graph and vocabulary."""

    def __init__(self, features: GraphFeatures, vocabulary: Vocabulary, config: HistoryConfig) -> None:
        self.graph = features.graph
        self.aliases = features.aliases
        self.cues = features.cues
        self.vocabulary = vocabulary
        self.config = config

    @classmethod
    def of(cls, run: Components) -> DocumentEncoder:
        """The encoder of a run's documents."""
        return cls(run.features, run.vocabulary, run.history)

    def encode_all(
        self,
        documents: Sequence[Document],
        title: str,
        *,
        counted: bool = False,
        hiding: Hiding | None = None,
        shown: bool = True,
    ) -> list[EncodedDocument]:
        """Encode documents, with a progress bar; `counted` says that they are the training documents."""
        encoded = []
        total = sum(len(document.tokens) for document in documents)
        with progress(title, total, "tokens", shown=shown) as advance:
            for document in documents:
                result = self.encode(document, hiding)
                result.counted = counted
                encoded.append(result)
                advance(len(document.tokens))
        return encoded

    def encode(self, document: Document, hiding: Hiding | None = None) -> EncodedDocument:
        """Encode a repaired document. Mentions of entities that the graph lacks become plain words, and are counted.

        `hiding` draws the facts that are hidden, if the model has missing facts.
        """
        facts = self.config.facts
        words_N = np.array(self.vocabulary.encode(document.tokens), np.int64)
        result = EncodedDocument.plain(document.title, words_N, document.tokens)
        mentions = self._usable_mentions(document, result.counts)
        topic = self.config.topic(self.graph, document)
        given = [] if topic is None else [topic]
        reached = self._reached([*given, *(node for _, node in mentions)])
        if facts == "topic":
            of_topic = {node for node, found in reached.items() if any(parent == topic for parent, _, _ in found)}
            mentions = [(mention, node) for mention, node in mentions if node in of_topic]
        result.boundary_T = boundaries(document.tokens)[: len(result)].astype(np.int32)
        self._find_cues(result, [mention for mention, _ in mentions])
        slots = {node: slot for slot, node in enumerate(given)}
        last = [-1 for _ in given]
        for mention, node in mentions:
            self._add_mention(result, mention, node, slots, last, reached)
        result.entities, result.given = list(slots), len(given)
        if self.config.missing and hiding is not None:
            self._hide(result, hiding)
        at_I = np.flatnonzero(result.slot_T >= 0)
        slot_I = result.slot_T[at_I]
        result.mention_words_I3 = np.stack([at_I, slot_I, 1 + np.maximum.accumulate(slot_I)], -1)
        result.introduced = list(dict.fromkeys(start.node for start in result.starts if start.type == Type.NEW))
        if self.config.continues:
            result.continue_T[1:] = result.node_T[:-1] >= 0
        starts_T = result.type_T != Type.CONTINUE
        states_T = document_states(result.surface, result.node_T, starts_T, self.aliases)
        result.state_T = states_T.astype(np.int8)
        self._mark_related(result)
        return result

    def _find_cues(self, result: EncodedDocument, mentions: Sequence[Mention]) -> None:
        """Find the relation that is named best at each position, and all that are named where they are needed.

        The scores of all relations are held for a block of positions at a time.
        """
        if self.cues is None:
            return
        ends = ((mention.start if self.config.continues else mention.end - 1) for mention in mentions)
        starts = sorted({t for mention, end in zip(mentions, ends, strict=True) for t in range(mention.start - 1, end)})
        wanted_N = np.arange(len(result)) if self.config.missing else np.array(starts, np.int64)
        found = [NamedRelations.none()]
        for first in range(0, len(result), CUE_BLOCK):
            count = min(CUE_BLOCK, len(result) - first)
            cue_TK2 = self.cues.relations(result.surface, first, count)
            named = NamedRelation.of(cue_TK2)
            result.named.value_F3[first : first + count] = named.value_F3
            result.named.relation_F[first : first + count] = named.relation_F
            here_T = wanted_N[slice(*np.searchsorted(wanted_N, [first, first + count]))]
            found.append(NamedRelations.of(cue_TK2[here_T - first], here_T))
        result.cues = NamedRelations(*(np.concatenate(column) for column in zip(*found, strict=True)))

    def _usable_mentions(self, document: Document, counts: Counter[str]) -> list[tuple[Mention, int]]:
        usable = []
        for mention in document.mentions:
            start = max(mention.start, 1)  # the first token is given, not predicted
            node = self.graph.find(mention.id)
            if start >= mention.end:
                continue
            if node is None:
                counts["unknown_entity"] += 1
            elif is_literal(mention.id) and (mention.is_new or self.config.facts == "none"):
                counts["new_literal"] += 1
            else:
                usable.append((mention.moved(start, mention.end), node))
        return usable

    def _reached(self, nodes: list[int]) -> dict[int, list[Fact]]:
        """For each mentioned node, the facts that reach it from a mentioned one."""
        distinct = np.array(sorted(set(nodes)), np.int64)
        if not len(distinct) or self.config.facts == "none":
            return {}
        edges = self.graph.edges_of(distinct)
        head = np.repeat(distinct, np.diff(edges.offsets))
        # tails of one (head, relation) stand together: the length of the run is n_{p,r}
        run = np.cumsum(run_starts(head, edges.relation)) - 1
        size = np.bincount(run, minlength=1)
        wanted = np.flatnonzero(np.isin(edges.tail, distinct))
        reached: dict[int, list[Fact]] = {}
        for place in wanted.tolist():
            fact = (int(head[place]), int(edges.relation[place]), int(size[run[place]]))
            reached.setdefault(int(edges.tail[place]), []).append(fact)
        return reached

    def _add_mention(
        self,
        result: EncodedDocument,
        mention: Mention,
        node: int,
        slots: dict[int, int],
        last: list[int],
        reached: dict[int, list[Fact]],
    ) -> None:
        """Add the words of a mention; `last` are the last positions of the entities in `slots`."""
        aliases, facts = self.aliases[node], self.config.facts
        listed = {(self.graph.find(parent), self.graph.find_relation(r)) for parent, r in mention.explanations}
        for target in range(mention.start - 1, mention.end - 1):
            result.node_T[target] = node
            result.slots_T[target] = aliases.matches(result.surface[target + 1])
            first = target == mention.start - 1 or not self.config.continues
            words = [] if first else result.surface[mention.start : target + 1]
            result.order_T[target] = (first, aliases.next_slots(words))
            if first:
                kind = Type.NEW if facts == "none" or (mention.is_new and facts == "all") else Type.RELATED
                paths = [
                    Path(slots[parent], relation, tails, facts == "topic" or (parent, relation) in listed)
                    for parent, relation, tails in reached.get(node, ())
                    if parent in slots and self._in_window(last[slots[parent]], target)
                ]
                if kind == Type.RELATED and not any(path.listed for path in paths):
                    result.counts["unexplained"] += 1
                result.type_T[target] = kind
                boundary, length = int(result.boundary_T[target]), mention.end - 1 - target
                result.starts.append(Start(target, kind, node, length, len(last), paths, boundary))
            else:
                result.type_T[target] = Type.CONTINUE
            if node not in slots and facts != "topic" and not is_literal(self.graph.id(node)):
                slots[node] = len(slots)
                last.append(target)
            if (slot := slots.get(node)) is not None:
                last[slot] = target
                result.slot_T[target] = slot

    def _hide(self, result: EncodedDocument, hiding: Hiding) -> None:
        """Draw the starts whose facts are hidden; not of entities mentioned before, which need no fact."""
        seen: set[int] = set(result.entities[: result.given])
        for start, drawn in zip(result.starts, hiding.draw(result.surface, len(result.starts)).tolist(), strict=True):
            listed = [path for path in start.paths if path.listed]
            start.hides = drawn and start.type == Type.RELATED and bool(listed) and start.node not in seen
            seen.add(start.node)

    def _in_window(self, last: int, target: int) -> bool:
        window = self.config.parent_window
        return window is None or target - last <= window

    def _mark_related(self, result: EncodedDocument) -> None:
        """Mark the positions that have a candidate parent."""
        if self.config.facts == "none":
            return
        t_T = np.arange(len(result))
        last_T = np.maximum.accumulate(np.where(result.slot_T >= 0, t_T, -2 * NEVER))
        before = -1 if self.config.facts == "topic" and result.entities else -2 * NEVER
        last_T = np.maximum(np.concatenate([[before], last_T])[: len(t_T)], before)
        window = NEVER if self.config.parent_window is None else self.config.parent_window
        result.related_T = t_T - last_T <= window


def unused_mentions(documents: Iterable[EncodedDocument]) -> Counter[str]:
    """Mentions of all documents that could not be used, by reason."""
    return sum((document.counts for document in documents), Counter())

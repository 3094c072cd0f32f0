"""A linked document as numbers: the latent variables of each step, and the facts that can explain them.

Legend of shapes: N tokens, T = N - 1 targets, M mention starts, K entities in order of first mention.

Target t is x_t = w_{t+1}. z_t has a type; a mention's first target also has an entity, and the facts (parent, relation)
that reach it. `paths` lists *every* fact of the local graph that reaches the entity, those that the annotation names
marked as listed: the model sums over the ones it is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from kglm.kg.arrays import run_starts
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.literal import is_literal
from kglm.model.aliases import AliasTable
from kglm.model.cues import Cues, Named, TextCues
from kglm.text.document import END, START, Document, Mention
from kglm.text.vocabulary import Vocabulary

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
MentionTypes = Literal["continue", "paper"]
Facts = Literal["all", "topic", "none"]
"""Whose facts lead to mentions: everybody's who was mentioned (KGLM), the topic's, which is given (NKLM), or nobody's
(EntityCopyNet)."""
NEVER = 1 << 30
"""A position before everything: the entity has not been mentioned."""


class Type(IntEnum):
    """What a target is: no mention, the first word of a new or related mention, or a further word of a mention."""

    NONE = 0
    NEW = 1
    RELATED = 2
    CONTINUE = 3


class Path(NamedTuple):
    """A fact that reaches a mention's entity: from the parent of column `parent`, by `relation`, one of `tails`."""

    parent: int
    relation: int
    tails: int
    listed: bool


@dataclass(slots=True)
class Start:
    """The first target of a mention. Columns of parents are places in the document's entity list."""

    target: int
    type: Type
    node: int
    length: int
    """How many words the mention has."""
    known: int
    """How many entities were mentioned before."""
    paths: list[Path]
    boundary: int
    """The word before the sentence that it stands in, or -1."""
    cues: list[tuple[int, float, float]]
    """Relations that the words before name, how far, and how far the words right before."""


@dataclass(slots=True)
class EncodedDocument:
    """What a model needs of a document; made once, used in every epoch."""

    title: str
    words_N: Ints
    surface: list[str]
    type_T: npt.NDArray[np.int8]
    node_T: Ints
    """The entity that target t is a word of, or -1."""
    column_T: Ints
    """Its place in `entities`, or -1."""
    feature_T: npt.NDArray[np.int8]
    """The mention state before t, as a number: see `type_feature`."""
    named: Named
    """How far the words before t name a relation."""
    related_T: Bools
    """Whether `related` is legal at t: some candidate parent has an edge."""
    continue_T: Bools
    """Whether `continue` is legal at t: x_{t-1} was a word of a mention."""
    slots_T: dict[int, list[int]]
    """For targets inside mentions, the alias slots of the entity that say the word."""
    order_T: dict[int, tuple[bool, list[int]]]
    """For the same, whether it is the first word of the mention, and the slots that come next in an alias."""
    entities: list[int]
    """The nodes mentioned, in order of first mention; literals are not among them: they are never parents. If only the
    topic can be one, it alone, mentioned or not."""
    starts: list[Start]
    spoken: list[tuple[int, int]]
    """(target, place in `entities`) of every word of a mention, in order: who was mentioned when."""
    introduced: list[int]
    """The nodes that the annotation calls new, each once."""
    counted: bool = False
    """Whether these introductions are among those that the model's frequencies count: true of training documents."""
    counts: Counter[str] = field(default_factory=Counter)
    """What could not be used: mentions of entities that the graph does not hold, or that no fact explains."""

    @classmethod
    def plain(cls, title: str, words_N: Ints, surface: list[str]) -> EncodedDocument:
        """A document in which nobody is mentioned."""
        length = max(len(words_N) - 1, 0)
        nobody_T, unlike_T = np.full(length, -1, np.int64), np.zeros(length, np.bool_)
        return cls(
            title=title,
            words_N=words_N,
            surface=surface,
            type_T=np.zeros(length, np.int8),
            node_T=nobody_T,
            column_T=nobody_T.copy(),
            feature_T=np.zeros(length, np.int8),
            named=Named(np.zeros((length, 3)), np.zeros(length, np.int64)),
            related_T=unlike_T,
            continue_T=unlike_T.copy(),
            slots_T={},
            order_T={},
            entities=[],
            starts=[],
            spoken=[],
            introduced=[],
        )

    @property
    def spoke_T(self) -> Bools:
        """Whether the word before target t is a word of an entity."""
        return np.concatenate([[False], self.column_T >= 0])[: len(self)]

    @property
    def current_T(self) -> Ints:
        """Place of the last entity that was mentioned before target t, or -1."""
        spoken_T = np.where(self.spoke_T, np.arange(len(self)), 0)
        return np.concatenate([[-1], self.column_T])[np.maximum.accumulate(spoken_T)]

    def __len__(self) -> int:
        """How many targets there are: every token but the first."""
        return max(len(self.words_N) - 1, 0)


DISTANCES = (1, 2, 4, 8, 16, 32, 64)
"""Upper ends of the buckets of a distance; beyond the last is one more."""
FEATURES = 4 + len(DISTANCES) + 2


def bucket(distance: int) -> int:
    """Log-bucket of a distance of at least 1."""
    return int(np.searchsorted(DISTANCES, distance))


def frequency_bucket(count: int) -> int:
    """Log-bucket of a count; 0 has one of its own."""
    return 1 + bucket(count) if count else 0


def boundaries(surface: Sequence[str]) -> Ints:
    """For each target t, the last word that begins or ends a sentence among those before it; -1 if there is none."""
    return np.maximum.accumulate(
        [at if word in (START, END) else -1 for at, word in enumerate(surface)], dtype=np.int64
    )


def type_feature(inside: bool, goes_on: bool, ends: bool, since: int | None) -> int:
    """The mention state as one number: inside a mention, what its aliases allow next; outside, how long ago one was."""
    if inside:
        return goes_on + 2 * ends
    return 4 + (bucket(since) if since is not None else len(DISTANCES) + 1)


class AnnotationEncoder:
    """Turns documents into `EncodedDocument`s, for one graph and vocabulary."""

    def __init__(
        self,
        graph: KnowledgeGraph,
        vocabulary: Vocabulary,
        aliases: AliasTable,
        *,
        mention_types: MentionTypes = "continue",
        parent_window: int | None = None,
        facts: Facts = "all",
        cues: Cues | None = None,
    ) -> None:
        """`cues`: of the graph, if the model heeds them."""
        self.graph = graph
        self.facts = facts
        self.cues = cues
        self.vocabulary = vocabulary
        self.aliases = aliases
        self.mention_types = mention_types
        self.parent_window = parent_window

    def encode(self, document: Document) -> EncodedDocument:
        """Numbers of a repaired document. Mentions of unknown entities become plain words, and are counted."""
        words_N = np.array(self.vocabulary.encode(document.tokens), np.int64)
        result = EncodedDocument.plain(document.title, words_N, document.tokens)
        mentions = self._known_mentions(document, result.counts)
        topic = self.topic(document)
        given = [] if topic is None else [topic]
        reached = self._reached([*given, *(node for _, node in mentions)])
        if self.facts == "topic":
            of_topic = {node for node, ways in reached.items() if any(parent == topic for parent, _, _ in ways)}
            mentions = [(mention, node) for mention, node in mentions if node in of_topic]
        boundary_T = boundaries(document.tokens)
        cue_TN2 = None if self.cues is None else self.cues.relations(document.tokens)
        if cue_TN2 is not None:
            result.named = Named.of(cue_TN2)
        columns = {node: column for column, node in enumerate(given)}
        last = [-1 for _ in given]
        for mention, node in mentions:
            self._add_mention(result, mention, node, columns, last, reached, boundary_T, cue_TN2)
        result.entities = list(columns)
        result.introduced = list(dict.fromkeys(start.node for start in result.starts if start.type == Type.NEW))
        if self.mention_types == "continue":
            result.continue_T[1:] = result.node_T[:-1] >= 0
        self._add_state(result)
        return result

    def topic(self, document: Document) -> int | None:
        """Whom the document is about, if that is given: by its title, else the first that its annotation mentions."""
        if self.facts != "topic":
            return None
        id = self.graph.store.by_title(document.title)
        ids = [id or "", *(mention.id for mention in document.mentions if not is_literal(mention.id))]
        return next((node for id in ids if (node := self.graph.find(id)) is not None), None)

    def _known_mentions(self, document: Document, counts: Counter[str]) -> list[tuple[Mention, int]]:
        known = []
        for mention in document.mentions:
            start = max(mention.start, 1)  # the first token is given, not predicted
            node = self.graph.find(mention.id)
            if start >= mention.end:
                continue
            if node is None:
                counts["unknown_entity"] += 1
            elif is_literal(mention.id) and (mention.is_new or self.facts == "none"):
                counts["new_literal"] += 1
            else:
                known.append((mention.moved(start, mention.end), node))
        return known

    def _reached(self, nodes: list[int]) -> dict[int, list[tuple[int, int, int]]]:
        """For each mentioned node, the facts (parent, relation, number of tails) that reach it from a mentioned one."""
        distinct = np.array(sorted(set(nodes)), np.int64)
        if not len(distinct) or self.facts == "none":
            return {}
        edges = self.graph.edges_of(distinct)
        head = np.repeat(distinct, np.diff(edges.offsets))
        # tails of one (head, relation) stand together: the length of the run is n_{p,r}
        run = np.cumsum(run_starts(head, edges.relation)) - 1
        size = np.bincount(run, minlength=1)
        wanted = np.flatnonzero(np.isin(edges.tail, distinct))
        reached: dict[int, list[tuple[int, int, int]]] = {}
        for place in wanted.tolist():
            fact = (int(head[place]), int(edges.relation[place]), int(size[run[place]]))
            reached.setdefault(int(edges.tail[place]), []).append(fact)
        return reached

    def _add_mention(
        self,
        result: EncodedDocument,
        mention: Mention,
        node: int,
        columns: dict[int, int],
        last: list[int],
        reached: dict[int, list[tuple[int, int, int]]],
        boundary_T: Ints,
        cue_TN2: Floats | None,
    ) -> None:
        aliases = self.aliases[node]
        listed = {(self.graph.find(parent), self.graph.find_relation(r)) for parent, r in mention.explanations}
        for target in range(mention.start - 1, mention.end - 1):
            result.node_T[target] = node
            result.slots_T[target] = aliases.matches(result.surface[target + 1])
            first = target == mention.start - 1
            if first or self.mention_types == "paper":
                kind = Type.NEW if self.facts == "none" or (mention.is_new and self.facts == "all") else Type.RELATED
                paths = [
                    Path(columns[parent], relation, tails, self.facts == "topic" or (parent, relation) in listed)
                    for parent, relation, tails in reached.get(node, ())
                    if parent in columns and self._in_window(last[columns[parent]], target)
                ]
                if kind == Type.RELATED and not any(path.listed for path in paths):
                    result.counts["unexplained"] += 1
                result.type_T[target] = kind
                boundary = int(boundary_T[target])
                cues = _named(cue_TN2[target]) if cue_TN2 is not None and paths else []
                length = mention.end - 1 - target
                result.starts.append(Start(target, kind, node, length, len(last), paths, boundary, cues))
            else:
                result.type_T[target] = Type.CONTINUE
            if node not in columns and self.facts != "topic" and not is_literal(self.graph.id(node)):
                columns[node] = len(columns)
                last.append(target)
            if (column := columns.get(node)) is not None:
                last[column] = target
                result.column_T[target] = column
                result.spoken.append((target, column))

    def text_cues(self, surface: Sequence[str], first: int, count: int) -> TextCues | None:
        """Cues at the targets of a text, if they are heeded."""
        return None if self.cues is None else TextCues(self.cues, surface, first, count)

    def _in_window(self, last: int, target: int) -> bool:
        return self.parent_window is None or target - last <= self.parent_window

    def _add_state(self, result: EncodedDocument) -> None:
        """The mention state before each target, and where `related` is legal."""
        last_parent = -1 if self.facts == "topic" and result.entities else -2 * NEVER
        last_mention = -2 * NEVER
        running: list[str] = []
        aliases = None
        node = -1
        for target in range(len(result)):
            window = NEVER if self.parent_window is None else self.parent_window
            result.related_T[target] = target - last_parent <= window
            goes_on, ends = aliases.can_follow(running) if aliases is not None else (False, False)
            since = target - last_mention if last_mention >= 0 else None
            result.feature_T[target] = type_feature(aliases is not None, goes_on, ends, since)
            node = int(result.node_T[target])
            if node < 0:
                aliases = None
                continue
            starts_here = result.type_T[target] != Type.CONTINUE
            running = [] if starts_here else running
            result.order_T[target] = (starts_here, self.aliases[node].next_slots(running))
            running.append(result.surface[target + 1])
            aliases = self.aliases[node]
            last_mention = target
            if result.column_T[target] >= 0 and self.facts != "none":
                last_parent = target


def _named(cue_N2: Floats) -> list[tuple[int, float, float]]:
    """The relations that are named at all, with how far they are."""
    named = np.flatnonzero(cue_N2.any(1))
    return [(relation, m, a) for relation, (m, a) in zip(named.tolist(), cue_N2[named].tolist(), strict=True)]

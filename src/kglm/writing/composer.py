"""Compose articles sentence by sentence: an opening, facts in random order, and sentences about related entities."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from kglm.kg.ids import INSTANCE_OF, REVERSE
from kglm.kg.literals.literal import is_literal
from kglm.writing.draft import Draft, Split
from kglm.writing.english import uncapitalised
from kglm.writing.speaker import (
    OCCUPATION,
    Fact,
    Segment,
    Speaker,
    Subject,
    Tails,
    begins_with_subject,
    forward,
    is_plain,
    is_relative,
    takes_pronoun,
)
from kglm.writing.wordings import Slot, Wording


@dataclass(frozen=True)
class WritingConfig:
    """Length of an article, and the probabilities of its variations."""

    facts: int = 14
    """Number of facts after which an article ends."""
    together: float = 0.4
    """Probability that a sentence states facts of several relations, if a wording for them exists."""
    aside: float = 0.3
    """Probability that a fact about a named entity follows its name, between commas."""
    second: float = 0.12
    """Probability that a sentence about a mentioned entity follows."""
    contrast: float = 0.05
    """Probability that a sentence about another entity of the same class follows."""
    filler: float = 0.12
    """Probability that a sentence without facts follows."""
    connective: float = 0.1
    """Probability that a sentence begins with a connective such as "In addition"."""
    sections: float = 0.4
    """Probability that an article has sections with headings."""
    american: float = 0.9
    """Probability that the dates of an article have the month first."""
    note: float = 0.0
    """Probability of a note instead of an article: one to three sentences, without an opening."""


class Composer:
    """Composes articles about the entities of one graph."""

    def __init__(self, speaker: Speaker, config: WritingConfig, excluded: Collection[Fact]) -> None:
        """`excluded` are facts that are never stated."""
        self.speaker = speaker
        self.graph = speaker.graph
        self.wordings = speaker.wordings
        self.config = config
        self._excluded = frozenset(excluded)

    def compose(self, node: int, split: Split, rng: random.Random) -> Draft:
        """Compose an article or a note about one entity."""
        draft = Draft(rng, node, split, american=rng.random() < self.config.american)
        if rng.random() < self.config.note:
            self._write_note(draft)
            if draft.sentences:
                return draft
        self._write_opening(draft)
        for title, relations in self._sections(draft):
            if title:
                draft.set_heading(title)
            self._write_section(draft, relations)
            if draft.fact_count >= self.config.facts:
                break
        return draft

    def _write_note(self, draft: Draft) -> None:
        """Write one to three sentences, with relations drawn in inverse proportion to their frequency."""
        relations = [r for r in self.speaker.facts(draft.topic) if r in self.wordings.sentences]
        weight = {relation: 1 / self._frequency[relation] for relation in relations}
        for _ in range(draft.rng.randint(1, 3)):
            if not relations:
                return
            [relation] = draft.rng.choices(relations, [weight[each] for each in relations])
            relations.remove(relation)
            self._write_sentence(draft, self._about(relation, draft), draft.topic, name=True)

    @cached_property
    def _frequency(self) -> Counter[str]:
        """Number of named entities that have each relation."""
        nodes = (node for node in range(len(self.graph)) if self._is_named_entity(node))
        return Counter(relation for node in nodes for relation in self.speaker.facts(node))

    def _write_opening(self, draft: Draft) -> None:
        """Write the first sentence: the name of the topic and its kind."""
        if not self._write_sentence(draft, self._allowed(self.wordings.openings, draft), draft.topic, name=True):
            train = [wording for wording in self.wordings.openings if not wording.held]
            if not self._write_sentence(draft, train, draft.topic, name=True):
                self._write_any_fact(draft, draft.topic, avoid=())

    def _sections(self, draft: Draft) -> list[tuple[str, list[str]]]:
        """The relations to write about in random order, in sections (heading, relations); "" for no heading."""
        rng = draft.rng
        left = [relation for relation in self.speaker.facts(draft.topic) if relation in self.wordings.sentences]
        if draft.sentences and INSTANCE_OF in left:  # stated in the first sentence
            left.remove(INSTANCE_OF)
        rng.shuffle(left)
        if rng.random() >= self.config.sections:
            return [("", left)]
        sections: list[tuple[str, list[str]]] = []
        for heading in self.wordings.headings:
            if heading.of.isdisjoint(self.speaker.sorts(draft.topic)) and heading.of:
                continue
            here = [relation for relation in left if relation in heading.relations]
            left = [relation for relation in left if relation not in heading.relations]
            if here:
                sections.append((rng.choice(heading.titles), here))
        return [("", left[:2]), *sections, *([("", left[2:])] if not sections else [])]

    def _write_section(self, draft: Draft, relations: list[str]) -> None:
        """Write sentences about some relations, each perhaps followed by a related one."""
        rng, config = draft.rng, self.config
        together = [w for w in self._allowed(self.wordings.together, draft) if set(w.relations) <= set(relations)]
        for relation in relations:
            if draft.fact_count >= config.facts:
                return
            joint = [wording for wording in together if relation in wording.relations]
            done = rng.random() < config.together and self._write_sentence(draft, joint, draft.topic)
            if not done and not self._write_sentence(draft, self._about(relation, draft), draft.topic):
                continue
            if rng.random() < config.contrast:
                self._write_contrast(draft, relation)
            if rng.random() < config.second:
                self._write_about_object(draft)
            if rng.random() < config.filler:
                self._write_sentence(draft, self.wordings.fillers, draft.topic)

    def _allowed(self, wordings: Iterable[Wording], draft: Draft) -> list[Wording]:
        return [w for w in wordings if draft.split == "all" or w.held == (draft.split == "held")]

    def _about(self, relation: str, draft: Draft) -> list[Wording]:
        return self._allowed(self.wordings.sentences.get(relation, ()), draft)

    def _write_about_object(self, draft: Draft) -> None:
        """Write a sentence about another entity that the last sentence mentions."""
        others = [node for node in sorted(draft.sentences[-1]) if node != draft.topic and self._is_named_entity(node)]
        if others:
            other = draft.rng.choice(others)
            self._write_any_fact(draft, other, avoid={draft.topic})

    def _write_contrast(self, draft: Draft, relation: str) -> None:
        """Write a sentence with the same relation about another entity of the same class."""
        index, of_class = self.graph.find_relation(INSTANCE_OF), self.graph.find_relation(REVERSE + INSTANCE_OF)
        if index is None or of_class is None or not self.wordings.contrasts:
            return
        peers = [
            peer
            for kind in self.graph.tails(draft.topic, index).tolist()[:3]
            for peer in _sample(self.graph.tails(kind, of_class).tolist(), 8, draft.rng)
            if peer not in draft.named and self._is_named_entity(peer) and self._differs(draft.topic, peer, relation)
        ]
        prefix = draft.rng.choice(self.wordings.contrasts)
        if peers:
            plain = [wording for wording in self._about(relation, draft) if is_plain(wording)]
            self._write_sentence(draft, plain, draft.rng.choice(peers), name=True, prefix=prefix)

    def _differs(self, node: int, peer: int, relation: str) -> bool:
        """True if the peer has facts of the relation, all with other tails."""
        theirs = self.speaker.facts(peer).get(relation, ())
        return bool(theirs) and set(theirs).isdisjoint(self.speaker.facts(node).get(relation, ()))

    def _write_any_fact(self, draft: Draft, node: int, avoid: Collection[int]) -> None:
        """Write a sentence with any fact of an entity whose tail is not in `avoid`."""
        relations = [r for r in self.speaker.facts(node) if r in self.wordings.sentences]
        draft.rng.shuffle(relations)
        for relation in relations[:4]:
            if self._write_sentence(draft, self._about(relation, draft), node, name=True, avoid=avoid):
                return

    def _is_named_entity(self, node: int) -> bool:
        return not is_literal(self.graph.id(node)) and self.speaker.is_proper(node)

    # Sentences

    def _write_sentence(
        self,
        draft: Draft,
        wordings: Sequence[Wording],
        node: int,
        *,
        name: bool = False,
        prefix: str = "",
        avoid: Collection[int] = (),
    ) -> bool:
        """Write a sentence about an entity in one of the wordings; False if none fits. `name` requires its name."""
        rng = draft.rng
        excluded = draft.stated | self._excluded
        fitting = [w for w in wordings if w.text not in draft.used and self.speaker.fits(w, node)]
        rng.shuffle(fitting)
        if name and not draft.sentences:  # prefer a first sentence with more facts
            fitting.sort(key=lambda wording: -rng.random() * len(wording.relations))
        for wording in fitting:
            tails = self.speaker.choose_objects(wording, node, rng, excluded)
            if tails is None or not set(avoid).isdisjoint(tail for each in tails.values() for tail in each):
                continue
            subject = self.speaker.by_name(node) if name else self._subject(draft, wording, node)
            segments = self.speaker.fill(wording, node, subject, tails, rng, american=draft.american)
            if segments is None:
                continue
            self._record_facts(draft, wording, node, tails)
            segments = self._with_asides(draft, wording, node, segments)
            if not prefix and is_plain(wording) and not name and rng.random() < self.config.connective:
                prefix = rng.choice(self.wordings.connectives or ("",))
                prefix = "" if prefix in draft.used else prefix
                draft.used.add(prefix)
            draft.add([Segment(prefix), *_after_prefix(segments)] if prefix else segments)
            draft.last_subject = node if self._is_subject(node, wording, segments) else -1
            return True
        return False

    def _record_facts(self, draft: Draft, wording: Wording, node: int, tails: Tails) -> None:
        """Record the facts of a sentence, under every relation that expresses the same."""
        draft.used.add(wording.text)
        for relation, nodes in tails.items():
            draft.fact_count += len(nodes)
            for same in (relation, *self.wordings.same.get(relation, ())):
                draft.stated.update(forward(node, same, tail) for tail in nodes)

    def _is_subject(self, node: int, wording: Wording, segments: Sequence[Segment]) -> bool:
        """True if a pronoun in the next sentence would refer to the entity: this sentence begins with it, or mentions
        no other entity that the pronoun could refer to."""
        mentioned = {
            segment.node for segment in segments if segment.node >= 0 and not is_literal(self.graph.id(segment.node))
        }
        if begins_with_subject(wording):
            return True
        human = self.speaker.traits(node).human
        return node in mentioned and all(self.speaker.traits(each).human != human for each in mentioned - {node})

    def _subject(self, draft: Draft, wording: Wording, node: int) -> Subject:
        """Words for the subject of a sentence: a name, or a shorter form that is unambiguous here."""
        options = [(self.speaker.by_name(node), 3.0)]
        pronoun = self._pronoun(draft, wording, node)
        if pronoun is not None:
            options.append((pronoun, 7.0))
        kinds = self._kinds(draft, wording, node)
        weight = 1.0 if self.speaker.traits(node).human else 2.0
        options += [(kind, weight / len(kinds)) for kind in kinds]
        short = self.speaker.by_short_name(node) if node in draft.named else None
        if short is not None and not any(self._is_called(each, short.text) for each in draft.named - {node}):
            options.append((short, 3.0))
        return draft.rng.choices([subject for subject, _ in options], [weight for _, weight in options])[0]

    def _pronoun(self, draft: Draft, wording: Wording, node: int) -> Subject | None:
        """A pronoun, if the last sentence was about the entity and mentions no other that it could refer to."""
        if draft.last_subject != node or not takes_pronoun(wording):
            return None
        traits = self.speaker.traits
        others = [traits(each) for each in draft.recent(1) - {node}]
        if traits(node).human and any(each.human and each.gender in (None, traits(node).gender) for each in others):
            return None
        return self.speaker.by_pronoun(node)

    def _kinds(self, draft: Draft, wording: Wording, node: int) -> list[Subject]:
        """ "The game" if no other entity of that kind was mentioned lately; "the novelist" if the text states this."""
        says_kind = any(isinstance(piece, Slot) and piece.kind == "kind" for piece in wording.pieces)
        if node not in draft.recent(3) or says_kind:
            return []
        taken = {word for each in draft.recent() - {node} for word in self.speaker.traits(each).kinds}
        kinds = [each for each in self.speaker.by_kind(node) if each.text.removeprefix("the ") not in taken]
        if not self.speaker.traits(node).human:
            return kinds
        if not takes_pronoun(wording) or OCCUPATION in wording.relations:
            return []
        return [each for each in kinds if f" {each.text.removeprefix('the ')}" in draft.text]

    def _is_called(self, node: int, short: str) -> bool:
        return short in self.speaker.label(node).split()

    def _with_asides(self, draft: Draft, wording: Wording, node: int, segments: list[Segment]) -> list[Segment]:
        """Perhaps insert an aside after the last object of a sentence, or after the name at its start."""
        last = segments[-1]
        here = {segment.node for segment in segments if segment.node >= 0}
        if last.node >= 0 and last.node != node and last.source == "WIKI" and wording.role == "sentence":
            before = [segment.text for segment in segments[:-1] if segment.text != "the "][-1:]
            together = before in ([" and "], [", "])
            if not together and draft.rng.random() < self.config.aside:
                return [*segments, *self._aside(draft, last.node, here, after="")]
        first = next(
            (place for place, segment in enumerate(segments[:2]) if segment.node == node and segment.source == "WIKI"),
            -1,
        )
        following = segments[first + 1].text if 0 <= first < len(segments) - 1 else ""
        simple = following[:1] == " " and first == (1 if segments[0].text == "the " else 0)
        if simple and wording.role == "sentence" and draft.rng.random() < self.config.aside / 2:
            return [*segments[: first + 1], *self._aside(draft, node, here, after=","), *segments[first + 1 :]]
        return segments

    def _aside(self, draft: Draft, node: int, here: Collection[int], after: str) -> list[Segment]:
        """A fact about an entity, to insert after its name; empty if none fits.

        At the end of a sentence it begins with a relative pronoun, which refers to the name before it.
        """
        rng = draft.rng
        excluded = draft.stated | self._excluded
        options = [
            wording
            for relation in self.speaker.facts(node)
            for wording in self._allowed(self.wordings.asides.get(relation, ()), draft)
            if wording.text not in draft.used and self.speaker.fits(wording, node) and (after or is_relative(wording))
        ]
        rng.shuffle(options)
        for wording in options:
            tails = self.speaker.choose_objects(wording, node, rng, excluded, limit=2)
            if tails is None or not {draft.topic, *here}.isdisjoint(tail for each in tails.values() for tail in each):
                continue
            segments = self.speaker.fill(wording, node, self.speaker.by_name(node), tails, rng, american=draft.american)
            if segments is not None:
                self._record_facts(draft, wording, node, tails)
                return [Segment(", "), *segments, *([Segment(after)] if after else [])]
        return []


def _sample(nodes: Sequence[int], count: int, rng: random.Random) -> list[int]:
    return rng.sample(nodes, min(count, len(nodes)))


def _after_prefix(segments: Sequence[Segment]) -> list[Segment]:
    """The sentence as it continues after a prefix: not capitalised, unless it begins with a name."""
    first = segments[0]
    return [first if first.node >= 0 else first._replace(text=uncapitalised(first.text)), *segments[1:]]

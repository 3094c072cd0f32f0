"""Coarse kinds of entities, and the kind that words beside a name state: "the novel X", "X is a city in", "actor X".

An entity's kind comes from its class names and occupations, else from its relations: what has a date of birth is a
person. A class noun that is not listed still agrees with an entity of that class.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

from kglm.linking.traits import Traits
from kglm.text.document import END

Kind = Literal["person", "place", "nature", "work", "group", "other"]
_NOUNS: dict[Kind, str] = {
    "person": """
        person man woman boy girl human people actor actress artist astronaut astronomer athlete author aviator banker
        baron bishop boxer businessman businesswoman businessperson captain cardinal chancellor character chemist child
        coach colonel comedian commander composer conductor cosmonaut count cricketer criminal critic dancer daughter
        dentist designer dictator diplomat director doctor drummer duke economist editor emperor empress engineer
        entrepreneur explorer farmer father filmmaker  footballer founder general goalkeeper god goddess
        golfer governor guitarist hero historian husband inventor journalist judge king knight lady lawyer leader
        librarian magician manager mathematician mayor member merchant minister model monarch monk mother musician
        naturalist navigator neurologist novelist nurse officer painter parent philosopher photographer physician
        physicist pianist pilot pirate player playwright poet politician pope preacher president priest prince princess
        producer professor psychologist queen rapper rider runner saint scholar scientist screenwriter sculptor senator
        sheriff singer singer-songwriter sister brother skater skier socialite soldier son songwriter spy sprinter
        statesman student surgeon swimmer teacher tsar violinist warrior widow wife winner witch wizard wrestler writer
        """,
    "place": """
        airport area borough building capital castle city colony commune community continent country county district
        duchy empire kingdom municipality nation neighborhood neighbourhood palace parish port province region
        republic settlement state suburb territory town township university village school college hospital
        station stadium museum
        """,
    "nature": """
        bay canyon cape comet creek desert forest glacier gulf hill island lake moon mountain ocean peninsula planet
        range river sea star stream valley volcano waterfall
        """,
    "work": """
        album anthem anime ballad ballet book comedy comic documentary drama episode essay fable film game magazine
        manga miniseries movie musical newspaper novel novella opera painting play poem portrait record series
        sequel show single song soundtrack story symphony thriller tragedy trilogy western
        """,
    "group": """
        agency airline army association band bank brand broadcaster business choir church club company corporation
        council duo enterprise family federation firm foundation group institute institution label league manufacturer
        ministry orchestra organisation organization party publisher quartet retailer studio team trio union
        """,
    "other": """
        aircraft animal award battle car cat chemical currency dance day disease dog drink element event feeling
        festival fish flower food fruit genre horse language metal name number object plant prize
        religion ship software sport style substance vehicle war word year
        """,
}
KIND_OF_NOUN: dict[str, Kind] = {noun: kind for kind, nouns in _NOUNS.items() for noun in nouns.split()}
_RELATIONS: dict[Kind, tuple[str, ...]] = {
    "person": (
        "date of birth",
        "place of birth",
        "date of death",
        "occupation",
        "sex or gender",
        "spouse",
        "country of citizenship",
        "educated at",
        "position held",
        "member of sports team",
        "given name",
    ),
    "work": (
        "author",
        "director",
        "cast member",
        "screenwriter",
        "composer",
        "performer",
        "publication date",
        "original language of film or tv show",
        "based on",
        "characters",
        "narrative location",
        "after a work by",
    ),
    "group": ("founded by", "headquarters location", "industry", "chief executive officer", "record label", "league"),
    "place": (
        "located in the administrative territorial entity",
        "capital",
        "capital of",
        "shares border with",
        "population",
        "located in time zone",
        "head of government",
        "twinned administrative body",
    ),
}
KIND_OF_RELATION: dict[str, Kind] = {label: kind for kind, labels in _RELATIONS.items() for label in labels}
_PLACE_OF = frozenset(
    [
        "city",
        "town",
        "village",
        "state",
        "country",
        "island",
        "county",
        "province",
        "republic",
        "kingdom",
        "region",
        "district",
    ]
)
"""Nouns that state the kind of a name after "of": "the city of X", but not "the capital of X"."""
_BE = frozenset(["is", "was", "are", "were", "became"])
_DETERMINERS = frozenset(["a", "an", "the", "one", "his", "her", "their", "its"])
_STOP = frozenset(
    [
        "of",
        "that",
        "which",
        "who",
        "whose",
        "where",
        "in",
        "by",
        "from",
        "for",
        "to",
        "with",
        "and",
        "or",
        "on",
        "at",
        "is",
        "was",
        "were",
        "are",
        "has",
        "had",
        "whom",
        ",",
        ".",
        ";",
        ":",
        "(",
        ")",
    ]
)
MAX_PHRASE = 7
"""Most words of a phrase such as "a British rock band"."""


def entity_kind(traits: Traits, relation_labels: Iterable[str], description: str = "") -> Kind | None:
    """Coarse kind by classes and occupations, else by relations, else by its description; None if unknown."""
    if traits.human:
        return "person"
    votes: dict[Kind, int] = {}
    for name in traits.kinds:
        if kind := KIND_OF_NOUN.get(name):
            votes[kind] = votes.get(kind, 0) + 1
    if not votes:
        for label in relation_labels:
            if kind := KIND_OF_RELATION.get(label):
                votes[kind] = votes.get(kind, 0) + 1
    if not votes and description:
        return KIND_OF_NOUN.get(_head(description.casefold().split()))
    return max(votes.items(), key=lambda vote: vote[1])[0] if votes else None


def _head(words: Sequence[str]) -> str:
    """Head noun of a phrase: the last word before the first preposition, clause or sign, without a plural ending."""
    head = ""
    for word in words:
        if word in _STOP:
            break
        head = word
    return singular(head)


@lru_cache(1 << 12)
def singular(word: str) -> str:
    """A listed noun of which this is the plural, else the word itself."""
    for ending, instead in (("ies", "y"), ("es", ""), ("s", "")):
        if word not in KIND_OF_NOUN and word.endswith(ending) and word[: -len(ending)] + instead in KIND_OF_NOUN:
            return word[: -len(ending)] + instead
    return word


def stated_nouns(words: Sequence[str], start: int, end: int) -> list[str]:
    """Nouns beside words [start, end) that state what they name, in small letters; usually none or one."""
    found = []
    before = words[start - 1] if start else ""
    if before == "of" and start > 1 and words[start - 2] in _PLACE_OF:
        found.append(words[start - 2])
    elif before.islower() and (noun := singular(before)) in KIND_OF_NOUN:
        found.append(noun)
    after = words[end] if end < len(words) else END
    if after in _BE or (after == "," and end + 1 < len(words) and words[end + 1] in _DETERMINERS):
        phrase: list[str] = []
        for word in words[end + 1 : end + 1 + MAX_PHRASE]:
            if word == END or (word in _STOP and phrase):
                break
            if word not in _DETERMINERS:
                phrase.append(word)
        nouns = [noun for word in phrase if word[:1].islower() and (noun := singular(word)) in KIND_OF_NOUN]
        found += nouns[-1:] or ([phrase[-1]] if phrase and phrase[-1].islower() else [])
    return found


def agreement(nouns: Sequence[str], traits: Traits, kind: Kind | None) -> tuple[bool, float]:
    """How the stated nouns fit an entity: whether one is a class name of it, and how the coarse kinds agree.

    The coarse kinds agree fully (1), or less if a thing has classes of which none is stated (0.5), or not (−1).
    """
    if any(noun in traits.kinds or (noun in _HUMAN and traits.human) for noun in nouns):
        return True, 1.0
    stated = {KIND_OF_NOUN[noun] for noun in nouns if noun in KIND_OF_NOUN}
    if not stated or kind is None:
        return False, 0.0
    if kind not in stated:
        return False, -1.0
    return False, 0.5 if traits.kinds and kind != "person" else 1.0


_HUMAN = frozenset(["person", "man", "woman", "human"])

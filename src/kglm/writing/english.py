"""English grammar for generated sentences: articles, possessives, verbs, lists, dates, quantities."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import NamedTuple

from kglm.kg.literals.dates import DAY, MONTH, YEAR, Date, render_date
from kglm.linking.traits import Traits

_VOWEL_SOUND = re.compile(r"(?:[aeiouáéíóúàèæøö]|hour|heir|honou?r|honest)", re.IGNORECASE)
_CONSONANT_SOUND = re.compile(r"(?:uni(?!n|m)|use|uti|eu|one\b|once\b|ufo|ubi|u\.)", re.IGNORECASE)
_SPELLED = re.compile(r"[AEFHILMNORSX](?:[A-Z]|\b)")
_IN_WORDS = re.compile(r"\d (?:(?:square|cubic) [a-z]+|[a-z]{6,}|miles|acres)s?$")
_IRREGULAR = {"is": "are", "was": "were", "has": "have", "does": "do", "goes": "go"}
_PAST = {"is": "was", "was": "was", "has": "had", "does": "did", "goes": "went", "holds": "held", "makes": "made"}
_PAST |= {"runs": "ran", "comes": "came", "lies": "lay", "takes": "took", "tells": "told", "draws": "drew"}
_PAST |= {"falls": "fell", "spreads": "spread", "pays": "paid", "stands": "stood", "owes": "owed", "stars": "starred"}


class Pronoun(NamedTuple):
    """A pronoun as subject, object and possessive."""

    subject: str
    object: str
    possessive: str


HE, SHE = Pronoun("he", "him", "his"), Pronoun("she", "her", "her")
IT, THEY = Pronoun("it", "it", "its"), Pronoun("they", "them", "their")


def pronoun_for(traits: Traits, *, plural: bool) -> Pronoun | None:
    """Pronoun for an entity; None if the graph does not state the gender of a person."""
    if traits.human:
        return {"male": HE, "female": SHE}.get(traits.gender or "")
    return THEY if plural else IT


def indefinite(noun: str) -> str:
    """ "a" or "an", by the first sound of the noun."""
    spelled = _SPELLED.match(noun) is not None and noun.split()[0].isupper()
    vowel = spelled or (_VOWEL_SOUND.match(noun) is not None and _CONSONANT_SOUND.match(noun) is None)
    return "an" if vowel else "a"


def possessive_mark(name: str) -> str:
    """Possessive ending of a name."""
    return "'" if name.endswith("s") else "'s"


def verb(word: str, *, plural: bool, past: bool) -> str:
    """Conjugate a verb that is given in the third person singular of the present: "is", "has", "shares"."""
    many = _IRREGULAR.get(word) or (f"{word[:-3]}y" if word.endswith("ies") and len(word) > 4 else word[:-1])
    if past and word in ("is", "was"):
        return "were" if plural else "was"
    if past:
        regular = f"{many[:-1]}ied" if word.endswith("ies") else f"{many}d" if many.endswith("e") else f"{many}ed"
        return _PAST.get(word, regular)
    return many if plural else word


def capitalised(text: str) -> str:
    """Text with a capital first letter; a name like "iPod" stays unchanged."""
    first = text.split(" ", 1)[0]
    return text if any(char.isupper() for char in first) else text[:1].upper() + text[1:]


def uncapitalised(text: str) -> str:
    """Text with a lower-case first letter, to follow the start of a sentence; an acronym stays unchanged."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def separators(count: int) -> list[str]:
    """Separators before each of `count` items of a list: "A, B and C"."""
    return ["", *([", "] * (count - 2)), " and "][:count] if count > 1 else [""] * count


class Day(NamedTuple):
    """A date in words and its preposition."""

    text: str
    preposition: str


def say_date(date: Date, rng: random.Random, *, form: str, american: bool) -> Day | None:
    """A date in one of its usual forms; None if the date is less precise than `form`.

    `form` is "day" (the full date), "year", "on" or "" (any form); `american` puts the month before the day.
    """
    if form == "day" and date.precision < DAY:
        return None
    if date.precision < YEAR:
        return None if form == "year" else Day("the " + render_date(date)[0], "in")
    if form == "year" or date.precision == YEAR or (form == "on" and rng.random() < 0.15):
        return Day(render_date(Date(YEAR, date.year))[0], "in")
    if date.precision == MONTH:
        return Day(render_date(date)[0], "in")
    return Day(render_date(date)[0 if american else 1], "on")


def say_quantity(ways: Sequence[str], rng: random.Random) -> str | None:
    """Choose one of the usual forms of a quantity; with its unit in words if it has one."""
    worded = [way for way in ways if _IN_WORDS.search(way) and "illion" not in way]
    if worded:
        return rng.choice(worded[:2])
    rounded = [way for way in ways if way.endswith(("million", "billion"))]
    return rng.choice([ways[0], rounded[0]]) if rounded else ways[0] if ways else None

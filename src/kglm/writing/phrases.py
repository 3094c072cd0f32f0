"""Classify the names of relations and give sentence frames for them.

A name or alias of a relation has one of these shapes: a noun ("capital"), a participle ("born in"), a predicate ("is in
the state of"), a verb ("works for") or a preposition ("by"). Each shape has frames that give an English sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

Shape = Literal["noun", "participle", "predicate", "verb", "preposition"]
_PREPOSITION = "in|on|at|by|to|of|from|with|for|as|after|under|into|near|against|about|through"
_ENDS_IN_PREPOSITION = re.compile(rf".* (?:{_PREPOSITION})")
_STARTS_LIKE_NO_NOUN = re.compile(rf"(?:{_PREPOSITION}|they|he|she|it|\w+ed) .*|\w+ed")
_PARTICIPLE = re.compile(
    rf"(?:\w+ed|\w+wn|\w+en|born|set|made|sung|led|won|held|built|found|fought|put|cut|sold|told|spoken)"
    rf"(?: \w+)?(?: (?:{_PREPOSITION}))"
)
_PREDICATE = re.compile(r"(?:is|was|are|were|has|had) [^\W\d_][\w' -]+")
_VERB = re.compile(rf"\w+s (?:{_PREPOSITION})|\w+ed (?:{_PREPOSITION})")
_NOUN = re.compile(r"[^\W\d_][^\W\d_]+(?:[ -][^\W\d_]+){0,4}")
_OF_A_KIND = re.compile(r".*\b(?:in|at|on|to|from|near) the (.+) of")
_YEAR = re.compile(r".*\byear\b.*|\w+year")


class Phrase(NamedTuple):
    """A name of a relation and its shape."""

    text: str
    shape: Shape

    @property
    def tail_kind(self) -> str | None:
        """Kind of entity that the phrase requires as tail: a state for "is in the state of"; None for any."""
        match = _OF_A_KIND.fullmatch(self.text)
        return match[1] if match and self.shape in ("participle", "predicate", "verb") else None

    @property
    def says_year(self) -> bool:
        """True if the phrase asks only for the year of a date."""
        return _YEAR.fullmatch(self.text) is not None


def shape_of(text: str) -> Shape | None:
    """Shape of the name of a relation; None if no frame fits it."""
    text = text.strip()
    if re.fullmatch(_PREPOSITION, text):
        return "preposition"
    if _PREDICATE.fullmatch(text):
        return "predicate"
    if _PARTICIPLE.fullmatch(text):
        return "participle"
    if _VERB.fullmatch(text):
        return "verb"
    if text.isupper() or _ENDS_IN_PREPOSITION.fullmatch(text) or _STARTS_LIKE_NO_NOUN.fullmatch(text):
        return None
    return "noun" if _NOUN.fullmatch(text) else None


def phrases_of(names: Iterable[str]) -> list[Phrase]:
    """The names that fit a frame, each once; a plural is left out if its singular is there."""
    names = dict.fromkeys(name.strip() for name in names)
    singular = [name for name in names if not (name.endswith("s") and name[:-1] in names)]
    shaped = [(name, shape_of(name)) for name in singular]
    return [Phrase(name, shape) for name, shape in shaped if shape is not None]


FRAMES: dict[Shape, tuple[str, ...]] = {
    "noun": (
        "The {r} of {x} is {y}",
        "The {r} of {x} was {y}",
        "The {r} of {the_x} is {y}",
        "{x} 's {r} is {y}",
        "{x} 's {r} was {y}",
        "{y} is the {r} of {x}",
        "{y} was the {r} of {x}",
        "{y} , the {r} of {x}",
        "{x} is {a_kind} whose {r} is {y}",
        "{x} is {a_kind} with the {r} {y}",
        "The {r} of the {kind} {x} is {y}",
        "{x} ( {r} : {y} )",
        "{x} has {y} as its {r}",
        "{x} has the {r} {y}",
        "As {r} of {x} , one finds {y}",
        "The {kind} {x} has {y} as {r}",
        "For {x} , the {r} is {y}",
    ),
    "participle": (
        "{x} was {r} {y}",
        "{x} is {r} {y}",
        "{x} , {r} {y}",
        "{x} , {who} was {r} {y}",
        "{x} is {a_kind} that was {r} {y}",
        "{x} is {a_kind} {who} was {r} {y}",
        "{x} is {a_kind} {r} {y}",
        "{x} was {a_kind} {r} {y}",
        "The {kind} {x} was {r} {y}",
        "The {kind} {x} is {r} {y}",
        "{x} has been {r} {y}",
    ),
    "predicate": (
        "{x} {r} {y}",
        "{x} , {who} {r} {y}",
        "The {kind} {x} {r} {y}",
        "{x} is {a_kind} that {r} {y}",
        "{x} is {a_kind} {r_without_is} {y}",
        "{x} was {a_kind} {r_without_is} {y}",
    ),
    "verb": (
        "{x} {r} {y}",
        "{x} , {who} {r} {y}",
        "The {kind} {x} {r} {y}",
        "{x} is {a_kind} that {r} {y}",
    ),
    "preposition": (
        "{x} is {r} {y}",
        "{x} is {a_kind} {r} {y}",
        "{x} was {a_kind} {r} {y}",
        "The {kind} {x} {r} {y}",
    ),
}
"""Frames by shape: {x} is the head, {r} the name of the relation, {y} the tail, {kind} a class of x."""

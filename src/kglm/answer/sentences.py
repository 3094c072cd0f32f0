"""Facts as sentences: "The date of birth of Barack Obama is August 4, 1961."

The label of a relation says how it is used:

    noun phrase       capital, date of birth        The capital of France is Paris.
    verb              reports to, works for         Nora Feld reports to Tom Ash.
    participle        located in, founded by        Acme is located in Utrecht.
    noun with "of"    member of, part of            Acme is a member of the Hanse.
    has …             has part                      Acme has part Lab 3.
    noun received     award received                The award that Marie Curie received is …

Of a reverse relation, the fact itself is said: who has the parent as the value. Several values are listed.
"""

from __future__ import annotations

from collections.abc import Sequence

from kglm.text.function_words import FUNCTION_WORDS

MOST = 8
"""Values that a sentence lists."""
_PREPOSITIONS = frozenset(
    ("to", "for", "at", "in", "with", "from", "on", "by", "under", "over", "near", "into", "about", "against", "as")
)
_NOUNS_WITH_OF = frozenset(
    (
        "part", "member", "capital", "child", "son", "daughter", "sibling", "student", "pupil", "type", "kind",
        "instance", "subclass", "owner", "head", "director", "follower", "example", "spouse", "parent", "father",
        "mother", "author", "founder", "citizen", "resident", "native",
    )
)  # fmt: skip
_DONE = frozenset(("received", "held", "won", "played", "attended", "written", "produced"))
"""Past forms that follow a noun in a label: "award received"."""
_NO_VERBS = frozenset(("series", "species", "status", "genus", "headquarters", "news", "politics", "class", "address"))


def fact_sentence(subject: str, relation: str, values: Sequence[str], *, reverse: bool = False, total: int = 0) -> str:
    """A sentence that says the values of a relation of a subject. `relation` is the label of the forward relation.

    `reverse`: the values are those that have the subject as theirs; `total`: the number of all values, if not all are
    given.

    >>> fact_sentence("Nora Feld", "reports to", ["Tom Ash"])
    'Nora Feld reports to Tom Ash.'
    >>> fact_sentence("Tom Ash", "reports to", ["Nora Feld", "Jan Oort"], reverse=True)
    'Nora Feld reports to Tom Ash, and so does Jan Oort.'
    >>> fact_sentence("France", "capital", ["Paris"])
    'The capital of France is Paris.'
    >>> fact_sentence("Barack Obama", "child", ["Malia Obama", "Sasha Obama"])
    'Barack Obama has more than one child: Malia Obama and Sasha Obama.'
    """
    more = max(total, len(values)) - min(len(values), MOST)
    listed = _listed(values[:MOST], more)
    many = len(values) > 1 or more > 0
    verb = verb_phrase(relation)
    if reverse:
        return _reverse(subject, relation, values, listed, many, verb)
    if verb is not None:
        return _sentence(f"{subject} {verb} {listed}")
    noun, _, done = relation.rpartition(" ")
    if done in _DONE and noun:
        if many:
            return _sentence(f"{subject} {done} more than one {noun}: {listed}")
        return _sentence(f"The {noun} that {subject} {done} is {listed}")
    if many:
        return _sentence(f"{subject} has more than one {relation}: {listed}")
    return _sentence(f"The {relation} of {subject} is {listed}")


def _reverse(subject: str, relation: str, values: Sequence[str], listed: str, many: bool, verb: str | None) -> str:
    if verb is None:
        if many:
            return _sentence(f"{subject} is the {relation} of {listed}")
        return _sentence(f"The {relation} of {listed} is {subject}")
    if not many:
        return _sentence(f"{listed} {verb} {subject}")
    single = len(values) == 2
    does = ("is", "are") if verb.startswith("is ") else ("has", "have") if verb.startswith("has ") else ("does", "do")
    others = _listed(values[1:MOST], max(len(values) - MOST, 0))
    return _sentence(f"{values[0]} {verb} {subject}, and so {does[0] if single else does[1]} {others}")


def asked_for(subject: str, relation: str, *, reverse: bool = False) -> str:
    """What a text asks for, as a noun phrase; `relation` is the label of the forward relation.

    >>> asked_for("France", "capital"), asked_for("Nora Feld", "reports to")
    ('the capital of France', 'what Nora Feld reports to')
    """
    verb = verb_phrase(relation)
    if reverse:
        return f"what {verb} {subject}" if verb else f"what has {subject} as its {relation}"
    return f"what {subject} {verb}" if verb else f"the {relation} of {subject}"


def verb_phrase(relation: str) -> str | None:
    """The label of a relation as the verb of a sentence; None for a noun phrase.

    >>> verb_phrase("located in the administrative territorial entity"), verb_phrase("date of birth")
    ('is located in the administrative territorial entity', None)
    """
    words = relation.split()
    first, last = words[0].casefold() if words else "", words[-1].casefold() if words else ""
    if first in ("is", "was", "are", "has", "had", "can", "may"):
        return relation
    if len(words) > 1 and words[1].casefold() in _PREPOSITIONS:
        if first.endswith(("ed", "en", "born", "made", "built", "held", "led", "won", "set")):
            return f"is {relation}"
        if first.endswith("s") and first not in _NO_VERBS:
            return relation
    if last == "by":
        return f"is {relation}"
    if last == "of" and len(words) == 2 and first in _NOUNS_WITH_OF:
        article = "an" if first[0] in "aeiou" else "a"
        return f"is {'part' if first == 'part' else f'{article} {first}'} of"
    if last in _PREPOSITIONS and len(words) > 1 and first.endswith("s") and first not in FUNCTION_WORDS:
        return relation
    return None


def _listed(values: Sequence[str], more: int) -> str:
    """Values as a list: "A, B and C", "A, B and 7 more"."""
    parts = [*values, *([f"{more:,} more"] if more > 0 else [])]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _sentence(text: str) -> str:
    """With a capital letter and a full stop."""
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."

"""Ids of entities and relations, as in Linked WikiText-2 and Wikidata.

Entities:  `Q76` item, `P31` property, `T::11::+1961-08-04T00:00:00Z` date, `V::27.0000::1` quantity,
           `S::12%20Harbour%20Street` text.
           Your own graph may use `Q_anything` and `P_anything` (no blanks).
Relations: `P569`; `P54:P413` (a qualifier of a statement); `R:P…` the reverse relation, from tail to head;
           `@@REFLEXIVE@@` from an entity to itself; `@@NEW@@` means "no relation" in documents.
"""

from __future__ import annotations

import re

from kglm.errors import DataError

REFLEXIVE = "@@REFLEXIVE@@"
NEW = "@@NEW@@"
REVERSE = "R:"
REVERSE_LABEL = "← "
"""Begins the label of a reverse relation."""
INSTANCE_OF = "P31"
START_TIME, END_TIME, POINT_IN_TIME = "P580", "P582", "P585"
STATED_IN, REFERENCE_URL = SOURCE_PROPERTIES = "P248", "P854"
WIKIDATA_ENTITY = "http://www.wikidata.org/entity/"

_PROPERTY = r"P(?:\d+|_[^\s:]+)"
_ENTITY = re.compile(r"(?:[QP](?:\d+|_\S+)|T::\d+::\S+|V::\S+::\S+|S::\S+)\Z")
_ITEM = re.compile(r"[QP](?:\d+|_\S+)\Z")
_RELATION = re.compile(rf"{_PROPERTY}(?::{_PROPERTY})?\Z")


def is_entity_id(text: str) -> bool:
    """True if `text` has the form of an entity id: item, property, date, quantity or text."""
    return _ENTITY.match(text) is not None


def is_item_id(text: str) -> bool:
    """True if `text` has the form of an item or property id, not of a literal."""
    return _ITEM.match(text) is not None


def is_relation_id(text: str) -> bool:
    """True if `text` has the form of a stored relation id, `P…` or `P…:P…`; reverse and reflexive ones are derived."""
    return _RELATION.match(text) is not None


def is_document_relation(text: str) -> bool:
    """True if `text` is allowed as relation in an annotation: stored, reverse, reflexive or new."""
    return text in (REFLEXIVE, NEW) or is_relation_id(text.removeprefix(REVERSE))


def mint(name: str, letter: str) -> str:
    """Make an id from a name: `mint("Acme Corp.", "Q")` is `Q_Acme_Corp.`."""
    slug = "_".join(name.split())
    if not slug:
        raise DataError("a name is empty", remedy="give every entity and relation a name or an id")
    return f"{letter}_{slug.replace(':', '_') if letter == 'P' else slug}"


def normalise_title(title: str) -> str:
    """A Wikipedia title as in its URL: underscores for blanks, first letter upper case, the rest unchanged.

    >>> normalise_title("iPod Touch")
    'IPod_Touch'
    """
    joined = "_".join(title.replace("_", " ").split())
    first = joined[:1].upper()
    return (first if len(first) == 1 else joined[:1]) + joined[1:]

"""Weights of the entity linker's features, in the order of `linker.FEATURES` and `context.NIL_FEATURES`."""

from __future__ import annotations

SHARPNESS = 0.75
"""β in articles: the links of `benchmarks/linker.py` are right as often as it says."""
WEIGHTS = (
    0.27,  # facts
    1.1,  # label
    0.9,  # introductions
    0.5,  # links
    4.0,  # link of this text
    0.1,  # related words
    0.55,  # neighbour words
    0.25,  # facts with others
    1.0,  # facts with near others
    1.0,  # more of them
    2.2,  # stated class
    1.8,  # stated kind
    0.25,  # named relation
    1.2,  # relation after it
    1.3,  # title
    -0.35,  # short name
    3.0,  # earlier
    -1.3,  # no proper name
)
NIL_WEIGHTS = (
    -2.0,  # bias
    2.35,  # one word
    3.1,  # capital after
    2.4,  # name after
    3.1,  # capital before
    1.9,  # first word before
    2.0,  # name before
    1.6,  # of a longer name
    2.6,  # a or own before
    0.8,  # the before
    1.6,  # common word
    2.6,  # first common word
    0.25,  # first word
    0.4,  # small letters
    3.0,  # small common letters
    1.3,  # small among capitals
    0.3,  # small in this text
    1.6,  # number or date
    2.6,  # part of an unknown name
    -1.4,  # abbreviation
)

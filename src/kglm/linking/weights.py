"""Weights of the entity linker's features, in the order of `linker.FEATURES` and `context.NIL_FEATURES`."""

from __future__ import annotations

WEIGHTS = (
    0.3,  # facts
    1.3,  # label
    1.0,  # introductions
    0.8,  # links
    4.0,  # link of this text
    0.1,  # related words
    0.6,  # neighbour words
    0.4,  # facts with others
    1.5,  # facts with near others
    2.5,  # stated class
    1.5,  # stated kind
    0.3,  # named relation
    1.5,  # relation after it
    1.5,  # title
    -0.4,  # short name
    3.5,  # earlier
    -1.5,  # no proper name
)
NIL_WEIGHTS = (
    -1.5,  # bias
    1.8,  # one word
    3.5,  # capital after
    2.7,  # name after
    3.5,  # capital before
    2.2,  # first word before
    2.2,  # name before
    1.9,  # of a longer name
    3.0,  # a or own before
    0.9,  # the before
    1.5,  # common word
    3.0,  # first common word
    0.3,  # first word
    0.5,  # small letters
    3.5,  # small common letters
    1.5,  # small among capitals
    0.5,  # small in this text
    2.0,  # number or date
    3.0,  # part of an unknown name
)

"""Weights of the entity linker's features, in the order of `linker.FEATURES` and `context.NIL_FEATURES`."""

from __future__ import annotations

WEIGHTS = (0.3, 1.6, 1.0, 1.0, 4.0, 0.5, 0.6, 1.5, 2.5, 1.2, 1.0, -2.0, 4.0, -1.5)
NIL_WEIGHTS = (
    0.0,  # bias
    1.0,  # one word
    4.0,  # capital after
    1.5,  # name after
    3.0,  # capital before
    2.5,  # first word before
    1.0,  # name before
    2.0,  # of a longer name
    3.0,  # a or own before
    1.0,  # the before
    1.5,  # common word
    2.5,  # first common word
    0.3,  # first word
    0.5,  # small letters
    3.5,  # small common letters
    1.0,  # small in this text
    3.0,  # number or date
    4.0,  # part of an unknown name
)

"""Weights of the entity linker's features, in the order of `linker.FEATURES` and `context.NIL_FEATURES`."""

from __future__ import annotations

WEIGHTS = (0.3, 1.3, 1.0, 0.8, 4.0, 0.3, 0.6, 1.0, 1.0, 2.0, 0.8, 0.8, -1.0, 3.0, -1.5)
NIL_WEIGHTS = (
    -1.0,  # bias
    1.6,  # one word
    3.6,  # capital after
    2.6,  # name after
    3.5,  # capital before
    2.3,  # first word before
    2.2,  # name before
    1.9,  # of a longer name
    3.0,  # a or own before
    0.9,  # the before
    3.0,  # common word
    3.0,  # first common word
    0.3,  # first word
    0.5,  # small letters
    3.5,  # small common letters
    0.5,  # small in this text
    2.0,  # number or date
    3.0,  # part of an unknown name
)

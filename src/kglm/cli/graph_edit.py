"""`kglm kg edit` and `log`."""

from __future__ import annotations


def edit(): ...
def log(): ...

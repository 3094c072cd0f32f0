"""Errors caused by the input, not by the program.

A message says where (`place`), what was found and what was expected (`what`), and what to do about it
(`remedy`), on one line. The command line prints it and leaves with exit code 2; `--debug` shows the traceback.
"""

from __future__ import annotations


class KglmError(Exception):
    """An error that the user can fix.

    >>> str(KglmError("span [3, 2) is empty", place="a.jsonl, line 7", remedy="give start < end"))
    'a.jsonl, line 7: span [3, 2) is empty; give start < end'
    """

    def __init__(self, what: str, *, place: object = None, remedy: str | None = None) -> None:
        self.what = what
        self.place = None if place is None else str(place)
        self.remedy = remedy
        super().__init__(what)

    def __str__(self) -> str:
        text = self.what if self.place is None else f"{self.place}: {self.what}"
        text = text if self.remedy is None else f"{text}; {self.remedy}"
        return " ".join(text.split())


def misfit(error: Exception, whole: str | None = None) -> str:
    """msgspec's validation error as `PLACE: FINDING`. With `whole`, a name for the record itself, the place is written
    like a setting (`a.b` instead of `$.a.b`)."""
    what, _, where = str(error).partition(" - at ")
    where = where.replace("`", "")
    where = where or "$" if whole is None else where.removeprefix("$.") or whole
    return f"{where}: {what[:1].lower()}{what[1:]}"


class DataError(KglmError):
    """A file or record has missing or invalid content."""


class ConfigError(KglmError):
    """A setting is unknown or has a wrong value."""


class ServiceError(KglmError):
    """A required external service does not respond; the work can be repeated later."""


class LiteralError(KglmError):
    """A date or quantity that cannot be parsed."""


class GraphError(KglmError):
    """A query or edit that is invalid for the graph."""


class UnknownIdError(GraphError):
    """An entity or relation that is not in the graph."""


class VersionError(KglmError):
    """A file written by another version of this software."""


class DamagedError(DataError):
    """A file whose bytes are not those that were written."""

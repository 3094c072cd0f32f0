"""Every error that is the input's fault and not ours.

A message says where (`place`), what was found and what was expected (`what`), and what to do about it
(`remedy`), on one line. The command line prints it and leaves with exit code 2; `--debug` shows the traceback.
"""

from __future__ import annotations


class KglmError(Exception):
    """Something the user can mend.

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
    """What msgspec found that does not fit a form, after its place in the record; with `whole`, a name for the record
    itself, places are written as settings are."""
    what, _, where = str(error).partition(" - at ")
    where = where.strip("`")
    where = where or "$" if whole is None else where.removeprefix("$.") or whole
    return f"{where}: {what[:1].lower()}{what[1:]}"


class DataError(KglmError):
    """A file or record does not hold what it should."""


class ConfigError(KglmError):
    """A setting is unknown or has a wrong value."""


class ServiceError(KglmError):
    """Another program that is needed does not answer: what waits for it is not done, and can be done later."""


class LiteralError(KglmError):
    """A date or quantity that cannot be understood."""


class GraphError(KglmError):
    """A question or an edit that the graph cannot take."""


class UnknownIdError(GraphError):
    """An entity or relation that the graph does not hold."""


class VersionError(KglmError):
    """A file written by another version of this software."""

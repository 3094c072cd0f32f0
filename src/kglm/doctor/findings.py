"""Findings of `kglm doctor`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from kglm.errors import KglmError

SHOWN = 50
"""Number of errors, and of warnings, that are listed; the others are only counted."""
Level = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`error`: the artefact is unusable. `warning`: something is lost or unusual. `note`: for information."""

    level: Level
    place: str
    what: str
    remedy: str | None = None

    @classmethod
    def of(cls, error: KglmError, place: object, level: Level = "error") -> Finding:
        """The finding that an error describes."""
        return cls(level, error.place or str(place), error.what, error.remedy)


def limited(findings: Iterator[Finding]) -> Iterator[Finding]:
    """Yield all notes, the first `SHOWN` errors and warnings, and the numbers of the others."""
    counts = {"error": 0, "warning": 0, "note": 0}
    for finding in findings:
        counts[finding.level] += 1
        if finding.level == "note" or counts[finding.level] <= SHOWN:
            yield finding
    levels: tuple[Level, Level] = ("error", "warning")
    for level in levels:
        if (more := counts[level] - SHOWN) > 0:
            yield Finding(level, "and more", f"{more:,} further {level}s of this file are not listed")

"""Changes to artefacts on purpose."""

from __future__ import annotations

from pathlib import Path

from kglm.files.artefact import Artefact
from kglm.runs.records import FILES


def accept(directory: Path) -> None:
    """Give the files of a directory, as they are now, right checksums."""
    names = FILES if (directory / "run.json").exists() else None
    Artefact.open(directory, names=names, check=False).accept()

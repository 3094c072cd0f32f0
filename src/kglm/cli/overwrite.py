"""Outputs that exist already are overwritten with --force only."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kglm.errors import KglmError

Force = Annotated[bool, typer.Option("--force", help="Overwrite the output if it exists.")]


def check_output(path: Path | None, force: bool, option: str = "--to") -> None:
    """Raise an error if the output exists and may not be overwritten; None is no output."""
    from kglm.files import exists

    if path is not None and not force and exists(path):
        raise KglmError("exists already", place=path, remedy=f"give another {option}, or overwrite it with --force")

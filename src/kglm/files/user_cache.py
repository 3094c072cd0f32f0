"""The user's cache folder: what kglm converts or unpacks once, for all processes.

Everything in it can be made again, so damage is no error: it is removed and made again.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from kglm.errors import ConfigError, DamagedError, KglmError
from kglm.files.artefact import Artefact, new_artefact
from kglm.files.atomic import locked_directory, remove_directory
from kglm.files.streams import writing

T = TypeVar("T")
Vectors = npt.NDArray[np.float32]
CACHE_VARIABLE = "KGLM_CACHE"


def cache_folder(needed: str | None = None) -> Path:
    """The user's cache folder: `KGLM_CACHE`, else `~/.cache/kglm`.

    If nothing can be written there, a folder of this user among the temporary files, with a note. But a folder that
    holds `needed` (a path in it) already is used as it is.
    """
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(base) if base else Path.home() / ".cache") / "kglm"
        if needed is not None and (folder / needed).exists():
            return folder
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
        reason = f"{folder} cannot be written"
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home directory
        reason = str(error)
    return _temporary_folder(reason)


def _temporary_folder(reason: str) -> Path:
    """A folder of this user among the temporary files, used because of `reason`."""
    fallback = Path(tempfile.gettempdir()) / f"kglm-{os.getuid()}"
    fallback.mkdir(mode=0o700, exist_ok=True)
    if fallback.stat().st_uid != os.getuid():
        raise ConfigError(f"{fallback} belongs to another user", remedy=f"set {CACHE_VARIABLE} to a folder of yours")
    _note_once(f"note: {reason}; using {fallback} instead (set {CACHE_VARIABLE} to choose a folder)")
    return fallback


@cache
def _note_once(text: str) -> None:
    """Print a note, once in a process: several things are looked for in the cache folder."""
    print(text, file=sys.stderr)


def cached(name: str, load: Callable[[Path], T], make: Callable[[Path], None], *, what: str | None = None) -> T:
    """Load what is in the directory `name` of the cache; if it is missing or damaged, make it first.

    `load` raises a KglmError if the content is damaged; `make` writes the directory atomically. One process makes it;
    the others wait for it, with a note if `what` names it. What is damaged where nothing can be written is made among
    the temporary files.
    """
    home = cache_folder(name) / name
    if home.exists():
        try:
            return load(home)
        except KglmError as error:
            if not os.access(home.parent, os.W_OK):
                home = _temporary_folder(f"{error}, which cannot be written") / name
    with writing(home):
        home.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as held:
            _wait_for_lock(held, home.parent, what)
            if home.exists():  # it is damaged, or another process has made it meanwhile
                try:
                    return load(home)
                except KglmError as error:
                    if what is not None:
                        print(f"note: {what} is made again: {error}", file=sys.stderr)
                    remove_directory(home)
            make(home)
    return load(home)


def cached_array(name: str, array: str, rows: int, compute: Callable[[], Vectors]) -> Vectors:
    """The array `array` in the directory `name` of the cache, computed if it is missing or damaged."""

    def load(home: Path) -> Vectors:
        artefact = Artefact.open(home)
        found: Vectors = artefact.array(array, np.float32, 2)
        artefact.check()
        if len(found) != rows:
            raise DamagedError(f"has {len(found):,} rows instead of {rows:,}", place=home)
        return found

    def make(home: Path) -> None:
        with new_artefact(home) as writer:
            writer.array(array, compute())

    return cached(name, load, make)


def _wait_for_lock(held: ExitStack, folder: Path, what: str | None) -> None:
    """Hold the lock of a folder until `held` is closed; say so if another process has it."""
    if what is not None:
        try:
            held.enter_context(locked_directory(folder, "is locked"))
            return
        except KglmError:
            print(f"note: waiting for another process that makes {what}", file=sys.stderr)
    held.enter_context(locked_directory(folder))

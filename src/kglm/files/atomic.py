"""Write files and directories atomically: a reader sees the old content or the new one, never a part of either.

A writer uses a temporary name, syncs what it wrote, then renames it. While it writes it holds a lock on the temporary
file or directory, which the operating system releases when the process ends, however it ends. So the next writer of the
same name can tell the leftovers of a killed process, which it removes, from the work of a live one, which it keeps.
"""

from __future__ import annotations

import gzip
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from kglm.errors import KglmError
from kglm.files.streams import writing
from kglm.packed import AnyPath

fcntl: Any
try:
    import fcntl
except ImportError:  # not available on this system: no locks, and leftovers stay
    fcntl = None

TEMPORARY, REMOVED = ".tmp", ".gone"
"""Suffixes of names in use by a writer, and of directories that are being deleted."""


@contextmanager
def atomic_file(path: AnyPath) -> Iterator[BinaryIO]:
    """Write a file atomically: it appears complete or not at all. `.gz` names are compressed."""
    path = Path(path)
    with writing(path), temporary_file(path) as (raw, temporary):
        if path.suffix == ".gz":
            # no name and no time in the header: the same content gives the same bytes
            with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as packed:
                yield packed  # type: ignore[misc]
        else:
            yield raw
        sync_file(raw)
        temporary.replace(path)
        sync_directory(path.parent)


@contextmanager
def temporary_file(path: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A file beside `path` to be renamed to it; deleted at the end if it was not."""
    if path.is_dir():
        raise IsADirectoryError
    remove_leftovers(path)
    while True:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=TEMPORARY, dir=path.parent)
        temporary = Path(name)
        if _lock(handle, temporary):
            break
        os.close(handle)
    try:
        with os.fdopen(handle, "wb") as raw:
            os.chmod(temporary, 0o666 & ~umask())  # noqa: PTH101
            yield raw, temporary
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_directory(path: AnyPath) -> Iterator[Path]:
    """Write a directory atomically: it appears complete or not at all. The caller syncs the files it writes.

    If another process creates it in the meantime, that directory stays and this one is deleted, so two processes may
    build the same directory at the same time.
    """
    path = Path(path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path)
        while True:
            temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=TEMPORARY, dir=path.parent))
            try:
                handle = os.open(temporary, os.O_RDONLY)
            except FileNotFoundError:
                continue  # another process took it for a leftover: it was not locked yet
            if _lock(handle, temporary):
                break
            os.close(handle)
        try:
            yield temporary
            temporary.chmod(0o777 & ~umask())
            os.fsync(handle)
            try:
                temporary.rename(path)
            except OSError:
                if not path.is_dir():
                    raise
            sync_directory(path.parent)
        finally:
            if temporary.exists():
                shutil.rmtree(temporary)  # before the lock is released: no other process removes it too
            os.close(handle)


def _lock(handle: int, path: Path) -> bool:
    """Lock a new temporary; False if `remove_leftovers` of another process took it for a leftover."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(handle).st_ino == path.stat().st_ino
    except (BlockingIOError, FileNotFoundError):
        return False


def remove_leftovers(path: Path, names: Callable[[str], bool] | None = None) -> list[Path]:
    """Remove the temporaries that killed writers of `path` left beside it, and return them; live ones are kept.

    `names` selects the names to remove leftovers of, instead of `path.name` alone; `path` is then their directory.
    """
    if fcntl is None:
        return []
    folder = path.parent if names is None else path
    removed = []
    with suppress(FileNotFoundError):
        for entry in list(os.scandir(folder)):
            name, suffix = _written_name(entry.name)
            if suffix and (name == path.name if names is None else names(name)) and _remove_dead(Path(entry.path)):
                removed.append(Path(entry.path))
    return removed


def _written_name(name: str) -> tuple[str, str]:
    """The name that a temporary stands for, and its suffix; ("", "") for other names."""
    stem, dot, suffix = name.rpartition(".")
    if dot + suffix not in (TEMPORARY, REMOVED) or not stem.startswith("."):
        return "", ""
    return stem[1:].rpartition(".")[0], suffix


def _remove_dead(path: Path) -> bool:
    """Remove a temporary unless a live process holds its lock."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:  # just renamed or removed, or of another user
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError as error:
        print(f"warning: {path} remains from a killed process: {error.strerror}", file=sys.stderr)
        return False
    finally:
        os.close(handle)
    return True


def remove_directory(directory: Path) -> None:
    """Rename a directory, then delete it, so that no reader sees it half deleted. Prints a warning if it cannot."""
    renamed = directory.with_name(f".{directory.name}.{os.getpid()}{REMOVED}")
    try:
        directory.rename(renamed)
        shutil.rmtree(renamed)
    except FileNotFoundError:
        pass  # another process was faster
    except OSError as error:
        remains = renamed if renamed.exists() else directory
        print(f"warning: {remains} cannot be removed: {error.strerror}", file=sys.stderr)


@contextmanager
def exclusive(path: AnyPath, what: str) -> Iterator[None]:
    """Hold the lock file `path` during the block; a second process gets a KglmError that says `what`."""
    if fcntl is None:
        yield
        return
    path = Path(path)
    while True:
        with writing(path):
            handle = os.open(path, os.O_RDONLY | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise KglmError(what, place=path, remedy="wait until it is done") from None
        try:
            if os.fstat(handle).st_ino == path.stat().st_ino:
                break
        except FileNotFoundError:
            pass
        os.close(handle)  # the previous holder has just removed it
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


@contextmanager
def locked_directory(path: Path, what: str | None = None) -> Iterator[None]:
    """Hold a lock on a directory during the block; nothing of it remains, even if this process is killed.

    A second process waits, or with `what` gets a KglmError that says so.
    """
    if fcntl is None:
        yield
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (fcntl.LOCK_NB if what else 0))
        except BlockingIOError:
            raise KglmError(what or "is locked", place=path, remedy="wait until it is done") from None
        yield
    finally:
        os.close(handle)


def sync_file(stream: BinaryIO) -> None:
    """Write buffered data of an open file to the disk."""
    stream.flush()
    os.fsync(stream.fileno())


def sync_directory(path: Path) -> None:
    """Make a rename in `path` durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def umask() -> int:
    """Permission mask of this process for new files."""
    mask = os.umask(0)
    os.umask(mask)
    return mask

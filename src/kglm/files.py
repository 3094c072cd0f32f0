"""Read and write files; every failure becomes an error with place and remedy.

Readers recognise compression by content, not by name (gzip, bzip2, Zstandard, plain). Writers use a temporary file,
sync it, then rename it: a reader sees the old file or the new one, never a part of either.
"""

from __future__ import annotations

import codecs
import errno
import gzip
import hashlib
import io
import json
import os
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import zstandard

from kglm.errors import DataError, KglmError
from kglm.packed import AnyPath, Unpacker, open_binary, position

LONGEST_LINE = 512 << 20
"""Longest accepted line in bytes: no record is that long, but a line of a file of another format can be."""


@contextmanager
def reading(path: AnyPath) -> Iterator[None]:
    """Turn exceptions of reading `path` into errors with place and remedy."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataError("no such file", place=path, remedy="check the path") from error
    except IsADirectoryError as error:
        raise DataError("is a directory", place=path, remedy="name a file in it") from error
    except PermissionError as error:
        raise DataError("cannot be read: no permission", place=path, remedy="check its permissions") from error
    except EOFError as error:
        raise DataError(
            "the compressed data ends in the middle",
            place=path,
            remedy="fetch the file again",
        ) from error
    except (gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
        raise DataError(
            f"the compressed data is damaged ({error})", place=path, remedy="fetch the file again"
        ) from error
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", place=path) from error


@contextmanager
def writing(path: AnyPath) -> Iterator[None]:
    """Turn exceptions of writing `path` into errors with place and remedy."""
    full = "free some space or write elsewhere, then run the command again"
    try:
        yield
    except sqlite3.OperationalError as error:
        if "full" in str(error) or "disk I/O" in str(error):
            raise KglmError("the disk is full", place=path, remedy=full) from error
        if "unable to open" in str(error):
            raise KglmError(
                "cannot be created", place=path, remedy=f"check that {Path(path).parent} is there and writable"
            ) from error
        raise
    except FileNotFoundError as error:
        raise KglmError(
            "its directory does not exist", place=path, remedy=f"create {Path(path).parent} first"
        ) from error
    except IsADirectoryError as error:
        raise KglmError("is a directory", place=path, remedy="name a file") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise KglmError("the disk is full", place=path, remedy=full) from error
        raise KglmError(
            f"cannot be written: {error.strerror or error}",
            place=path,
            remedy="check the path and permissions",
        ) from error


def read_lines(path: AnyPath, consumed: Callable[[int], None] | None = None) -> Iterator[tuple[int, bytes]]:
    """Number (from 1) and bytes of each line, without the line end; empty lines are skipped.

    `consumed` is called with the number of bytes read so far from the file on disk.
    """
    with reading(path), open_binary(path) as stream:
        number = 0
        while line := stream.readline(LONGEST_LINE):
            number += 1
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                raise DataError(f"a line of more than {LONGEST_LINE >> 20} MiB", place=f"{path}, line {number}")
            if consumed is not None:
                consumed(position(stream))
            if line := line.rstrip(b"\r\n"):
                yield number, line


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of a file: the unit of parallel work and of resuming."""

    data: bytes
    first_line: int
    """Number of the block's first line in the file, from 1."""
    next_line: int
    next_offset: int
    """Start of the following block, in uncompressed bytes."""
    consumed: int
    """Bytes read so far from the file on disk, for the progress bar."""


def read_blocks(path: AnyPath, size: int, *, offset: int = 0, first_line: int = 1) -> Iterator[Block]:
    """Cut a file into blocks of about `size` bytes at line ends, starting at an earlier block's `next_offset`.

    Memory is bounded by `size` plus the longest line, not by the length of the file.
    """
    with reading(path), open_binary(path) as stream:
        _skip(stream, offset)
        line, at = first_line, offset
        while data := stream.read(size):
            while not data.endswith(b"\n") and (rest := stream.readline(LONGEST_LINE)):
                data += rest
                if len(data) > LONGEST_LINE + size:
                    raise DataError(f"a line of more than {LONGEST_LINE >> 20} MiB", place=f"{path}, line {line}")
            at += len(data)
            following = line + data.count(b"\n")
            data = data.removeprefix(codecs.BOM_UTF8) if line == 1 else data
            yield Block(data, line, following, at, position(stream))
            line = following


def _skip(stream: io.BufferedReader, offset: int) -> None:
    """Move to `offset`; a compressed stream is decompressed up to there."""
    if not isinstance(stream.raw, Unpacker):
        stream.seek(offset)
        return
    while offset > 0:
        data = stream.read(min(offset, 1 << 22))
        if not data:
            return
        offset -= len(data)


@contextmanager
def atomic_file(path: AnyPath) -> Iterator[BinaryIO]:
    """Write a file atomically: it appears complete or not at all. `.gz` names are compressed."""
    path = Path(path)
    with writing(path):
        if path.is_dir():
            raise IsADirectoryError
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as raw:
                if path.suffix == ".gz":
                    # no name and no time in the header: the same content gives the same bytes
                    with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as packed:
                        yield packed  # type: ignore[misc]
                else:
                    yield raw
                raw.flush()
                os.fsync(raw.fileno())
            os.chmod(temporary, 0o666 & ~umask())  # noqa: PTH101
            Path(temporary).replace(path)
            sync_directory(path.parent)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


@contextmanager
def atomic_directory(path: AnyPath) -> Iterator[Path]:
    """Write a directory atomically: it appears complete or not at all.

    If another process creates it in the meantime, that directory stays and this one is deleted, so two processes may
    build the same directory at the same time.
    """
    path = Path(path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
        try:
            yield temporary
            for member in temporary.iterdir():
                with member.open("rb") as written:
                    os.fsync(written.fileno())
            temporary.chmod(0o777 & ~umask())
            try:
                temporary.rename(path)
            except OSError:
                if not path.is_dir():
                    raise
            sync_directory(path.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def remove_directory(directory: Path) -> None:
    """Rename a directory, then delete it, so that no reader sees it half deleted."""
    renamed = directory.with_name(f".{directory.name}.{os.getpid()}.gone")
    with suppress(OSError):
        directory.rename(renamed)
        shutil.rmtree(renamed, ignore_errors=True)


@contextmanager
def exclusive(path: AnyPath, what: str) -> Iterator[None]:
    """Hold the lock file `path` during the block; a second process gets a KglmError that says `what`."""
    try:
        import fcntl
    except ImportError:  # not available on this system: no locking
        yield
        return
    path = Path(path)
    while True:
        with writing(path):
            handle = path.open("w")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.close()
            raise KglmError(what, place=path, remedy="wait until it is done") from None
        try:
            if path.exists() and os.fstat(handle.fileno()).st_ino == path.stat().st_ino:
                break
        except FileNotFoundError:
            pass
        handle.close()  # the previous holder has just removed it
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        handle.close()


def exists(path: Path) -> bool:
    """True if the path exists; False also for names that no file can have."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def sync_directory(path: Path) -> None:
    """Make a rename in `path` durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def digest_of(texts: Iterable[str]) -> str:
    """Hash of a sequence of texts."""
    result = hashlib.blake2b(digest_size=8)
    for text in texts:
        result.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return result.hexdigest()


def write_json(path: AnyPath, value: object) -> None:
    with atomic_file(path) as stream:
        stream.write(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False).encode() + b"\n")


def read_json(path: AnyPath) -> Any:
    with reading(path):
        content = Path(path).read_bytes()
    try:
        return json.loads(content)
    except ValueError as error:
        raise DataError(f"is not JSON ({error})", place=path) from error


def umask() -> int:
    """Permission mask of this process for new files."""
    mask = os.umask(0)
    os.umask(mask)
    return mask

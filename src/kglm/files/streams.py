"""Read files as lines or blocks; every failure of reading or writing becomes an error with place and remedy.

Readers recognise compression by content, not by name (gzip, bzip2, Zstandard, plain).
"""

from __future__ import annotations

import codecs
import errno
import gzip
import hashlib
import io
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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


def exists(path: Path) -> bool:
    """True if the path exists; False also for names that no file can have."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def digest_of(texts: Iterable[str]) -> str:
    """Hash of a sequence of texts."""
    result = hashlib.blake2b(digest_size=8)
    for text in texts:
        result.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return result.hexdigest()

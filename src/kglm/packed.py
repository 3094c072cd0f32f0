"""Decompress files as streams of bytes: gzip, bzip2 and Zstandard, recognised by content, not by file name."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import re
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import zstandard

from kglm.errors import DataError

GZIP_MAGIC, ZSTD_MAGIC = b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"
BZIP2_MAGIC = re.compile(rb"BZh[1-9](?:1AY&SY|\x17\x72\x45\x38\x50\x90)")  # a plain text may start with "BZh" too
PARALLEL_BZIP2_FROM = 8 << 20
"""Compressed size in bytes from which all cores unpack bzip2; below it, starting the threads costs more."""
AnyPath = str | os.PathLike[str]


class Unpacker(io.RawIOBase):
    """Unpacked bytes of a compressed file; `position` is the offset reached in the compressed file."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw

    def readable(self) -> bool:
        return True

    def unpack(self, size: int) -> bytes:
        raise NotImplementedError

    def position(self) -> int:
        return self._raw.tell()

    def readinto(self, buffer: Any) -> int:
        data = self.unpack(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Gzip(Unpacker):
    def __init__(self, raw: BinaryIO) -> None:
        super().__init__(raw)
        self._stream = gzip.GzipFile(fileobj=raw, mode="rb")

    def unpack(self, size: int) -> bytes:
        return self._stream.read(size)


class _Bzip2(Unpacker):
    def __init__(self, raw: BinaryIO) -> None:
        super().__init__(raw)
        self._stream = bz2.BZ2File(raw)

    def unpack(self, size: int) -> bytes:
        return self._stream.read(size)


class _ParallelBzip2(Unpacker):
    """bzip2 unpacked by all cores; raises the exceptions of `bz2` instead of the library's C++ ones."""

    def __init__(self, raw: BinaryIO) -> None:
        import indexed_bzip2

        super().__init__(raw)
        self._stream = indexed_bzip2.open(raw.name, parallelization=os.cpu_count() or 1)

    def unpack(self, size: int) -> bytes:
        try:
            return bytes(self._stream.read(size))
        except RuntimeError as error:
            raise EOFError from error
        except ValueError as error:
            raise zlib.error(str(error)) from error

    def position(self) -> int:
        return int(self._stream.tell_compressed()) // 8

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


class _Zstd(Unpacker):
    """A sequence of Zstandard frames; unlike the library's reader, it raises an error at a truncated frame."""

    def __init__(self, raw: BinaryIO) -> None:
        super().__init__(raw)
        self._frame: Any = None
        self._pending = b""

    def unpack(self, size: int) -> bytes:
        while not self._pending:
            chunk = b""
            if self._frame is not None and self._frame.eof:
                chunk, self._frame = self._frame.unused_data, None
            chunk = chunk or self._raw.read(1 << 18)
            if not chunk:
                if self._frame is not None:
                    raise EOFError
                return b""
            if self._frame is None:
                self._frame = zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
            self._pending = self._frame.decompress(chunk)
        data, self._pending = self._pending[:size], self._pending[size:]
        return data


def open_binary(path: AnyPath) -> io.BufferedReader:
    """Open `path` for reading bytes, unpacked if it is compressed. Use inside `reading(path)`."""
    path = Path(path)
    raw = path.open("rb")
    if not path.is_file():
        raw.close()
        raise DataError("is a pipe or device", place=path, remedy="save it to a file first: it must be read twice")
    magic = raw.read(10)
    raw.seek(0)
    unpacker: type[Unpacker]
    if magic.startswith(GZIP_MAGIC):
        unpacker = _Gzip
    elif BZIP2_MAGIC.match(magic):
        unpacker = _ParallelBzip2 if path.stat().st_size >= PARALLEL_BZIP2_FROM else _Bzip2
    elif magic.startswith(ZSTD_MAGIC):
        unpacker = _Zstd
    else:
        return raw
    return io.BufferedReader(unpacker(raw), 1 << 18)


def position(stream: io.BufferedReader) -> int:
    """Offset reached in the file on disk, in compressed bytes if the file is compressed."""
    return stream.raw.position() if isinstance(stream.raw, Unpacker) else stream.tell()

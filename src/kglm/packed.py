"""Packed files as streams of bytes: gzip, bzip2, Zstandard, told by their content and not by their names."""

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
BZIP2_MAGIC = re.compile(rb"BZh[1-9](?:1AY&SY|\x17\x72\x45\x38\x50\x90)")  # a text may well start with "BZh"
PARALLEL_BZIP2_FROM = 8 << 20
"""Compressed size from which bzip2 is unpacked by all cores; below, starting the threads costs more."""
AnyPath = str | os.PathLike[str]


class Unpacker(io.RawIOBase):
    """Unpacked bytes of a compressed file. `position` is how far the packed file has been read."""

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
    """bzip2 unpacked by all cores; the library's bare C++ exceptions become what `bz2` would raise."""

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
    """Zstandard frames one after the other; unlike the library's reader, a cut-off frame is an error."""

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
        raise DataError("is a pipe or device", place=path, remedy="save it to a file first: it is read more than once")
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
    """How far the file on disk has been read, packed bytes if it is packed."""
    return stream.raw.position() if isinstance(stream.raw, Unpacker) else stream.tell()

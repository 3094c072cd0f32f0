"""Artefacts: directories with a manifest of sizes and checksums, so that damage is found before it becomes an answer.

with new_artefact(Path("world.kg.names/1")) as writer:     # complete or absent
    writer.array("node", node)
    writer.json("meta.json", meta)

artefact = Artefact.open(Path("world.kg.names/1"), remedy="rebuild it with: kglm doctor world.kg --repair")
artefact.array("node")                                     # mapped, checked
artefact.record("meta.json", Meta)                         # typed, checked

with artefact.update() as writer:                          # replaces single files of a directory that stays
    writer.json("meta.json", other)

`manifest.json` lists every file with its checksums, which are computed from what is to be written, not from what
arrived on the disk. Opening checks all sizes and the manifest itself; `read` and `record` check the whole file; `array`
checks it whole up to `WHOLE` bytes an artefact, and above that a sample of its blocks. `check` and `damages` check
every byte.

An update first lists the new checksums beside the old ones, then renames the new files, then drops the old checksums.
A reader accepts either, so a process that is killed at any point leaves an artefact that opens. Updates of one artefact
wait for each other; a reader whose manifest is older than a file reads the manifest again.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
import numpy.typing as npt

from kglm.errors import DamagedError, DataError
from kglm.files.atomic import (
    atomic_directory,
    locked_directory,
    remove_leftovers,
    sync_directory,
    sync_file,
    temporary_file,
)
from kglm.files.checksums import BLOCK, BlockHasher, Checksums, checksums_of_file
from kglm.files.manifest import MANIFEST, ArrayLayout, Entry, Manifest, layout_of, read_manifest, write_manifest
from kglm.files.records import decode_record, is_file_name, to_json
from kglm.files.streams import reading, writing

T = TypeVar("T")
WHOLE = 4 << 20
"""Arrays of an artefact up to this many bytes are checked whole when they are mapped, 0.2 ms."""
LARGEST = 256 << 20
"""Larger artefacts are checked whole by `kglm doctor` only."""


class Writer:
    """Writes the files of an artefact. A name may be written once."""

    def __init__(self, open_file: Callable[[str], Any]) -> None:
        self.files: dict[str, Entry] = {}
        self._open = open_file

    @contextmanager
    def file(self, name: str, array: ArrayLayout | None = None) -> Iterator[CheckedStream]:
        """Write one file through a stream."""
        with self._open(name) as raw:
            stream = CheckedStream(raw)
            yield stream
            self.files[name] = Entry(stream.finish(), array)

    def bytes(self, name: str, content: bytes) -> None:
        with self.file(name) as stream:
            stream.write(content)

    def json(self, name: str, value: object) -> None:
        self.bytes(name, to_json(value))

    def array(self, name: str, array: npt.NDArray[Any]) -> None:
        """Write an array as `NAME.npy`."""
        array = np.ascontiguousarray(array)
        header = _header(array)
        layout = ArrayLayout(len(header), array.dtype.str, array.shape)
        with self.file(f"{name}.npy", layout) as stream:
            stream.write(header)
            if array.size:
                stream.write(array.data.cast("B"))


class CheckedStream:
    """Writes to an open file and hashes what it writes."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._hasher = BlockHasher()

    def write(self, data: bytes | memoryview) -> int:
        self._hasher.update(data)
        return self._raw.write(data)

    def finish(self) -> Checksums:
        """Write everything to the disk; checksums of what was written."""
        sync_file(self._raw)
        checksums = self._hasher.checksums()
        if os.fstat(self._raw.fileno()).st_size != checksums.size:
            raise OSError(f"{checksums.size:,} bytes were written, but fewer arrived")
        return checksums


@contextmanager
def new_artefact(path: Path) -> Iterator[Writer]:
    """Write a directory with its manifest: it appears complete or not at all (see `atomic_directory`)."""
    with atomic_directory(path) as directory:
        writer = Writer(lambda name: (directory / name).open("xb"))
        yield writer
        write_manifest(directory, Manifest.of(writer.files))


class Artefact:
    """A directory of checked files."""

    def __init__(
        self, home: Path, manifest: Manifest | None, remedy: str | None = None, names: Collection[str] | None = None
    ) -> None:
        self.home = home
        self.manifest = manifest
        """None for a directory written by an earlier version, whose files are read unchecked."""
        self.remedy = remedy
        """What to do if a file is damaged."""
        self.names = names
        """Files that belong to it, if it shares the directory with others."""

    @classmethod
    def create(cls, home: Path, remedy: str | None = None, names: Collection[str] | None = None) -> Artefact:
        """Start an artefact in `home` without files; files that are there already are not part of it."""
        with writing(home):
            home.mkdir(parents=True, exist_ok=True)
            artefact = cls(home, Manifest.of({}), remedy, names)
            with locked_directory(home):
                artefact._remove_leftovers()
                write_manifest(home, Manifest.of({}))
        return artefact

    @classmethod
    def open(
        cls, home: Path, remedy: str | None = None, names: Collection[str] | None = None, *, check: bool = True
    ) -> Artefact:
        """Read the manifest and check the sizes of all files; without `check`, the manifest is ignored."""
        with reading(home):
            if not check or not (home / MANIFEST).exists():
                home.stat()  # an error if there is no such directory
                return cls(home, None, remedy, names)
        artefact = cls(home, read_manifest(home, remedy), remedy, names)
        artefact._check_sizes()
        return artefact

    def __contains__(self, name: str) -> bool:
        """True if the directory has this file."""
        return name in self.manifest.names if self.manifest else (self.home / name).exists()

    def read(self, name: str) -> bytes:
        """Content of a file, checked."""
        path = self.home / name
        while True:
            with reading(path):
                content = path.read_bytes()
            if not self.manifest or any(entry.checksums.of_content(content) for entry in self._versions(name)):
                return content
            if not self._read_newer_manifest():
                raise self._damaged(name, "its checksum differs from the manifest")

    def _read_newer_manifest(self) -> bool:
        """Read the manifest again; False if no other process has updated the artefact since."""
        before, self.manifest = self.manifest, read_manifest(self.home, self.remedy)
        return self.manifest != before

    def record(self, name: str, kind: type[T]) -> T:
        """A JSON file of the given type, checked."""
        return decode_record(self.read(name), kind, self.home / name, self.remedy)

    def array(self, name: str, dtype: npt.DTypeLike | None = None, dims: int | None = None) -> npt.NDArray[Any]:
        """The array in `NAME.npy`, mapped for reading and checked: whole if the artefact is small, else a sample."""
        name = f"{name}.npy"
        path = self.home / name
        if self.manifest is None:
            array = _load_unchecked(path, self.remedy)
        else:
            array = self._mapped(name, self._versions(name)[0])
        if (dtype is not None and array.dtype != dtype) or (dims is not None and array.ndim != dims):
            raise DataError(f"has {array.dtype} values in {array.ndim} dimensions", place=path, remedy=self.remedy)
        return array

    def _mapped(self, name: str, entry: Entry) -> npt.NDArray[Any]:
        layout = entry.array
        if layout is None:
            raise DataError(
                "is listed in the manifest as a file that is no array", place=self.home / name, remedy=self.remedy
            )
        assert self.manifest is not None
        if self.manifest.array_bytes <= WHOLE:
            mapped = self._map(name, entry, None)
        elif 0 in layout.shape:
            return np.empty(layout.shape, np.dtype(layout.dtype))  # nothing to read; mapping costs 0.07 ms
        else:
            mapped = self._map(name, entry, entry.checksums.sample())
        return np.frombuffer(mapped, np.dtype(layout.dtype), offset=layout.offset).reshape(layout.shape)

    def mapped(self, name: str) -> mmap.mmap:
        """A file of any kind, mapped; every byte is checked. Writing to it changes this process's copy only."""
        if self.manifest is None:
            raise DamagedError("has no manifest of checksums", place=self.home, remedy=self.remedy)
        return self._map(name, self._versions(name)[0], None, access=mmap.ACCESS_COPY)

    def _map(
        self, name: str, entry: Entry, blocks: Iterable[int] | None, *, access: int = mmap.ACCESS_READ
    ) -> mmap.mmap:
        """Map a file after checking these blocks, or all."""
        path = self.home / name
        with reading(path), path.open("rb", buffering=0) as stream:
            damaged = entry.checksums.damaged(stream, blocks)
            if damaged is not None:
                raise self._damaged(name, f"bytes from {damaged * BLOCK:,} on differ from their checksum")
            return mmap.mmap(stream.fileno(), 0, access=access)

    def check(self) -> None:
        """Raise an error if a byte of a mapped array is damaged; artefacts above `LARGEST` are not read."""
        if self.manifest is not None and WHOLE < self.manifest.array_bytes <= LARGEST:
            for error in self.damages():
                raise error

    def damages(self) -> Iterator[DataError]:
        """Check every byte of every file."""
        for name in self.manifest.names if self.manifest else ():
            try:
                self._check_size(name)
                with reading(self.home / name), (self.home / name).open("rb", buffering=0) as stream:
                    found = [entry.checksums.damaged(stream) for entry in self._versions(name)]
                if None not in found:
                    raise self._damaged(name, f"bytes from {(found[0] or 0) * BLOCK:,} on differ from their checksum")
            except DataError as error:
                yield error

    @contextmanager
    def update(self) -> Iterator[Writer]:
        """Replace files. On an exception in the block none is replaced; a rename that fails leaves the files before it
        replaced, and the artefact still opens."""
        with ExitStack() as open_files:
            with writing(self.home):
                open_files.enter_context(locked_directory(self.home))
            self._remove_leftovers()
            self.manifest = Artefact.open(self.home, self.remedy).manifest  # another process may have updated it
            temporaries: dict[str, Path] = {}

            def open_temporary(name: str) -> Any:
                raw, temporaries[name] = open_files.enter_context(temporary_file(self.home / name))
                return _Unclosed(raw)

            with writing(self.home):
                writer = Writer(open_temporary)
                yield writer
                present = self._present()
                write_manifest(self.home, Manifest.of(present, writer.files))
                for name, temporary in temporaries.items():
                    temporary.replace(self.home / name)
                sync_directory(self.home)
                self.manifest = Manifest.of(present | writer.files)
                write_manifest(self.home, self.manifest)

    def accept(self) -> None:
        """Record all files as they are now, whatever the manifest says: for files that were changed on purpose."""
        with locked_directory(self.home):
            self.manifest = Manifest.of(self._found())
            write_manifest(self.home, self.manifest)

    def _remove_leftovers(self) -> None:
        """Remove what killed updates left of its files."""
        names = self.names
        remove_leftovers(self.home, bool if names is None else lambda name: name in names or name == MANIFEST)

    def _found(self) -> dict[str, Entry]:
        """All files of the directory as they are now."""
        files = {}
        for path in sorted(self.home.iterdir()):
            owned = path.name in self.names if self.names else path.name != MANIFEST and is_file_name(path.name)
            if owned and path.is_file():
                with reading(path), path.open("rb", buffering=0) as stream:
                    files[path.name] = Entry(checksums_of_file(stream), layout_of(path, self.remedy))
        return files

    def _present(self) -> dict[str, Entry]:
        """Files and the version of each that is on the disk, also after an update that was killed."""
        if self.manifest is None:
            return self._found()
        present = {}
        for name in self.manifest.names:
            versions = self._versions(name)
            if name in self.manifest.replacing:
                try:
                    with (self.home / name).open("rb", buffering=0) as stream:
                        versions = [entry for entry in versions if entry.checksums.damaged(stream) is None]
                except FileNotFoundError:
                    continue  # a new file of an update that was killed
            if versions:
                present[name] = versions[0]
        return present

    def _versions(self, name: str) -> list[Entry]:
        assert self.manifest is not None
        if not (versions := self.manifest.versions(name)):
            raise DataError("is not listed in the manifest", place=self.home / name, remedy=self.remedy)
        return versions

    def _check_sizes(self) -> None:
        assert self.manifest is not None
        try:
            for name in self.manifest.names:
                self._check_size(name)
        except DamagedError:
            if not self._read_newer_manifest():
                raise
            self._check_sizes()

    def _check_size(self, name: str) -> None:
        assert self.manifest is not None
        try:
            size = (self.home / name).stat().st_size
        except FileNotFoundError:
            if name not in self.manifest.files:
                return  # a new file of an update that was killed
            raise DamagedError("is missing", place=self.home / name, remedy=self.remedy) from None
        sizes = [entry.checksums.size for entry in self._versions(name)]
        if size not in sizes:
            raise self._damaged(name, f"has {size:,} bytes instead of {sizes[0]:,}")

    def _damaged(self, name: str, what: str) -> DamagedError:
        return DamagedError(f"is damaged: {what}", place=self.home / name, remedy=self.remedy)


class _Unclosed:
    """A file that stays open, with its lock, after the block that writes it."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw

    def __enter__(self) -> BinaryIO:
        return self._raw

    def __exit__(self, *_: object) -> None:
        pass


def _header(array: npt.NDArray[Any]) -> bytes:
    """The header of an `.npy` file, padded so that the values are aligned."""
    stream = BytesIO()
    np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(array))
    return stream.getvalue()


def _load_unchecked(path: Path, remedy: str | None) -> npt.NDArray[Any]:
    try:
        with reading(path):
            # asarray: a plain view of the mapped file; slices of the memmap class are several times slower
            return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except ValueError as error:
        raise DamagedError(f"is damaged ({error})", place=path, remedy=remedy) from error
    except DataError as error:
        raise DataError(error.what, place=path, remedy=remedy) from error

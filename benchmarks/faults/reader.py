"""A reader of kglm as the fuzzer sees it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.faults.mutations import Mutation


class Reader(NamedTuple):
    """A reader: valid inputs, how they are mutated, and the function that reads an input."""

    samples: Sequence[bytes]
    mutate: Mutation
    read: Callable[[bytes], object]
    close: Callable[[], object] = lambda: None


def file_reader(home: Path, name: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    """Write the input to a file and read that."""
    path = home / name

    def run(data: bytes) -> object:
        path.write_bytes(data)
        return read(path)

    return run


def together(parts: Mapping[str, Callable[[Path], Reader]], home: Path) -> Reader:
    """Several readers as one: an input begins with the name of the part that reads it."""
    readers = {name.encode(): make(home) for name, make in parts.items()}

    def mutate(data: bytes, rng: random.Random) -> bytes:
        name, _, rest = data.partition(b"\0")
        return name + b"\0" + readers[name].mutate(rest, rng)

    def read(data: bytes) -> object:
        name, _, rest = data.partition(b"\0")
        return readers[name].read(rest)

    def close() -> None:
        for reader in readers.values():
            reader.close()

    samples = [name + b"\0" + sample for name, reader in readers.items() for sample in reader.samples]
    return Reader(samples, mutate, read, close)


def exhaust(items: Iterator[object]) -> None:
    for _ in items:
        pass

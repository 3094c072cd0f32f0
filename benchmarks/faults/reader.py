"""A reader of kglm as the fuzzer sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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


def exhaust(items: Iterator[object]) -> None:
    for _ in items:
        pass

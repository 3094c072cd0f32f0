"""Artefacts: every damaged byte is found, updates survive a kill at any step, typed records are checked."""

from __future__ import annotations

import multiprocessing
import os
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kglm.errors import DamagedError, DataError, VersionError
from kglm.files import artefact as module
from kglm.files.artefact import MANIFEST, Artefact, new_artefact
from kglm.files.checksums import BLOCK, BlockHasher, checksums_of, checksums_of_file
from kglm.files.records import Count, decode_record


class Meta(msgspec.Struct, forbid_unknown_fields=True):
    nodes: Count


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with new_artefact(tmp_path / "made") as writer:
        writer.array("numbers", np.arange(1000, dtype=np.int32).reshape(10, 100))
        writer.array("none", np.zeros(0, np.float32))
        writer.json("meta.json", Meta(10))
        writer.bytes("text", b"some text")
    return tmp_path / "made"


def read_all(home: Path) -> tuple[object, ...]:
    opened = Artefact.open(home)
    numbers, none = opened.array("numbers", np.int32, 2), opened.array("none")
    return numbers.tolist(), none.tolist(), opened.record("meta.json", Meta).nodes, opened.read("text")


def test_round_trip(home: Path) -> None:
    assert read_all(home) == (np.arange(1000).reshape(10, 100).tolist(), [], 10, b"some text")
    assert np.array_equal(np.load(home / "numbers.npy"), np.arange(1000).reshape(10, 100))
    assert not Artefact.open(home).array("numbers").flags.writeable
    assert list(Artefact.open(home).damages()) == []


def test_every_flipped_byte_is_an_error_or_without_effect(home: Path) -> None:
    """Small files are checked whole when they are read. White space of the manifest may change without effect."""
    expected = read_all(home)
    for path in sorted(home.iterdir()):
        content = path.read_bytes()
        for place in range(0, len(content), 1 if path.name != "numbers.npy" else 37):
            path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
            try:
                assert read_all(home) == expected
                assert path.name == MANIFEST
            except (DamagedError, VersionError) as error:
                assert error.place is not None and (path.name in error.place or path.name == MANIFEST)
        path.write_bytes(content)


@pytest.mark.parametrize("name", ["numbers.npy", "meta.json", "text", MANIFEST])
def test_missing_and_truncated_files(home: Path, name: str, tmp_path: Path) -> None:
    for content in (None, b"", (home / name).read_bytes()[:-2]):
        copy = shutil.copytree(home, tmp_path / "copy")
        (copy / name).unlink()
        if content is not None:
            (copy / name).write_bytes(content)
        if name == MANIFEST and content is None:
            assert Artefact.open(copy).manifest is None  # an artefact of an earlier version
        else:
            with pytest.raises(DamagedError):
                read_all(copy)
        shutil.rmtree(copy)


def test_a_large_array_is_sampled_and_check_finds_every_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WHOLE", 0)
    with new_artefact(tmp_path / "made") as writer:
        writer.array("big", np.arange(12 * BLOCK // 8))
    path = tmp_path / "made" / "big.npy"
    content = bytearray(path.read_bytes())
    content[5 * BLOCK + 17] ^= 1
    path.write_bytes(content)
    found = 0
    for _ in range(60):  # two blocks of thirteen are chosen at random
        try:
            Artefact.open(tmp_path / "made").array("big")
        except DamagedError:
            found += 1
    assert 0 < found < 60
    opened = Artefact.open(tmp_path / "made")
    with pytest.raises(DamagedError, match=f"bytes from {5 * BLOCK:,} on"):
        opened.check()
    assert len(list(opened.damages())) == 1


def test_an_update_replaces_files_together(home: Path) -> None:
    artefact = Artefact.open(home)
    with artefact.update() as writer:
        writer.json("meta.json", Meta(11))
        writer.bytes("more", b"new")
    assert Artefact.open(home).record("meta.json", Meta).nodes == 11
    assert Artefact.open(home).read("more") == b"new" and Artefact.open(home).read("text") == b"some text"
    with pytest.raises(RuntimeError), artefact.update() as writer:
        writer.bytes("text", b"never")
        raise RuntimeError
    assert Artefact.open(home).read("text") == b"some text"
    assert not [path for path in home.iterdir() if path.name.startswith(".")]


def test_two_objects_update_the_same_artefact(home: Path) -> None:
    one, two = Artefact.open(home), Artefact.open(home)
    for artefact, name in ((one, "a"), (two, "b"), (one, "c")):
        with artefact.update() as writer:
            writer.bytes(name, name.encode())
    assert [Artefact.open(home).read(name) for name in "abc"] == [b"a", b"b", b"c"]


@pytest.mark.parametrize("step", range(12))
def test_a_kill_during_an_update_leaves_old_or_new_files(
    home: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The update stops before its n-th rename or sync, and nothing is cleaned up, as after SIGKILL."""

    class Killed(BaseException):
        pass

    calls = 0

    def counting(function):  # type: ignore[no-untyped-def]
        def call(*arguments, **options):  # type: ignore[no-untyped-def]
            nonlocal calls
            calls += 1
            if calls > step:
                monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)
                raise Killed
            return function(*arguments, **options)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", counting(os.fsync))
        patch.setattr(Path, "replace", counting(Path.replace))
        try:
            with Artefact.open(home).update() as writer:
                writer.json("meta.json", Meta(11))
                writer.bytes("text", b"other")
        except Killed:
            pass
    monkeypatch.undo()
    opened = Artefact.open(home)
    seen = opened.record("meta.json", Meta).nodes, opened.read("text")
    assert seen[0] in (10, 11) and seen[1] in (b"some text", b"other") and not list(opened.damages())
    with opened.update() as writer:
        writer.bytes("text", b"last")
    assert Artefact.open(home).read("text") == b"last"
    assert Artefact.open(home).record("meta.json", Meta).nodes == seen[0]
    assert not [path for path in home.iterdir() if path.name.startswith(".")]


def test_files_of_an_earlier_version_are_read_and_an_update_adds_checksums(home: Path) -> None:
    (home / MANIFEST).unlink()
    assert read_all(home)[2:] == (10, b"some text")
    with Artefact.open(home).update() as writer:
        writer.bytes("text", b"other")
    opened = Artefact.open(home)
    assert opened.manifest is not None and opened.read("text") == b"other" and "numbers.npy" in opened


@given(st.lists(st.integers(0, BLOCK + 3), max_size=5))
def test_checksums_do_not_depend_on_the_parts(sizes: list[int]) -> None:
    content = os.urandom(sum(sizes))
    hasher, start = BlockHasher(), 0
    for size in sizes:
        hasher.update(content[start : start + size])
        start += size
    assert hasher.checksums() == checksums_of(content)
    assert len(checksums_of(content).blocks) == 8 * -(-len(content) // BLOCK)


def test_checksums_of_a_file(tmp_path: Path) -> None:
    content = os.urandom(3 * BLOCK + 5)
    (tmp_path / "x").write_bytes(content)
    with (tmp_path / "x").open("rb") as stream:
        assert checksums_of_file(stream) == checksums_of(content)


@pytest.mark.parametrize(
    ("content", "finding"),
    [
        (b"{", "is not JSON"),
        (b"[]", r"\$: expected `object`, got `array`"),
        (b'{"nodes": -1}', r"\$\.nodes: expected `int` >= 0"),
        (b'{"nodes": 1e400}', r"nodes|JSON"),
        (b'{"nodes": 99999999999999999999999}', "nodes"),
        (b'{"nodes": 1, "edges": 2}', "unknown field `edges`"),
        (b'{"nodes": ' + b"[" * 200_000, "nodes|JSON"),
        (b'{"nodes": "\xff"}', "nodes|JSON"),
    ],
)
def test_a_record_that_does_not_fit_is_named(content: bytes, finding: str) -> None:
    with pytest.raises(DataError, match=finding):
        decode_record(content, Meta, "x.json")


def _update_often(home: Path, name: str, times: int) -> None:
    for number in range(times):
        with Artefact.open(home).update() as writer:
            writer.bytes(name, f"{name} {number}".encode() * 10)


def test_processes_that_update_and_read_at_once(home: Path) -> None:
    """Updates wait for each other, and a reader never takes an update for damage."""
    writers = [multiprocessing.Process(target=_update_often, args=(home, name, 40)) for name in ("text", "other")]
    for process in writers:
        process.start()
    reads = 0
    while any(process.is_alive() for process in writers):
        assert Artefact.open(home).read("text").startswith((b"some text", b"text"))
        reads += 1
    for process in writers:
        process.join()
        assert process.exitcode == 0
    assert reads > 0
    assert Artefact.open(home).read("text") == b"text 39" * 10
    assert Artefact.open(home).read("other") == b"other 39" * 10
    assert list(Artefact.open(home).damages()) == []


def test_an_artefact_that_shares_its_directory_removes_only_its_own_leftovers(home: Path) -> None:
    own, foreign = home / ".text.abc.tmp", home / ".thesis.draft.tmp"
    for path in (own, foreign):
        path.write_text("x")
    with Artefact.open(home, names=["text"]).update() as writer:
        writer.bytes("text", b"new")
    assert foreign.exists() and not own.exists()


def test_accepting_leaves_out_strange_names_and_refuses_broken_arrays(home: Path) -> None:
    (home / "notes 2.txt").write_text("x")
    Artefact.open(home, check=False).accept()
    assert "notes 2.txt" not in Artefact.open(home)
    content = (home / "numbers.npy").read_bytes()
    for broken in (content[:10], content[:-4], content + b"more"):
        (home / "numbers.npy").write_bytes(broken)
        with pytest.raises(DamagedError, match=r"numbers\.npy"):
            Artefact.open(home, check=False).accept()

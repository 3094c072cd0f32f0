"""Reading compressed files, lines and blocks; atomic writes."""

from __future__ import annotations

import bz2
import gzip
import os
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from kglm.errors import DataError, KglmError
from kglm.files import atomic_directory, atomic_file, read_blocks, read_json, read_lines, write_json

CHECKED = zstandard.ZstdCompressor(write_checksum=True)
COMPRESSORS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".zst": CHECKED.compress}


@pytest.mark.parametrize("suffix", COMPRESSORS)
@pytest.mark.parametrize("name", ["named", "misnamed.txt"])
def test_compression_is_recognised_by_content(tmp_path: Path, suffix: str, name: str) -> None:
    path = tmp_path / (name + suffix if name == "named" else name)
    path.write_bytes(COMPRESSORS[suffix](b"one\r\n\ntwo\nthree"))
    assert list(read_lines(path)) == [(1, b"one"), (3, b"two"), (4, b"three")]


@pytest.mark.parametrize("parallel", [False, True])
def test_concatenated_streams_are_read_as_one(tmp_path: Path, parallel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wikipedia dumps consist of many small compressed streams."""
    monkeypatch.setattr("kglm.packed.PARALLEL_BZIP2_FROM", 0 if parallel else 1 << 40)
    for suffix, compress in COMPRESSORS.items():
        path = tmp_path / f"x{suffix}"
        path.write_bytes(compress(b"a\nb") + compress(b"\nc\n"))
        assert [line for _, line in read_lines(path)] == [b"a", b"b", b"c"]


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
@pytest.mark.parametrize("parallel", [False, True])
def test_a_truncated_file_is_an_error(
    tmp_path: Path, suffix: str, parallel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kglm.packed.PARALLEL_BZIP2_FROM", 0 if parallel else 1 << 40)
    whole = COMPRESSORS[suffix](os.urandom(200_000).hex().encode())
    (tmp_path / "x").write_bytes(whole[:-1000])
    with pytest.raises(DataError, match="ends in the middle"):
        list(read_lines(tmp_path / "x"))


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
@pytest.mark.parametrize("parallel", [False, True])
def test_a_damaged_file_is_an_error(
    tmp_path: Path, suffix: str, parallel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kglm.packed.PARALLEL_BZIP2_FROM", 0 if parallel else 1 << 40)
    whole = bytearray(COMPRESSORS[suffix](os.urandom(300_000).hex().encode()))
    for place in range(len(whole) // 2, len(whole) // 2 + 40):
        whole[place] ^= 0xFF
    (tmp_path / "x").write_bytes(whole)
    with pytest.raises(DataError, match=r"damaged|cannot be read|ends in the middle"):
        list(read_lines(tmp_path / "x"))


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    """A pipe can be read only once; a second reading would silently lose its beginning."""
    reader, writer = os.pipe()
    try:
        with pytest.raises(DataError, match="is a pipe or device; save it to a file first"):
            list(read_lines(f"/dev/fd/{reader}"))
    finally:
        os.close(reader)
        os.close(writer)


def test_byte_order_mark_at_the_start_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xef\xbb\xbfa\n\xef\xbb\xbfb")
    assert list(read_lines(tmp_path / "x")) == [(1, b"a"), (2, b"\xef\xbb\xbfb")]
    assert [block.data for block in read_blocks(tmp_path / "x", 100)] == [b"a\n\xef\xbb\xbfb"]


@pytest.mark.parametrize("text", [b"BZh", b"BZh9 is a name", b"\x1f\x8b"])
def test_plain_text_that_starts_like_a_compressed_file(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "x").write_bytes(text)
    assert list(read_lines(tmp_path / "x")) == [(1, text)]


def test_missing_file_or_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file; check the path"):
        list(read_lines(tmp_path / "x"))
    with pytest.raises(DataError, match="is a directory"):
        list(read_lines(tmp_path))


@given(st.lists(st.binary(max_size=40).map(lambda x: b"x" + x.replace(b"\n", b"")), max_size=30), st.integers(1, 100))
def test_blocks_are_whole_lines_and_can_be_resumed(lines: list[bytes], size: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        path.write_bytes(b"\n".join(lines))
        blocks = list(read_blocks(path, size))
        assert b"".join(block.data for block in blocks) == path.read_bytes()
        assert all(block.data.endswith(b"\n") for block in blocks[:-1])
        for number, block in enumerate(blocks):
            rest = list(read_blocks(path, size, offset=block.next_offset, first_line=block.next_line))
            assert rest == blocks[number + 1 :]
            assert path.read_bytes().split(b"\n")[block.first_line - 1 :][0] == block.data.split(b"\n")[0]


class TestAtomicFile:
    def test_new_content_appears_only_when_complete(self, tmp_path: Path) -> None:
        path = tmp_path / "x"
        path.write_text("old")
        with atomic_file(path) as stream:
            stream.write(b"new")
            assert path.read_text() == "old"
        assert path.read_text() == "new" and [p.name for p in tmp_path.iterdir()] == ["x"]

    def test_old_content_stays_after_an_exception(self, tmp_path: Path) -> None:
        path = tmp_path / "x"
        path.write_text("old")
        with pytest.raises(RuntimeError), atomic_file(path) as stream:
            stream.write(b"half")
            raise RuntimeError
        assert path.read_text() == "old" and len(list(tmp_path.iterdir())) == 1

    def test_the_same_content_gives_the_same_gzip(self, tmp_path: Path) -> None:
        for name in ("a.gz", "b.gz"):
            with atomic_file(tmp_path / name) as stream:
                stream.write(b"content")
        assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()

    def test_permissions_follow_the_umask(self, tmp_path: Path) -> None:
        before = os.umask(0o027)
        try:
            with atomic_file(tmp_path / "x"):
                pass
        finally:
            os.umask(before)
        assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640

    def test_path_that_cannot_be_written_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(KglmError, match="its directory does not exist"), atomic_file(tmp_path / "no" / "x"):
            pass
        with pytest.raises(KglmError, match="is a directory"), atomic_file(tmp_path):
            pass


class TestAtomicDirectory:
    def test_directory_appears_complete_or_not_at_all(self, tmp_path: Path) -> None:
        with pytest.raises(RuntimeError), atomic_directory(tmp_path / "d") as directory:
            (directory / "a").write_text("a")
            raise RuntimeError
        assert not list(tmp_path.iterdir())
        with atomic_directory(tmp_path / "d") as directory:
            (directory / "a").write_text("a")
        assert [p.name for p in (tmp_path / "d").iterdir()] == ["a"]

    def test_first_of_two_writers_wins(self, tmp_path: Path) -> None:
        with atomic_directory(tmp_path / "d") as ours:
            (ours / "a").write_text("ours")
            with atomic_directory(tmp_path / "d") as theirs:
                (theirs / "a").write_text("theirs")
        assert (tmp_path / "d" / "a").read_text() == "theirs" and len(list(tmp_path.iterdir())) == 1


def test_json_round_trip(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"ä": [1, None]})
    assert read_json(tmp_path / "x.json") == {"ä": [1, None]}
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(DataError, match="is not JSON"):
        read_json(tmp_path / "x.json")

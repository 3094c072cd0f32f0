"""The bundled world in the user's cache: made once, for all processes, and made again when it is damaged."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import kglm
from conftest import Command
from kglm import bundled
from kglm.errors import DamagedError, KglmError
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.store import Store
from kglm.text.document import read_documents
from kglm.worlds import world
from kglm.worlds.columns import PackedWorld
from support.small_worlds import SMALL, write_bundle


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bundle(tmp_path_factory.mktemp("bundle") / "wikidata")


@pytest.fixture
def cache(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and the small world as the bundled one."""
    monkeypatch.setattr(bundled, "WIKIDATA", bundle)
    monkeypatch.setenv("KGLM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Child:
    """A process that starts as a copy of this one, with all modules loaded, and calls a function."""

    def __init__(self, folder: Path, call: Callable[[], object]) -> None:
        """Its output goes to files in `folder`: what the function returns, and standard error."""
        folder.mkdir(exist_ok=True)
        self._result, self._error = folder / "result", folder / "error"
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                with self._error.open("w") as error, self._result.open("w") as result:
                    sys.stderr = error
                    try:
                        result.write(str(call()))
                        code = 0
                    except BaseException:
                        traceback.print_exc(file=error)
            finally:
                os._exit(code)

    def wait(self) -> tuple[int, str, str]:
        """Exit code, result, and standard error."""
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status), self._result.read_text(), self._error.read_text()


@pytest.fixture
def loaded(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Load all modules that unpacking needs, so that the copies of this process have them."""
    monkeypatch.setattr(bundled, "WIKIDATA", bundle)
    monkeypatch.setenv("KGLM_CACHE", str(tmp_path / "warm"))
    world.open_world().close()


def leftovers(cache: Path) -> list[Path]:
    return [path for path in (cache / "worlds").iterdir() if path.name.startswith(".")]


class TestFirstUse:
    def test_it_has_all_names_facts_ranks_and_times(self, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
        with kglm.world() as graph:
            assert graph.label(graph.number("Q142")) == "France"
            assert [found.id for found in graph.search("tour eiffel")] == ["Q243"]
            assert graph.store.description("Q243") == ("tower in Paris, France", "Eiffel_Tower")
            facts = {(row.tail, row.rank) for row in graph.store.facts_of("Q142") if row.relation == "P38"}
            assert facts == {("Q4916", 1), ("Q184172", 0)}
            assert graph.store.counts()["facts"] == len(SMALL.facts) + 2  # the times are facts of their own
        assert "unpacking the bundled world" in capsys.readouterr().err

    def test_arrays_and_names_are_there_and_the_second_use_makes_nothing(
        self, cache: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = world.world_path()
        made = {file: file.stat().st_mtime_ns for file in path.parent.rglob("*") if file.is_file()}
        assert {"begin_B.npy", "edge_tail.npy"} <= {file.name for file in made}
        capsys.readouterr()
        assert world.world_path() == path
        with kglm.world() as graph:
            graph.search("Paris")
        assert {file: file.stat().st_mtime_ns for file in path.parent.rglob("*") if file.is_file()} == made
        assert capsys.readouterr().err == ""
        assert not leftovers(cache)

    def test_another_packed_file_gets_another_directory(self, cache: Path, tmp_path: Path,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
        first = world.world_path()
        other = SMALL._replace(facts=SMALL.facts[:-1])
        monkeypatch.setattr(bundled, "WIKIDATA", write_bundle(tmp_path / "other", other))
        assert world.world_path() != first and first.exists()

    def test_a_damaged_packed_file_is_named(self, cache: Path, bundle: Path, tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
        copy = Path(shutil.copytree(bundle, tmp_path / "copy"))
        content = bytearray((copy / world.PACKED).read_bytes())
        content[len(content) // 2] ^= 1
        (copy / world.PACKED).write_bytes(content)
        monkeypatch.setattr(bundled, "WIKIDATA", copy)
        with pytest.raises(DamagedError, match=r"world\.zst.*install kglm again"):
            world.world_path()


class TestDamage:
    def test_a_flipped_bit_of_the_graph(self, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = world.world_path()
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 4
        path.write_bytes(content)
        capsys.readouterr()
        world.world_path()
        assert "the bundled world is made again" in capsys.readouterr().err
        with Store.open(path) as store:
            store.check()

    @pytest.mark.parametrize("name", ["world.kg", "read-only.txt"])
    def test_a_missing_file(self, cache: Path, name: str) -> None:
        path = world.world_path()
        (path.parent / name).unlink()
        world.world_path()
        assert (path.parent / name).exists()

    def test_damaged_arrays_are_built_again(self, cache: Path) -> None:
        path = world.world_path()
        [array] = path.parent.rglob("edge_tail.npy")
        array.write_bytes(array.read_bytes()[:-3])
        with kglm.world() as graph:
            assert len(graph.edges(graph.number("Q142"))[0]) > 3


@pytest.mark.usefixtures("loaded")
class TestProcesses:
    def test_three_at_once_make_it_once(self, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write = world.write_graph

        def logged(packed: PackedWorld, target: Path) -> None:
            with (tmp_path / "made").open("a") as log:
                log.write("made\n")
            write(packed, target)
            time.sleep(1.0)

        monkeypatch.setattr(world, "write_graph", logged)
        results = [child.wait() for child in [Child(tmp_path / f"{k}", world.world_path) for k in range(3)]]
        assert [code for code, _, _ in results] == [0, 0, 0], results
        assert {path for _, path, _ in results} == {str(world.world_home() / "world.kg")}
        assert (tmp_path / "made").read_text() == "made\n"
        assert sum("waiting for another process that makes the bundled world" in error for _, _, error in results) == 2
        assert not leftovers(cache)

    def test_a_killed_process_leaves_nothing_that_is_used(
        self, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write, written = world.write_graph, tmp_path / "written"

        def stuck(packed: PackedWorld, target: Path) -> None:
            write(packed, target)
            written.touch()
            time.sleep(600)

        with monkeypatch.context() as patch:
            patch.setattr(world, "write_graph", stuck)
            child = Child(tmp_path / "child", world.world_path)
        while not written.exists():
            time.sleep(0.02)
        os.kill(child.pid, signal.SIGKILL)
        assert child.wait()[0] == -signal.SIGKILL
        assert leftovers(cache) and not world.world_home().exists()
        path = world.world_path()  # does not wait: the lock of the killed process is gone
        with Store.open(path) as store:
            store.check()
        assert not leftovers(cache)


@pytest.mark.usefixtures("loaded")
class TestHomes:
    """These call `world_path` as another user if the tests run as root, who may write anywhere."""

    @pytest.fixture
    def folder(self, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        """A folder that every user can read, with a home and a place for temporary files."""
        folder = Path(tempfile.mkdtemp(dir="/tmp"))  # the folder of temporary files may be closed to other users
        shutil.copytree(bundle, folder / "bundle")
        for name, mode in (("home", 0o755), ("tmp", 0o1777)):
            (folder / name).mkdir()
            (folder / name).chmod(mode)
        folder.chmod(0o755)
        monkeypatch.setattr(bundled, "WIKIDATA", folder / "bundle")
        monkeypatch.delenv("KGLM_CACHE")
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setenv("HOME", str(folder / "home"))
        monkeypatch.setattr("tempfile.tempdir", str(folder / "tmp"))
        yield folder
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755)
        shutil.rmtree(folder)

    def protected(self, folder: Path, output: Path, user: int = 65534) -> tuple[int, str, str]:
        """Result of `world_path` in a process that may not write to the home."""
        for path in [folder / "home", *(folder / "home").rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)

        def call() -> Path:
            if os.getuid() == 0:
                os.setuid(user)
            with world.open_world() as graph:
                assert graph.search("Paris")
            return world.world_path()

        return Child(output, call).wait()

    def test_a_home_that_cannot_be_written(self, folder: Path, tmp_path: Path) -> None:
        code, path, error = self.protected(folder, tmp_path / "child")
        assert code == 0, error
        assert path.startswith(str(folder / "tmp"))
        assert "Permission denied" in error and "set KGLM_CACHE to choose a folder" in error

    def test_a_home_that_cannot_be_written_but_has_the_world(self, folder: Path, tmp_path: Path) -> None:
        made = world.world_path()
        assert made.is_relative_to(folder / "home")
        assert self.protected(folder, tmp_path / "child") == (0, str(made), "")

    def test_a_damaged_world_in_a_home_that_cannot_be_written(self, folder: Path, tmp_path: Path) -> None:
        made = world.world_path()
        content = bytearray(made.read_bytes())
        content[len(content) // 2] ^= 1
        made.write_bytes(content)
        code, path, error = self.protected(folder, tmp_path / "child")
        assert code == 0, error
        assert path.startswith(str(folder / "tmp")) and "is damaged" in error and "cannot be written" in error

    @pytest.mark.skipif(os.getuid() != 0, reason="only root can become a user without a home")
    def test_no_home(self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("HOME")
        code, path, error = self.protected(folder, tmp_path / "child", user=54321)
        assert code == 0, error
        assert path.startswith(str(folder / "tmp"))
        assert "home directory" in error and "set KGLM_CACHE to choose a folder" in error


class TestReadOnly:
    def test_edits_are_refused_and_say_what_to_do(self, cache: Path, command: Command) -> None:
        result = command("kg", "edit", "world", "--set", "Q142 P36 Q90")
        assert result.returncode == 2 and "kglm world --to my.kg" in result.stderr

    def test_vectors_are_refused(self, cache: Path) -> None:
        with pytest.raises(KglmError, match="stays as it is"):
            kglm.embed(world.world_path())

    def test_a_copy_can_be_edited(self, cache: Path, tmp_path: Path) -> None:
        copy = world.copy_world(tmp_path / "my.kg")
        assert copy.stat().st_mode & stat.S_IWUSR
        with KnowledgeGraph.open(copy, writable=True) as graph:
            graph.set("Q142", "P36", "Q243")
        with KnowledgeGraph.open(copy) as graph, kglm.world() as original:
            assert graph.store.facts_of("Q142")[0].tail == "Q243"
            assert original.store.facts_of("Q142")[0].tail == "Q90"
        with pytest.raises(KglmError, match="exists already"):
            world.copy_world(copy)
        world.copy_world(copy, replace=True)
        with KnowledgeGraph.open(copy) as graph:
            assert graph.store.generation == 0


class TestCommands:
    def test_what_it_has(self, cache: Path, command: Command) -> None:
        shown = command("world").stdout
        assert "people" in shown and "7 entities" in shown and "licence: CC0" in shown and "made up" in shown
        told = json.loads(command("world", "--json").stdout)
        assert told["facts"] == 7 and told["unpacked"] is False
        assert told["kinds"][0] == {"name": "people", "entities": 1, "facts": 2, "examples": ["Ada Lumen"]}

    def test_the_word_world_is_a_graph(self, cache: Path, command: Command) -> None:
        assert "tower in Paris, France" in command("kg", "show", "world", "Eiffel Tower").stdout
        assert "Q90" in command("kg", "find", "world", "Paris").stdout

    def test_a_file_of_that_name_comes_first(
        self, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "world").write_text("")
        monkeypatch.chdir(tmp_path)
        assert world.graph_path("world") == Path("world")
        assert world.graph_path("other.kg") == Path("other.kg")

    def test_annotate_links_to_it_by_default(self, cache: Path, tmp_path: Path, command: Command) -> None:
        (tmp_path / "note.txt").write_text("Paris is the capital of France.\n")
        to = tmp_path / "docs.jsonl"
        result = command("annotate", str(tmp_path / "note.txt"), "--to", str(to), "--workers", "1")
        assert result.returncode == 0 and "linking to the bundled world" in result.stderr
        [document] = read_documents(to)
        assert "Q142" in {mention.id for mention in document.mentions}

    def test_python_functions_take_it(self, cache: Path, tmp_path: Path) -> None:
        assert kglm.export_graph("world", tmp_path / "all.tsv")["facts"] > len(SMALL.facts)


def test_the_world_of_the_package_is_what_its_record_says() -> None:
    shown = world.about()
    packed = PackedWorld((bundled.WIKIDATA / world.PACKED).read_bytes())
    labels = {entity.id: entity.label for entity in packed.entities()}
    assert packed.fact_count == shown.facts > 400_000
    assert (
        sum(not id.startswith("P") for id in labels) == shown.entities == sum(k.entities for k in shown.kinds) > 95_000
    )
    assert sum(file.stat().st_size for file in bundled.WIKIDATA.iterdir()) < 8 << 20
    assert labels["Q31"] == "Belgium" and labels["Q76"] == "Barack Obama"

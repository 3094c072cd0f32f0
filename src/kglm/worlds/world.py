"""The bundled world as a graph file: unpacked into the user's cache folder when it is first used.

    CACHE/worlds/FORMAT-HASH/
        world.kg            the graph, with its arrays, its index of names and its checksums beside it
        read-only.txt       says how to get a copy that can be edited; no edit of the graph is possible here

The hash is that of the packed file, so each version of the world has its own directory. The directory is complete or
absent. Opening it compares every byte of the graph with its checksum; a damaged one is unpacked again.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from xxhash import xxh3_64

from kglm import bundled
from kglm.errors import DamagedError, DataError, KglmError
from kglm.files import atomic_directory, atomic_file, exclusive, sync_directory, writing
from kglm.files.artefact import Artefact
from kglm.files.atomic import sync_file
from kglm.files.user_cache import cache_folder, cached
from kglm.kg.compiled import compile_store, open_compiled
from kglm.kg.graph import JOURNAL_LIMIT, KnowledgeGraph
from kglm.kg.seals import ImportRecord
from kglm.kg.staging import Staging
from kglm.kg.store import READ_ONLY, Store
from kglm.linking.name_index import NameIndex
from kglm.progress import progress
from kglm.worlds.columns import FACTS_A_BATCH, PackedWorld
from kglm.worlds.records import About

NAME = "world"
"""The word that stands for the bundled world wherever a graph is asked for."""
FORMAT = 1
"""Changes when the same packed file would give another graph."""
PACKED, ABOUT, GRAPH = "world.zst", "about.json", "world.kg"
INSTALL_AGAIN = "install kglm again"
COPY = "kglm world --to my.kg"
_NOTE = f"""This graph came with kglm and is made again if it changes. To edit it, copy it: {COPY}
"""


def about() -> About:
    """What the bundled world has: counts, date, sources, licence."""
    return _packed().record(ABOUT, About)


def world_path() -> Path:
    """Path of the graph file of the bundled world; unpacks it first if that has not been done."""
    return cached(_cache_name(), _checked, _unpack, what="the bundled world")


def open_world() -> KnowledgeGraph:
    """The bundled world, opened for reading; unpacks it first if that has not been done."""
    return KnowledgeGraph.open(world_path())


def world_home() -> Path:
    """The directory for the graph of the bundled world, whether it exists or not."""
    name = _cache_name()
    return cache_folder(name) / name


def _cache_name() -> str:
    packed = _packed()
    if packed.manifest is None:
        raise DamagedError("has no manifest of checksums", place=packed.home, remedy=INSTALL_AGAIN)
    with (packed.home / PACKED).open("rb") as stream:
        return f"worlds/{FORMAT}-{xxh3_64(stream.read()).hexdigest()}"


def graph_path(name: str | Path) -> Path:
    """The path of a graph: the bundled world if `name` is "world" and there is no such file, else `name` itself."""
    path = Path(name)
    return world_path() if str(name) == NAME and not path.exists() else path


def default_graph() -> Path:
    """The graph to use when none is named and no run has one: the bundled world."""
    return world_path()


def copy_world(to: str | Path, *, replace: bool = False) -> Path:
    """Write a copy of the bundled world that can be edited, with its arrays and its index of names."""
    source, target = world_path(), Path(to)
    if target.is_dir():
        raise KglmError("is a directory", place=target, remedy="choose another name")
    with exclusive(f"{target}.lock", "another process is writing this graph"):
        if target.exists() and not replace:
            raise KglmError("exists already", place=target, remedy="choose another name, or use --force")
        with writing(target), source.open("rb") as stream, atomic_file(target) as copy:
            shutil.copyfileobj(stream, copy, 1 << 20)
        with Store.open(target) as store:
            open_compiled(store, journal_limit=JOURNAL_LIMIT)
        with KnowledgeGraph.open(target) as graph:
            NameIndex.for_graph(graph)
    return target


def _packed() -> Artefact:
    if not bundled.WIKIDATA.is_dir():
        raise DataError("does not exist", place=bundled.WIKIDATA, remedy=INSTALL_AGAIN)
    return Artefact.open(bundled.WIKIDATA, INSTALL_AGAIN)


def _checked(home: Path) -> Path:
    """The graph in `home`; raises an error if it is incomplete, or if a byte of it differs from its checksum."""
    if not (home / READ_ONLY).exists():
        raise DamagedError("is incomplete", place=home)
    with Store.open(home / GRAPH) as store:
        store.check()
    return home / GRAPH


def _unpack(home: Path) -> None:
    print(f"note: unpacking the bundled world into {home}, once", file=sys.stderr)
    packed = PackedWorld(_packed().read(PACKED))
    with atomic_directory(home) as directory:
        write_graph(packed, directory / GRAPH)
        with (directory / READ_ONLY).open("wb") as stream:
            stream.write(_NOTE.encode())
            sync_file(stream)
        sync_directory(directory)


def write_graph(packed: PackedWorld, target: Path) -> None:
    """Write the graph file of a packed world, its arrays and its index of names."""
    steps = 1 + -(-packed.fact_count // FACTS_A_BATCH) + Staging.STEPS + 2
    staging = Staging(target, {"world": FORMAT})
    try:
        with progress("unpacking the bundled world", steps, "steps") as advance:
            for batch in packed.batches():
                staging.add(batch, 0, offset=0, line=1)
                advance()
            staging.finish(ImportRecord(f"{FORMAT:016x}", {}, []), "en", near=None, hops=0, advance=advance)
            with Store.open(target) as store:
                compile_store(store)
            advance()
            with KnowledgeGraph.open(target) as graph:
                NameIndex.for_graph(graph)
            advance()
    finally:
        staging.close()

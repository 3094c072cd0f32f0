"""Readers of files of one's own, of bulk edits and of exports."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from benchmarks.faults import own_samples as own
from benchmarks.faults.mutations import (
    TYPES,
    Mutation,
    mutate_fields,
    mutate_json,
    mutate_json_lines,
    mutate_markup,
)
from benchmarks.faults.reader import Reader, file_reader, together
from benchmarks.faults.samples import FACTS

from kglm.kg.describe import describe
from kglm.kg.export import WRITERS, export_graph
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.importers.records import ImportOptions, OwnOptions
from kglm.kg.imports import import_graph

IMPORTED = 0.1
"""Share of the files that are imported into a graph."""
EXPORTED = 0.2
"""Share of the graphs that are exported, imported again and compared."""
OPTIONS = (
    OwnOptions(),
    OwnOptions(skip_bad_lines=True),
    OwnOptions(skip_bad_lines=True, header=False),
    OwnOptions(skip_bad_lines=True, header=True, split="", kinds=("file-name",)),
    OwnOptions(skip_bad_lines=True, decimal="comma", types=(("employees", "quantity"), ("height", "quantity:m:comma"))),
    OwnOptions(skip_bad_lines=True, decimal="point", types=(("employer", "text"), ("birth date", "date:mdy"))),
    OwnOptions(skip_bad_lines=True, types=(("founded", "entity"), ("id", "id"), ("revenue", "money:USD"))),
    OwnOptions(skip_bad_lines=True, delimiter=";"),
)
"""Options that an input may be read with; valid samples are read with the first."""
ROWS = ("entity", "name", "relation", "fact", "qualifier", "source", "redirect")


def import_and_compare(source: Path, kg: Path, *, generator: random.Random, format: str | None = None,
                       options: ImportOptions | None = None) -> None:  # fmt: skip
    """Import a file and show the graph; for a share of the graphs, an export of it must give the same graph."""
    import_graph([source], kg, format=format, options=options, workers=1, replace=True)
    with KnowledgeGraph.open(kg, whole=True) as graph:
        for number in range(min(len(graph), 20)):
            describe(graph, number)
        graph.search("Ada")
    if generator.random() >= EXPORTED:
        return
    ending = generator.choice(sorted(WRITERS))
    file, again = kg.with_name(f"{kg.stem} export{ending}"), kg.with_name(f"{kg.stem} again.kg")
    export_graph(kg, file)
    formats = {".tsv": "facts", ".jsonl": "jsonl", ".nt": "ntriples"}
    import_graph([file], again, format=formats[ending], workers=1, replace=True)
    if content(again) != content(kg):
        raise RuntimeError(f"the export as {ending} is another graph")


def content(kg: Path) -> list[object]:
    """The rows of a graph, without the record of its import."""
    connection = sqlite3.connect(kg)
    try:
        rows: list[object] = [connection.execute(f"SELECT * FROM {table}").fetchall() for table in ROWS]
        types = "SELECT * FROM meta WHERE key LIKE 'datatype%'"
        return [*rows, connection.execute(types).fetchall()]
    finally:
        connection.close()


def table(suffix: str, samples: Sequence[bytes], mutate: Mutation, home: Path, format: str | None = None) -> Reader:
    """Files in any of the formats that are read together; for a share of the inputs the whole import."""
    from kglm.kg.importers.formats import describe_source
    from kglm.kg.importers.own import FORMATS, read_own

    def read(path: Path) -> None:
        data = path.read_bytes()
        generator = random.Random(data)
        choice = OPTIONS[0] if data in samples else generator.choice(OPTIONS)
        options = ImportOptions(own=choice)
        source = describe_source(path, options, format)
        if source.format in FORMATS:
            read_own([source])
        if generator.random() < IMPORTED or data in samples:
            import_and_compare(path, home / "own.kg", generator=generator, format=format, options=options)

    return Reader(samples, mutate, file_reader(home, f"own{suffix}", read))


def exports(ending: str, mutate: Mutation, home: Path) -> Reader:
    """What `kglm kg export` wrote, with and without an error."""
    wide, triples = home / "wide.csv", home / "triples.csv"
    wide.write_bytes(own.WIDE)
    triples.write_bytes(own.TRIPLES)
    samples = []
    facts = home / "facts.tsv"
    facts.write_bytes(FACTS)
    for name, sources in (("own", [wide, triples]), ("facts", [facts])):
        import_graph(sources, home / f"{name}.kg", workers=1, replace=True)
        export_graph(home / f"{name}.kg", home / f"{name}{ending}")
        samples.append((home / f"{name}{ending}").read_bytes())

    def read(path: Path) -> None:
        generator = random.Random(path.read_bytes())
        import_and_compare(path, home / "export.kg", generator=generator)

    return Reader(samples, mutate, file_reader(home, f"export{ending}", read))


def edits(home: Path) -> Reader:
    """Tables of edits, with and without new names; the edits are made in a fork."""
    from kglm.kg.requests import read_requests, resolve_requests

    source = home / "works.csv"
    source.write_bytes(own.WIDE)
    import_graph([source], home / "works.kg", workers=1, replace=True)
    graph = KnowledgeGraph.open(home / "works.kg")

    def read(path: Path) -> None:
        generator = random.Random(path.read_bytes())
        types = generator.choice(({}, {}, {"supplier": "text"}, {"employees": "text"}, {"height": "quantity:m"}))
        create = path.read_bytes() == own.EDITS or generator.random() < 0.7
        resolved = resolve_requests(graph, read_requests(path), create=create, types=types)
        fork = graph.fork()
        fork.edit(resolved)
        for number in range(min(len(graph), len(fork)), len(fork)):
            fork.names(number)
            fork.edges(number)

    return Reader([own.EDITS], mutate_fields(","), file_reader(home, "edits.csv", read), graph.close)


def types(home: Path) -> Reader:  # noqa: ARG001
    """`--type RELATION=TYPE`, and values that are read by it: a line each."""
    from kglm.cli.graph_edit import named_type
    from kglm.errors import KglmError
    from kglm.kg.literals.column_types import ColumnType
    from kglm.kg.literals.columns import infer
    from kglm.kg.literals.literal import canonical_literal, render_literal

    def mutate(data: bytes, rng: random.Random) -> bytes:
        if rng.random() < 0.3:
            _, _, rest = data.partition(b"\n")
            return b"height=" + rng.choice(TYPES).encode("utf-8", "surrogatepass") + b"\n" + rest
        return mutate_fields(rng.choice((" ", ":", "\n")))(data, rng)

    def read(data: bytes) -> None:
        first, *values = data.decode("utf-8", "replace").split("\n")
        name, text = named_type(first)
        refused: KglmError | None = None
        try:
            infer(name, values or [""], is_entity=lambda text: text == "Ada")
        except KglmError as error:
            refused = error
        type = ColumnType.parse(text)
        if ColumnType.parse(str(type)) != type:
            raise RuntimeError(f"{type} is another type after printing")
        for value in values:
            try:
                id = type.read(value)
            except KglmError as error:
                refused = error
                continue
            if id is not None:
                render_literal(id)
                if canonical_literal(id) != id:
                    raise RuntimeError(f"{value!r} as {type} is {id!r}, which is not canonical")
        if refused:
            raise refused

    samples = [text.encode() for text in own.TYPED]
    return Reader(samples, mutate, read)


_TABLES = {
    "CSV": partial(table, ".csv", [own.WIDE, own.TRIPLES], mutate_fields(",")),
    "semicolons": partial(table, "s.csv", [own.WIDE_WITH_KEYS], mutate_fields(";")),
    "TSV": partial(table, ".tsv", [own.BARE_TRIPLES, own.TRIPLES.replace(b",", b"\t")], mutate_fields("\t")),
}
_NEO4J = {
    "nodes": partial(table, "n.csv", [own.NODES], mutate_fields(",")),
    "relationships": partial(table, "r.csv", [own.RELATIONSHIPS], mutate_fields(",")),
    "APOC": partial(table, "a.csv", [own.APOC], mutate_fields(",")),
}
_JSON = {
    "lines": partial(table, ".jsonl", [own.OBJECTS], mutate_json_lines),
    "array": partial(table, ".json", [own.OBJECT_ARRAY], mutate_json),
}
_RDF = {
    "Turtle": partial(table, ".ttl", [own.TURTLE], mutate_fields(" ")),
    "TriG": partial(table, ".trig", [own.TRIG], mutate_fields(" ")),
    "N-Triples": partial(table, "o.nt", [own.OWN_NTRIPLES], mutate_fields(" ")),
    "N-Quads": partial(table, ".nq", [own.NQUADS], mutate_fields(" ")),
    "RDF/XML": partial(table, ".rdf", [own.RDFXML], mutate_markup),
    "JSON-LD": partial(table, ".jsonld", [own.JSONLD], mutate_json),
}
_EXPORTS = {
    "TSV": partial(exports, ".tsv", mutate_fields("\t")),
    "JSON lines": partial(exports, ".jsonl", mutate_json_lines),
    "N-Triples": partial(exports, ".nt", mutate_fields(" ")),
}
OWN_READERS: dict[str, Callable[[Path], Reader]] = {
    "own: tables": partial(together, _TABLES),
    "own: JSON": partial(together, _JSON),
    "own: Neo4j": partial(together, _NEO4J),
    "own: exports": partial(together, _EXPORTS),
    "edits: table": edits,
    "types of columns": types,
}
if find_spec("pyoxigraph"):
    OWN_READERS["own: RDF"] = partial(together, _RDF)

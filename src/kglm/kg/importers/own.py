"""Read all files of one's own of an import together, because the type of a relation depends on all its values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from kglm.errors import ConfigError, DataError
from kglm.kg.importers.neo4j import read_neo4j
from kglm.kg.importers.objects import read_objects
from kglm.kg.importers.rdf import SYNTAXES, read_rdf
from kglm.kg.importers.records import OwnOptions, Source
from kglm.kg.importers.statements import Assembled, Reading, assemble
from kglm.kg.importers.tables import Shape, TableOptions, read_table
from kglm.kg.literals.column_types import ColumnType

SHAPES: dict[str, Shape | None] = {"csv": None, "triples": "triples", "table": "table"}
FORMATS = (*SHAPES, "objects", "neo4j", *SYNTAXES)
FILE_NAME = "file-name"


class BadLinesError(DataError):
    """Lines of a table that cannot be read; nothing was imported."""

    def __init__(self, problems: list[str]) -> None:
        lines = "1 line" if len(problems) == 1 else f"{len(problems):,} lines"
        super().__init__(
            f"{lines} cannot be read, so nothing was imported: {problems[0]}",
            remedy="correct them, or import the others with --skip-bad-lines",
        )
        self.problems = problems


def read_own(sources: Iterable[Source]) -> tuple[Assembled, list[str]]:
    """Records of each file, and notes on how it was understood. Raises BadLinesError if a line cannot be read."""
    sources = list(sources)
    options = sources[0].options.own
    types = {name: ColumnType.parse(text) for name, text in options.types}
    keys = frozenset(" ".join(name.casefold().replace("_", " ").split()) for name, type in types.items()
                     if type.kind == "id")  # fmt: skip
    kind_of = _kinds(options, [source.path for source in sources])
    reading = Reading()
    for source in sources:
        if source.format in SHAPES:
            table = TableOptions(SHAPES[source.format], options.header, options.delimiter, keys, kind_of(source.path))
            read_table(source.path, table, reading)
        elif source.format == "objects":
            read_objects(source.path, reading, kind_of(source.path))
        elif source.format == "neo4j":
            read_neo4j(source.path, reading, options.delimiter)
        else:
            read_rdf(source.path, source.format, source.options, reading)
    types = {name: type for name, type in types.items() if type.kind != "id"}
    paths = [source.path for source in sources]
    assembled = assemble(reading, paths, types, mark=options.decimal, split=options.split)
    if assembled.wrong and not options.skip_bad_lines:
        raise BadLinesError([str(wrong) for wrong in assembled.wrong])
    for wrong in assembled.wrong:
        batch = assembled.batches[wrong.place.path]
        batch.skip("line that cannot be read")
        batch.problems.append((wrong.place.line, f"{wrong.what}; {wrong.remedy}"))
    return assembled, reading.notes


def _kinds(options: OwnOptions, paths: list[str]) -> Callable[[str], str | None]:
    """What the entities of each file are instances of."""
    by_name: dict[str, str] = {}
    for text in options.kinds:
        file, equals, kind = text.partition("=")
        if not equals and text != FILE_NAME:
            raise ConfigError(f"{text!r} is no kind", remedy=f'give "FILE=KIND", or "{FILE_NAME}"')
        if equals and Path(file).name not in {Path(path).name for path in paths}:
            raise ConfigError(f"{file!r} is not imported", remedy="name one of the files of this import")
        if equals:
            by_name[Path(file).name] = kind.strip()

    def kind_of(path: str) -> str | None:
        name = Path(path).name
        return by_name.get(name, name.partition(".")[0].replace("_", " ") if FILE_NAME in options.kinds else None)

    return kind_of

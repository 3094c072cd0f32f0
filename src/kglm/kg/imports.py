"""Import files of any supported format into a graph: `kglm kg import SOURCE… --to KG`.

The format is detected from the content. Line-based files are cut into blocks that several processes parse in parallel.
Blocks are stored in file order, so the result is the same for any number of workers and for a resumed import.
"""

from __future__ import annotations

import codecs
import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from functools import partial
from pathlib import Path

import msgspec

from kglm.errors import DataError, KglmError
from kglm.files import Block, digest_of, exclusive, read_blocks, reading
from kglm.kg.compiled import compile_store, open_compiled
from kglm.kg.graph import JOURNAL_LIMIT
from kglm.kg.importers.authors import read_authors
from kglm.kg.importers.kgtk import REQUIRED as KGTK_COLUMNS
from kglm.kg.importers.kgtk import parse_kgtk
from kglm.kg.importers.ntriples import parse_ntriples
from kglm.kg.importers.records import Batch, ImportOptions, Source
from kglm.kg.importers.table import parse_facts, parse_jsonl, parse_redirects, parse_relations
from kglm.kg.importers.wikidata import parse_dump
from kglm.kg.seals import BlockChecks, ImportRecord
from kglm.kg.staging import Staging, remove_staging
from kglm.kg.store import Store
from kglm.packed import open_binary
from kglm.parallel import available_cores, ordered_map
from kglm.progress import progress

BLOCK_BYTES = 4 << 20
PARALLEL_FROM = 24 << 20
"""Size in bytes from which several processes parse a source; for compressed files, an eighth of it."""
PROBLEMS_SHOWN = 10

Parser = Callable[[bytes, int, Source], Batch]
PARSERS: dict[str, Parser] = {
    "wikidata": parse_dump,
    "kgtk": parse_kgtk,
    "ntriples": parse_ntriples,
    "facts": parse_facts,
    "jsonl": parse_jsonl,
    "relations": parse_relations,
    "redirects": parse_redirects,
}
AUTHORS = "authors"
FORMATS = (*PARSERS, AUTHORS)


@dataclass(slots=True)
class ImportReport:
    """Counts and problems of an import."""

    facts: int
    entities: int
    aliases: int
    relations: int
    duplicates: int
    skipped: dict[str, int]
    seconds: float
    problems: list[str] = field(default_factory=list)
    """The first problems, each with file and line."""
    resumed: bool = False
    already_done: bool = False
    """True if the same import had written this graph before; then nothing was imported."""
    edits: int = 0
    """Edits of the graph since it was imported."""


def import_graph(
    sources: Sequence[str | Path],
    to: str | Path,
    *,
    entities: Sequence[str | Path] = (),
    relations: Sequence[str | Path] = (),
    redirects: Sequence[str | Path] = (),
    near: Iterable[str] | None = None,
    hops: int = 2,
    format: str | None = None,
    options: ImportOptions | None = None,
    workers: int | None = None,
    replace: bool = False,
) -> ImportReport:
    """Build the graph file `to`. Until the import is complete, its data is in `to`.partial.

    With `near` (entity ids), only entities within `hops` facts of them are imported.
    """
    started = time.monotonic()
    options = options or ImportOptions()
    target = Path(to)
    if target.is_dir():
        raise KglmError("is a directory", place=target, remedy="choose another name")
    jobs = [describe_source(path, options, format) for path in sources]
    jobs += [describe_source(path, options, "jsonl") for path in entities]
    jobs += [describe_source(path, options, "relations") for path in relations]
    jobs += [describe_source(path, options, "redirects") for path in redirects]
    if not jobs:
        raise KglmError("nothing to import", remedy="name at least one source")
    seeds = None if near is None else sorted(set(near))
    sources_key = {"version": 2, "sources": [_fingerprint(job) for job in jobs]}
    key = digest_of([json.dumps(sources_key, sort_keys=True), repr((seeds, hops))])
    with exclusive(f"{target}.lock", "another import is writing this graph"):
        if target.exists() and not replace:
            report = _finished(target, sources_key, key)
            report.seconds = round(time.monotonic() - started, 3)
            return report
        staging = Staging(target, sources_key)
        try:
            report = _import(staging, jobs, workers or available_cores(), seeds, hops, key)
        except DataError:
            staging.discard()  # the sources must change first, so there is nothing to resume
            raise
        finally:
            staging.close()
    report.seconds = round(time.monotonic() - started, 3)
    return report


def _finished(target: Path, sources: dict[str, object], key: str) -> ImportReport:
    """Report of the import that wrote `target`, if it was this one; what it left when it was killed is removed."""
    with Store.open(target) as store:
        record = BlockChecks(target).imported()
        if record is None or record.key != key:
            raise KglmError("exists already", place=target, remedy="choose another name, or use --replace")
        remove_staging(target, sources)
        open_compiled(store, journal_limit=JOURNAL_LIMIT)
        return replaced(_report(store, record), already_done=True, edits=store.generation)


def _report(store: Store, record: ImportRecord) -> ImportReport:
    counts = store.counts()
    return ImportReport(
        facts=counts["facts"],
        entities=counts["entities"],
        aliases=counts["aliases"],
        relations=counts["relations"],
        duplicates=record.duplicates,
        skipped=record.skipped,
        seconds=0.0,
        problems=record.problems,
    )


def _import(
    staging: Staging, jobs: list[Source], workers: int, near: list[str] | None, hops: int, key: str
) -> ImportReport:
    for number, job in enumerate(jobs):
        _stage(staging, number, job, workers)
    skipped = dict(staging.skipped())
    problems = [f"{jobs[n].path}, line {line}: {what}" for n, line, what in staging.problems(PROBLEMS_SHOWN)]
    if not staging.fact_count():
        hint = problems[0] if problems else "; ".join(f"{count} × {what}" for what, count in skipped.items())
        raise DataError(
            "no fact found in the sources", place=staging.target, remedy=f"first problem: {hint or 'they are empty'}"
        )
    with progress("writing the graph", staging.STEPS + 1, "steps") as advance:
        record = ImportRecord(key, skipped, problems)
        duplicates = staging.finish(record, jobs[0].options.language, near=near, hops=hops, advance=advance)
        with Store.open(staging.target) as store:
            compile_store(store)
            report = _report(store, msgspec.structs.replace(record, duplicates=duplicates))
        advance()
    return replaced(report, resumed=staging.resumed)


def describe_source(path: str | Path, options: ImportOptions, format: str | None = None) -> Source:
    """Detect the format of a file from its first lines."""
    if format is not None and format not in FORMATS:
        raise KglmError(f"unknown format {format!r}", remedy=f"use one of {', '.join(FORMATS)}")
    with reading(path), open_binary(path) as stream:
        start = stream.read(1 << 16)
    if not start.strip():
        raise DataError("is empty", place=path, remedy="name a file with facts")
    number, first = _first_line(start)
    columns = tuple(first.decode("utf-8", "replace").split("\t"))
    if format is None:
        format = _sniff(start, first, columns)
    if format is None:
        raise DataError(
            "has an unknown format",
            place=path,
            remedy=f"give --format, one of {', '.join(FORMATS)}",
        )
    if format == "kgtk" and not set(KGTK_COLUMNS) <= set(columns):
        raise DataError(f"has no columns {', '.join(KGTK_COLUMNS)}", place=f"{path}, line {number}")
    return Source(str(path), format, options, *((columns, number) if format == "kgtk" else ()))


def _first_line(start: bytes) -> tuple[int, bytes]:
    """Number and content of the first line that is neither blank nor a comment."""
    for number, line in enumerate(start.removeprefix(codecs.BOM_UTF8).split(b"\n"), 1):
        if line.strip() and not line.startswith(b"#"):
            return number, line.strip(b"\r")
    return 1, b""


def _sniff(start: bytes, first: bytes, columns: tuple[str, ...]) -> str | None:
    if start[:1] == b"\x80" or start[:2] in (b"(d", b"cc"):
        return AUTHORS
    if set(KGTK_COLUMNS) <= set(columns):
        return "kgtk"
    if first.startswith((b"<", b"_:")):
        return "ntriples"
    if first.startswith(b"["):
        return "wikidata"
    if first.startswith(b"{"):
        return "wikidata" if b'"claims"' in start or b'"labels"' in start else "jsonl"
    return "facts" if len(columns) in (3, 4) else None


def _fingerprint(source: Source) -> dict[str, object]:
    """Properties of a source that must be unchanged for an import to resume."""
    stat = Path(source.path).stat()
    options = source.options
    return {
        "path": str(Path(source.path).absolute()),
        "size": stat.st_size,
        "modified": stat.st_mtime_ns,
        "format": source.format,
        "options": [options.language, options.mint_ids, options.iso_years],
    }


def _stage(staging: Staging, number: int, source: Source, workers: int) -> None:
    offset, line, done = staging.progress(number)
    if done:
        return
    if source.format == AUTHORS:
        _stage_authors(staging, number, source)
        return
    size = Path(source.path).stat().st_size
    blocks = _SentBlocks(read_blocks(source.path, BLOCK_BYTES, offset=offset, first_line=line))
    big = size >= PARALLEL_FROM or (_is_packed(source.path) and size >= PARALLEL_FROM // 8)
    results = ordered_map(partial(_parse, source), blocks, workers=workers if big else 1)
    with progress(f"reading {Path(source.path).name}", size, "B") as advance:
        consumed = 0
        for batch in results:
            block = blocks.sent.popleft()
            offset, line = block.next_offset, block.next_line
            staging.add(batch, number, offset=offset, line=line)
            advance(block.consumed - consumed)
            consumed = block.consumed
    staging.add(Batch(), number, offset=offset, line=line, done=True)


class _SentBlocks:
    """Iterate over blocks and record in `sent`, without its data, each block given to the workers."""

    def __init__(self, blocks: Iterator[Block]) -> None:
        self._blocks = blocks
        self.sent: deque[Block] = deque()

    def __iter__(self) -> Iterator[Block]:
        for block in self._blocks:
            self.sent.append(replaced(block, data=b""))
            yield block


def _parse(source: Source, block: Block) -> Batch:
    return PARSERS[source.format](block.data, block.first_line, source)


def _stage_authors(staging: Staging, number: int, source: Source) -> None:
    """Read the whole file again on resume, and skip the batches that are already staged."""
    done, _, _ = staging.progress(number)
    count = 0
    for count, batch in enumerate(read_authors(source), 1):
        if count > done:
            staging.add(batch, number, offset=count, line=1)
    staging.add(Batch(), number, offset=count, line=1, done=True)


def _is_packed(path: str) -> bool:
    return Path(path).suffix in (".gz", ".bz2", ".zst")

"""Import files of any supported format into a graph: `kglm kg import SOURCE… --to KG`.

The format is detected from the content. Line-based files are cut into blocks that several processes parse in parallel.
Blocks are stored in file order, so the result is the same for any number of workers and for a resumed import.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from functools import partial
from pathlib import Path

import msgspec

from kglm.errors import DataError, KglmError
from kglm.files import Block, digest_of, exclusive, read_blocks
from kglm.kg.compiled import compile_store, open_compiled
from kglm.kg.graph import JOURNAL_LIMIT
from kglm.kg.importers.authors import read_authors
from kglm.kg.importers.formats import AUTHORS, PARSERS, describe_source
from kglm.kg.importers.own import FORMATS as OWN_FORMATS
from kglm.kg.importers.own import read_own
from kglm.kg.importers.records import Batch, ImportOptions, OwnOptions, Source
from kglm.kg.importers.statements import Assembled, RelationSummary
from kglm.kg.seals import BlockChecks, ImportRecord
from kglm.kg.staging import Staging, remove_staging
from kglm.kg.store import Store
from kglm.parallel import available_cores, ordered_map
from kglm.progress import progress

BLOCK_BYTES = 4 << 20
PARALLEL_FROM = 24 << 20
"""Size in bytes from which several processes parse a source; for compressed files, an eighth of it."""
PROBLEMS_SHOWN = 10


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
    notes: list[str] = field(default_factory=list)
    """How each file of one's own was understood."""
    types: list[RelationSummary] = field(default_factory=list)
    """What was understood of each relation of files of one's own."""


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
    own = [job for job in jobs if job.format in OWN_FORMATS]
    assembled, notes = read_own(own) if own else (Assembled({}, [], []), [])
    for number, job in enumerate(jobs):
        _stage(staging, number, job, workers, assembled.batches)
    skipped = dict(staging.skipped())
    shown = PROBLEMS_SHOWN + len(assembled.wrong)
    problems = [f"{jobs[n].path}, line {line}: {what}" for n, line, what in staging.problems(shown)]
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
    return replaced(report, resumed=staging.resumed, notes=notes, types=assembled.relations)


def _fingerprint(source: Source) -> dict[str, object]:
    """Properties of a source that must be unchanged for an import to resume."""
    stat = Path(source.path).stat()
    options = source.options
    own = [] if options.own == OwnOptions() else [repr(options.own)]
    return {
        "path": str(Path(source.path).absolute()),
        "size": stat.st_size,
        "modified": stat.st_mtime_ns,
        "format": source.format,
        "options": [options.language, options.mint_ids, options.iso_years, *own],
    }


def _stage(staging: Staging, number: int, source: Source, workers: int, own: dict[str, Batch]) -> None:
    offset, line, done = staging.progress(number)
    if done:
        return
    if source.path in own and source.format in OWN_FORMATS:
        staging.add(own[source.path], number, offset=0, line=1, done=True)
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

"""Annotate collections of articles into one file of linked documents, by one process, several, or a Ray cluster.

Articles are processed in shards of `SHARD`, in the order of the sources. Each shard is written atomically to its own
file, `DOCS.parts/00042.jsonl`; a run that was killed resumes with the missing shards. At the end the shards are
concatenated. The result is the same byte for byte for any number of workers. An article that cannot be annotated is
skipped and listed in the report.
"""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from kglm.annotate.annotator import AnnotateConfig, Annotator
from kglm.annotate.prune import prune_file
from kglm.errors import ConfigError, DataError, KglmError, ServiceError
from kglm.files import atomic_file, exclusive, exists, read_record, reading, remove_directory, write_json, writing
from kglm.files.records import Count
from kglm.kg.graph import KnowledgeGraph
from kglm.linking.anchors import Anchors
from kglm.linking.links import LinkResolver
from kglm.linking.name_index import NameIndex
from kglm.linking.redirects import Redirects, collect_redirects
from kglm.parallel import ordered_map
from kglm.progress import progress
from kglm.text.articles import RawArticle, ReadingReport, article_files, raw_articles
from kglm.text.document import to_line

SHARD = 20
"""Articles per shard."""
PRELOAD = ("spacy.lang.en",)
"""Modules that every worker imports at start."""
FORMAT = 1
FAILURES_KEPT = 100
SOURCE = "source "
"""Begins the names of the counts of mentions, by the source of the link."""


class Recipe(NamedTuple):
    """All settings that decide how an article is annotated; sent to every worker."""

    kg: str
    config: AnnotateConfig
    anchors: str | None = None
    lists: bool = False
    graph: str = ""
    """Hash of the graph when the run began; every worker must see the same graph."""
    redirects: str | None = None
    """Path of the table of redirects collected from the sources, once it exists."""


class Job(NamedTuple):
    """The articles of one shard, and how to annotate them."""

    recipe: Recipe
    number: int
    articles: tuple[RawArticle, ...]


@dataclass(frozen=True)
class Shard:
    """Result of a job."""

    number: int
    lines: bytes
    words: int
    documents: int
    counts: dict[str, int]
    failures: tuple[str, ...] = ()


class ShardRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`DOCS.parts/00042.json`: a finished shard without its documents."""

    number: Count
    words: Count
    documents: Count
    counts: dict[str, Count]
    failures: tuple[str, ...]


class RunRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`DOCS.parts/run.json`: identifies the run."""

    format: int
    digest: str


@dataclass
class AnnotateReport:
    """Result of a run."""

    documents: int = 0
    words: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    """The first `FAILURES_KEPT` articles that could not be read or annotated, with the reasons."""

    @property
    def mentions(self) -> int:
        """Number of mentions in all documents."""
        return sum(count for name, count in self.counts.items() if name.startswith(SOURCE))

    def add(self, shard: ShardRecord) -> None:
        """Add the counts of a finished shard."""
        self.documents += shard.documents
        self.words += shard.words
        self.counts.update(shard.counts)
        self.failures += shard.failures[: FAILURES_KEPT - len(self.failures)]


Runner = Callable[[Iterable[Job]], Iterator[Shard]]
"""Runs jobs and yields their results in the same order."""


def annotate_shard(job: Job) -> Shard:
    """Annotate one shard; runs in any process."""
    annotator = _annotator(job.recipe)
    annotator.counts.clear()
    report = ReadingReport()
    lines, words, failures = [], 0, []
    for raw in job.articles:
        article = raw.read(report, lists=job.recipe.lists)
        if article is None:
            continue
        try:
            document = annotator.annotate(article)
        except ServiceError:  # not the article's fault: stop the run, which can be resumed
            raise
        except Exception as error:  # one article must not end a run of hours: report it
            failures.append(f"{article.place or article.title}: {type(error).__name__}: {error}")
            report.skipped["failed"] += 1
            continue
        lines.append(to_line(document))
        words += len(document.tokens)
    counts = Counter(annotator.counts) + Counter({f"skipped: {why}": n for why, n in report.skipped.items()})
    return Shard(job.number, b"".join(lines), words, len(lines), dict(counts), (*report.problems, *failures))


def run_in_processes(
    jobs: Iterable[Job], workers: int, work: Callable[[Job], Shard] = annotate_shard
) -> Iterator[Shard]:
    """Run jobs in processes of this machine."""
    return ordered_map(work, jobs, workers=workers, preload=PRELOAD, on_death=lambda job: _one_by_one(job, work))


def _one_by_one(job: Job, work: Callable[[Job], Shard]) -> Shard:
    """Annotate a shard that killed its workers, article by article; skip and report those that kill again."""
    singles = [job._replace(articles=(article,)) for article in job.articles]
    shards = list(ordered_map(work, singles, workers=2, preload=PRELOAD, on_death=_fatal_article))
    return Shard(
        job.number,
        b"".join(shard.lines for shard in shards),
        sum(shard.words for shard in shards),
        sum(shard.documents for shard in shards),
        dict(sum((Counter(shard.counts) for shard in shards), Counter[str]())),
        tuple(failure for shard in shards for failure in shard.failures),
    )


def _fatal_article(job: Job) -> Shard:
    """Result for an article that kills its process: out of memory, or a fault in a library."""
    (article,) = job.articles
    failure = f"{article.place or article.title}: the process that annotated it was killed (out of memory?)"
    return Shard(job.number, b"", 0, 0, {"skipped: failed": 1}, (failure,))


@lru_cache(1)
def _annotator(recipe: Recipe) -> Annotator:
    """The annotator of this process, shared by all its shards."""
    anchors, redirects = (None if path is None else Path(path) for path in (recipe.anchors, recipe.redirects))
    annotator = Annotator.open(recipe.kg, recipe.config, anchors=anchors, redirects=redirects)
    if recipe.graph and annotator.graph.hash != recipe.graph:
        raise KglmError(
            "was edited since this run began",
            place=recipe.kg,
            remedy="undo the edit, or remove the .parts directory and start again",
        )
    return annotator


def annotate(
    sources: Sequence[Path],
    to: Path,
    recipe: Recipe,
    *,
    workers: int = 1,
    prune: bool = False,
    runner: Runner | None = None,
    force: bool = False,
) -> AnnotateReport:
    """Annotate all articles of the sources into one file; resume a run that was stopped.

    A stopped run with other sources or settings is an error; with `force`, its shards are removed.
    """
    parts = to.with_name(to.name + ".parts")
    report, left_out = AnnotateReport(), ReadingReport()
    files = _files(sources, to, parts, left_out)
    if to.is_dir() or to.resolve() in {Path(recipe.kg).resolve(), *(file.resolve() for file in files)}:
        raise ConfigError(f"--to {to} is a folder, the graph or a source", remedy="give another file")
    with KnowledgeGraph.open(recipe.kg, whole=True) as graph:  # report problems of the graph first
        NameIndex.for_graph(graph)  # build the cache before workers start
        recipe = recipe._replace(graph=graph.hash)
    digest = _digest(recipe, files)
    run = runner or (lambda jobs: run_in_processes(jobs, workers))
    with writing(parts):
        parts.mkdir(parents=True, exist_ok=True)
    with exclusive(parts / "lock", f"annotates into {to}"), _removed_if_empty(parts):
        done = _finished_shards(parts, digest, force)
        recipe = _with_redirects(recipe, files, parts / "redirects.db")
        words, source = 0, _Source(files, left_out)
        with progress("annotating", None, "tokens") as advance:
            for shard in run(_jobs(source, recipe, done)):
                _write(parts, shard)
                done.add(shard.number)
                words += shard.words
                advance(shard.words, words / source.share if source.share else None)
        for number in sorted(done):
            report.add(_shard_record(parts, number))
        report.counts.update({f"skipped: {why}": n for why, n in left_out.skipped.items()})
        report.failures += left_out.problems[: FAILURES_KEPT - len(report.failures)]
        if not report.documents and report.failures:
            raise DataError("no article could be annotated", place=files[0], remedy=f"first: {report.failures[0]}")
        with atomic_file(to) as stream:
            for number in sorted(done):
                with (parts / f"{number:05d}.jsonl").open("rb") as part:
                    shutil.copyfileobj(part, stream)
        if prune:
            for name in [name for name in report.counts if name.startswith(SOURCE)]:
                del report.counts[name]  # counted again by prune_file
            report.counts.update(prune_file(to, cutoff=recipe.config.story.cutoff))
        remove_directory(parts)
    return report


def remove_finished_parts(to: Path) -> None:
    """Remove the shards of a run that was ended after it had written `to`, but before it had removed them."""
    parts = to.with_name(to.name + ".parts")
    try:
        written = to.stat().st_mtime_ns
        shards = [path.stat().st_mtime_ns for path in parts.iterdir() if path.name != "lock"]
    except OSError:
        return  # there is no output, or there are no shards
    if max(shards, default=0) <= written:
        with exclusive(parts / "lock", f"annotates into {to}"):
            remove_directory(parts)


@contextmanager
def _removed_if_empty(parts: Path) -> Iterator[None]:
    """Remove the directory if the block fails before a shard with a document is finished: nothing can be resumed."""
    try:
        yield
    except Exception:
        if not any(path.stat().st_size for path in parts.glob("[0-9]*.jsonl")):
            remove_directory(parts)
        raise


def _with_redirects(recipe: Recipe, files: Sequence[Path], table: Path) -> Recipe:
    """The recipe with the table of redirects of the sources, if they contain any."""
    if not table.exists():
        collect_redirects(files, table)
    with closing(Redirects(table)) as redirects:
        return recipe._replace(redirects=str(table.absolute())) if redirects else recipe


def _files(sources: Sequence[Path], to: Path, parts: Path, left_out: ReadingReport) -> list[Path]:
    """All files of the sources, without the output of an earlier run."""
    found = [file for source in sources for file in article_files(source, left_out)]
    named = {source.resolve() for source in sources}
    ours = {to.resolve()} - named
    return [file for file in found if file.resolve() not in ours and parts.resolve() not in file.resolve().parents]


def count_anchors(sources: Sequence[Path], kg: Path, to: Path, *, lists: bool = False) -> Anchors:
    """Count link texts and their entities in the sources, and save the table."""
    anchors, left_out = Anchors(), ReadingReport()
    files = [file for source in sources for file in article_files(source)]
    with KnowledgeGraph.open(kg, whole=True) as graph, _redirects(files) as redirects:
        resolver = LinkResolver(graph, NameIndex.for_graph(graph), redirects)
        with progress("counting links", None, "articles") as advance:
            for raw in (raw for file in files for raw in raw_articles(file, left_out)):
                if (article := raw.read(left_out, lists=lists)) is not None:
                    for link in resolver.resolve(article, Counter()):
                        anchors.add(article.tokens[link.start : link.end], link.node)
                advance()
        anchors.save(to, graph)
    return anchors


@contextmanager
def _redirects(files: Sequence[Path]) -> Iterator[Redirects]:
    """Temporary table of the redirects of the files."""
    with TemporaryDirectory(prefix="kglm-") as folder:
        table = Path(folder) / "redirects.db"
        collect_redirects(files, table)
        with closing(Redirects(table)) as redirects:
            yield redirects


class _Source:
    """Iterates over the articles of files and tracks how much has been read."""

    def __init__(self, files: Sequence[Path], left_out: ReadingReport) -> None:
        self._files = files
        self._left_out = left_out
        self._size = sum(file.stat().st_size for file in files)
        self._before = 0

    def __iter__(self) -> Iterator[RawArticle]:
        for file in self._files:
            yield from raw_articles(file, self._left_out)
            self._before += file.stat().st_size
            self._left_out.consumed = 0

    @property
    def share(self) -> float:
        """Share of all bytes read so far, 0 to 1."""
        return (self._before + self._left_out.consumed) / max(self._size, 1)


def _jobs(source: Iterable[RawArticle], recipe: Recipe, done: set[int]) -> Iterator[Job]:
    """Jobs for the shards that are not done yet."""
    articles = iter(source)
    number = 0
    while batch := tuple(islice(articles, SHARD)):
        if number not in done:
            yield Job(recipe, number, batch)
        number += 1


def _write(parts: Path, shard: Shard) -> None:
    with atomic_file(parts / f"{shard.number:05d}.jsonl") as stream:
        stream.write(shard.lines)
    record = ShardRecord(shard.number, shard.words, shard.documents, shard.counts, shard.failures)
    write_json(parts / f"{shard.number:05d}.json", record)


def _shard_record(parts: Path, number: int) -> ShardRecord:
    """Counts of a finished shard."""
    path = parts / f"{number:05d}.json"
    remedy = "remove this file: the shard is annotated again"
    record = read_record(path, ShardRecord, remedy)
    if record.number != number:
        raise DataError(f"describes shard {record.number}", place=path, remedy=remedy)
    return record


def _shards(parts: Path) -> set[int]:
    """Numbers of the shards that are finished."""
    names = (path.stem for path in parts.glob("[0-9]*.json") if path.with_suffix(".jsonl").exists())
    return {int(name) for name in names if name.isascii() and name.isdecimal()}


def _finished_shards(parts: Path, digest: str, force: bool) -> set[int]:
    """Shards finished by an earlier start of the same run; another run is discarded if it has no documents.

    With `force`, it is discarded in any case.
    """
    manifest, shards = parts / "run.json", _shards(parts)
    if exists(manifest):
        remedy = "remove this directory to start again"
        if read_record(manifest, RunRecord, remedy) == RunRecord(FORMAT, digest):
            return shards
        if not force and any(_shard_record(parts, number).documents for number in shards):
            raise KglmError(
                "was begun with other sources or settings",
                place=parts,
                remedy="give the same ones, or start again with --force",
            )
    for path in parts.glob("[0-9]*.json*"):
        path.unlink()
    (parts / "redirects.db").unlink(missing_ok=True)
    write_json(manifest, RunRecord(FORMAT, digest))
    return set()


def _digest(recipe: Recipe, files: Sequence[Path]) -> str:
    """Digest of settings, graph and sources, which identifies a run."""
    sources = []
    for file in files:
        with reading(file):
            sources.append((str(file), file.stat().st_size, file.stat().st_mtime_ns))
    anchors = None if recipe.anchors is None else Path(recipe.anchors).read_bytes()
    identity = repr((asdict(recipe.config), recipe.graph, anchors, recipe.lists, sources, SHARD))
    return hashlib.blake2b(identity.encode(), digest_size=8).hexdigest()

"""python benchmarks/long_documents.py --kg KG --documents DOCS [--words 100000] [--json FILE] [--chart FILE.svg]

Compare the cost of one long document with that of ten documents of a tenth of its length: the same words in total.

The documents of DOCS are joined into one text, which is cut into documents of several lengths. Small models of the
graph, whose vectors must be trained, are trained on the ten documents. Each measurement is a process of its own, on one
thread: processor seconds per 1,000 words without loading, and the peak of its memory. Training reads one row of a batch
at a time, so that one document and ten take the same steps.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from kglm.evaluate.perplexity import Perplexity
from kglm.kg.graph import KnowledgeGraph
from kglm.marginal.estimate import MarginalConfig
from kglm.plots import Series, line_chart
from kglm.runs.run import Run, read_for_training
from kglm.runs.settings import RunConfig, load_config
from kglm.text.document import START, Document, Mention
from kglm.train.chunks import ChunkBuilder
from kglm.train.encoding import DocumentEncoder
from kglm.train.loop import Trainer
from table import print_table

PARTS = 10
"""Documents that are compared with the longest."""
METHODS = {
    "annotated": ("annotated", 1),
    "importance 2": ("importance", 2),
    "particle 2": ("particle", 2),
    "beam 2": ("beam", 2),
}
"""Method and samples."""
TRAINING = "training"
SIZES = ("encoder.embedding=64", "encoder.hidden=128", "encoder.layers=2", "train.rows=1", "train.epochs=1")
WARM_UP = 60
"""Words of the document that is scored before measuring."""


@dataclass(frozen=True)
class Case:
    """What one process measures: documents of `length` words."""

    method: str
    documents: Sequence[Document]
    length: int
    home: Path
    """Folder of the runs."""


@dataclass(frozen=True)
class Cost:
    """The result of a case."""

    words: int
    seconds: float
    """Processor seconds."""
    memory: float
    """Peak of the memory, in MiB."""
    grown: float
    """How much of it was not in use before the first document, in MiB."""

    @property
    def rate(self) -> float:
        """Seconds per 1,000 words."""
        return 1000 * self.seconds / self.words


def joined(documents: Iterable[Document], words: int) -> Document:
    """One document of the words and mentions of many."""
    tokens, mentions = [START], list[Mention]()
    for document in documents:
        first = 1 if document.tokens[:1] == [START] else 0
        shift = len(tokens) - first
        mentions += [m.moved(m.start + shift, m.end + shift) for m in document.mentions if m.start >= first]
        tokens += document.tokens[first:]
        if len(tokens) > words:
            return cut(Document("long", tokens, mentions), 0, words)
    raise SystemExit(f"the documents have {len(tokens) - 1:,} words in total: give more, or a smaller --words")


def cut(document: Document, start: int, end: int) -> Document:
    """Words [start, end) of a document, not counting its first token."""
    inside = [m for m in document.mentions if m.start > start and m.end <= end + 1]
    tokens = [START, *document.tokens[start + 1 : end + 1]]
    return Document(f"words {start}–{end}", tokens, [m.moved(m.start - start, m.end - start) for m in inside])


def settings(model: str) -> RunConfig:
    """Settings of the small models."""
    return load_config(None, model, [*SIZES, "train.threads=1"])


def train(run: Run, documents: Sequence[Document]) -> None:
    """Encode documents and train on them for an epoch."""
    encoder, config = DocumentEncoder.of(run), run.settings.train
    encoded = encoder.encode_all(documents, "encoding", counted=True, shown=False)
    check = encoder.encode_all([cut(documents[0], 0, WARM_UP)], "encoding", shown=False)
    Trainer(run.model, ChunkBuilder.of(run), encoded, check, config, run.home).fit()


def peak() -> float:
    """Peak of this process's memory so far, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # there, `getrusage` counts the memory of the parent process too
        [line] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(case: Case) -> Cost:
    """Measure a case, in this process."""
    torch.set_num_threads(1)
    warm_up = cut(case.documents[0], 0, WARM_UP)
    words = sum(len(document.tokens) - 1 for document in case.documents)
    with tempfile.TemporaryDirectory() as folder:
        if case.method == TRAINING:
            graph = KnowledgeGraph.open(Path((case.home / "graph.txt").read_text()))
            train(Run.create(Path(folder) / "warm-up", settings("kglm"), graph, [warm_up]), [warm_up])
            run = Run.create(Path(folder) / "run", settings("kglm"), graph, case.documents)
            before, started = peak(), time.process_time()
            train(run, case.documents)
        else:
            method, samples = METHODS[case.method]
            proposal = Run.open(case.home / "proposal") if method == "importance" else None
            config = MarginalConfig(samples=samples)
            scorer = Perplexity(Run.open(case.home / "kglm"), method, config, proposal)  # type: ignore[arg-type]
            scorer.score(warm_up)
            before, started = peak(), time.process_time()
            for document in case.documents:
                scorer.score(document)
        seconds = time.process_time() - started
    return Cost(words, seconds, peak(), peak() - before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kg", type=Path, required=True, help="the graph, with vectors")
    parser.add_argument("--documents", type=Path, required=True, help="annotated documents")
    parser.add_argument("--words", type=int, default=100_000, help="length of the longest document")
    parser.add_argument("--methods", nargs="+", choices=[*METHODS, TRAINING], default=[*METHODS, TRAINING])
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--chart", type=Path, help="draw seconds per 1,000 words by length")
    options = parser.parse_args()
    torch.set_num_threads(1)
    long = joined(read_for_training([options.documents]), options.words)
    part = options.words // PARTS
    parts = [cut(long, start * part, (start + 1) * part) for start in range(PARTS)]
    lengths = sorted({round(options.words * share) for share in (0.01, 0.03, 0.1, 0.3, 1.0)})
    results: dict[str, dict[str, Cost]] = {}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "graph.txt").write_text(str(options.kg.resolve()))
        for model in ("kglm", "proposal"):
            run = Run.create(home / model, settings(model), KnowledgeGraph.open(options.kg), parts)
            train(replace_rows(run, PARTS), parts)
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as pool:
            for method in options.methods:
                cases = {f"{length:,}": Case(method, [cut(long, 0, length)], length, home) for length in lengths}
                cases[f"{PARTS} × {part:,}"] = Case(method, parts, part, home)
                results[method] = {name: pool.submit(measured, case).result() for name, case in cases.items()}
                show(method, results[method])
                write(results, lengths, options.json, options.chart)  # after each method: the whole takes long
    compare(results, lengths)


def replace_rows(run: Run, rows: int) -> Run:
    """Let a run train on several documents at a time."""
    run.settings = replace(run.settings, train=replace(run.settings.train, rows=rows))
    return run


def show(method: str, costs: dict[str, Cost]) -> None:
    rows = [(name, cost.rate, cost.words / cost.seconds, cost.memory, cost.grown) for name, cost in costs.items()]
    print_table(("words", "s / 1,000 words", "words / s", "peak MiB", "of that new"), rows, title=method)


def compare(results: dict[str, dict[str, Cost]], lengths: Sequence[int]) -> None:
    """Print how one long document compares with its parts."""
    rows = []
    for method, costs in results.items():
        *_, one, ten = costs.values()
        rows.append((method, one.rate, ten.rate, one.rate / ten.rate, one.memory, ten.memory))
    columns = ("method", "one: s / 1,000 words", "ten", "ratio", "one: peak MiB", "ten")
    print_table(columns, rows, title=f"one document of {lengths[-1]:,} words against {PARTS} of a tenth")


def write(
    results: dict[str, dict[str, Cost]], lengths: Sequence[int], json_file: Path | None, chart: Path | None
) -> None:
    """Write the results so far to the files that are given."""
    if json_file is not None:
        values = {
            method: {name: vars(cost) | {"rate": cost.rate} for name, cost in costs.items()}
            for method, costs in results.items()
        }
        json_file.write_text(json.dumps(values, indent=1))
    if chart is not None:
        series = [
            Series(method, lengths, [costs[f"{length:,}"].rate for length in lengths])
            for method, costs in results.items()
        ]
        title = "Cost of a word by the length of the document"
        label = "words of the document"
        chart.write_text(line_chart(title, label, "seconds per 1,000 words", series, log_x=True, log_y=True))


if __name__ == "__main__":
    main()

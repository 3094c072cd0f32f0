"""Readers of what comes from elsewhere: articles, sources of graphs, typed facts, HTTP requests."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.faults.mutations import FIELDS, Mutation, mutate_bytes, mutate_fields, mutate_json
from benchmarks.faults.own import import_and_compare
from benchmarks.faults.reader import Reader, exhaust, file_reader
from benchmarks.faults.samples import FACTS
from benchmarks.faults.world import make_world

from kglm.errors import KglmError
from kglm.kg.graph import KnowledgeGraph

IMPORTED = 0.1
"""Share of the sources that are imported into a graph."""


def article(suffix: str, samples: Sequence[bytes], mutate: Mutation, home: Path) -> Reader:
    """A file of articles, read to the tokens, and its redirects."""
    from kglm.linking.redirects import Redirects, collect_redirects
    from kglm.text.articles import ReadingReport, read_articles, read_redirects

    def read(path: Path) -> None:
        report = ReadingReport()
        try:
            exhaust(read_articles(path, report=report))
            exhaust(read_redirects(path, report=report))
            collect_redirects([path], home / "redirects.db")
            with closing(Redirects(home / "redirects.db")) as redirects:
                redirects.get("A")
        finally:
            if report.skipped["failed"]:  # a report counts a bug of a parser, so that it does not stop an import
                raise RuntimeError(next(problem for problem in report.problems if "Error: " in problem))

    return Reader(samples, mutate, file_reader(home, f"article{suffix}", read))


def mutate_pickle(data: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.6:
        return mutate_bytes(data, rng)
    odd: tuple[Any, ...] = (*FIELDS, 1, None, 1.5, (), [], {}, b"x", ("P1",), [["a"], "b"], {"Q1": 1}, True)
    value = pickle.loads(data)
    key = rng.choice((*value, *odd[:-6]))
    if isinstance(key, str):
        value[key] = rng.choice(
            (rng.choice(odd), [rng.choice(odd)], [(rng.choice(odd), rng.choice(odd))], [[rng.choice(odd)]])
        )
    return pickle.dumps(value)


def importer(format: str, samples: Sequence[bytes], mutate: Mutation, home: Path) -> Reader:
    """The parser of a format; for a share of the inputs the whole import, which takes much longer."""
    from kglm.files import read_blocks
    from kglm.kg.importers.authors import read_authors
    from kglm.kg.importers.records import ImportOptions
    from kglm.kg.imports import BLOCK_BYTES, PARSERS, describe_source, import_graph

    facts = home / "facts.tsv"
    facts.write_bytes(FACTS)

    def read(path: Path) -> None:
        options = ImportOptions(mint_ids=path.read_bytes()[-1:] in b"\n ")
        further = {format: [path]} if format in ("relations", "redirects") else {}
        sources = [facts] if further else [path]
        source = describe_source(path, options, format)
        if format == "authors":
            exhaust(read_authors(source))
        else:
            for block in read_blocks(path, BLOCK_BYTES):
                PARSERS[format](block.data, block.first_line, source)
        if random.Random(path.read_bytes()).random() >= IMPORTED:
            return
        if further:
            import_graph(sources, home / f"{format}.kg", **further, options=options, workers=1, replace=True)  # type: ignore[arg-type]
        else:
            generator = random.Random(len(path.read_bytes()))
            import_and_compare(path, home / f"{format}.kg", generator=generator, format=format, options=options)

    return Reader(samples, mutate, file_reader(home, f"source.{format}", read))


def fact_strings(home: Path) -> Reader:
    """`kglm kg edit` facts, and dates and quantities as text and as ids."""
    from kglm.kg.literals.dates import Date, parse_date, render_date
    from kglm.kg.literals.literal import canonical_literal, literal_from_text, render_literal
    from kglm.kg.literals.quantities import Quantity, parse_quantity
    from kglm.kg.resolve import parse_fact

    graph = KnowledgeGraph.open(make_world(home)[0])
    samples = (
        "Q76 P569 1961-08-04", "Barack Obama | date of birth | 4 August 1961",
        "Barack Obama date of birth 4 August 1961",
        "France capital Paris", "Q142 | population | 67,000,000", "Q76\tP2048\t1.87 metre", "Paris | R:P36 | France",
        "T::11::+1961-08-04T00:00:00Z", "V::1.87::Q11573", "1961 BC", "the 13th century", "$ 12 million", "5 ft 3 in",
    )  # fmt: skip

    def read(data: bytes) -> None:
        text = data.decode("utf-8", "surrogateescape")
        refused: KglmError | None = None
        accepted = False
        for function in (
            partial(parse_fact, graph), canonical_literal, render_literal, literal_from_text, parse_date,
            parse_quantity, lambda text: render_date(Date.parse_id(text)), lambda text: Quantity.parse_id(text).id,
            lambda text: render_date(Date.from_time(text, 11)), lambda text: Quantity.from_amount(text).id,
        ):  # fmt: skip
            try:
                accepted |= bool(function(text))
            except KglmError as error:
                refused = error
        if refused and not accepted:
            raise refused

    return Reader([text.encode() for text in samples], mutate_fields(" "), read, graph.close)


def requests(home: Path) -> Reader:
    """Bodies of HTTP requests: any status but 500 is an answer."""
    from fastapi.testclient import TestClient

    from kglm.answer.model import load
    from kglm.serve.app import make_app
    from kglm.serve.service import Service
    from kglm.serve.settings import ServeConfig

    _, run = make_world(home)
    client = TestClient(make_app(Service(load(run), ServeConfig(allow_edit=True))), base_url="http://127.0.0.1:8000")
    client.__enter__()
    opened = client.post("/api/sessions")
    assert opened.status_code == 201, opened.text
    session = opened.json()["session"]
    bodies = {
        "complete": {
            "text": "Barack Obama was born on",
            "top": 2,
            "reasons": 1,
            "entities": [{"start": 0, "end": 2, "id": "Q76"}],
        },
        "link": {"text": "Barack Obama", "entities": []},
        "graph": {"text": "Barack Obama was born on", "links": "average"},
        "generate": {"text": "Barack Obama", "words": 2, "temperature": 1.0, "top_p": 0.9, "seed": 1, "beam": 0},
        "annotate": {"text": "Barack Obama was born.", "title": "Barack Obama"},
        "edits": {"action": "set", "head": "Q76", "relation": "P19", "tail": "Paris"},
    }
    paths = {json.dumps(body).encode(): path for path, body in bodies.items()}

    def mutate(data: bytes, rng: random.Random) -> bytes:
        return paths[data].encode() + b"\0" + mutate_json(data, rng)

    def read(data: bytes) -> None:
        path, _, body = data.partition(b"\0") if b"\0" in data else (paths[data].encode(), b"", data)
        headers = {"Content-Type": "application/json", "X-Kglm-Session": session}
        answer = client.post(f"/api/{path.decode()}", content=body, headers=headers)
        if answer.status_code >= 500:
            raise RuntimeError(answer.text)
        if answer.status_code == 201:  # a session may have 100 edits
            client.delete("/api/edits/last", headers=headers)
        if answer.status_code >= 400:
            raise KglmError(answer.text)

    return Reader(list(paths), mutate, read, lambda: client.__exit__(None, None, None))

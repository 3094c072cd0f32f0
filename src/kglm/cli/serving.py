"""`kglm serve`."""

from __future__ import annotations

import contextlib
import importlib.util
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from kglm import bundled
from kglm.cli.bundled_world import graph_option
from kglm.cli.models import Base, Trust
from kglm.cli.output import note, print_line, warn
from kglm.errors import ConfigError

RUN = (
    "A run made by kglm train kglm; default: that of a quickstart in this folder, else the model that comes with kglm."
)


def serve(
    run: Annotated[Path | None, typer.Argument(metavar="RUN", help=RUN)] = None,
    kg: Annotated[
        Path | None,
        typer.Option("--kg", metavar="KG", help="Use this graph instead of the run's own.", callback=graph_option),
    ] = None,
    base: Base = None,
    trust: Trust = None,
    documents: Annotated[
        list[Path] | None,
        typer.Option("--documents", metavar="DOCS.jsonl", help="Linked documents to explore."),
    ] = None,
    host: Annotated[str, typer.Option("--host", help="Address to listen on; any but loopback needs a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option("--port", help="Port to listen on; 0 takes a free one.")] = 8391,
    token: Annotated[
        str | None,
        typer.Option("--token", envvar="KGLM_TOKEN", help="Token that requests must send; at least 16 characters."),
    ] = None,
    allow_edit: Annotated[
        bool, typer.Option("--allow-edit", help="Let visitors edit facts, each in a session of their own, in memory.")
    ] = False,
    persist: Annotated[
        bool, typer.Option("--persist", help="Let visitors write their edits to the graph file.")
    ] = False,
    queue: Annotated[int, typer.Option("--queue", help="Requests that may wait; one more is refused.")] = 256,
    wait: Annotated[float, typer.Option("--wait", help="Seconds a request may wait in the queue.")] = 120,
    time: Annotated[float, typer.Option("--time", help="Seconds a request may compute.")] = 60,
    body: Annotated[int, typer.Option("--body", help="Maximum size of a request, in bytes.")] = 1_048_576,
    patience: Annotated[
        float, typer.Option("--patience", help="Seconds for a request to arrive and for its response to be read.")
    ] = 10,
    connections: Annotated[int, typer.Option("--connections", help="Maximum number of concurrent requests.")] = 600,
    sessions: Annotated[int, typer.Option("--sessions", help="Maximum number of open sessions.")] = 200,
    threads: Annotated[
        int, typer.Option("--threads", help="Threads of the computation; 0 measures which number is fastest.")
    ] = 0,
) -> None:
    """Serve a model over HTTP: a web page and a JSON API."""
    for extra in ("fastapi", "uvicorn"):
        if importlib.util.find_spec(extra) is None:
            raise ConfigError(f"the package {extra} is not installed", remedy="pip install 'kglm[serve]'")
    from kglm.serve.settings import Limits, ServeConfig, name_of

    limits = Limits(
        body_bytes=body, read_seconds=patience, queue=queue, wait_seconds=wait, compute_seconds=time,
        connections=connections, sessions=sessions,
    )  # fmt: skip
    config = ServeConfig(host, port, token or None, allow_edit, persist, limits)
    if threads < 0:
        raise ConfigError(f"--threads {threads} is negative", remedy="give 0 or more")
    home = run or _default_run(base)
    if persist and kg is None and home.resolve().is_relative_to(bundled.HOME.resolve()):
        raise ConfigError("the graph that comes with kglm is read-only", remedy="name a run, or a graph with --kg")
    _check_paths(home, kg, documents or [])
    from kglm.serve.listen import address, listen

    listening = listen(config)
    with contextlib.closing(listening):
        note(f"loading {name_of(home)} …")
        import torch

        from kglm.answer.model import load
        from kglm.serve.explore import Library
        from kglm.serve.server import make_server
        from kglm.serve.service import Service
        from kglm.text.document import read_documents
        from kglm.train.threads import choose_threads

        torch.set_num_threads(threads or choose_threads())
        model = load(home, kg=kg, base=base, trust=trust)
        if home == bundled.RUN and not documents and bundled.ARTICLES.exists():
            documents = [bundled.ARTICLES]
        library = Library(document for path in documents or () for document in read_documents(path))
        service = Service(model, config, library)
        if not config.loopback:
            warn("the token is sent unencrypted; put a TLS proxy in front of the server")
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        print_line(f"kglm serves {name_of(home)} at {address(config, listening)}")
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            make_server(service).run(sockets=[listening])
        service.close()


def _default_run(base: str | None) -> Path:
    """The run to serve when none is named; loads nothing without heads."""
    if base is None and bundled.default_heads() is None:
        return bundled.default_run()
    from kglm.answer.model import default_run

    return default_run(base)


def _check_paths(run: Path, kg: Path | None, documents: list[Path]) -> None:
    """Check that all paths exist before the model is loaded, which takes seconds."""
    from kglm.files import exists, reading
    from kglm.runs.records import require_run

    if not exists(run / "heads.json"):
        require_run(run)
    for path in [*documents, *([] if kg is None else [kg])]:
        with reading(path), path.open("rb"):
            pass

"""`kglm kg edit` and `log`."""

from __future__ import annotations

import getpass
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from kglm.cli.graph import Graph
from kglm.cli.output import Json, print_json, print_line
from kglm.errors import ConfigError, KglmError
from kglm.kg.edits import FactEdit, NewEntity, RelationType
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.history import history
from kglm.kg.journal import Change, last_edit
from kglm.kg.literals.column_types import SPELLINGS
from kglm.kg.literals.literal import is_literal
from kglm.kg.requests import RefusedEdits, Request, read_requests, resolve_requests

CHANGES_SHOWN = 50
"""Changes that `kglm kg edit` prints."""
LOGGED_CHANGES = 5
"""Changes of each edit that `kglm kg log` prints."""
SIGNS = {"add": "+", "remove": "−"}
_FACT = '"HEAD RELATION TAIL"'


def edit(
    kg: Graph,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar=_FACT, help="Make this the only fact of its head and relation."),
    ] = None,
    add: Annotated[list[str] | None, typer.Option("--add", metavar=_FACT, help="Add a fact.")] = None,
    remove: Annotated[list[str] | None, typer.Option("--remove", metavar=_FACT, help="Remove a fact.")] = None,
    from_: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Make the edits of a table: action, head, relation, tail."),
    ] = None,
    create: Annotated[
        bool, typer.Option("--create", help="Create the entities and relations that the graph lacks.")
    ] = False,
    types: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="RELATION=TYPE", help=f"What the values of a relation are: {SPELLINGS}."),
    ] = None,
    entity: Annotated[
        list[str] | None,
        typer.Option("--entity", metavar='"ID=LABEL|ALIAS|…"', help="Create this entity before the other edits."),
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Undo the last edit.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the changes without making them.")] = False,
    author: Annotated[
        str | None, typer.Option(help="Who edits, for kglm kg log; default: the user of git or of the system.")
    ] = None,
    json: Json = False,
) -> None:
    """Edit facts, given by ids or names, and print the changes. If one edit fails, none is made."""
    asked = [("remove", text) for text in remove or ()] + [("set", text) for text in set_ or ()]
    asked += [("add", text) for text in add or ()]
    if undo == bool(asked or entity or from_ or types):
        raise KglmError("nothing to edit" if not undo else "--undo goes alone", remedy="see kglm kg edit --help")
    requests = [Request.parse(action, text) for action, text in asked]
    try:
        requests += read_requests(from_) if from_ else []
        with KnowledgeGraph.open(kg, writable=True, whole=True) as stored:
            stored.author = author or _user()
            graph = stored.fork() if dry_run else stored
            if undo:
                changes = last_edit(stored.store)[1] if dry_run else stored.undo()
            else:
                changes = _edit(graph, requests, entity or [], types or [], create=create)
            if json:
                print_json({"changes": [change._asdict() for change in changes], "generation": stored.generation})
            else:
                _print_changes(graph, changes, undo=undo)
    except RefusedEdits as error:
        for problem in error.problems:
            print(problem, file=sys.stderr)
        raise


def _edit(
    graph: KnowledgeGraph, requests: Sequence[Request], entities: Sequence[str], types: Sequence[str], *, create: bool
) -> list[Change]:
    edits: list[FactEdit | NewEntity | RelationType] = [NewEntity.parse(text) for text in entities]
    draft = graph.fork()
    if edits:
        draft.edit(edits)
    given = dict(named_type(text) for text in types)
    return graph.edit([*edits, *resolve_requests(draft, requests, create=create, types=given)])


def named_type(text: str) -> tuple[str, str]:
    """Relation and type of "RELATION=TYPE"."""
    name, equals, type = text.rpartition("=")
    if not equals:
        raise ConfigError(f"{text!r} has no type", remedy='write it like --type "height=quantity:m"')
    return name, type.strip()


def _user() -> str | None:
    """Name of the user: of git, else of the system."""
    git = shutil.which("git")
    if git:
        found = subprocess.run([git, "config", "user.name"], capture_output=True, text=True, check=False).stdout.strip()
        if found:
            return found
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None


def _print_changes(graph: KnowledgeGraph, changes: Sequence[Change], *, undo: bool) -> None:
    shown = [change for change in changes if change.action in ("create", "type", *SIGNS)]
    for line in _lines(graph, shown[:CHANGES_SHOWN]):
        print_line(line)
    if len(shown) > CHANGES_SHOWN:
        print_line(f"and {len(shown) - CHANGES_SHOWN:,} more changes")
    if undo and not changes:
        print_line("nothing to undo: the last edit only created an entity, which stays, without facts")


def _lines(graph: KnowledgeGraph, changes: Sequence[Change]) -> Iterator[str]:
    for change in changes:
        if change.action == "create":
            yield f"+ {change.head} = {' | '.join(change.names)}"
        elif change.action == "type":
            yield f"  the values of {graph.relation_name(change.head)} are of the type {change.tail or 'unknown'}"
        else:
            head, tail = (graph.label(graph.number(id)) for id in (change.head, change.tail))
            tail = tail if is_literal(change.tail) else f"{tail} ({change.tail})"
            relation = graph.relation_name(change.relation)
            yield f"{SIGNS[change.action]} {head} ({change.head}) —{relation} ({change.relation})→ {tail}"


def log(
    kg: Graph,
    limit: Annotated[int | None, typer.Option(min=1, help="Number of edits to list; default: all.")] = None,
    json: Json = False,
) -> None:
    """List the edits, the latest first: number, time, author, changes, and which edit each undoes."""
    with KnowledgeGraph.open(kg, whole=True) as graph:
        edits = history(graph.store, limit)
        if json:
            print_json([each._asdict() | {"changes": [change._asdict() for change in each.changes]} for each in edits])
            return
        if not edits:
            print_line("no edits since the import")
        for each in edits:
            undo = (
                f", undoes {each.undoes}" if each.undoes else f", undone by {each.undone_by}" if each.undone_by else ""
            )
            print_line(f"{each.number}  {each.time}  {each.author or 'unknown author'}{undo}")
            shown = [change for change in each.changes if change.action in ("create", "type", *SIGNS)]
            for line in _lines(graph, shown[:LOGGED_CHANGES]):
                print_line(f"    {line}")
            if len(shown) > LOGGED_CHANGES:
                print_line(f"    and {len(shown) - LOGGED_CHANGES:,} more changes (--json lists them)")

"""`kglm world`, and the word `world` for the bundled graph in the options of other commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kglm.cli.output import Json, print_json, print_line, print_table


def graph_option(given: Any) -> Any:
    """Replace `world` by the path of the bundled world, for options and arguments that name a graph."""
    if given is None or str(given) != "world":  # the name, so that other graphs do not load the package of worlds
        return given
    from kglm.worlds.world import graph_path

    return graph_path(given)


def world(
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="KG", help="Write a copy of the graph to this file: a graph that you can edit."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    json: Json = False,
) -> None:
    """Show what the bundled graph holds, or copy it to a file of your own."""
    from kglm.worlds.world import about, copy_world, world_home

    if to is not None:
        written = copy_world(to, replace=force)
        if json:
            print_json({"graph": str(written)})
        else:
            print_line(f'{written} is written; edit it with: kglm kg edit {written} --set "HEAD RELATION TAIL"')
        return
    shown, home = about(), world_home()
    if json:
        import msgspec

        print_json(msgspec.to_builtins(shown) | {"folder": str(home), "unpacked": home.exists()})
        return
    rows = [(kind.name, f"{kind.entities:,}", f"{kind.facts:,}", ", ".join(kind.examples)) for kind in shown.kinds]
    print_table("", ("kind", "entities", "facts", "for example"), rows, right=(1, 2))
    print_line(
        f"{shown.entities:,} entities with {shown.aliases:,} further names, {shown.facts:,} facts of"
        f" {shown.relations:,} relations; made on {shown.date}"
    )
    print_line(f"knowledge: {shown.knowledge}")
    for source in shown.sources:
        print_line(f"source: {source}")
    print_line(f"licence: {shown.licence}")
    state = "" if home.exists() else ", when it is first used"
    print_line(f"unpacked in {home}{state}")
    print_line('look it up with: kglm kg show world "Eiffel Tower"; copy it with: kglm world --to my.kg')

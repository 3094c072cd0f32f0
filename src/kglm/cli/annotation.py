"""`kglm annotate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kglm.cli.bundled_world import graph_option
from kglm.cli.output import Json, note, print_json, print_line, print_table, warn
from kglm.cli.overwrite import Force, check_output
from kglm.errors import ConfigError

if TYPE_CHECKING:
    from kglm.annotate.pipeline import AnnotateReport


def annotate(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="SOURCE", help="Articles: wikitext dumps, HTML, text, JSON lines; files or folders."),
    ],
    to: Annotated[Path, typer.Option("--to", metavar="DOCS.jsonl", help="File to write the linked documents to.")],
    kg: Annotated[
        Path | None,
        typer.Option("--kg", metavar="KG", help="Graph to link to (default: world).", callback=graph_option),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", help="Number of processes; 0 takes all cores.")] = 0,
    ray: Annotated[
        str | None,
        typer.Option("--ray", metavar="ADDRESS", help="Use a Ray cluster; `local` starts one here."),
    ] = None,
    linker: Annotated[bool, typer.Option("--linker/--no-linker", help="Also link names without a hyperlink.")] = True,
    ner: Annotated[str | None, typer.Option("--ner", metavar="MODEL", help="spaCy pipeline that finds names.")] = None,
    coreference: Annotated[
        str,
        typer.Option(
            "--coreference", help="How to resolve pronouns: graph, none, fastcoref, corenlp=http://HOST:PORT."
        ),
    ] = "graph",
    match: Annotated[
        bool, typer.Option("--match/--no-match", help="Find names that a fact connects to earlier mentions.")
    ] = True,
    min_p: Annotated[float, typer.Option("--min-p", help="Minimum probability of a link.")] = 0.4,
    cutoff: Annotated[int, typer.Option("--cutoff", help="Words after which a mention explains no others.")] = 30,
    prune: Annotated[
        bool, typer.Option("--prune", help="Drop relations that explain too many or too few mentions.")
    ] = False,
    lists: Annotated[bool, typer.Option("--lists", help="Include the lists of wiki pages.")] = False,
    anchors: Annotated[
        Path | None, typer.Option("--anchors", metavar="FILE", help="Anchor counts for the linker, from --anchors-to.")
    ] = None,
    anchors_to: Annotated[
        Path | None,
        typer.Option("--anchors-to", metavar="FILE", help="First write the sources' anchor counts here."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FOLDER", help="Write an HTML page for each document.")
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Build a linked corpus: the entities that articles mention, and the facts that explain each mention."""
    from kglm.annotate.annotator import AnnotateConfig
    from kglm.annotate.folder import write_pages
    from kglm.annotate.pipeline import Recipe, count_anchors, remove_finished_parts
    from kglm.annotate.pipeline import annotate as run
    from kglm.annotate.story import StoryConfig
    from kglm.parallel import available_cores

    if workers < 0:
        raise ConfigError(f"--workers {workers}", remedy="give 0 or more")
    remove_finished_parts(to)
    check_output(to, force)
    check_output(anchors_to, force, "--anchors-to")
    check_output(None if html is None else html / "index.html", force, "--html")
    if kg is None:
        from kglm.worlds.world import default_graph

        note("linking to the bundled world (kglm world); --kg names another graph")
        kg = default_graph()
    config = AnnotateConfig(
        linker=linker, min_p=min_p, ner=ner, coreference=coreference, story=StoryConfig(cutoff=cutoff, match=match)
    )
    recipe = Recipe(str(kg.absolute()), config, None if anchors is None else str(anchors.absolute()), lists)
    if anchors_to is not None:
        count_anchors(sources, kg, anchors_to, lists=lists)
        recipe = recipe._replace(anchors=str(anchors_to.absolute()))
    runner = None
    if ray is not None:
        from kglm.annotate.on_ray import ray_runner

        runner = ray_runner(ray, workers or None)
    report = run(sources, to, recipe, workers=workers or available_cores(), prune=prune, runner=runner, force=force)
    if report.documents and not report.mentions:
        warn(_no_links(report, linker, min_p))
    if html is not None:
        write_pages(to, kg, html)
    if json:
        print_json(
            {
                "documents": report.documents,
                "tokens": report.words,
                "counts": dict(sorted(report.counts.items())),
                "failures": report.failures,
            }
        )
        return
    _print(report, to, html)


def _no_links(report: AnnotateReport, linker: bool, min_p: float) -> str:
    """Why nothing may have been linked, and what to do about it."""
    if not linker:
        return "no name is linked: the texts have no hyperlink to an entity of the graph; leave out --no-linker"
    texts = "1 text" if report.documents == 1 else f"{report.documents:,} texts"
    return (
        f"no name is linked in {texts}: names are found if the graph has them as labels or aliases, and if they begin "
        "with a capital; look a name up with: kglm kg find KG NAME, or allow less certain links with: "
        f"--min-p {min_p / 2:.2g}"
    )


def _print(report: AnnotateReport, to: Path, html: Path | None) -> None:
    rows = [("documents", report.documents), ("tokens", report.words)]
    rows += [(name, count) for name, count in sorted(report.counts.items()) if count]
    print_table(str(to), ("", "count"), rows, right=(1,))
    for failure in report.failures[:10]:
        print_line(f"left out: {failure}")
    if len(report.failures) > 10:
        print_line(f"… and {len(report.failures) - 10} more; see --json")
    if html is not None:
        print_line(f"pages: {html / 'index.html'}")

"""`kglm annotate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kglm.cli.output import Json, print_json, print_table, say
from kglm.errors import ConfigError

if TYPE_CHECKING:
    from kglm.annotate.pipeline import AnnotateReport


def annotate(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="SOURCE…", help="Articles: wikitext dumps, HTML, text, JSON lines; files or folders."),
    ],
    kg: Annotated[Path, typer.Option("--kg", metavar="KG", help="The graph.")],
    to: Annotated[Path, typer.Option("--to", metavar="DOCS.jsonl", help="Where to write the documents.")],
    workers: Annotated[int, typer.Option("--workers", help="Processes; 0 takes all cores.")] = 0,
    ray: Annotated[
        str | None, typer.Option("--ray", metavar="ADDRESS", help="A Ray cluster instead; `local` starts one here.")
    ] = None,
    linker: Annotated[bool, typer.Option("--linker/--no-linker", help="Look for names that no link marks.")] = True,
    ner: Annotated[
        str | None, typer.Option("--ner", metavar="MODEL", help="A spaCy pipeline that finds names.")
    ] = None,
    coreference: Annotated[
        str,
        typer.Option("--coreference", help="Pronouns and the like: graph, none, corenlp=http://HOST:PORT, fastcoref."),
    ] = "graph",
    match: Annotated[bool, typer.Option("--match/--no-match", help="Look for what facts lead to.")] = True,
    min_p: Annotated[float, typer.Option("--min-p", help="Least probability of a link.")] = 0.7,
    cutoff: Annotated[int, typer.Option("--cutoff", help="Words after which a parent is forgotten.")] = 30,
    prune: Annotated[bool, typer.Option("--prune", help="Drop relations that explain too much or too little.")] = False,
    lists: Annotated[bool, typer.Option("--lists", help="Take lists of wiki pages too.")] = False,
    anchors: Annotated[
        Path | None, typer.Option("--anchors", metavar="FILE", help="Counts of link texts, for the linker.")
    ] = None,
    anchors_to: Annotated[
        Path | None, typer.Option("--anchors-to", metavar="FILE", help="Count the link texts of the sources first.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FOLDER", help="Write a page to look at for each document.")
    ] = None,
    json: Json = False,
) -> None:
    """Build a linked corpus: the entities that articles mention, and the facts that explain each mention."""
    from kglm.annotate.annotator import AnnotateConfig
    from kglm.annotate.pipeline import Recipe, count_anchors, write_pages
    from kglm.annotate.pipeline import annotate as run
    from kglm.annotate.story import StoryConfig
    from kglm.parallel import available_cores

    if workers < 0:
        raise ConfigError(f"--workers {workers}", remedy="give 0 or more")
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
    report = run(sources, to, recipe, workers=workers or available_cores(), prune=prune, runner=runner)
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


def _print(report: AnnotateReport, to: Path, html: Path | None) -> None:
    rows = [("documents", report.documents), ("tokens", report.words)]
    rows += [(name, count) for name, count in sorted(report.counts.items()) if count]
    print_table(str(to), ("", "count"), rows, right=(1,))
    for failure in report.failures[:10]:
        say(f"left out: {failure}")
    if len(report.failures) > 10:
        say(f"… and {len(report.failures) - 10} more; see --json")
    if html is not None:
        say(f"pages: {html / 'index.html'}")

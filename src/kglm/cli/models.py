"""The model of a command: its options, and how it is opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kglm import bundled
from kglm.cli.bundled_world import graph_option
from kglm.cli.output import note
from kglm.cli.prompts import Prompts, run_and_prompts
from kglm.errors import ConfigError, DataError

if TYPE_CHECKING:
    from kglm.answer.model import FactAwareLM
    from kglm.answer.pretrained.model import PretrainedLM

LINKS = ("average", "best", "sampled", "none")
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[RUN] TEXT",
        help="A run made by kglm train (default: the model that comes with kglm), and a text in quotes; - reads texts "
        "from standard input, one a line.",
    ),
]
Entities = Annotated[
    list[str] | None,
    typer.Option(
        "--entity",
        metavar='"0:2=Q76"',
        help='Entity of a name, by word positions or by words: "Obama=Q76".',
    ),
]
Edits = Annotated[
    list[str] | None,
    typer.Option(
        "--edit",
        metavar='"HEAD RELATION TAIL"',
        help="Replace the facts of this head and relation; the graph file stays.",
    ),
]
Creations = Annotated[
    list[str] | None,
    typer.Option(
        "--new-entity",
        metavar='"ID=LABEL|ALIAS|…"',
        help="Create this entity before the edits; the graph file stays.",
    ),
]
LinkHow = Annotated[
    str, typer.Option("--links", help=f"How to link names whose entity is not given: {', '.join(LINKS)}.")
]
Kg = Annotated[
    Path | None,
    typer.Option("--kg", metavar="KG", help="Use this graph instead of the run's own.", callback=graph_option),
]


Base = Annotated[
    str | None,
    typer.Option(
        "--base",
        metavar="NAME|DIR|GGUF",
        help="Pretrained language model: smollm2, a Hugging Face directory or a GGUF file.",
    ),
]
Trust = Annotated[
    float | None,
    typer.Option("--trust", help="Pretrained models: above 0, text follows the graph more closely; -inf ignores it."),
]


def open_model(
    words: list[str] | None,
    file: Path | None,
    kg: Path | None,
    *,
    edits: list[str] | None = None,
    creations: list[str] | None = None,
    base: str | None = None,
    trust: float | None = None,
) -> tuple[FactAwareLM | PretrainedLM, Prompts]:
    """Load the model with its edits; return it with the prompts. Checks the arguments first: loading takes seconds."""
    from kglm.files import exists
    from kglm.kg.edits import NewEntity

    named, prompts = run_and_prompts(words or [], file)
    if named is not None and not (exists(named / "run.json") or exists(named / "heads.json")):
        raise DataError(
            "is not a run", place=named, remedy="give one made by: kglm train … --to RUN, or only a text, in quotes"
        )
    if kg is not None and not exists(kg):
        raise DataError("no such file", place=kg, remedy="give a graph made by: kglm kg import")
    steps: list[Any] = [*(NewEntity.parse(text) for text in creations or ()), *(edits or ())]
    if trust is not None and trust != trust:
        raise ConfigError("--trust nan", remedy="give a number")
    from kglm.answer.model import default_run, load

    home = named or default_run(base)
    if named is None:
        note(f"using {_described(home, kg)}")
    model = load(home, kg=kg, base=base, trust=trust)
    return (model.edited(steps) if steps else model), prompts


def _described(home: Path, kg: Path | None) -> str:
    """The model that is used when none is named."""
    if home == bundled.HEADS:
        return f"SmolLM2 with the facts of {'the bundled world' if kg is None else kg.name} (kglm world --help)"
    return "the small model that comes with kglm" if home.is_relative_to(bundled.HOME) else f"the model in {home}"


def check_at_least(minimum: int, option: str, value: int) -> None:
    """Raise an error for a number that is too small."""
    if value < minimum:
        raise ConfigError(f"{option} {value}", remedy=f"give at least {minimum}")

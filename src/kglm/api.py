"""One function for each command, with keyword arguments; paths are strings or `Path`s.

    import kglm

    kglm.import_graph("facts.tsv", "world.kg", entities="entities.jsonl")
    kglm.embed("world.kg", dim=64)
    kglm.annotate_articles("articles/", "world.kg", "docs.jsonl")
    kglm.train_model("kglm", data="docs.jsonl", valid="valid.jsonl", kg="world.kg", to="run", config="small")
    print(kglm.evaluate_model("run", "valid.jsonl").to_json()["ppl"])
    print(kglm.complete("France is", "run"))

The names `train`, `annotate` and `evaluate` belong to packages, hence `train_model` and so on. Wherever a graph is
asked for, "world" is the bundled one.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from kglm.errors import ConfigError

if TYPE_CHECKING:  # each function loads what it needs when it is called
    from kglm.annotate.annotator import AnnotateConfig
    from kglm.annotate.pipeline import AnnotateReport
    from kglm.answer.completion import Completion, GeneratedWord
    from kglm.answer.given import Edit
    from kglm.answer.mentions import LinkedMention
    from kglm.answer.model import FactAwareLM, GenerateOptions, Links
    from kglm.answer.pretrained.asked import Reply
    from kglm.answer.pretrained.model import PretrainedLM
    from kglm.evaluate.heads import HeadsReport
    from kglm.evaluate.perplexity import PerplexityReport
    from kglm.kg.embedding.transe import EmbedReport, TransEConfig
    from kglm.kg.graph import KnowledgeGraph
    from kglm.kg.imports import ImportReport

AnyPath = str | Path
Paths = AnyPath | Sequence[AnyPath]


def import_graph(
    sources: Paths,
    to: AnyPath,
    *,
    entities: Paths = (),
    relations: Paths = (),
    redirects: Paths = (),
    near: Iterable[str] | None = None,
    hops: int = 2,
    format: str | None = None,
    language: str = "en",
    mint_ids: bool = False,
    iso_years: bool = False,
    types: Mapping[str, str] | None = None,
    skip_bad_lines: bool = False,
    workers: int | None = None,
    replace: bool = False,
) -> ImportReport:
    """Build the graph file `to` from files of facts; the format is detected unless it is given.

    With `near` (entity ids), only entities within `hops` facts of them are imported. `mint_ids` makes ids from names,
    for N-Triples without ids. `iso_years` reads years before Christ as in RDF (0000 is 1 BC). `types` are types of
    relations in tables of one's own, as in {"height": "quantity:m"}; if a line of such a table cannot be read, nothing
    is imported, or with `skip_bad_lines` the other lines.

    kglm.import_graph("facts.tsv", "world.kg", entities="entities.jsonl")
    """
    from kglm.kg.importers.records import ImportOptions, OwnOptions
    from kglm.kg.imports import import_graph

    own = OwnOptions(types=tuple((types or {}).items()), skip_bad_lines=skip_bad_lines)
    return import_graph(
        _paths(sources),
        to,
        entities=_paths(entities),
        relations=_paths(relations),
        redirects=_paths(redirects),
        near=near,
        hops=hops,
        format=format,
        options=ImportOptions(language, mint_ids, iso_years, own),
        workers=workers,
        replace=replace,
    )


def export_graph(kg: AnyPath, to: AnyPath) -> dict[str, int]:
    """Write the facts, names and types of a graph to a file ending in .tsv, .jsonl or .nt, for `import_graph`.

    Returns the numbers of facts and entities.
    """
    from kglm.kg.export import export_graph
    from kglm.worlds.world import graph_path

    return export_graph(graph_path(kg), to)


def world() -> KnowledgeGraph:
    """Open the bundled world, a part of Wikidata, for reading. It is unpacked when it is first used, in half a minute.

    kglm.world().search("Eiffel Tower")
    """
    from kglm.worlds.world import open_world

    return open_world()


def embed(kg: AnyPath, config: TransEConfig | None = None, *, force: bool = False, **options: Any) -> EmbedReport:
    """Train TransE vectors and write them beside the graph file; `options` are fields of `TransEConfig`.

    Vectors that the graph has are replaced with `force` only, because runs trained with them can be used with no
    others.

    kglm.embed("world.kg", dim=64, epochs=100)
    """
    from kglm.kg.embedding.transe import TransEConfig, embed_graph
    from kglm.runs.using import check_vectors

    if not force:
        check_vectors(Path(kg))
    return embed_graph(kg, dataclasses.replace(config or TransEConfig(), **options))


def annotate_articles(
    sources: Paths,
    kg: AnyPath,
    to: AnyPath,
    *,
    workers: int = 1,
    anchors: AnyPath | None = None,
    lists: bool = False,
    prune: bool = False,
    config: AnnotateConfig | None = None,
    **options: Any,
) -> AnnotateReport:
    """Link articles (wikitext, HTML, text, JSON lines) to a graph; `options` are fields of `AnnotateConfig`.

    kglm.annotate_articles("articles/", "world.kg", "docs.jsonl", min_p=0.8)
    """
    from kglm.annotate.annotator import AnnotateConfig
    from kglm.annotate.pipeline import Recipe, annotate
    from kglm.worlds.world import graph_path

    settings = dataclasses.replace(config or AnnotateConfig(), **options)
    recipe = Recipe(
        str(graph_path(kg).absolute()), settings, None if anchors is None else str(Path(anchors).absolute()), lists
    )
    return annotate(_paths(sources), Path(to), recipe, workers=workers, prune=prune)


def train_model(
    model: str = "kglm",
    *,
    data: Paths,
    valid: Paths,
    kg: AnyPath,
    to: AnyPath,
    config: AnyPath | None = None,
    preset: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    start: AnyPath | None = None,
    resume: bool = False,
) -> list[dict[str, Any]]:
    """Train a model into the run directory `to`; return the metrics of each epoch.

    Models: kglm, proposal, entity-copynet, entity-nlm, entity-nlm-proposal, awd-lstm. `config` is a TOML file or one of
    paper, small (the default), quickstart, tiny; `preset` (best, paper, nklm) sets the options of the latent variables,
    and `overrides` sets single ones. `start` is a run whose vocabulary and weights are used; `resume` continues a run
    that was stopped.

    kglm.train_model("kglm", data="docs.jsonl", valid="valid.jsonl", kg="world.kg", to="run",
                     config="small", overrides={"train.epochs": 3})
    """
    from kglm.runs.settings import DEFAULT, load_config
    from kglm.train.start import train
    from kglm.worlds.world import graph_path

    changes = [f"{name}={json.dumps(value)}" for name, value in (overrides or {}).items() if value is not None]
    settings = load_config(config or DEFAULT, model, changes, preset=preset)
    start_run = None if start is None else Path(start)
    return train(settings, _paths(data), _paths(valid), graph_path(kg), Path(to), start=start_run, resume=resume)


def evaluate_model(
    run: AnyPath,
    data: Paths,
    *,
    method: Literal["particle", "importance", "beam", "exact", "annotated"] | None = None,
    samples: int = 100,
    seed: int = 0,
    proposal: AnyPath | None = None,
    kg: AnyPath | None = None,
    workers: int = 1,
) -> PerplexityReport | HeadsReport:
    """Estimate the perplexity of documents; their annotations are used by method "annotated" only.

    The default method is "exact" for heads on a pretrained model, "particle" for other runs.

    kglm.evaluate_model("run", "valid.jsonl", samples=50).to_json()["ppl"]
    """
    from kglm.evaluate.heads import evaluate_heads, heads_task
    from kglm.evaluate.perplexity import Task, evaluate
    from kglm.heads.store import is_heads
    from kglm.marginal.estimate import MarginalConfig
    from kglm.runs.run import read_for_training
    from kglm.worlds.world import graph_path

    if is_heads(Path(run)):
        if method not in (None, "exact") or proposal is not None:
            raise ConfigError("heads are scored exactly", place=run, remedy="leave out method and proposal")
        documents = read_for_training(_paths(data))
        heads = heads_task(Path(run), documents, kg=None if kg is None else Path(kg), seed=seed)
        return evaluate_heads(heads, documents, workers=workers)
    task = Task(
        Path(run),
        method or "particle",
        MarginalConfig(samples=samples, seed=seed),
        None if proposal is None else Path(proposal),
        None if kg is None else graph_path(kg),
    )
    return evaluate(task, read_for_training(_paths(data)), workers=workers)


def link(text: str | Sequence[str], run: FactAwareLM | PretrainedLM | AnyPath | None = None) -> list[LinkedMention]:
    """Find names in a text and list the entities they may refer to. A path is loaded at each call; see `kglm.load`.

    [mention.id for mention in kglm.link("Barack Obama was born on")]
    """
    return _model(run).link(text)


def complete(
    prompt: str | Sequence[str],
    run: FactAwareLM | PretrainedLM | AnyPath | None = None,
    *,
    entities: Sequence[str] = (),
    edits: Edit | Sequence[Edit] = (),
    top: int = 5,
    links: Links = "average",
    seed: int = 0,
) -> Completion:
    """Predict how a text goes on: answers and next words, with reasons. A path is loaded at each call; see `kglm.load`.

    print(kglm.complete("The capital of France is", edits="France | capital | Lyon"))
    """
    return _model(run).complete(prompt, entities, edits=edits, top=top, links=links, seed=seed)


def ask(
    question: str,
    run: PretrainedLM | AnyPath | None = None,
    *,
    kg: AnyPath | None = None,
    entities: Sequence[str] = (),
    edits: Edit | Sequence[Edit] = (),
    top: int = 5,
) -> Reply:
    """Answer a question in a sentence from facts of a graph, by a pretrained language model; see `kglm.load`.

    print(kglm.ask("Who does Nora Feld report to?", kg="company.kg").text)
    """
    from kglm.answer.model import load

    model = load(run, kg=kg) if run is None or isinstance(run, AnyPath) else run
    return model.ask(question, entities, edits=edits, top=top)


def generate(
    prompt: str | Sequence[str] = "",
    run: FactAwareLM | PretrainedLM | AnyPath | None = None,
    *,
    entities: Sequence[str] = (),
    edits: Edit | Sequence[Edit] = (),
    links: Links = "best",
    **options: Unpack[GenerateOptions],
) -> Iterator[GeneratedWord]:
    """Generate words one by one, each with its reason; `options` are fields of `kglm.GenerateConfig`.

    " ".join(each.word for each in kglm.generate("France is", words=12, seed=1))
    """
    model = _model(run)
    return (model.edited(edits) if edits else model).generate(prompt, entities, links=links, **options)


def _model(run: FactAwareLM | PretrainedLM | AnyPath | None) -> FactAwareLM | PretrainedLM:
    from kglm.answer.model import load

    return load(run) if run is None or isinstance(run, AnyPath) else run


def _paths(given: Paths) -> list[Path]:
    return [Path(given)] if isinstance(given, AnyPath) else [Path(path) for path in given]

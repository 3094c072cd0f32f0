"""The perplexity table: compare results of `kglm evaluate --to` on the same documents with the same vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from kglm.errors import DataError
from kglm.evaluate.heads import evaluate_heads, heads_task
from kglm.evaluate.perplexity import Task, evaluate
from kglm.evaluate.pretrained import evaluate_pretrained, open_pretrained
from kglm.files import reading
from kglm.heads.store import is_heads
from kglm.marginal.estimate import MarginalConfig
from kglm.model.table import MODELS
from kglm.runs.run import Run, read_for_training

KEYS = (
    "ppl",
    "upp",
    "ppl_interval",
    "upp_interval",
    "upp_mention",
    "upp_other",
    "share",
    "share_interval",
    "documents",
    "tokens",
    "note",
)
"""What a row has of a result."""
REMEDY = "write one with: kglm evaluate … --to RESULT.json"


def read_result(path: Path) -> dict[str, Any]:
    """Read a result file of `kglm evaluate --to`."""
    try:
        with reading(path):
            found = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"is not a JSON object ({error})", place=path, remedy=REMEDY) from error
    numbers = all(isinstance(found.get(key), int | float) for key in ("ppl", "documents", "tokens"))
    if not numbers or not isinstance(found.get("model"), str):
        raise DataError("is not a result of kglm evaluate", place=path, remedy=REMEDY)
    return found


def score_runs(
    runs: Sequence[str],
    data: Sequence[Path],
    proposals: Sequence[Path],
    method: str,
    samples: int,
    *,
    kg: Path | None = None,
    workers: int = 1,
) -> list[tuple[Path, dict[str, Any]]]:
    """Evaluate runs on the data; a run that needs a proposal gets the first that fits it. `kg` is a graph for heads."""
    documents, opened = read_for_training(data), {path: Run.open(path, weights=False).settings for path in proposals}
    found = []
    for name in runs:
        if (pretrained := open_pretrained(name)) is not None:
            found.append((Path(name), evaluate_pretrained(pretrained, documents).to_json()))
            continue
        if is_heads(Path(name)):
            report = evaluate_heads(heads_task(Path(name), documents, kg=kg), documents, workers=workers)
            found.append((Path(name), report.to_json()))
            continue
        settings = Run.open(Path(name), weights=False).settings
        needed = (settings.kind.proposal, settings.latent.facts)
        fitting = (path for path, its in opened.items() if (its.model, its.latent.facts) == needed)
        proposal = next(fitting, None) if method in settings.kind.drawn else None
        task = Task(Path(name), method, MarginalConfig(samples=samples), proposal)  # type: ignore[arg-type]
        found.append((Path(name), evaluate(task, documents, workers=workers).to_json()))
    return found


def perplexity_table(results: Sequence[tuple[Path, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Rows of the table, with the ratio of each UPP to that of the plain language model.

    An error if the documents differ, or the vocabularies: unknown-penalised perplexities depend on the vocabulary.
    """
    first_path, first = next((pair for pair in results if pair[1].get("vocabulary")), results[0])
    for path, result in results:
        if result.get("data") != first.get("data"):
            raise DataError(
                f"has other documents than {first_path}", place=path, remedy="evaluate both on the same documents"
            )
        if result.get("vocabulary") not in (None, first.get("vocabulary")):
            raise DataError(
                f"has another vocabulary than {first_path}", place=path, remedy="train both on the same texts"
            )
    labels = Counter(label(result) for _, result in results)
    plain = next((result.get("upp") for _, result in results if result["model"] == "awd-lstm"), None)
    rows = []
    for _, result in results:
        row = {key: result.get(key) for key in KEYS}
        ratio = result["upp"] / plain if plain and result.get("upp") else None
        name = label(result) if labels[label(result)] == 1 else f"{label(result)}, {result.get('run')}"
        base = _base_row(result)
        if base is not None and base not in rows:
            rows.append(base)
        rows.append({"model": name, **row, "upp_ratio": ratio, "published": False})
    return rows


def _base_row(result: dict[str, Any]) -> dict[str, Any] | None:
    """The row of the base alone, from a result of heads."""
    if result.get("base_ppl") is None:
        return None
    row = dict.fromkeys(KEYS) | {key: result.get(key) for key in ("documents", "tokens", "note")}
    row |= {"ppl": result["base_ppl"], "ppl_interval": result.get("base_ppl_interval")}
    name = f"{result.get('base')} alone (not comparable)"
    return {"model": name, **row, "upp_ratio": None, "published": False}


def label(result: dict[str, Any]) -> str:
    """Name of a row: the model, and the method by which p(x) was estimated."""
    model, _, more = result["model"].partition(" + ")
    name = (MODELS[model].title if model in MODELS else model) + (f" + {more}" if more else "")
    name = "NKLM (topic given)" if result.get("facts") == "topic" else name
    name = f"{name} (not comparable)" if result.get("note") else name
    how = {"particle": f", particle {result.get('samples')}", "importance": f", importance {result.get('samples')}"}
    how |= {"beam": f", beam {result.get('samples')} (a bound)", "annotated": ", annotated (a bound)"}
    return f"{name}{how.get(result.get('method', ''), '')}"

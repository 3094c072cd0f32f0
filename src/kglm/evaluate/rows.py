"""The perplexity table: results of `kglm evaluate --to` side by side, if they are of the same text and words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from kglm.errors import DataError
from kglm.files import reading

REMEDY = "write one with: kglm evaluate … --to RESULT.json"
NAMES = {
    "kglm": "KGLM",
    "entity-copynet": "EntityCopyNet",
    "entity-nlm": "EntityNLM",
    "awd-lstm": "AWD-LSTM",
}


def read_result(path: Path) -> dict[str, Any]:
    """A result that `kglm evaluate` has kept."""
    try:
        with reading(path):
            found = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"is no JSON object ({error})", place=path, remedy=REMEDY) from error
    if not isinstance(found.get("ppl"), int | float) or not isinstance(found.get("model"), str):
        raise DataError("is no result of evaluate", place=path, remedy=REMEDY)
    return found


def perplexity_table(results: Sequence[tuple[Path, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Rows of results, with each UPP against that of the plain language model among them.

    They must be of the same documents. Unknown-penalised perplexities of other vocabularies are no comparison.
    """
    first_path, first = next((pair for pair in results if pair[1].get("vocabulary")), results[0])
    for path, result in results:
        if result.get("data") != first.get("data"):
            raise DataError(f"is of other documents than {first_path}", place=path, remedy="evaluate both on the same")
        if result.get("vocabulary") not in (None, first.get("vocabulary")):
            raise DataError(f"has other words than {first_path}", place=path, remedy="train both on the same texts")
    plain = next((result["upp"] for _, result in results if result["model"] == "awd-lstm"), None)
    rows = []
    for _, result in results:
        keys = ("ppl", "upp", "ppl_interval", "upp_interval", "upp_mention", "upp_other", "documents", "tokens", "note")
        row = {key: result.get(key) for key in keys}
        ratio = result["upp"] / plain if plain and result.get("upp") else None
        rows.append({"model": label(result), **row, "upp_ratio": ratio, "published": False})
    return rows


def label(result: dict[str, Any]) -> str:
    """A model's name, and how its p(x) was found."""
    model, _, more = result["model"].partition(" + ")
    name = NAMES.get(model, model) + (f" + {more}" if more else "")
    how = {"particle": f", particle {result.get('samples')}", "importance": f", importance {result.get('samples')}"}
    how |= {"beam": f", beam {result.get('samples')} (a bound)", "annotated": ", annotated (a bound)"}
    return f"{name}{how.get(result.get('method', ''), '')}"

"""The numbers published by Logan et al. (2019), shown beside ours in separate rows because data and sizes differ.

They are for the whole Linked WikiText-2, models of the paper's size, perplexity by importance sampling, and another
set of completion prompts.
"""

from __future__ import annotations

from typing import Any

PERPLEXITY: tuple[tuple[str, float, float], ...] = (
    ("EntityNLM", 85.4, 189.2),
    ("EntityCopyNet", 76.1, 144.0),
    ("AWD-LSTM", 74.8, 165.8),
    ("KGLM", 44.1, 88.5),
)
"""Model, PPL, UPP."""

_RELATIONS = ("nation-capital", "birthloc", "birthdate", "spouse", "city-state", "book-author", "average")
COMPLETION: dict[str, dict[str, tuple[float, float]]] = {
    "AWD-LSTM": dict(zip(_RELATIONS, ((0, 0), (0, 9), (0, 25), (0, 0), (0, 13), (0, 2), (0.0, 8.2)), strict=True)),
    "GPT-2": dict(zip(_RELATIONS, ((6, 7), (14, 14), (8, 9), (2, 3), (62, 62), (0, 0), (15.3, 15.8)), strict=True)),
    "KGLM, oracle": dict(
        zip(_RELATIONS, ((0, 0), (94, 95), (65, 68), (2, 2), (9, 59), (61, 62), (38.5, 47.7)), strict=True)
    ),
    "KGLM, NEL": dict(
        zip(_RELATIONS, ((0, 4), (85, 92), (61, 67), (1, 19), (4, 59), (25, 28), (29.3, 44.8)), strict=True)
    ),
}
"""By model and relation: accuracy in percent at 1 and at 5."""

CORPUS: dict[str, dict[str, int | None]] = {
    "Train": {
        "documents": 600, "paper_tokens": 2_019_195, "vocabulary": 33_558, "mention_tokens": 207_803,
        "mention_spans": 122_983, "unique_entities": 41_058, "unique_relations": 1_291,
    },
    "Dev": {
        "documents": 60, "paper_tokens": 207_982, "vocabulary": None, "mention_tokens": 21_226,
        "mention_spans": 12_214, "unique_entities": 5_415, "unique_relations": 484,
    },
    "Test": {
        "documents": 60, "paper_tokens": 236_062, "vocabulary": None, "mention_tokens": 24_441,
        "mention_spans": 15_007, "unique_entities": 5_625, "unique_relations": 504,
    },
}  # fmt: skip


def perplexity_rows() -> list[dict[str, Any]]:
    """Rows of the published perplexities, in the format of `rows.perplexity_table`."""
    return [{"model": model, "ppl": ppl, "upp": upp, "published": True} for model, ppl, upp in PERPLEXITY]

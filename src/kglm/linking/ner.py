"""Name detection by an installed spaCy pipeline with named entity recognition (`--ner MODEL`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kglm.errors import ConfigError
from kglm.text.document import END, START

SKIPPED = frozenset(["DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL"])
"""spaCy labels to skip: dates and quantities are matched with facts of the graph instead."""


class SpacyNames:
    """Detects names with a spaCy pipeline."""

    def __init__(self, model: str | Any) -> None:
        """`model`: name or path of an installed pipeline, or a loaded pipeline."""
        import spacy

        try:
            self._pipeline = spacy.load(model) if isinstance(model, str) else model
        except OSError as error:
            raise ConfigError(f"no spaCy pipeline {model!r}", remedy=f"python -m spacy download {model}") from error
        if not {"ner", "entity_ruler", "span_ruler", "transformer"} & set(self._pipeline.pipe_names):
            raise ConfigError(
                f"the spaCy pipeline {model!r} has no named entity recognition", remedy="use one with the component ner"
            )

    def spans(self, tokens: Sequence[str]) -> set[tuple[int, int]]:
        """Spans [start, end) of the names in a text."""
        from spacy.tokens import Doc

        positions = [position for position, token in enumerate(tokens) if token not in (START, END) and token.strip()]
        words = [tokens[position] for position in positions]
        starts: list[int | bool | None] = [
            position > 0 and tokens[position - 1] in (START, END) for position in positions
        ]
        document = self._pipeline(Doc(self._pipeline.vocab, words=words, sent_starts=starts))
        return {
            (positions[name.start], positions[name.end - 1] + 1) for name in document.ents if name.label_ not in SKIPPED
        }

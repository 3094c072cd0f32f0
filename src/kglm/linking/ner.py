"""Names by a spaCy pipeline instead of capitals: `--ner MODEL`, any that is installed and knows entities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kglm.errors import ConfigError
from kglm.text.document import END, START

NO_NAMES = frozenset(["DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL"])
"""Kinds that the story finds by facts, if they are any."""


class SpacyNames:
    """Where a spaCy pipeline sees names."""

    def __init__(self, model: str | Any) -> None:
        """`model`: the name of an installed pipeline, a path, or a pipeline."""
        import spacy

        try:
            self._pipeline = spacy.load(model) if isinstance(model, str) else model
        except OSError as error:
            raise ConfigError(f"no spaCy pipeline {model!r}", remedy=f"python -m spacy download {model}") from error
        if not {"ner", "entity_ruler", "span_ruler", "transformer"} & set(self._pipeline.pipe_names):
            raise ConfigError(f"the spaCy pipeline {model!r} knows no entities", remedy="use one with the part ner")

    def spans(self, tokens: Sequence[str]) -> set[tuple[int, int]]:
        """The names of a text: [start, end) over its tokens."""
        from spacy.tokens import Doc

        places = [place for place, token in enumerate(tokens) if token not in (START, END) and token.strip()]
        words = [tokens[place] for place in places]
        starts: list[int | bool | None] = [place > 0 and tokens[place - 1] in (START, END) for place in places]
        document = self._pipeline(Doc(self._pipeline.vocab, words=words, sent_starts=starts))
        return {(places[name.start], places[name.end - 1] + 1) for name in document.ents if name.label_ not in NO_NAMES}

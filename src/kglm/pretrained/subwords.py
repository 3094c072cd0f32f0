"""Subwords of a language model: text to ids with places, ids to text, and the format of a chat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from kglm.errors import ConfigError, DataError

SEPARATOR = "<|endoftext|>"
"""Subword that starts a text, if the model has it; otherwise its beginning-of-text or end-of-text mark is used."""


class ChatFormat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The texts around a question, with which the model answers it."""

    before: str
    after: str
    end: str
    """Subword that ends an answer."""


class SubwordsRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is stored beside the tokenizer."""

    start: str
    chat: ChatFormat | None


class Encoded(NamedTuple):
    """A text as subwords: subword i is characters [end of i − 1, end of i)."""

    ids: list[int]
    ends: list[int]


@contextmanager
def tokenizing(place: Path | None = None) -> Iterator[None]:
    """Turn what a tokenizer that makes no sense ends in into an error; a panic of the library is no Exception."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        message = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise DataError(
            f"has no tokenizer that can be used ({message})", place=place, remedy="get the model again"
        ) from error


class Subwords:
    """The tokenizer of a model."""

    def __init__(self, tokenizer: Any, record: SubwordsRecord) -> None:
        self._tokenizer = tokenizer
        self.chat = record.chat
        start = tokenizer.token_to_id(record.start)
        if start is None:
            raise DataError(f"the tokenizer has no subword {record.start!r}", remedy="convert the model again")
        self.start: int = start
        """Subword before the first one of a text."""

    @classmethod
    def parse(cls, content: bytes, record: SubwordsRecord) -> Subwords:
        """The tokenizer of a `tokenizer.json`."""
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise ConfigError(
                f"a pretrained model needs the package tokenizers: {error}", remedy="pip install 'kglm[hf]'"
            ) from error
        with tokenizing():
            tokenizer = Tokenizer.from_str(content.decode())
            tokenizer.no_padding()
            tokenizer.no_truncation()
        return cls(tokenizer, record)

    def __len__(self) -> int:
        return int(self._tokenizer.get_vocab_size())

    @cached_property
    def largest(self) -> int:
        """The largest id of a subword."""
        return int(max(self._tokenizer.get_vocab().values()))

    def encode(self, text: str) -> Encoded:
        """The canonical subwords of a text."""
        with tokenizing():
            found = self._tokenizer.encode(text, add_special_tokens=False)
        ends, last = [], 0
        for _, end in found.offsets:
            last = max(last, end)
            ends.append(last)
        return Encoded(found.ids, ends)

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """The subwords of many short texts."""
        with tokenizing():
            return [found.ids for found in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of subwords, special ones included."""
        with tokenizing():
            return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))

    @cached_property
    def special(self) -> frozenset[int]:
        """Subwords that are marks instead of text."""
        return frozenset(id for id, token in self._tokenizer.get_added_tokens_decoder().items() if token.special) | {
            self.start
        }

    @cached_property
    def texts(self) -> list[str]:
        """Text of each subword in the middle of a text; empty for marks."""
        with tokenizing():
            [anchor] = self.encode("a").ids[-1:]
        skip = len(self.decode([anchor]))
        return ["" if id in self.special else self.decode([anchor, id])[skip:] for id in range(len(self))]

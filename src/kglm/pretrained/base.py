"""A pretrained language model, ready to use: probabilities of a text, features of its positions, next subwords.

    base = BaseModel.open("smollm2")
    encoded = base.subwords.encode("Barack Obama was born in Honolulu.")
    base.log_probs(encoded.ids)                # log p of each subword given those before it

Long texts are read in windows that overlap: a subword sees at least `window − stride` subwords before it, if there are
as many. Window and stride are part of every reported number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from kglm.errors import ConfigError, DataError
from kglm.files.artefact import Artefact
from kglm.files.tensors import map_tensors
from kglm.pretrained.convert import TENSORS, ModelRecord, load_converted
from kglm.pretrained.llama import Llama
from kglm.pretrained.sources import EMBEDDED, find_model
from kglm.pretrained.subwords import Subwords, SubwordsRecord

WINDOW, STRIDE = 768, 512
"""Subwords of a window, and between the beginnings of two windows."""
PIECE = 128
"""Positions whose scores of all subwords are in memory at a time."""


class Window(NamedTuple):
    """Positions [first, end) of a text, read from position `begin` on."""

    begin: int
    first: int
    end: int


def windows(count: int, window: int = WINDOW, stride: int = STRIDE) -> Iterator[Window]:
    """Windows that cover `count` positions, each position in exactly one [first, end)."""
    if not 0 < stride <= window:
        raise ConfigError(f"stride {stride} with a window of {window}", remedy="give a stride up to the window")
    begin = first = 0
    while first < count:
        end = min(begin + window, count)
        yield Window(begin, first, end)
        begin, first = begin + stride, end


class BaseModel:
    """A frozen causal language model with its subwords."""

    def __init__(self, name: str, source: str, digest: str, model: Llama, subwords: Subwords) -> None:
        self.name, self.source, self.digest = name, source, digest
        """`source` opens it again; `digest` is the hash of the source, which features and heads are stored with."""
        self.model, self.subwords = model, subwords

    @classmethod
    def open(cls, name: str | Path = EMBEDDED, *, dtype: torch.dtype | None = None) -> BaseModel:
        """Open `smollm2`, a Hugging Face directory or a GGUF file; the first time, it is converted (see `convert`).

        Weights are multiplied in bfloat16 if the processor can, otherwise in float32.
        """
        source = find_model(name)
        label = EMBEDDED if str(name) == EMBEDDED else source.resolve().name.removesuffix(".gguf")
        dtype = dtype or default_type()
        place = EMBEDDED if label == EMBEDDED else str(source.resolve())
        return load_converted(source, label, lambda artefact: cls._load(label, place, artefact, dtype))

    @classmethod
    def _load(cls, name: str, source: str, artefact: Artefact, dtype: torch.dtype) -> BaseModel:
        record = artefact.record("model.json", ModelRecord)
        subwords = Subwords.parse(artefact.read("tokenizer.json"), artefact.record("subwords.json", SubwordsRecord))
        if subwords.largest >= record.config.vocabulary:
            raise DataError(
                f"the tokenizer has a subword {subwords.largest}, the model {record.config.vocabulary:,} subwords",
                place=artefact.home,
                remedy="give a model with its own tokenizer",
            )
        model = Llama(record.config, map_tensors(artefact, TENSORS), dtype)
        return cls(name, source, artefact.home.name.rpartition("-")[2], model, subwords)

    @property
    def feature_layers(self) -> tuple[int, int]:
        """The layers whose states are features: one at two thirds of the depth, and the last."""
        layers = self.model.config.layers
        return 2 * layers // 3, layers

    def log_probs(self, ids: Sequence[int], *, window: int = WINDOW, stride: int = STRIDE) -> Tensor:
        """log p of each subword of a text, given those before it in its window; in double precision."""
        fed = torch.tensor([self.subwords.start, *ids])
        found = torch.zeros(len(ids), dtype=torch.float64)
        for each in windows(len(ids), window, stride):
            last_TD = self.model.hidden(fed[None, each.begin : each.end]).last_BTD[0, each.first - each.begin :]
            next_T = fed[each.first + 1 : each.end + 1]
            for first in range(0, len(last_TD), PIECE):
                logits_TV = self.model.logits(last_TD[first : first + PIECE])
                piece_T = next_T[first : first + PIECE, None]
                log_p_T = logits_TV.gather(1, piece_T)[:, 0] - logits_TV.logsumexp(1)
                found[each.first + first : each.first + first + len(log_p_T)] = log_p_T.double()
        if not bool(torch.isfinite(found).all()):
            raise DataError("its scores are not finite", place=self.name, remedy="get the model again")
        return found


def default_type() -> torch.dtype:
    """bfloat16 if the processor multiplies it, otherwise float32."""
    return torch.bfloat16 if torch.ops.mkldnn._is_mkldnn_bf16_supported() else torch.float32

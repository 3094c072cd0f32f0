"""States of the base at each subword, computed once for each text and stored on disk.

    store = FeatureStore.open(Path("features"), base)
    for features in store.of(texts): …                    # in the order of the texts; what is missing is computed

States depend on the text only, never on its annotation. Each text is one artefact, `HASH/`, where the hash is that of
its subwords, the base, and window and stride; so texts that are stored stay valid whatever else changes. Features are
kept in half precision: 2 × 2 × 576 bytes a subword for SmolLM2, 3 GB for a million words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from xxhash import xxh3_128

from kglm.errors import DamagedError
from kglm.files import remove_directory, writing
from kglm.files.artefact import Artefact, new_artefact
from kglm.pretrained.base import PIECE, STRIDE, WINDOW, BaseModel, windows


class Features(NamedTuple):
    """What the heads see of a text; position t has read the subwords before subword t."""

    ids_T: Tensor
    middle_TD: Tensor
    """States after two thirds of the layers, half precision."""
    last_TD: Tensor
    """States of the last layer, normalised, half precision."""
    log_z_T: Tensor
    """log Σ exp of the base's scores of all subwords."""
    log_p_T: Tensor
    """log p_B(subword t | subwords before it)."""


def compute(base: BaseModel, ids: Sequence[int], *, window: int = WINDOW, stride: int = STRIDE) -> Features:
    """The features of a text, in windows."""
    fed = torch.tensor([base.subwords.start, *ids])
    middle, _ = base.feature_layers
    parts: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
    for each in windows(len(ids), window, stride):
        found = base.model.hidden(fed[None, each.begin : each.end], after=(middle,))
        skip = each.first - each.begin
        last_TD = found.last_BTD[0, skip:]
        next_T = fed[each.first + 1 : each.end + 1]
        log_z, log_p = [], []
        for first in range(0, len(last_TD), PIECE):
            logits_TV = base.model.logits(last_TD[first : first + PIECE])
            log_z.append(logits_TV.logsumexp(1))
            log_p.append(logits_TV.gather(1, next_T[first : first + PIECE, None])[:, 0] - log_z[-1])
        parts.append((found.after[middle][0, skip:].half(), last_TD.half(), torch.cat(log_z), torch.cat(log_p)))
    if not parts:
        empty, size = torch.zeros(0), base.model.config.hidden
        return Features(fed[:0], empty.new_zeros(0, size).half(), empty.new_zeros(0, size).half(), empty, empty)
    middle_TD, last_TD, log_z_T, log_p_T = (torch.cat(columns) for columns in zip(*parts, strict=True))
    return Features(fed[1:], middle_TD, last_TD, log_z_T, log_p_T)


class FeatureStore:
    """Features on disk, by text."""

    def __init__(self, home: Path, base: BaseModel, *, window: int = WINDOW, stride: int = STRIDE) -> None:
        self.home, self.base, self._window, self._stride = home, base, window, stride
        with writing(home):
            home.mkdir(parents=True, exist_ok=True)

    def of(self, texts: Iterable[Sequence[int]]) -> Iterator[Features]:
        """The features of texts given as subwords; those that are not stored are computed and stored."""
        for ids in texts:
            yield self.get(ids)

    def get(self, ids: Sequence[int]) -> Features:
        """The features of one text."""
        path = self.home / self._key(ids)
        if path.exists():
            try:
                return self._read(path, ids)
            except DamagedError:
                remove_directory(path)
        features = compute(self.base, ids, window=self._window, stride=self._stride)
        with new_artefact(path) as writer:
            for name, tensor in zip(Features._fields[1:], features[1:], strict=True):
                writer.array(name, tensor.numpy())
        return features

    def _key(self, ids: Sequence[int]) -> str:
        about = f"1 {self.base.digest} {self.base.model.dtype} {self._window} {self._stride} "
        return xxh3_128(about.encode() + np.array(ids, np.int32).tobytes()).hexdigest()

    @staticmethod
    def _read(path: Path, ids: Sequence[int]) -> Features:
        artefact = Artefact.open(path)
        arrays = [torch.from_numpy(artefact.array(name).copy()) for name in Features._fields[1:]]
        return Features(torch.tensor(ids), *arrays)

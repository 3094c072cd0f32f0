"""States of the base at each subword, computed once for each text and stored on disk.

    store = FeatureStore(Path("features"), base)
    stored = store.of(texts)          # computes what is missing
    stored[3]                         # the features of the fourth text

States depend on the text only, never on its annotation. Texts are stored in shards of about `SHARD` subwords, each one
artefact, `HASH/`, where the hash is that of its subwords, the base, and window and stride: a run that is interrupted
goes on with the next shard, and shards stay valid whatever else changes. Features are kept in half precision:
2 × 2 × 576 bytes a subword for SmolLM2, 3 GB for a million words. Beyond `limit` bytes nothing more is stored, and
features are computed each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from xxhash import xxh3_128

from kglm.errors import KglmError
from kglm.files import remove_directory, writing
from kglm.files.artefact import Artefact, new_artefact
from kglm.pretrained.base import PIECE, STRIDE, WINDOW, BaseModel, windows
from kglm.progress import progress

FORMAT = 2
SHARD = 1 << 15
"""Subwords of a shard, unless one text is longer."""
SHORT = 128
"""Texts of up to this many subwords are read together."""
ROWS = 32
"""Short texts that are read at a time."""
LIMIT = 40 << 30
"""Default limit in bytes."""


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
        parts.append((found.after[middle][0, skip:].half(), last_TD.half(), *next_log_probs(base, last_TD, next_T)))
    if not parts:
        empty, size = torch.zeros(0), base.model.config.hidden
        return Features(fed[:0], empty.new_zeros(0, size).half(), empty.new_zeros(0, size).half(), empty, empty)
    middle_TD, last_TD, log_z_T, log_p_T = (torch.cat(columns) for columns in zip(*parts, strict=True))
    return Features(fed[1:], middle_TD, last_TD, log_z_T, log_p_T)


def next_log_probs(base: BaseModel, last_TD: Tensor, next_T: Tensor) -> tuple[Tensor, Tensor]:
    """log Σ exp of the base's scores after states of the last layer, and log p_B of the next subwords."""
    log_z, log_p = [], []
    for first in range(0, len(last_TD), PIECE):
        logits_TV = base.model.logits(last_TD[first : first + PIECE])
        log_z.append(logits_TV.logsumexp(1))
        log_p.append(logits_TV.gather(1, next_T[first : first + PIECE, None])[:, 0] - log_z[-1])
    return torch.cat(log_z), torch.cat(log_p)


def compute_many(
    base: BaseModel, texts: Sequence[Sequence[int]], *, window: int = WINDOW, stride: int = STRIDE
) -> list[Features]:
    """The features of many texts; short ones are read together."""
    found: dict[int, Features] = {}
    short = sorted((n for n, ids in enumerate(texts) if 0 < len(ids) <= SHORT), key=lambda n: len(texts[n]))
    for first in range(0, len(short), ROWS):
        found |= zip(
            short[first : first + ROWS], _rows(base, [texts[n] for n in short[first : first + ROWS]]), strict=True
        )
    return [found[n] if n in found else compute(base, ids, window=window, stride=stride) for n, ids in enumerate(texts)]


def _rows(base: BaseModel, texts: Sequence[Sequence[int]]) -> Iterator[Features]:
    """Features of short texts; no state depends on the padding, which is at the end."""
    width = max(map(len, texts))
    fed = torch.tensor([[base.subwords.start, *ids, *([0] * (width - len(ids)))] for ids in texts])
    middle, _ = base.feature_layers
    read = base.model.hidden(fed[:, :-1], after=(middle,))
    inside = torch.arange(width) < torch.tensor([len(ids) for ids in texts])[:, None]
    last_ND, middle_ND, next_N = read.last_BTD[inside], read.after[middle][inside], fed[:, 1:][inside]
    log_z_N, log_p_N = next_log_probs(base, last_ND, next_N)
    first = 0
    for ids in texts:
        part = slice(first, first + len(ids))
        first += len(ids)
        yield Features(next_N[part], middle_ND[part].half(), last_ND[part].half(), log_z_N[part], log_p_N[part])


def shard_arrays(
    base: BaseModel, texts: Sequence[Sequence[int]], *, window: int = WINDOW, stride: int = STRIDE
) -> list[np.ndarray]:
    """The arrays of a shard: the fields of `Features` after the first, of all its texts."""
    found = compute_many(base, texts, window=window, stride=stride)
    return [torch.cat(tensors).numpy() for tensors in list(zip(*found, strict=True))[1:]]


def shards_of(texts: Sequence[Sequence[int]]) -> tuple[list[list[int]], list[tuple[int, int]]]:
    """Texts of each shard; shard, and position in it, of each text."""
    shards: list[list[int]] = []
    places = []
    size = SHARD
    for n, ids in enumerate(texts):
        if size + len(ids) > SHARD:
            shards.append([])
            size = 0
        shards[-1].append(n)
        places.append((len(shards) - 1, size))
        size += len(ids)
    return shards, places


class StoredFeatures:
    """The features of some texts, read from their shards when they are asked for."""

    def __init__(self, texts: Sequence[Sequence[int]], places: Sequence[tuple[int, int]], store: FeatureStore,
                 shards: Sequence[Sequence[int]]) -> None:  # fmt: skip
        """`places`: shard, and position in it, of each text; `shards`: the texts of each shard."""
        self._texts, self._places, self._store, self._shards = texts, places, store, shards
        self._open: dict[int, list[np.ndarray]] = {}

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, n: int) -> Features:
        ids = self._texts[n]
        shard, first = self._places[n]
        if shard not in self._open:
            arrays = self._store.arrays([self._texts[k] for k in self._shards[shard]])
            if arrays is None:  # over the limit
                return self._store.get(ids)
            self._open[shard] = arrays
        part = slice(first, first + len(ids))
        tensors = (torch.from_numpy(np.array(array[part])) for array in self._open[shard])
        return Features(torch.tensor(list(ids), dtype=torch.int64), *tensors)


class FeatureStore:
    """Features on disk, by text."""

    def __init__(
        self, home: Path, base: BaseModel, *, window: int = WINDOW, stride: int = STRIDE, limit: int = LIMIT
    ) -> None:
        """`limit`: bytes of all shards, after which nothing more is stored."""
        self.home, self.base, self._window, self._stride, self._limit = home, base, window, stride, limit
        with writing(home):
            home.mkdir(parents=True, exist_ok=True)
        self._stored = sum(file.stat().st_size for file in home.glob("*/*.npy"))

    def get(self, ids: Sequence[int]) -> Features:
        """The features of one text, computed now."""
        return compute(self.base, ids, window=self._window, stride=self._stride)

    def of(self, texts: Sequence[Sequence[int]], *, label: str = "reading texts") -> StoredFeatures:
        """The features of texts given as subwords; those that are not stored are computed and stored."""
        shards, places = shards_of(texts)
        with progress(label, sum(map(len, texts)), "subwords") as advance:
            for shard in shards:
                chosen = [texts[n] for n in shard]
                self.store(chosen)
                advance(sum(map(len, chosen)))
        return StoredFeatures(texts, places, self, shards)

    def store(self, texts: Sequence[Sequence[int]]) -> None:
        """Compute and store one shard, unless it is there or the limit is reached."""
        if not self.is_full and self.arrays(texts) is None:
            self.write(texts, shard_arrays(self.base, texts, window=self._window, stride=self._stride))

    @property
    def is_full(self) -> bool:
        """True if the limit is reached."""
        return self._stored >= self._limit

    def write(self, texts: Sequence[Sequence[int]], arrays: Sequence[np.ndarray]) -> None:
        """Store the arrays of one shard."""
        with new_artefact(self.home / self._key(texts)) as writer:
            for name, array in zip(Features._fields[1:], arrays, strict=True):
                writer.array(name, array)
                self._stored += array.nbytes

    def arrays(self, texts: Sequence[Sequence[int]]) -> list[np.ndarray] | None:
        """The arrays of a stored shard, mapped; None if it is not stored, or damaged."""
        path = self.home / self._key(texts)
        if not path.exists():
            return None
        try:
            artefact = Artefact.open(path)
            arrays = [artefact.array(name) for name in Features._fields[1:]]
        except KglmError:
            remove_directory(path)
            return None
        count = sum(map(len, texts))
        return arrays if all(len(array) == count for array in arrays) else None

    def _key(self, texts: Sequence[Sequence[int]]) -> str:
        about = f"{FORMAT} {self.base.digest} {self.base.model.dtype} {self._window} {self._stride} "
        hasher = xxh3_128(about.encode())
        for ids in texts:
            hasher.update(np.array([len(ids), *ids], np.int32).tobytes())
        return hasher.hexdigest()

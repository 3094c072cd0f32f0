"""Features of many documents, computed by several processes or machines.

    report = store_features([documents], "smollm2", Path("features"), workers=8)

The shards are those that training with the same files reads. A run that is interrupted goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from kglm.errors import ConfigError
from kglm.heads.features import LIMIT, FeatureStore, shard_arrays, shards_of
from kglm.heads.passage import passage
from kglm.parallel import ordered_map
from kglm.pretrained.base import STRIDE, WINDOW, BaseModel
from kglm.progress import progress
from kglm.text.document import Document

IN_FLIGHT = 8
"""Shards on a cluster at a time: each is about 160 MB."""


class Job(NamedTuple):
    """One shard."""

    base: str
    """Name or path of the base, the same on all machines."""
    window: int
    stride: int
    texts: list[list[int]]


class Shard(NamedTuple):
    """The arrays of a shard, and what made them."""

    digest: str
    dtype: str
    arrays: list[np.ndarray]


Runner = Callable[[Callable[[Job], Shard], Iterable[Job]], Iterator[Shard]]
"""Maps a function over jobs, in order."""


@dataclass(frozen=True)
class FeaturesReport:
    """What has been stored."""

    texts: int
    subwords: int
    shards: int
    computed: int
    """Shards that were not stored before."""
    left_out: int
    """Shards over the limit."""


@lru_cache(maxsize=1)
def _base(name: str) -> BaseModel:
    return BaseModel.open(name)


def compute_shard(job: Job) -> Shard:
    """The arrays of one shard; runs in any process, on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        base = _base(job.base)
        arrays = shard_arrays(base, job.texts, window=job.window, stride=job.stride)
        return Shard(base.digest, str(base.model.dtype), arrays)
    finally:
        torch.set_num_threads(threads)


def store_features(
    files: Sequence[Sequence[Document]],
    base: str,
    home: Path,
    *,
    workers: int = 1,
    runner: Runner | None = None,
    window: int = WINDOW,
    stride: int = STRIDE,
    limit: int = LIMIT,
) -> FeaturesReport:
    """Compute and store the features of the documents of some files, each apart.

    `runner` runs the jobs elsewhere than in `workers` processes here.
    """
    model = _base(base)
    store = FeatureStore(home, model, window=window, stride=stride, limit=limit)
    shards: list[list[list[int]]] = []
    for documents in files:
        texts = [ids for document in documents if (ids := passage(document, model.subwords).ids)]
        shards += ([texts[n] for n in shard] for shard in shards_of(texts)[0])
    missing = [shard for shard in shards if store.arrays(shard) is None]
    sizes = [sum(map(len, shard)) for shard in shards]
    jobs = (Job(base, window, stride, shard) for shard in missing if not store.is_full)
    computed = 0
    with progress("reading texts", sum(sizes), "subwords") as advance:
        advance(sum(sizes) - sum(sum(map(len, shard)) for shard in missing))
        run = partial(ordered_map, workers=workers) if runner is None else runner
        for shard, found in zip(missing, run(compute_shard, jobs), strict=False):
            if (found.digest, found.dtype) != (model.digest, str(model.model.dtype)):
                raise ConfigError(
                    f"a worker has the base {found.digest} in {found.dtype}, here it is {model.digest} in "
                    f"{model.model.dtype}",
                    remedy="use machines of one kind, with the same base",
                )
            store.write(shard, found.arrays)
            computed += 1
            advance(sum(map(len, shard)))
    return FeaturesReport(sum(map(len, shards)), sum(sizes), len(shards), computed, len(missing) - computed)

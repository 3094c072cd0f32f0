"""TransE: a vector for every entity and relation such that v_p + v_r is near v_e for each fact (p, r, e).

    delta(p, r, e) = ||v_p + v_r − v_e||²
    loss = Σ max(0, margin + delta(true) − delta(corrupted)),  head or tail replaced by a random entity

Entities are kept at unit norm. `embed_graph` trains, measures on facts that were held out, and puts the vectors beside
the graph. The order of triples and all random numbers of a round follow from (seed, epoch, round): a run that was
killed and started again gives the same bits as one that was not.

Bordes et al., Translating Embeddings for Modeling Multi-relational Data, 2013.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from kglm.errors import ConfigError, DataError, KglmError
from kglm.files import exclusive, read_json
from kglm.kg.arrays import LongArray
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.snapshots import discard, load_array, newest, publish
from kglm.kg.triples import FIRST_ENTITY, MEAN, GraphTriples, Triples, graph_triples, split
from kglm.kg.vectors import FloatArray, Vectors, described, vectors_directory
from kglm.progress import progress

if TYPE_CHECKING:  # torch takes seconds to import; the command's help does not wait for it
    from kglm.kg.transe_step import Pairs, Table

FORMAT = 1
ROUND = 1 << 18
"""Pairs between two chances to save or stop."""


@dataclass(frozen=True)
class TransEConfig:
    """How the vectors are trained."""

    dim: int = 256
    """Dimensions of a vector."""
    epochs: int = 100
    """How often each triple is seen."""
    learning_rate: float = 0.03
    """Step size; with adagrad, that of the first step of each number."""
    optimiser: Literal["adagrad", "sgd"] = "adagrad"
    """adagrad divides by the root of the sum of squared gradients of each number; sgd does not."""
    batch: int = 1024
    """Triples in a step."""
    negatives: int = 1
    """Corruptions of each triple."""
    margin: float = 1.0
    """By how much a true triple shall be nearer than a corrupted one."""
    held_out: int = 2000
    """Facts that are not trained on but asked afterwards; at most 1 % of them."""
    seed: int = 0
    """The same seed gives the same vectors."""
    threads: int = 1
    """Threads of each operation; the vectors are the same for any number."""
    save_every: float = 60.0
    """Seconds between states that a killed run continues from."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value, least = getattr(self, field.name), 0 if field.name in ("epochs", "held_out", "seed", "margin") else 1
            if isinstance(value, float) and field.name in ("learning_rate", "save_every"):
                good = value > 0 or (field.name == "save_every" and value == 0)
            else:
                good = isinstance(value, str) or value >= least
            if not good:
                raise ConfigError(f"{field.name} is {value}", remedy=f"it must be at least {least or 'above'} 0")
        if self.optimiser not in ("adagrad", "sgd"):
            raise ConfigError(f"optimiser is {self.optimiser!r}", remedy="use adagrad or sgd")

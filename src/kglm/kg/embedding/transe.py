"""TransE: a vector for every entity and relation such that v_p + v_r is near v_e for each fact (p, r, e).

    delta(p, r, e) = ||v_p + v_r − v_e||²
    loss = Σ max(0, margin + delta(true) − delta(corrupted)),  head or tail replaced by a random entity

Entities have unit norm. `embed_graph` trains, evaluates on held-out facts, and saves the vectors beside the graph. The
seed, epoch and round determine the order of triples and all random numbers, so a resumed run gives bit-identical
vectors.

Bordes et al., Translating Embeddings for Modeling Multi-relational Data, 2013.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from kglm.config import check_range
from kglm.errors import ConfigError, DataError, KglmError
from kglm.files import exclusive
from kglm.files.artefact import Artefact, Writer
from kglm.files.records import Count, HexHash
from kglm.kg.arrays import LongArray
from kglm.kg.embedding.triples import FIRST_ENTITY, MEAN, GraphTriples, Triples, graph_triples, split
from kglm.kg.embedding.vectors import FloatArray, Vectors, VectorsMeta, graph_identity, vectors_directory
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.snapshots import discard, newest, publish
from kglm.kg.store import refuse_read_only
from kglm.progress import progress

if TYPE_CHECKING:  # torch takes seconds to import, which `--help` should not need
    from kglm.kg.embedding.transe_step import Pairs, Table

FORMAT = 2
ROUND_PAIRS = 1 << 18
"""Pairs in a round; a run can be saved or stopped after each round."""
INITIAL_RELATION_NORM = np.float32(0.1)
"""Initial length of a relation vector. With 1 the MRR on the shared graph is 6 % lower after 25 epochs."""


@dataclass(frozen=True)
class TransEConfig:
    """Settings of TransE training."""

    dim: int = 256
    """Dimensions of a vector."""
    epochs: int = 200
    """Passes over the triples."""
    learning_rate: float = 0.03
    """Step size; with adagrad, the size of the first step of each parameter."""
    optimiser: Literal["adagrad", "sgd"] = "adagrad"
    """adagrad divides by the root of each parameter's sum of squared gradients; sgd does not."""
    batch: int = 1024
    """Triples per step."""
    negatives: int = 1
    """Corruptions of each triple."""
    margin: float = 1.0
    """Required gap in squared distance between a corrupted and a true triple."""
    held_out: int = 2000
    """Facts to evaluate on instead of training on them; at most 1 % of all facts."""
    seed: int = 0
    """The same seed gives the same vectors."""
    threads: int = 1
    """Threads per operation; the vectors do not depend on it."""
    save_every: float = 60.0
    """Seconds between saved states, from which a killed run resumes."""

    def determining(self) -> dict[str, Any]:
        """The settings that determine the vectors."""
        return {name: value for name, value in asdict(self).items() if name not in ("threads", "save_every")}

    def __post_init__(self) -> None:
        for name, least in _MINIMUM.items():
            if not getattr(self, name) >= least:
                raise ConfigError(f"{name} is {getattr(self, name)}", remedy=f"it must be at least {least}")
            most = MAX_DIM if name == "dim" else MAX_VALUE
            if name != "save_every":
                check_range(name, getattr(self, name), least, most)
        if not 0 < self.learning_rate < float("inf"):
            raise ConfigError(f"learning_rate is {self.learning_rate}", remedy="it must be above 0")
        if self.optimiser not in ("adagrad", "sgd"):
            raise ConfigError(f"optimiser is {self.optimiser!r}", remedy="use adagrad or sgd")


MAX_DIM, MAX_VALUE = 1 << 16, 10**9
_MINIMUM = {
    "dim": 1, "epochs": 1, "batch": 1, "negatives": 1, "threads": 1, "margin": 0, "held_out": 0, "seed": 0,
    "save_every": 0,
}  # fmt: skip


@dataclass(frozen=True)
class EmbedReport:
    """Results of `embed_graph`. The metrics are None if no fact could be held out."""

    mrr: float | None
    hits1: float | None
    hits3: float | None
    hits10: float | None
    mrr_tail: float | None
    mrr_head: float | None
    triples_per_second: float
    seconds: float
    """Training time, including the time before a resume."""
    triples: int
    """Distinct training triples, reverses included."""
    held_out: int
    entities: int
    """Entities with their own vector."""
    relations: int
    """Relations with a vector, reverses included."""
    epochs: int
    dim: int
    seed: int
    active: float
    """Share of the last round's pairs within the margin."""
    resumed: bool
    vectors: str


def embed_graph(kg: str | Path, config: TransEConfig | None = None) -> EmbedReport:
    """Train vectors for the graph file `kg` and save them beside it.

    A stopped or killed run resumes from its last saved state if it is started again with the same settings.
    """
    config = config or TransEConfig()
    refuse_read_only(Path(kg))
    state = Path(f"{vectors_directory(kg)}.partial")
    with (
        KnowledgeGraph.open(kg, whole=True) as graph,
        exclusive(f"{vectors_directory(kg)}.lock", "another process is training vectors of this graph"),
        _threads(config.threads),
    ):
        from kglm.kg.embedding.ranking import metrics

        run = TransE(graph_triples(graph), config, place=kg)
        key = StateKey(FORMAT, graph.hash, config.determining())
        resumed = run.restore(state, key)
        run.train(lambda: run.save(state, key))
        entity_RD, relation_RD = run.vectors()
        measured = metrics(run.data, run.held_out, entity_RD, relation_RD)
        meta = VectorsMeta(graph=graph_identity(graph), config=asdict(config), metrics=measured, seconds=run.seconds)
        saved = Vectors(entity_RD, relation_RD, run.data.row_of_node, meta).save(kg)
        discard(state)
    measures = {name: measured.get(name) for name in ("mrr", "hits1", "hits3", "hits10", "mrr_tail", "mrr_head")}
    return EmbedReport(
        **measures,
        triples_per_second=run.triples_per_second,
        seconds=round(run.seconds, 3),
        triples=len(run.training),
        held_out=len(run.held_out),
        entities=len(entity_RD) - FIRST_ENTITY,
        relations=int(relation_RD.any(1).sum()),
        epochs=config.epochs,
        dim=config.dim,
        seed=config.seed,
        active=run.active,
        resumed=resumed,
        vectors=str(saved),
    )


class StateKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What must be equal for a saved state to be resumed."""

    format: int
    graph: HexHash
    config: dict[str, int | float | str]


class State(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Progress of a training run, in `meta.json` of its saved state."""

    key: StateKey
    done: Count
    seconds: float
    active: float


class TransE:
    """A training run: its vectors and progress."""

    def __init__(self, data: GraphTriples, config: TransEConfig, place: object = None) -> None:
        from kglm.kg.embedding.transe_step import EPSILON, Table

        self.data, self.config, self.place = data, config, place
        self.training, self.held_out = split(data, config.held_out, self._generator(_Stream.SPLIT))
        if not len(self.training):
            raise DataError("has no facts to learn vectors from", place=place, remedy="import facts first")
        vector_RD = self._initial()
        squares_RD = np.full_like(vector_RD, EPSILON) if config.optimiser == "adagrad" else None
        self.table: Table = Table(vector_RD, squares_RD, data.relations)
        self.size = max(1, ROUND_PAIRS // (config.batch * config.negatives)) * config.batch
        """Triples per round."""
        self.rounds = -(-len(self.training) // self.size)
        """Rounds per epoch."""
        self.done = 0
        """Rounds completed."""
        self.seconds = 0.0
        self.active = 1.0
        self.triples_per_second = 0.0
        self._order: tuple[int, LongArray] = (-1, np.zeros(0, np.int64))

    def _generator(self, *purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.config.seed, *purpose])

    def _initial(self) -> FloatArray:
        """Random directions; relation vectors are short, and zero for relations without triples such as `reflexive`."""
        shape = self.data.relations + self.data.rows, self.config.dim
        vector_RD = self._generator(_Stream.INITIAL).standard_normal(shape, np.float32)
        vector_RD /= np.linalg.norm(vector_RD, axis=1, keepdims=True)
        used = np.bincount(self.training.relation, minlength=self.data.relations) > 0
        vector_RD[: self.data.relations] *= np.where(used, INITIAL_RELATION_NORM, 0)[:, None]
        return vector_RD

    def train(self, save: Callable[[], None] | None = None, seconds: float = float("inf")) -> None:
        """Train to the last epoch or for `seconds`; call `save` every `save_every` seconds and when interrupted."""
        config, total = self.config, self.config.epochs * len(self.training)
        began, started = self.done, self.seconds
        saved = time.monotonic()
        with (
            progress("training vectors", total, "triples", done=self._triples(self.done)) as advance,
            _interrupt() as stop,
        ):
            while self.done < self.rounds * config.epochs and self.seconds - started < seconds:
                clock = time.perf_counter()
                self._round()
                self.seconds += time.perf_counter() - clock
                advance(self._triples(self.done) - self._triples(self.done - 1))
                if save and (stop() or time.monotonic() - saved >= config.save_every):
                    save()
                    saved = time.monotonic()
                if stop():
                    raise KeyboardInterrupt
        passed = self._triples(self.done) - self._triples(began)
        self.triples_per_second = passed / max(self.seconds - started, 1e-9)
        self._check()

    def _triples(self, rounds: int) -> int:
        """Triples processed in the first `rounds` rounds."""
        epochs, rest = divmod(rounds, self.rounds)
        return epochs * len(self.training) + min(rest * self.size, len(self.training))

    def _round(self) -> None:
        epoch, number = divmod(self.done, self.rounds)
        if self._order[0] != epoch:
            self._order = epoch, self._generator(_Stream.ORDER, epoch).permutation(len(self.training))
        places = self._order[1][number * self.size : (number + 1) * self.size]
        pairs = self._corrupt(self.training.take(places), self._generator(_Stream.PAIRS, epoch, number))
        step = self.config.batch * self.config.negatives
        active = 0
        for start in range(0, len(pairs.kept_B), step):
            part = pairs.part(start, start + step)
            active += self.table.step(part, self.config.margin, self.config.learning_rate)
        self.active = active / len(pairs.kept_B)
        self.done += 1

    def _corrupt(self, triples: Triples, generator: np.random.Generator) -> Pairs:
        """Replace head or tail, with equal probability, by a random entity."""
        from kglm.kg.embedding.transe_step import Pairs

        head, relation, tail = (np.repeat(column, self.config.negatives).astype(np.int64) for column in triples)
        first = self.data.relations  # entity rows follow relation rows
        swap = generator.integers(0, 2, len(head), np.int8).view(np.bool_)
        noise = generator.integers(first + FIRST_ENTITY, first + self.data.rows, len(head))
        sign = np.where(swap, np.float32(-1), np.float32(1))
        return Pairs(first + np.where(swap, tail, head), relation, sign, first + np.where(swap, head, tail), noise)

    def vectors(self) -> tuple[FloatArray, FloatArray]:
        """Entity and relation tables for `Vectors`; sets the mean row."""
        relation_RD, entity_RD = np.split(self.table.vector_RD, [self.data.relations])
        entity_RD[MEAN] = entity_RD[FIRST_ENTITY:].mean(0, dtype=np.float64)
        return entity_RD, relation_RD

    def _check(self) -> None:
        if not np.isfinite(self.table.vector_RD).all():
            raise KglmError(
                f"the vectors are not finite after {self._triples(self.done)} triples",
                place=self.place,
                remedy="use a lower learning rate",
            )

    # Saved state

    def save(self, directory: Path, key: StateKey) -> None:
        """Save the state that a resume needs, atomically."""
        self._check()

        def write(writer: Writer) -> None:
            writer.array("vector", self.table.vector_RD)
            if self.table.squares_RD is not None:
                writer.array("squares", self.table.squares_RD)
            writer.json("meta.json", State(key, self.done, self.seconds, self.active))

        publish(directory, write)

    def restore(self, directory: Path, key: StateKey) -> bool:
        """Load the state in `directory` if it has the same key. False if there is none or it is damaged."""
        saved = newest(directory)
        if saved is None:
            return False
        try:
            artefact = Artefact.open(saved)
            state = artefact.record("meta.json", State)
            if state.key != key or state.done > self.rounds * self.config.epochs:
                return False
            vector_RD = self._restored(artefact, "vector")
            squares_RD = None if self.table.squares_RD is None else self._restored(artefact, "squares")
        except DataError as error:
            print(f"note: the saved state is not used, training starts again: {error}", file=sys.stderr)
            return False
        self.table.vector_RD, self.table.squares_RD = vector_RD, squares_RD
        self.done, self.seconds, self.active = state.done, state.seconds, state.active
        return True

    def _restored(self, artefact: Artefact, name: str) -> FloatArray:
        """A writable copy of a saved array, every byte of it checked."""
        artefact.read(f"{name}.npy")
        array: FloatArray = artefact.array(name, np.float32, 2)
        if array.shape != self.table.vector_RD.shape:
            raise DataError(f"{name} has shape {array.shape}", place=artefact.home)
        return array.copy()


class _Stream:
    """Separate streams of random numbers, one for each purpose."""

    SPLIT, INITIAL, ORDER, PAIRS = range(1, 5)


@contextmanager
def _interrupt() -> Iterator[Callable[[], bool]]:
    """Yield a function that is true after Ctrl-C, so that a round can finish; a second Ctrl-C interrupts at once."""
    pressed = False

    def press(_number: int, _frame: object) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, press)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)

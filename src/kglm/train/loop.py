"""One training loop for every model that scores chunks.

Loss = − Σ_t log p(x_t, z_t) / #positions (+ AR and TAR). Validation is the annotated joint likelihood. A step is one
chunk. Randomness comes from the seed: the order of documents from (seed, epoch), dropout masks from a generator whose
state is part of every checkpoint, so a run that was killed and resumed equals one that was never killed. Several
processes share the rows of each chunk (see `processes`); the result is that of one process.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import torch
from torch import Generator, Tensor, nn

from kglm.errors import DataError, KglmError, misfit
from kglm.files.tensors import not_finite, write_tensors
from kglm.model.base import ChunkModel, Scores
from kglm.model.chunk import Chunk
from kglm.model.encoders.encoder import Share
from kglm.progress import progress
from kglm.runs.checkpoint import EpochMetrics, StateDirectory, TrainingState, optimiser_tensors, restore_optimiser
from kglm.runs.records import files_of_run
from kglm.runs.settings import TrainConfig
from kglm.runs.tensors import load_into
from kglm.train.averaging import Averager
from kglm.train.batches import Carried, Line, epoch_plan
from kglm.train.chunks import ChunkBuilder, Piece
from kglm.train.encoding import EncodedDocument
from kglm.train.interrupts import Interrupt, interrupts
from kglm.train.processes import World
from kglm.train.tensorboard import TensorBoardWriter
from kglm.train.totals import Totals, evaluate

BOARD_EVERY = 20
"""Steps between points of the TensorBoard curve."""
DAMAGED = "the model can be used, but its training cannot be resumed: start a new run with --from this one"
TITLES = 5
"""Titles of documents in an error message."""


class Trainer:
    """A model, its data and the directory of its run."""

    def __init__(
        self,
        model: ChunkModel,
        builder: ChunkBuilder,
        train: Sequence[EncodedDocument],
        valid: Sequence[EncodedDocument],
        config: TrainConfig,
        run: Path,
        *,
        world: World | None = None,
    ) -> None:
        for kind, documents in (("training", train), ("validation", valid)):
            if not any(map(len, documents)):
                raise KglmError(f"no {kind} document has a word", remedy="give documents with text")
        self.world = world or World()
        self.model = model.to(self.world.device)
        self.builder = builder
        self.train_documents = train
        self.valid_documents = valid
        self.config = config
        self.run = run
        trained = [p for p in model.parameters() if p.requires_grad]
        optimisers = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
        self.optimiser: torch.optim.Optimizer = optimisers[config.optimiser](trained, lr=config.learning_rate)
        self.averager = Averager(model, config.average, config.average_decay)
        self.generator = Generator().manual_seed(config.seed)
        self.state = StateDirectory(run / "state")
        self.metrics: list[EpochMetrics] = []
        self.step = self.epoch = self.chunk = self.bad_epochs = 0
        self.best = math.inf
        self._learner: nn.Module = self.model
        """The model as it is called for training: wrapped, while `fit` runs, if there are several processes."""
        self._tensorboard = TensorBoardWriter(run, wanted=config.tensorboard and self.world.leads)
        self._carried = Carried()
        self._rows: list[int] = []
        """Rows of the last chunk, in all processes."""
        self._titles = ""
        """Documents of the last chunk."""
        self._totals = Totals()
        self._saved = time.monotonic()

    def fit(self, *, stop_after: int | None = None) -> list[dict[str, Any]]:
        """Train until validation stops improving; `stop_after` stops after this many steps, as an interrupt would.

        Ctrl-C stops after the current step; KeyboardInterrupt is raised when the run is saved.
        """
        self.run.mkdir(parents=True, exist_ok=True)
        with interrupts() as interrupt, self._wrapped():
            while self.epoch < self.config.epochs and self.bad_epochs < self.config.patience:
                if not self._run_epoch(stop_after, interrupt):
                    break
            self.save()
        if interrupt.requested:
            raise KeyboardInterrupt
        return [msgspec.to_builtins(record) for record in self.metrics]

    @contextmanager
    def _wrapped(self) -> Iterator[None]:
        """Train the wrapped model; the wrapper must be gone before the process group is: see `processes.joined`."""
        self._learner = self.world.wrap(self.model)
        try:
            yield
        finally:
            self._learner = self.model

    def _run_epoch(self, stop_after: int | None, interrupt: Interrupt) -> bool:
        """Train on the rest of an epoch; False if it was stopped before the end."""
        config = self.config
        plan = epoch_plan(
            self.train_documents,
            rows=config.rows,
            length=config.length,
            seed=config.seed,
            epoch=self.epoch,
            batching=config.batching,
        )
        done = sum(_targets(lines) for lines in islice(plan, self.chunk))
        started, before = time.monotonic(), done
        with progress(f"epoch {self.epoch + 1}", plan.targets, "tokens", done=done, shown=self.world.leads) as advance:
            for lines in islice(plan, self.chunk, None):
                if stop_after is not None and self.step >= stop_after:
                    return False
                self._set_rate(lines, done / plan.targets)
                save, stop = self._learn(lines, interrupt)
                done += _targets(lines)
                advance(_targets(lines))
                if stop:
                    interrupt.requested = True
                    return False
                if save:
                    self.save()
        self._end_epoch((plan.targets - before) / max(time.monotonic() - started, 1e-9))
        return True

    def _learn(self, lines: list[Line], interrupt: Interrupt) -> tuple[bool, bool]:
        """Take one step; return whether to save and whether to stop, which all processes agree on."""
        chunk, mine = self._share(lines)
        self.model.train()
        scores: Scores = self._learner(chunk, self._carried.state_of(mine), generator=self.generator)
        loss = self._loss(scores, lines)
        due = self.world.leads and time.monotonic() - self._saved > 60 * self.config.checkpoint_minutes
        broken, save, stop = self.world.any(not bool(torch.isfinite(loss)), due, interrupt.requested)
        if broken:
            self._fail(f"the loss is {loss.item()}", lines, scores, mine)
        self.optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        if not torch.isfinite(norm):  # the same in all processes
            self._fail(f"the gradient is {norm.item()}", lines, scores, mine)
        self.optimiser.step()
        self.averager.update()
        self._carried = Carried(mine, scores.state.detach()) if mine else Carried()
        self._rows = [line.row for line in lines]
        self._titles = _titles(lines)
        self._totals.add(scores, chunk)
        self.step += 1
        self.chunk += 1
        if self.step % BOARD_EVERY == 0 and self.config.tensorboard:
            [total] = self.world.total([loss.item() / self.world.size])
            self._tensorboard.write(self.step, {"train/loss": total})
        return save, stop

    def _set_rate(self, lines: list[Line], done: float) -> None:
        """Set the learning rate; `done` is the share of the epoch that is done."""
        rate = self.config.learning_rate
        if self.config.batching == "stream":  # a longer step counts for more
            rate *= _targets(lines) / (len(lines) * self.config.length)
        if self.config.schedule == "linear":
            rate *= 1 - (self.epoch + done) / self.config.epochs
        for group in self.optimiser.param_groups:
            group["lr"] = rate

    def _share(self, lines: list[Line]) -> tuple[Chunk, list[int]]:
        """The chunk of this process's rows, and the numbers of these rows."""
        size, rank = self.world.size, self.world.rank
        places = [place for place, line in enumerate(lines) if line.row % size == rank]
        pieces = [lines[place].piece for place in places]
        chunk = self.builder.build(pieces or [Piece(None)], ahead=self.model.ahead, training=True)
        if size > 1:
            chunk = replace(chunk, share=Share(torch.tensor(places or [0]), len(lines)))
        return chunk.to(self.world.device), [lines[place].row for place in places]

    def _loss(self, scores: Scores, lines: list[Line]) -> Tensor:
        """This process's part of the loss, times the number of processes, because gradients are averaged over them."""
        targets = _targets(lines)
        gain = scores.total_BT.sum() + scores.asked_BT.sum()
        loss = scores.regularisation.mean(targets, len(lines)) - gain / targets
        return loss * self.world.size

    def _fail(self, what: str, lines: list[Line], scores: Scores, mine: list[int]) -> NoReturn:
        """Raise an error before anything changes: the last checkpoint stays valid."""
        fine_B = torch.isfinite(scores.total_BT).all(1).tolist()
        broken = {row for row, fine in zip(mine, fine_B, strict=False) if not fine} or set(mine)
        raise self._error(what, self.step + 1, _titles([line for line in lines if line.row in broken]))

    def _check_weights(self) -> None:
        """Raise an error before weights that are NaN or infinite replace good ones on the disk."""
        if (name := not_finite(self.model.state_dict())) is not None:
            raise self._error(f"the weights {name} are not finite", self.step, self._titles)

    def _error(self, what: str, step: int, titles: str) -> KglmError:
        return KglmError(
            f"{what} at step {step} (epoch {self.epoch + 1}, documents {titles})",
            place=self.run,
            remedy="the last checkpoint is kept; resume with a smaller train.learning_rate or train.clip",
        )

    def _end_epoch(self, rate: float) -> None:
        config = self.config
        with self.averager.in_place():
            valid = evaluate(
                self.model,
                self.builder,
                self.valid_documents,
                rows=config.rows,
                length=config.length,
                world=self.world,
            )
            nats = valid.nats()["nats"]
            if not math.isfinite(nats):
                raise KglmError(
                    f"validation is {nats} nats a word after epoch {self.epoch + 1}",
                    place=self.run,
                    remedy="the last checkpoint is kept; resume with a smaller train.learning_rate",
                )
            better = nats < self.best
            self._check_weights()
            if better and self.world.leads:
                with files_of_run(self.run).update() as writer:
                    write_tensors(writer, "model.safetensors", self.model.state_dict())
        train = self._totals.over(self.world)
        unexplained = {"train": train.unexplained, "valid": valid.unexplained}
        record = EpochMetrics(self.epoch + 1, self.step, train.nats(), valid.nats(), unexplained)
        self.metrics.append(record)
        self.best, self.bad_epochs = (nats, 0) if better else (self.best, self.bad_epochs + 1)
        if config.average == "triggered" and not self.averager.runs and self.bad_epochs >= config.nonmonotone:
            self.averager.start()
            self.bad_epochs = 0
        self._report(record, better, rate)
        self.epoch, self.chunk, self._carried, self._totals = self.epoch + 1, 0, Carried(), Totals()
        self._rows = []
        self.save()

    def _report(self, record: EpochMetrics, better: bool, rate: float) -> None:
        if not self.world.leads:
            return
        train, valid = record.train["nats"], record.valid["nats"]
        print(
            f"epoch {record.epoch}: train {train:.4f}, valid {valid:.4f} nats a word{' (best)' if better else ''}, "
            f"{rate:,.0f} tokens/s",
            file=sys.stderr,
            flush=True,
        )
        parts = {"train": record.train, "valid": record.valid}
        self._tensorboard.write(self.step, {f"{part}/{name}": x for part in parts for name, x in parts[part].items()})

    # Resuming

    def save(self) -> None:
        """Save a checkpoint. All processes take part; the first one writes."""
        self._check_weights()
        recurrent, totals = dict(self._whole_state()), self._totals.over(self.world)
        if self.world.leads:
            parts = {
                "model": self.model.state_dict(),
                "optimiser": optimiser_tensors(self.optimiser),
                "average": self.averager.tensors(),
                "random": {"generator": self.generator.get_state()},
                "recurrent": recurrent,
            }
            parts = {name: tensors for name, tensors in parts.items() if tensors}
            state = TrainingState(
                step=self.step,
                epoch=self.epoch,
                chunk=self.chunk,
                bad_epochs=self.bad_epochs,
                best=None if math.isinf(self.best) else self.best,
                metrics=self.metrics,
                totals=asdict(totals),
                rows=self._rows,
                averaged=self.averager.steps,
                parts=list(parts),
            )
            self.state.save(parts, state, state.step)
            with files_of_run(self.run).update() as writer:
                writer.bytes("metrics.jsonl", b"".join(msgspec.json.encode(record) + b"\n" for record in self.metrics))
        self.world.wait()
        self._saved = time.monotonic()

    def _whole_state(self) -> Iterator[tuple[str, Tensor]]:
        """The recurrent state of all rows, gathered from all processes."""
        mine = self._carried
        parts = (mine.state or self.model.zero_state(0)).tensors()
        sizes = self.world.most([part.shape[1] for part in parts.values()])
        if not self._rows:
            return
        for (name, part), size in zip(parts.items(), sizes, strict=True):
            whole = torch.zeros(len(self._rows), size, dtype=self.model.dtype, device=self.world.device)
            if mine.rows:
                index = torch.tensor([self._rows.index(row) for row in mine.rows], device=whole.device)
                whole[index, : part.shape[1]] = part
            yield name, self.world.total_of(whole)

    def resume(self) -> bool:
        """Go back to the latest checkpoint; False if there is none."""
        loaded = self.state.load()
        if loaded is None:
            return False
        parts, state = loaded
        place = self.state.latest
        assert place is not None
        totals = _totals(state.totals, place / "state.json")
        recurrent = parts.get("recurrent", {})
        if wrong := [name for name, tensor in recurrent.items() if len(tensor) != len(state.rows)]:
            what = f"{wrong[0]} has {len(recurrent[wrong[0]])} rows, state.json {len(state.rows)}"
            raise DataError(what, place=place / "recurrent.safetensors", remedy=DAMAGED)
        load_into(self.model, parts["model"], place / "model.safetensors")
        restore_optimiser(self.optimiser, parts.get("optimiser", {}), place / "optimiser.safetensors")
        self.averager.restore(parts.get("average", {}), state.averaged)
        if "generator" not in parts["random"]:
            raise DataError("has no tensor generator", place=place / "random.safetensors", remedy="start a new run")
        self.generator.set_state(parts["random"]["generator"])
        self._rows = state.rows
        moved = {name: tensor.to(self.world.device) for name, tensor in recurrent.items()}
        whole = Carried(self._rows, self.model.state_from(moved) if moved else None)
        mine = [row for row in self._rows if row % self.world.size == self.world.rank]
        self._carried = Carried(mine, whole.state_of(mine))
        self.epoch, self.chunk, self.step = state.epoch, state.chunk, state.step
        self.bad_epochs, self.metrics = state.bad_epochs, state.metrics
        self.best = math.inf if state.best is None else state.best
        self._totals = totals if self.world.leads else Totals()
        return True


def _totals(values: Mapping[str, float], place: Path) -> Totals:
    """Sums of the present epoch from a checkpoint."""
    if unknown := sorted(set(values) - {field.name for field in fields(Totals)}):
        raise DataError(f"totals: unknown key {unknown[0]!r}", place=place, remedy=DAMAGED)
    try:
        return msgspec.convert(values, Totals, strict=False)
    except msgspec.ValidationError as error:
        raise DataError(misfit(error, "totals"), place=place, remedy=DAMAGED) from error


def _titles(lines: Sequence[Line]) -> str:
    """Titles of the documents of a chunk, for an error message."""
    titles = [repr(line.piece.document.title) for line in lines if line.piece.document]
    return ", ".join(titles[:TITLES]) + (f" and {len(titles) - TITLES} more" if len(titles) > TITLES else "")


def _targets(lines: Sequence[Line]) -> int:
    return sum(line.piece.end - line.piece.start for line in lines)

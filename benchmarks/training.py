"""python benchmarks/training.py --kg KG --documents DOCS [--words TEXT.gz] [--size paper] [--turns 3] [--json FILE]

Compare the time of a training step of KGLM (presets paper and best) and AWD-LSTM with that of a bare LSTM, the floor.

The floor is a stack of `nn.LSTM` layers of the same size with a tied softmax: no dropout, no regularisation, no facts.
All models take Adam steps on the same chunks of real documents, on one thread. They take turns, one step each, so that
noise on a shared machine affects all alike; the table has the median ratio of times within a turn.

--words is a text whose words make the vocabulary (WikiText-2: 33,278 words, as in the paper). The vectors of the graph
must have the dimension of the size to measure (256 for the paper).
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

import torch
from torch import Generator, nn

from kglm.kg.graph import KnowledgeGraph
from kglm.model.base import ChunkModel
from kglm.model.chunk import Chunk
from kglm.model.encoders.awd_lstm import EncoderConfig
from kglm.model.entities import count_introductions
from kglm.runs.run import Run, read_for_training
from kglm.runs.settings import PRESETS, RunConfig, load_config
from kglm.text.document import Document
from kglm.text.vocabulary import Vocabulary
from kglm.train.batches import epoch_plan
from kglm.train.chunks import ChunkBuilder, Piece
from kglm.train.encoding import DocumentEncoder
from plain_lstm import PlainLstm
from table import print_table

Step = Callable[[list[Piece], ChunkBuilder], tuple[float, Chunk]]
"""Builds a chunk from pieces of documents and takes a training step on it; returns the seconds and the chunk."""


def floor_step(config: EncoderConfig, words: int) -> Step:
    """Training step of the bare LSTM."""
    model = PlainLstm(config, words)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)

    def step(pieces: list[Piece], builder: ChunkBuilder) -> tuple[float, Chunk]:
        start = time.perf_counter()
        chunk = builder.build(pieces)
        loss, _ = model(chunk.words.input_BT, chunk.words.target_BT, None)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimiser.step()
        return time.perf_counter() - start, chunk

    return step


def model_step(model: ChunkModel) -> Step:
    """Training step of a model of kglm."""
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], 1e-3)
    generator = Generator().manual_seed(0)
    model.train()

    def step(pieces: list[Piece], builder: ChunkBuilder) -> tuple[float, Chunk]:
        start = time.perf_counter()
        chunk = builder.build(pieces)
        scores = model.score(chunk, generator=generator)
        loss = scores.regularisation.mean() - scores.total_BT.sum() / chunk.targets
        optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimiser.step()
        return time.perf_counter() - start, chunk

    return step


def runs(kg: Path, documents: list[Document], words: Path | None, settings: RunConfig) -> dict[str, Run]:
    """The models to compare, untrained, with one vocabulary."""
    graph = KnowledgeGraph.open(kg)
    counted = documents
    if words is not None:
        with gzip.open(words, "rt") as stream:
            counted = [Document("words", stream.read().split())]
    vocabulary = Vocabulary.count(counted, min_count=settings.data.min_count)
    kinds = {
        "awd-lstm": replace(settings, model="awd-lstm"),
        "kglm (paper)": replace(settings, model="kglm", latent=PRESETS["paper"]),
        "kglm (best)": replace(settings, model="kglm", latent=PRESETS["best"]),
    }
    home, introductions = Path(tempfile.gettempdir()), count_introductions(documents, graph)
    return {name: Run(home, kind, vocabulary, graph, introductions) for name, kind in kinds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kg", type=Path, required=True, help="graph with vectors")
    parser.add_argument("--documents", type=Path, required=True, help="linked documents to train on")
    parser.add_argument("--words", type=Path, help="gzipped text with the vocabulary; by default the documents")
    parser.add_argument("--size", default="paper", help="settings with the sizes: paper, small or a TOML file")
    parser.add_argument("--turns", type=int, default=3, help="timed steps of each model")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    settings = load_config(options.size, "kglm")
    documents = read_for_training([options.documents])
    made = runs(options.kg, documents, options.words, settings)
    words = len(next(iter(made.values())).vocabulary)
    builder = ChunkBuilder.of(made["kglm (best)"])
    encoded = DocumentEncoder.of(made["kglm (best)"]).encode_all(documents, "encoding", counted=True)
    plan = iter(epoch_plan(encoded, rows=settings.train.rows, length=settings.train.length, seed=0, epoch=0))
    steps = {"floor": floor_step(settings.encoder, words)}
    steps |= {name: model_step(run.model) for name, run in made.items()}
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    targets = 0
    for turn in range(-1, options.turns):  # the first is a warm-up
        pieces = [line.piece for line in next(plan)]
        for name, step in steps.items():
            taken, chunk = step(pieces, builder)
            label = f"turn {turn + 1}" if turn >= 0 else "warm-up"
            print(f"{label}: {name:14} {taken:7.2f} s, {chunk.targets / taken:7,.0f} tokens/s", flush=True)
            if turn >= 0:
                seconds[name].append(taken)
        targets += chunk.targets if turn >= 0 else 0
    result = {"words": words, "rows": settings.train.rows, "length": settings.train.length, "turns": options.turns}
    rates = {name: targets / sum(taken) for name, taken in seconds.items()}
    rows = []
    for name, taken in seconds.items():
        against = {
            base: median(a / b for a, b in zip(taken, seconds[base], strict=True)) for base in ("floor", "awd-lstm")
        }
        rows.append((name, round(rates[name]), against["floor"], against["awd-lstm"]))
        result[name] = {"tokens_per_second": rates[name], "against": against}
    title = f"time of a training step, vocabulary of {words:,} words, median of {options.turns} turns"
    print_table(("model", "tokens/s", "time / floor", "time / awd-lstm"), rows, title=title)
    if options.json:
        options.json.write_text(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()

"""Time of a training step: KGLM, the plain AWD-LSTM of the same size, and the floor: a bare `nn.LSTM`, tied softmax.

python benchmarks/training.py --kg world.kg --documents valid.jsonl.gz --words train.txt.gz [--size paper] [--turns 3]

All train on the same chunks (real documents, rows × length targets) with Adam, on one thread, in turns within this one
run: machines are shared and noisy. A turn is one step of each; what counts are the ratios within turns. `--words` is a
text whose words make the vocabulary (of WikiText-2: 33,278, as in the paper); `--kg` has vectors of the size to measure
(256 dimensions for the paper). The floor has no dropout, no regularisation and no facts, and its softmax is the one of
`torch.nn.functional.cross_entropy`.
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

Step = Callable[[list[Piece], ChunkBuilder], tuple[float, Chunk]]
"""Takes the pieces that a chunk is made of; seconds for building it and learning from it, and the chunk."""


def floor_step(config: EncoderConfig, words: int) -> Step:
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
    """The models to compare, with one vocabulary."""
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
    parser.add_argument("--kg", type=Path, required=True)
    parser.add_argument("--documents", type=Path, required=True)
    parser.add_argument("--words", type=Path)
    parser.add_argument("--size", default="paper", help="settings with the sizes: paper, small or a TOML file")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--json", type=Path)
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
    for turn in range(-1, options.turns):  # the first turn warms up
        pieces = [line.piece for line in next(plan)]
        for name, step in steps.items():
            taken, chunk = step(pieces, builder)
            print(f"turn {turn + 1}: {name:14} {taken:7.2f} s, {chunk.targets / taken:7,.0f} tokens/s", flush=True)
            if turn >= 0:
                seconds[name].append(taken)
        targets += chunk.targets if turn >= 0 else 0
    result = {"words": words, "rows": settings.train.rows, "length": settings.train.length, "turns": options.turns}
    rates = {name: targets / sum(taken) for name, taken in seconds.items()}
    print(f"\n{words:,} words; time relative to")
    print(f"{'':14} {'tokens/s':>9} {'floor':>7} {'awd-lstm':>9}")
    for name, taken in seconds.items():
        against = {
            base: median(a / b for a, b in zip(taken, seconds[base], strict=True)) for base in ("floor", "awd-lstm")
        }
        print(f"{name:14} {rates[name]:9,.0f} {against['floor']:7.2f} {against['awd-lstm']:9.2f}")
        result[name] = {"tokens_per_second": rates[name], "against": against}
    if options.json:
        options.json.write_text(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()

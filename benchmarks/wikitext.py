"""AWD-LSTM on WikiText-2 against the same LSTM of `torch.nn`, trained by the plainest loop for as long.

python benchmarks/wikitext.py --data wikitext-2 --to FOLDER [--words 600000] [--epochs 4] [--chart curves.svg]

Both have the sizes of `small` and a tied softmax, and see the same words in the same rows for as many epochs. Both are
validated after every epoch, and the best weights of each are tested. The plain one takes steps of SGD of 20, a quarter
as long each time validation gets worse, with gradients clipped to 0.25 (with Adam it learned only how frequent words
are). It has none of what AWD-LSTM is: dropout of whole words, of words of a row, of recurrent weights, regularised
activations, averaged weights. When it was stopped, AWD-LSTM goes on.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kglm.bundled import ENTITIES, FACTS, RELATIONS
from kglm.files import write_json
from kglm.kg.imports import import_graph
from kglm.plots import Series, line_chart
from kglm.runs.run import Run, read_for_training
from kglm.runs.settings import RunConfig, load_config
from kglm.text.document import END, START, Document, write_documents
from kglm.train.batches import StreamPlan
from kglm.train.encoding import EncodedDocument
from kglm.train.start import train
from plain_lstm import PlainLstm

RATE, CLIP = 20.0, 0.25
"""Of the plain LSTM."""


def documents(path: Path, limit: int | None) -> list[Document]:
    """Articles of WikiText, each line a sentence to us, up to so many words."""
    found: list[Document] = []
    words = 0
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            tokens = line.split()
            if limit is not None and words >= limit:
                break
            if len(tokens) > 2 and tokens[0] == tokens[-1] == "=" and tokens[1] != "=":
                found.append(Document(" ".join(tokens[1:-1]), [START], annotated=False))
            if tokens and found:
                found[-1].tokens += [*tokens, END]
                words += len(tokens)
    return found


def perplexity(model: PlainLstm, texts: list[np.ndarray]) -> float:
    """Of documents, each from its beginning, as ours are validated."""
    total, count = 0.0, 0
    model.eval()
    with torch.no_grad():
        for words_N in texts:
            state = None
            for start in range(0, len(words_N) - 1, 500):
                piece = torch.from_numpy(words_N[start : start + 501])[None]
                loss, state = model(piece[:, :-1], piece[:, 1:], state)
                total += float(loss) * (piece.shape[1] - 1)
                count += piece.shape[1] - 1
    return math.exp(total / count)


def plain_curve(settings: RunConfig, run: Run, texts: dict[str, list[np.ndarray]], home: Path) -> dict[str, Any]:
    """Train the plain LSTM; perplexity after each epoch, and of the test text by the best weights."""
    if (home / "plain.json").exists():
        return dict(json.loads((home / "plain.json").read_text()))
    torch.manual_seed(settings.train.seed)
    model = PlainLstm(settings.encoder, len(run.vocabulary))
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE)
    encoded = [EncodedDocument.plain("", words_N, []) for words_N in texts["train"]]
    curve: list[float] = []
    best: dict[str, Tensor] = {}
    started = time.monotonic()
    for epoch in range(settings.train.epochs):
        model.train()
        state = None
        rng = np.random.default_rng([settings.train.seed, epoch])
        for lines in StreamPlan(encoded, rows=settings.train.rows, length=settings.train.length, rng=rng):
            pieces = [line.piece for line in lines]
            words_BT, targets_BT = (
                torch.from_numpy(np.stack([p.document.words_N[p.start + k : p.end + k] for p in pieces]))  # type: ignore[union-attr]
                for k in (0, 1)
            )
            loss, state = model(words_BT, targets_BT, state)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimiser.step()
        curve.append(perplexity(model, texts["valid"]))
        print(f"plain LSTM, epoch {epoch + 1}: {curve[-1]:.1f}", flush=True)
        if curve[-1] == min(curve):
            best = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        else:
            optimiser.param_groups[0]["lr"] /= 4
    model.load_state_dict(best)
    result = {
        "valid": curve,
        "test": perplexity(model, texts["test"]),
        "seconds": time.monotonic() - started,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }
    write_json(home / "plain.json", result)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="train.txt.gz, valid.txt.gz, test.txt.gz")
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--words", type=int, help="of the training text; all, if left out")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chart", type=Path)
    options = parser.parse_args()
    home: Path = options.to
    home.mkdir(parents=True, exist_ok=True)
    for part in ("train", "valid", "test"):
        if not (home / f"{part}.jsonl").exists():
            found = documents(options.data / f"{part}.txt.gz", options.words if part == "train" else None)
            write_documents(home / f"{part}.jsonl", found)
    if not (home / "any.kg").exists():  # a run has a graph, also one that needs none
        import_graph([FACTS], home / "any.kg", entities=[ENTITIES], relations=[RELATIONS])
    changes = [
        "train.batching=stream",
        f"train.epochs={options.epochs}",
        f"train.patience={options.epochs}",
        f"train.seed={options.seed}",
        "train.threads=1",
        "train.learning_rate=0.003",
        "train.schedule=linear",  # few epochs: the rate has to fall in time,
        "train.average_decay=0.99",  # and the average must not go back to the first of them
    ]
    settings = load_config("small", "awd-lstm", changes)
    run_home = home / "awd-lstm"
    started = time.monotonic()
    metrics = train(
        settings,
        [home / "train.jsonl"],
        [home / "valid.jsonl"],
        home / "any.kg",
        run_home,
        resume=(run_home / "run.json").exists(),
    )
    seconds = time.monotonic() - started
    run = Run.open(run_home)
    texts = {
        part: [
            np.array(run.vocabulary.encode(each.tokens), np.int64)
            for each in read_for_training([home / f"{part}.jsonl"])
        ]
        for part in ("train", "valid", "test")
    }
    ours = {
        "valid": [math.exp(record["valid"]["nats"]) for record in metrics],
        "test": _test(run, home / "test.jsonl"),
        "seconds": seconds,
        "parameters": sum(parameter.numel() for parameter in run.model.parameters()),
    }
    plain = plain_curve(settings, run, texts, home)
    words = sum(len(text) - 1 for text in texts["train"])
    result = {"words": words, "vocabulary": len(run.vocabulary), "AWD-LSTM": ours, "plain LSTM": plain}
    print(json.dumps(result, indent=1))
    if options.chart:
        series = [
            Series(name, range(1, 1 + len(curve["valid"])), curve["valid"])
            for name, curve in (("AWD-LSTM", ours), ("plain LSTM", plain))
        ]
        chart = line_chart("WikiText-2, validation", "epoch", "perplexity", series, log_y=True)
        options.chart.write_text(chart)


def _test(run: Run, path: Path) -> float:
    from kglm.evaluate.perplexity import Task, evaluate
    from kglm.marginal.estimate import MarginalConfig

    return float(evaluate(Task(run.home, "exact", MarginalConfig()), read_for_training([path])).to_json()["ppl"])


if __name__ == "__main__":
    main()

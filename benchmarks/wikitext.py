"""python benchmarks/wikitext.py --data DIR --to FOLDER [--words 600000] [--epochs 4] [--chart curves.svg]

Compare AWD-LSTM with a plain `torch.nn.LSTM` of the same size on WikiText-2: perplexity after each epoch, and on test.

Both have the sizes of `small` and a tied softmax, and read the same words in the same rows for the same number of
epochs; the weights with the best validation are tested. The plain LSTM is trained by SGD with learning rate 20, divided
by 4 whenever validation gets worse, and gradients clipped to 0.25 (with Adam it learned only word frequencies). It
lacks what AWD-LSTM adds: dropout of embeddings, activations and recurrent weights, regularised activations, and
averaged weights. A repeated command continues an interrupted training of AWD-LSTM.
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
from table import print_table

RATE, CLIP = 20.0, 0.25
"""Learning rate and gradient clipping of the plain LSTM."""


def documents(path: Path, limit: int | None) -> list[Document]:
    """Articles of WikiText, each line as one sentence, up to `limit` words."""
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
    """Perplexity of documents, each with a new state, as in the validation of kglm."""
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
    """Train the plain LSTM; validation perplexity after each epoch, and test perplexity of the best weights."""
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
    parser.add_argument("--data", type=Path, required=True, help="folder of train.txt.gz, valid.txt.gz, test.txt.gz")
    parser.add_argument("--to", type=Path, required=True, help="folder for documents and runs")
    parser.add_argument("--words", type=int, help="words of the training text to use; by default all")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chart", type=Path, help="write a chart of validation perplexities to this SVG file")
    options = parser.parse_args()
    home: Path = options.to
    home.mkdir(parents=True, exist_ok=True)
    for part in ("train", "valid", "test"):
        if not (home / f"{part}.jsonl").exists():
            found = documents(options.data / f"{part}.txt.gz", options.words if part == "train" else None)
            write_documents(home / f"{part}.jsonl", found)
    if not (home / "any.kg").exists():  # every run needs a graph, even one that does not use it
        import_graph([FACTS], home / "any.kg", entities=[ENTITIES], relations=[RELATIONS])
    changes = [
        "train.batching=stream",
        f"train.epochs={options.epochs}",
        f"train.patience={options.epochs}",
        f"train.seed={options.seed}",
        "train.threads=1",
        "train.learning_rate=0.003",
        "train.schedule=linear",  # with few epochs the learning rate must fall early,
        "train.average_decay=0.99",  # and the average must not include the first steps
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
    ours: dict[str, Any] = {
        "valid": [math.exp(record["valid"]["nats"]) for record in metrics],
        "test": _test(run, home / "test.jsonl"),
        "seconds": seconds,
        "parameters": sum(parameter.numel() for parameter in run.model.parameters()),
    }
    plain = plain_curve(settings, run, texts, home)
    words = sum(len(text) - 1 for text in texts["train"])
    result = {"words": words, "vocabulary": len(run.vocabulary), "AWD-LSTM": ours, "plain LSTM": plain}
    write_json(home / "result.json", result)
    rows = [
        (name, *curve["valid"], curve["test"], curve["parameters"], round(curve["seconds"]))
        for name, curve in (("AWD-LSTM", ours), ("plain LSTM", plain))
    ]
    epochs = [f"epoch {number + 1}" for number in range(len(ours["valid"]))]
    title = f"perplexity; {words:,} training words, vocabulary of {len(run.vocabulary):,}"
    print_table(("model", *epochs, "test", "parameters", "seconds"), rows, title=title)
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

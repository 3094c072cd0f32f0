"""python benchmarks/heads.py --kg shared.kg --train lw2/valid.jsonl.gz:50 --valid lw2/valid.jsonl.gz:-10: --to heads

Train the heads of KGLM on a frozen language model, and compare its perplexity with that of the base alone.

A data argument is FILE, FILE:COUNT, or FILE:FIRST:LAST of its documents. Features of the base are stored in
TO/features, so a second run does not compute them again. Entities are linked as the documents are annotated, which a
text without annotation does not tell: so far this measures the heads, not the linker.

The training loop is a first one, to compare variants of the heads; it cannot be resumed.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from kglm.files import write_json
from kglm.heads.features import FeatureStore
from kglm.heads.local import annotated_links
from kglm.heads.model import Heads
from kglm.heads.objective import Spans, find_spans, passage_loss
from kglm.heads.options import HeadsConfig
from kglm.heads.passage import passage
from kglm.heads.prepared import Prepared, prepare
from kglm.heads.scoring import PassageScores, score_text
from kglm.heads.tables import GraphTables
from kglm.kg.graph import KnowledgeGraph
from kglm.pretrained.base import BaseModel
from kglm.progress import progress
from kglm.text.document import Document, read_documents
from kglm.text.encoder import SentenceEncoder

WARM_UP = 50
"""Steps in which the learning rate rises."""


def documents(argument: str) -> list[Document]:
    """The documents of FILE, FILE:COUNT or FILE:FIRST:LAST."""
    path, *bounds = argument.split(":")
    found = list(read_documents(path)) if len(bounds) != 1 else list(islice(read_documents(path), int(bounds[0])))
    return found[slice(*(int(bound) if bound else None for bound in bounds))] if len(bounds) == 2 else found


def load(arguments: list[str], store: FeatureStore, tables: GraphTables) -> list[tuple[Prepared, Spans]]:
    """Passages with their features and the spans that facts explain."""
    texts = [document for argument in arguments for document in documents(argument)]
    passages = [passage(text, store.base.subwords, tables.graph) for text in texts]
    stored = store.of([each.ids for each in passages])
    found = []
    with progress("preparing", sum(len(text.tokens) for text in texts), "tokens") as advance:
        for n, (text, each) in enumerate(zip(texts, passages, strict=True)):
            links = annotated_links(each, tables.graph)
            prepared = prepare(each, stored[n], tables, links, HeadsConfig().max_tails)
            found.append((prepared, find_spans(prepared)))
            advance(len(text.tokens))
    return found


def train(heads: Heads, data: list[tuple[Prepared, Spans]], tables: GraphTables, args: argparse.Namespace) -> None:
    """One epoch after the other, a passage a step; the rate falls to 0."""
    rng = random.Random(args.seed)
    optimiser = torch.optim.AdamW(heads.parameters(), lr=args.rate, weight_decay=0.01)
    steps = args.epochs * len(data)
    with progress("training", steps, "passages") as advance:
        for step in range(steps):
            if step % len(data) == 0:
                rng.shuffle(data)
            prepared, spans = data[step % len(data)]
            for group in optimiser.param_groups:
                group["lr"] = args.rate * min(1, (step + 1) / WARM_UP) * (1 - step / steps)
            g_TG = heads.states(prepared.features.middle_TD[None], prepared.features.last_TD[None])[0][0]
            hidden_M = torch.tensor([rng.random() < args.hide for _ in spans.end_children], dtype=torch.bool)
            joint = step < args.joint * len(data)
            vector_RK = heads.relation_vectors(tables.key_RD)
            losses = passage_loss(heads, prepared, spans, g_TG, vector_RK, joint=joint, hidden_M=hidden_M)
            optimiser.zero_grad()
            (losses.total / max(len(g_TG), 1)).backward()
            torch.nn.utils.clip_grad_norm_(heads.parameters(), 1.0)
            optimiser.step()
            advance(1)


def evaluate(heads: Heads, data: list[tuple[Prepared, Spans]]) -> dict[str, float]:
    """Word-level perplexity of the base, and the model's share of it: all words, those of mentions, and the others."""
    heads.eval()
    total, base, words = np.zeros(2), np.zeros(2), np.zeros(2)
    started = time.perf_counter()
    for prepared, _ in data:
        scored = score_text(PassageScores.of(heads, prepared))
        inside_T = np.zeros(len(scored.base_T), np.int64)
        for mention in prepared.passage.mentions:
            inside_T[mention.start : mention.end] = 1
        total += np.bincount(inside_T, scored.log_p_T, 2)
        base += np.bincount(inside_T, scored.base_T, 2)
        mentioned = len(set(prepared.passage.word_T[inside_T == 1].tolist()))
        words += (prepared.passage.words - mentioned, mentioned)
    heads.train()
    return {
        "base": math.exp(-base.sum() / words.sum()),
        "share": math.exp((base - total).sum() / words.sum()),
        "share_mentions": math.exp((base - total)[1] / words[1]),
        "share_others": math.exp((base - total)[0] / words[0]),
        "words": float(words.sum()),
        "words_per_second": float(words.sum()) / (time.perf_counter() - started),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    parser.add_argument("--kg", type=Path, required=True)
    parser.add_argument("--base", default="smollm2")
    parser.add_argument("--train", nargs="+", required=True)
    parser.add_argument("--valid", action="append", required=True)
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--hide", type=float, default=0.05, help="share of facts that are hidden in training")
    parser.add_argument("--joint", type=float, default=0.3, help="epochs that train on the graph path alone")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    base = BaseModel.open(args.base)
    store = FeatureStore(args.to / "features", base)
    config = HeadsConfig()
    with KnowledgeGraph.open(args.kg) as graph:
        tables = GraphTables.of(graph, base, encoder=SentenceEncoder.installed())
        heads = Heads(config, base.model.config.hidden, tables.key_RD.shape[1])
        train(heads, load(args.train, store, tables), tables, args)
        results = {each: evaluate(heads, load([each], store, tables)) for each in args.valid}
    write_json(args.to / "results.json", results)
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()

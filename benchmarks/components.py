"""python benchmarks/components.py --run RUN --run RUN --data DOCS

Split the loss of models into components: types, new entities, parents, relations, words in and outside mentions.

The loss is the annotated joint likelihood; all columns are nats per word of the text and add up to `all`. `unknown` is
the penalty log |U| for unknown words that cannot be copied from an alias. `floor`, for plain models, is the share of
UPP that would remain if words inside mentions cost nothing: the most that facts could gain, all else unchanged.
Prints the table as Markdown.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

import torch

from kglm.model.base import COMPONENTS
from kglm.runs.run import Run, read_for_training
from kglm.text.vocabulary import UNKNOWN_INDEX
from kglm.train.chunks import ChunkBuilder
from kglm.train.encoding import DocumentEncoder, EncodedDocument
from kglm.train.totals import evaluate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, action="append", required=True, help="run; repeat for more")
    parser.add_argument("--data", type=Path, required=True, help="annotated documents")
    given = parser.parse_args()
    torch.set_num_threads(1)
    documents = read_for_training([given.data])
    print(f"| run | {' | '.join(COMPONENTS)} | unknown outside | unknown inside | all | floor |")
    print("|---|" + "---:|" * (len(COMPONENTS) + 4))
    for path in given.run:
        run = Run.open(path)
        encoded = DocumentEncoder.of(run).encode_all(documents, "encoding")
        found = evaluate(run.model, ChunkBuilder.of(run), encoded, rows=10, length=70)
        nats, plain = found.nats(), run.features.vectors is None
        penalty = math.log(max(run.vocabulary.unknown_types, 1)) / found.targets
        outside, inside = (count * penalty for count in unknown(encoded, copies=not plain))
        total = nats["nats"] + outside + inside
        cells = [nats[name] for name in COMPONENTS] + [outside, inside, total]
        floor = f"{math.exp(nats['word_none'] + outside - total):.2f}" if plain else ""
        print(f"| {path.name} | {' | '.join(f'{cell:.3f}' for cell in cells)} | {floor} |")


def unknown(documents: Sequence[EncodedDocument], *, copies: bool) -> tuple[int, int]:
    """Number of unknown words outside and inside mentions; with `copies`, without those in an alias of the entity."""
    outside = inside = 0
    for document in documents:
        for target in (document.words_N[1:] == UNKNOWN_INDEX).nonzero()[0].tolist():
            if document.node_T[target] < 0:
                outside += 1
            elif not (copies and document.slots_T.get(target)):
                inside += 1
    return outside, inside


if __name__ == "__main__":
    main()

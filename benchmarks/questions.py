"""python benchmarks/questions.py --run RUN --held-out P47 P40 … [--count 300]

Compare a model's accuracy on relations that no training text expresses (held out) with that on all other relations.

Prompts are sentences of `kglm kg verbalise` without their last part; the subject's entity is given. An answer is right
if it is the first word of a tail of the relation. Held-out relations are those of `kglm kg verbalise --without` when
the training texts were made.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any

import torch

from kglm.answer.model import FactAwareLM
from kglm.answer.next_word import next_words
from kglm.answer.reading import Span, read
from kglm.text.tokenizer import tokenizer
from kglm.writing.verbalise import Verbaliser
from table import print_table

TOP = 5


def measure(live: FactAwareLM, verbaliser: Verbaliser, relations: list[int], count: int, seed: int) -> dict[str, Any]:
    """Accuracy in percent on `count` prompts for the relations, drawn like the facts of training texts."""
    rng, graph = random.Random(seed), live.graph
    weights = [verbaliser.weight(relation) for relation in relations]
    total = first = top = 0
    while total < count:
        [relation] = rng.choices(relations, weights)
        fact = verbaliser.draw(rng, relation)
        question = verbaliser.question(rng, fact)
        if question is None:
            continue
        span = Span(question.start, question.end, fact[0])
        words = [word for word, _ in next_words(read(live.run, live.model, question.words, [(1.0, [span])])).top(TOP)]
        tails = graph.tails(fact[0], relation).tolist()
        names = [tokenizer().words(name) for tail in tails for name in graph.aliases(tail)]
        right = {name[0] for name in names if name}
        total, first, top = total + 1, first + (words[0] in right), top + bool(right & set(words))
    return {"relations": len(relations), "questions": total, "at1": 100 * first / total, "at5": 100 * top / total}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="run of kglm")
    parser.add_argument("--held-out", nargs="+", required=True, metavar="P…", help="ids of the held-out relations")
    parser.add_argument("--count", type=int, default=300, help="prompts for each of the two groups")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    live = FactAwareLM.open(options.run)
    verbaliser = Verbaliser(live.graph)
    phrased = [relation for relation in verbaliser.relations if verbaliser.phrases(relation)]
    held_out = [relation for relation in phrased if live.graph.relation_id(relation) in options.held_out]
    rows = []
    for name, relations in (("held out", held_out), ("in words", [each for each in phrased if each not in held_out])):
        if not relations:
            raise SystemExit(f"no relation with a wording is {name}: give other ids to --held-out")
        found = measure(live, verbaliser, relations, options.count, options.seed)
        rows.append((name, found["relations"], found["questions"], found["at1"], found["at5"]))
    print_table(("relations", "number", "prompts", "right at 1, %", "right at 5, %"), rows)


if __name__ == "__main__":
    main()

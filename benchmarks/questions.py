"""Whether a model understands relations that no training text put into words: strict accuracy on questions by itself.

python benchmarks/questions.py --run RUN --held-out P47 P40 … [--count 300]

Questions are sentences of `kglm kg verbalise` that lack their last part, with the subject given; an answer is right if
it is the first word of a tail of the asked relation. Held-out relations are those that the texts were made without
(`kglm kg verbalise --without`).
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

import torch

from kglm.answer.model import FactAwareLM
from kglm.answer.next_word import next_words
from kglm.answer.reading import Span, read
from kglm.text.tokenizer import tokenizer
from kglm.writing.verbalise import Verbaliser

TOP = 5


def ask(live: FactAwareLM, verbaliser: Verbaliser, relations: list[int], count: int, seed: int) -> dict[str, Any]:
    """Accuracy on so many questions about facts of these relations, drawn as the texts draw them."""
    rng, graph = random.Random(seed), live.graph
    weights = [verbaliser.weight(relation) for relation in relations]
    asked = first = among = 0
    while asked < count:
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
        asked, first, among = asked + 1, first + (words[0] in right), among + bool(right & set(words))
    return {"relations": len(relations), "questions": asked, "at1": 100 * first / asked, "at5": 100 * among / asked}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--held-out", nargs="+", required=True, metavar="P…")
    parser.add_argument("--count", type=int, default=300, help="questions of each kind")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    live = FactAwareLM.open(options.run)
    verbaliser = Verbaliser(live.graph)
    sayable = [relation for relation in verbaliser.relations if verbaliser.phrases(relation)]
    held = [relation for relation in sayable if live.graph.relation_id(relation) in options.held_out]
    for name, relations in (("held out", held), ("in words", [each for each in sayable if each not in held])):
        print(json.dumps({"kind": name, **ask(live, verbaliser, relations, options.count, options.seed)}), flush=True)


if __name__ == "__main__":
    main()

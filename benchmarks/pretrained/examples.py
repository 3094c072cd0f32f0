"""python -m benchmarks.pretrained.examples [--run RUN]

Complete the examples of the paper with the default model, and print a table for `docs/results.md`.

Each prompt is completed with the bundled world, by the language model alone, and asked as a question.
"""

from __future__ import annotations

import argparse
import math

from benchmarks.pretrained.common import load

EXAMPLES = (
    ("Paris Hilton was born in", "Where was Paris Hilton born?"),
    ("Bob Dylan was born in", "Where was Bob Dylan born?"),
    ("Barack Obama was born on", "When was Barack Obama born?"),
    ("Ulysses is a book that was written by", "Who wrote Ulysses?"),
    ("St. Louis is a city in the state of", "Which state is St. Louis in?"),
    ("Richard Nixon was born on", "When was Richard Nixon born?"),
    ("Kanye West is married to", "Who is Kanye West married to?"),
    ("The capital of India is", "What is the capital of India?"),
    ("Madonna is married to", "Who is Madonna married to?"),
)
"""Prompts of the paper's table of examples, and the same as questions."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", help="run of heads (otherwise the default heads)")
    model = load(parser.parse_args().run)
    print("| prompt | answer | p | because | the language model alone | as a question |")
    print("|---|---|---:|---|---|---|")
    for prompt, question in EXAMPLES:
        completion = model.complete(prompt, top=1)
        alone = model.complete(prompt, top=1, trust=-math.inf).answers[0]
        best, missing = completion.answers[0], completion.notable_missing
        if completion.asks_for_missing and missing is not None:
            answer, p, because = "*missing*", missing.p, str(missing)
        else:
            answer, p, because = best.text, best.p, best.reasons[0].fact
        print(f"| {prompt} | {answer} | {p:.0%} | {because} | {alone.text} | {model.ask(question)} |")


if __name__ == "__main__":
    main()

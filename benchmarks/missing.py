"""python benchmarks/missing.py [--run RUN] [--kg KG] [--held-out | --verbalised] [--count 200] [--half test]
                             [--show 20] [--json FILE]

Compare what a model says of facts that the graph lacks with what it says of facts that the graph has.

Prompts are sentences in held-out wordings (`kglm.writing`) that end before the tail of a fact; the subject's entity is
given. Each prompt is asked twice: of the graph as it is, and of a graph from which all facts of the subject and the
relation (in either direction) are removed, with all other facts between the subject and these tails. `says_missing`
decides. With --held-out the subjects are the entities that `kglm quickstart` holds out of the training texts. Prompts
with a content word that no training wording of the relation has can only be guessed at, and are counted apart; the
first --count of either kind are asked. With --verbalised the sentences are those of `kglm kg verbalise`, for a model
that was trained on such texts. The halves `development` and `test` have different facts.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import kglm
from kglm.answer.completion import Missing
from kglm.answer.missing import says_missing
from kglm.answer.next_word import Distribution, MissingFact
from kglm.answer.pretrained.model import AnyModel, PretrainedLM
from kglm.answer.reading import Span
from kglm.kg.arrays import is_fact
from kglm.kg.edits import FactEdit
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import REVERSE
from kglm.kg.literals.literal import is_literal
from kglm.progress import progress
from kglm.quickstart import ALWAYS_HELD, QuickstartConfig
from kglm.text.tokenizer import tokenizer
from kglm.writing.articles import Writer
from kglm.writing.hold_out import has_unseen_word, hold_out, training_words
from kglm.writing.verbalise import Verbaliser
from kglm.writing.wordings import read_wordings
from table import print_table

SMOOTH = 0.5
"""A relation is drawn in proportion to the number of its facts to this power."""
PER_FACT = 3
"""Prompts of one fact, in different wordings."""
HALVES = ("development", "test")
Fact = tuple[str, str, str]


class Result(NamedTuple):
    """One prompt, asked with its fact in the graph and without."""

    text: str
    relation: str
    guess: bool
    right: bool
    """True if the best word begins a tail, with the fact in the graph."""
    there: bool
    gone: bool
    """Whether the answer says missing, with the fact in the graph and without."""
    named: bool
    """True if the answer says that the removed fact is missing."""
    said: str
    """The relation that is said to be missing, with the fact or without; empty if none is."""
    p_there: tuple[float, float]
    p_gone: tuple[float, float]
    """p(missing) and p(a fact of the graph), with the fact in the graph and without."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="run of kglm, or heads (otherwise the default)")
    parser.add_argument("--kg", type=Path, help="graph, if it is not that of the run")
    parser.add_argument("--held-out", action="store_true", help="ask about the held-out entities of the quickstart")
    parser.add_argument("--verbalised", action="store_true", help="ask in the wordings of kg verbalise")
    parser.add_argument("--count", type=int, default=200, help="prompts")
    parser.add_argument("--half", choices=HALVES, default="test", help="which half of the facts to ask for")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=0, help="wrong answers to print")
    parser.add_argument("--json", type=Path, help="write one line for each prompt")
    options = parser.parse_args()
    torch.set_num_threads(1)
    live = kglm.load(options.run, kg=options.kg)
    writer = Writer(live.graph, read_wordings(), options.seed)
    seen = training_words(writer.wordings, live.graph)
    half = HALVES.index(options.half)
    rows = prompts(writer, half, options.seed, held_out=options.held_out)
    if options.verbalised:
        rows = islice(verbalised(live.graph, half, options.seed), options.count)
    results: list[Result] = []
    with progress("asking", options.count * (2 - options.verbalised), "prompts") as advance:
        for row in rows:
            guess = not options.verbalised and has_unseen_word(row, seen)
            counts = Counter(result.guess for result in results)
            if counts[guess] < options.count:
                results.append(measure(live, row, guess))
                advance()
            elif counts[not guess] >= options.count:
                break
    columns = ("prompts", "number", "right at 1, %", "missing, fact there, %", "missing, removed, %", "named, %")
    guesses = [result for result in results if result.guess]
    groups = (("known words", [result for result in results if not result.guess]), ("guesses", guesses))
    print_table(columns, [(name, len(group), *shares(group)) for name, group in groups if group])
    wrong = [result for result in results if result.there or not result.gone]
    for result in sorted(wrong, key=lambda result: result.guess)[: options.show]:
        what = "there, but missing" if result.there else "gone, not missing"
        said = f"; says: {result.said}" if result.said else ""
        print(f"{'guess, ' * result.guess}{what}: {result.text} ({result.relation}{said})")
    print(Counter(result.relation for result in wrong).most_common(10) if options.show else "")
    if options.json:
        rows_ = (json.dumps(result._asdict(), ensure_ascii=False) + "\n" for result in results)
        options.json.write_text("".join(rows_), encoding="utf-8")


def shares(group: list[Result]) -> list[float]:
    """Shares in percent: right, missing with the fact and without, and the missing fact named."""
    columns = zip(*((r.right, r.there, r.gone, r.named) for r in group), strict=True)
    return [100 * float(np.mean(column)) for column in columns]


def prompts(writer: Writer, half: int, seed: int, *, held_out: bool) -> Iterator[dict[str, Any]]:
    """Prompts for facts of one half, in all wordings that fit; one fact of each subject and relation."""
    graph, rng = writer.graph, random.Random(f"{seed} {half}")
    facts = held_out_facts(writer) if held_out else drawn_facts(graph, writer, rng)
    asked = set[tuple[str, str]]()
    for fact in facts:
        if not is_other_half(fact[:2], half) and fact[:2] not in asked:
            rows = writer.prompts([fact], per_fact=PER_FACT)
            asked |= {fact[:2]} if rows else set()
            yield from (row for row in rows if not (is_literal(fact[2]) and row["expected_tail"].isdigit()))


def verbalised(graph: KnowledgeGraph, half: int, seed: int) -> Iterator[dict[str, Any]]:
    """Prompts in the wordings of `kglm kg verbalise`, without end."""
    verbaliser, rng, asked = Verbaliser(graph), random.Random(f"{seed} {half}"), set[tuple[str, str]]()
    while True:
        fact = verbaliser.draw(rng)
        ids = graph.id(fact[0]), graph.relation_id(fact[1])
        question = verbaliser.question(rng, fact)
        if question is None or is_other_half(ids, half) or ids in asked:
            continue
        asked.add(ids)
        yield {
            "prefix": question.words,
            "entity_indices": (question.start, question.end),
            "entity_id": ids[0],
            "relation_id": ids[1],
            "relation": graph.relation_name(ids[1]),
        }


def is_other_half(ids: tuple[str, str], half: int) -> bool:
    """True if the facts of this subject and relation belong to the other half."""
    return random.Random(" ".join(ids)).randrange(2) != half


def held_out_facts(writer: Writer) -> list[Fact]:
    """Facts of the entities that the quickstart holds out, in random order."""
    topics, config = writer.topics(), QuickstartConfig()
    held = hold_out(writer.graph, topics, round(config.held * len(topics)), always=ALWAYS_HELD, seed=config.seed)
    return random.Random(0).sample(held.facts, len(held.facts))


def drawn_facts(graph: KnowledgeGraph, writer: Writer, rng: random.Random) -> Iterator[Fact]:
    """Facts of relations with held-out wordings, without end."""
    arrays = graph.overlay.base
    place = np.flatnonzero(is_fact(arrays.edge_relation))
    relation = arrays.edge_relation[place]
    worded = {graph.find_relation(id) for id, all in writer.wordings.sentences.items() if any(w.held for w in all)}
    of = {r: place[relation == r] for r in sorted(each for each in worded if each is not None and each % 2 == 0)}
    of = {r: found for r, found in of.items() if len(found)}
    weights = [len(found) ** SMOOTH for found in of.values()]
    while True:
        [r] = rng.choices(list(of), weights)
        edge = int(rng.choice(of[r]))
        head = int(np.searchsorted(arrays.edge_offsets, edge, side="right")) - 1
        yield graph.id(head), graph.relation_id(r), graph.id(int(arrays.edge_tail[edge]))


def measure(live: AnyModel, row: dict[str, Any], guess: bool) -> Result:
    """Ask a prompt with its fact and without."""
    graph, node = live.graph, live.graph.number(row["entity_id"])
    relation = graph.find_relation(row["relation_id"])
    assert relation is not None
    tails = graph.tails(node, relation).tolist()
    there, gone = ask(live, row, node), ask(live.edited(removals(graph, node, tails, relation)), row, node)
    names = [tokenizer().words(name) for tail in tails for name in graph.aliases(tail)]
    right = there.top(1)[0][0] in {name[0] for name in names if name}
    wrong, says = says_missing(there), says_missing(gone)
    named = says is not None and (says.parent, says.relation // 2) == (node, relation // 2)
    said = wrong or says
    masses = ((sum(fact.p for fact in each.missing), each.p_facts) for each in (there, gone))
    return Result(
        " ".join(row["prefix"]), row["relation"], guess, right, wrong is not None, says is not None, named,
        "" if said is None else relation_label(live, said), *masses,
    )  # fmt: skip


def relation_label(live: AnyModel, missing: MissingFact) -> str:
    """The relation of a missing fact; heads also know relations that the graph does not have."""
    relations = live.tables.relations if isinstance(live, PretrainedLM) else None
    return Missing.of(live.graph, missing, relations).relation.label


def ask(live: AnyModel, row: dict[str, Any], node: int) -> Distribution:
    span = Span(*row["entity_indices"], node)
    return live.complete(row["prefix"], [span], links="none").distribution


def removals(graph: KnowledgeGraph, node: int, tails: list[int], relation: int) -> list[FactEdit]:
    """Edits that remove the facts of an entity with this relation or with one of these tails, in either direction."""
    edits = []
    for each, tail in zip(*(column.tolist() for column in graph.edges(node)), strict=True):
        if each > 1 and (tail in tails or each | 1 == relation | 1):
            ids = (graph.id(node), graph.relation_id(each).removeprefix(REVERSE), graph.id(tail))
            edits.append(FactEdit("remove", *(ids[::-1] if each % 2 else ids)))
    return edits


if __name__ == "__main__":
    main()

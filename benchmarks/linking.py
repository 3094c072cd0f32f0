"""python benchmarks/linking.py [--kg KG] [--half test | --later] [--errors] [--json FILE]

Measure links and NIL on sentences written for this purpose: `benchmarks/linking.jsonl`.

Each line has the graph it was written for (`world`: the bundled one; `shared`: --kg), a kind, and a text in which every
name is marked with the ids it may be linked to: "[Lincoln|Q91] was shot", or with NIL if no entity of the graph is
meant: "[Paris Hilton|NIL] was born in". A text that marks a pronoun expects it to be resolved. Lines at even places
(from 0) are the half to look at during development, lines at odd places the half to report. With --later, the lines of
`benchmarks/linking-later.jsonl` are measured instead: they were written after the linker, before it read any of them.

Link: a found mention of exactly these words whose most probable entity is more probable than NIL.
  precision = right links / found links, recall = right links / expected links.
NIL: of the names that are marked, those without a link inside them.
  precision = expected NIL / names without a link, recall = NIL names without a link / expected NIL.
Expected calibration error (ECE): of the names found in the table, the most probable outcome (entity or NIL) against how
often it is right, in ten bins of equal width, weighted by their size.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import kglm
from kglm import bundled
from kglm.answer.mentions import LinkedMention, linked_mentions
from kglm.kg.graph import KnowledgeGraph
from kglm.linking.linker import Linker
from kglm.linking.prompts import NIL_BIAS, PROMPT_SHARPNESS, PromptLinker
from table import print_table

TABLE = Path(__file__).with_suffix(".jsonl")
LATER = TABLE.with_stem("linking-later")
MARKED = re.compile(r"\[([^|\]]+)\|([^\]]+)\]")
NIL = "NIL"
BINS = 10


Link = Callable[[list[str]], list[LinkedMention]]
"""Finds the mentions of a text."""


class Name(NamedTuple):
    """Words [start, end) of a sentence, and what they may be linked to."""

    start: int
    end: int
    expected: frozenset[str]


class Sentence(NamedTuple):
    """One line of the table."""

    graph: str
    kind: str
    words: list[str]
    names: list[Name]


def sentences(words_of: Callable[[str], list[str]], graph: str, half: str) -> Iterator[Sentence]:
    """The lines of one half for one graph. Names are found by words, so that tokenization does not matter."""
    for place, line in enumerate((LATER if half == "later" else TABLE).read_text().splitlines()):
        record = json.loads(line)
        if record["graph"] != graph or half not in ("both", "later", ("dev", "test")[place % 2]):
            continue
        text = MARKED.sub(r"\1", record["text"])
        words, names, at = words_of(text), [], 0
        for name, ids in MARKED.findall(record["text"]):
            inside = words_of(name)
            at = next(i for i in range(at, len(words)) if words[i : i + len(inside)] == inside)
            names.append(Name(at, at + len(inside), frozenset(ids.split("/"))))
            at += len(inside)
        yield Sentence(record["graph"], record["kind"], words, names)


def link_to(graph: KnowledgeGraph) -> Link:
    """The links of prompts to a graph that no run was trained with."""
    linker = PromptLinker(Linker(graph, nil_bias=NIL_BIAS, sharpness=PROMPT_SHARPNESS))
    return lambda words: linked_mentions(graph, words, linker.link(words))


def found_links(link: Link, words: list[str]) -> dict[tuple[int, int], dict[str, float]]:
    """Probability of each outcome, entity or NIL, of the mentions that the linker finds."""
    found: dict[tuple[int, int], dict[str, float]] = defaultdict(dict)
    for mention in link(words):
        found[mention.start, mention.end][mention.id or NIL] = mention.p
    for outcomes in found.values():
        outcomes.setdefault(NIL, max(0.0, 1 - sum(outcomes.values())))
    return found


def score(link: Link, lines: Iterable[Sentence], *, errors: bool) -> tuple[dict[str, Counter[str]], list[Any]]:
    """Counts by kind, and (probability, right) of the most probable outcome of each name."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    sure: list[tuple[float, bool]] = []
    for line in lines:
        found = found_links(link, line.words)
        best = {span: max(outcomes, key=outcomes.__getitem__) for span, outcomes in found.items()}
        links = {span: id for span, id in best.items() if id != NIL}
        expected = {(name.start, name.end): name.expected for name in line.names}
        count, wrong = Counter[str](), []
        for span, id in links.items():
            right = id in expected.get(span, ())
            count.update({"links": 1, "right links": right})
            if not right:
                wrong.append(f"{' '.join(line.words[slice(*span)])} = {id} ({found[span][id]:.2f})")
        for (start, end), ids in expected.items():
            linked = any(a < end and b > start for a, b in links)
            must_be_nil = ids == {NIL}
            count.update({"expected links": not ids & {NIL}, "expected nil": must_be_nil, "nil": not linked})
            count["right nil"] += must_be_nil and not linked
            if not linked and not ids & {NIL}:
                wrong.append(f"{' '.join(line.words[start:end])} = NIL")
        for span, id in best.items():
            ids = expected.get(span)
            inside_nil = any(a <= span[0] and span[1] <= b and ids == {NIL} for (a, b), ids in expected.items())
            sure.append((found[span][id], id in (ids or ()) or (id == NIL and (inside_nil or ids is None))))
        counts[line.kind] += count
        if errors and wrong:
            print(f"  {line.graph}, {line.kind}: {' '.join(line.words)}: {'; '.join(wrong)}")
    return counts, sure


def measures(count: Counter[str]) -> dict[str, float]:
    """Precision and recall of links and of NIL."""

    def share(part: str, whole: str) -> float:
        return count[part] / count[whole] if count[whole] else float("nan")

    return {
        "link precision": share("right links", "links"),
        "link recall": share("right links", "expected links"),
        "NIL precision": share("right nil", "nil"),
        "NIL recall": share("right nil", "expected nil"),
    }


def calibration_error(sure: list[tuple[float, bool]]) -> float:
    """Expected calibration error: Σ_b |B_b| / n · |accuracy of B_b − mean confidence of B_b|."""
    p_N, right_N = (np.array(column, np.float64) for column in zip(*sure, strict=True))
    bin_N = np.minimum((p_N * BINS).astype(int), BINS - 1)
    gaps = (abs((right_N - p_N)[bin_N == b].sum()) for b in range(BINS))
    return float(sum(gaps) / len(p_N))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kg", type=Path, help="the shared graph; without it only the bundled world is measured")
    parser.add_argument("--half", choices=("dev", "test", "both"), default="dev")
    parser.add_argument("--later", dest="half", action="store_const", const="later", help="the lines written later")
    parser.add_argument("--errors", action="store_true", help="list the mistakes; not for the half that is reported")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    result: dict[str, Any] = {}
    model = kglm.load(bundled.RUN)
    links: dict[str, Link] = {"world": model.link}
    if options.kg:
        links["shared"] = link_to(KnowledgeGraph.open(options.kg))
    for graph, link in links.items():
        counts, sure = score(link, sentences(model.words, graph, options.half), errors=options.errors)
        total = sum(counts.values(), Counter())
        rows = [(kind, *measures(count).values()) for kind, count in counts.items()]
        rows.append(("all", *measures(total).values()))
        print_table(("kind", *measures(total)), rows, title=f"{graph}, {options.half} half")
        error = calibration_error(sure)
        print(f"{graph}: {dict(total)}; expected calibration error {error:.3f} on {len(sure)} mentions")
        result[graph] = {"counts": total, "ece": error, **measures(total)}
    if options.json:
        options.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()

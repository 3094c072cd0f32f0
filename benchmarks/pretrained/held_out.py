"""python benchmarks/pretrained/held_out.py --kg shared.kg --data ../shared/data --to FILE

Relations and wordings that no training text may use, so that completion can be measured on them.

Relations: 40 at random (seed 22) of those that have at least 30 facts in the shared graph and at least two wordings in
`wordings/wikifactdiff.json.gz`, without the relations of the T-REx sentences and of the 60 sample prompts. They are
listed in `held_out_relations.txt`. No training text states a fact with them, asks for one, or uses one of their
wordings; their labels are known to the model only as labels of the graph.

Wordings: a fifth of the wordings of all other relations, by `is_held_out_wording`.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import random
import re
from pathlib import Path

import numpy as np

from kglm.kg.arrays import is_fact
from kglm.kg.graph import KnowledgeGraph

RELATIONS = Path(__file__).with_name("held_out_relations.txt")
COUNT, SEED = 40, 22
LEAST_FACTS, LEAST_WORDINGS = 30, 2
SAMPLE = frozenset({"P36", "P19", "P569", "P26", "P131", "P50"})
"""Relations of the 60 sample prompts."""
HEADER = """\
# Relations kept out of all training of heads: id, label. Drawn by benchmarks/pretrained/held_out.py.
# Wordings of all other relations are held out by this rule (is_held_out_wording there), for a wording with XXXX for
# the subject and ____ for the object:
#   key = lower case; no "the", "a", "an" right before ____; no full stops and blanks at the end; single blanks
#   held out if int(blake2b(f"{relation id}\\t{key}", digest_size=8).hexdigest(), 16) % 5 == 0
"""


def held_out_relations() -> list[str]:
    """Ids of the relations that no training text may use."""
    lines = RELATIONS.read_text(encoding="utf-8").splitlines()
    return [line.split("\t")[0] for line in lines if line and not line.startswith("#")]


def is_held_out_wording(relation: str, wording: str) -> bool:
    """True for a fifth of the wordings of a relation; "in ____" and "in the ____" count as one wording."""
    key = re.sub(r"\b(?:the|an?) ____", "____", " ".join(wording.casefold().split())).rstrip(" .")
    return int(hashlib.blake2b(f"{relation}\t{key}".encode(), digest_size=8).hexdigest(), 16) % 5 == 0


def draw(graph: KnowledgeGraph, data: Path) -> list[str]:
    """Draw the held-out relations; needed once."""
    edges = graph.overlay.base.edge_relation
    facts_R = np.bincount(edges[is_fact(edges)], minlength=graph.relation_count)
    with gzip.open(data / "wordings/wikifactdiff.json.gz", "rt", encoding="utf-8") as file:
        wordings = json.load(file)
    with gzip.open(data / "trex/evidence.jsonl.gz", "rt", encoding="utf-8") as file:
        taken = {json.loads(line)["relation"] for line in file} | SAMPLE
    eligible = sorted(
        id
        for relation in range(0, graph.relation_count, 2)
        if facts_R[relation] >= LEAST_FACTS
        and (id := graph.relation_id(relation)) not in taken
        and len(wordings.get(id, ())) >= LEAST_WORDINGS
    )
    return sorted(random.Random(SEED).sample(eligible, COUNT))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kg", type=Path, required=True, help="the shared graph")
    parser.add_argument("--data", type=Path, required=True, help="folder of the shared data")
    parser.add_argument("--to", type=Path, default=RELATIONS, help="list to write")
    options = parser.parse_args()
    with KnowledgeGraph.open(options.kg) as graph:
        drawn = draw(graph, options.data)
        lines = [f"{id}\t{graph.relation_name(id)}\n" for id in drawn]
    options.to.write_text(HEADER + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()

"""python tools/train_adapter.py --own tools/wordings --wordings wikifactdiff.json.gz --relations relations.tsv --to DIR

Train the adapter of the sentence encoder that comes with the heads: a quarter of an hour on one core. --without FILE
leaves out relations by id (lines that begin with one), with --hold-out-wordings also a fifth of the wordings, and
--without-labels FILE relations of tables by label or alias, for measurements. --test holds out a fifth of the relations
instead of writing an adapter, and prints how often the right relation is the first one, before and after.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from kglm.files.artefact import new_artefact
from kglm.files.tensors import write_tensors
from kglm.text.encoder import Encoder, SentenceEncoder
from kglm.train.adapter import AdapterConfig, RelationTexts, train_adapter
from kglm.writing.linked_sentences import HEAD, TAIL, read_wordings

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks" / "pretrained"))


def clause(wording: str) -> str | None:
    """The words of a statement before what it ends with, or of a question, the subject replaced by "it"."""
    before = wording.partition(TAIL)[0]
    if HEAD not in before:
        return None
    return before.replace(f"the {HEAD}", "it").replace(HEAD, "it").strip().removesuffix(" the")


def read_relations(args: argparse.Namespace) -> list[RelationTexts]:
    """The relations of all files with their clauses, without what is held out."""
    lines = args.without.read_text().splitlines() if args.without else []
    without = {line.split()[0] for line in lines if line.strip() and not line.startswith("#")}
    labels = (
        {line.casefold() for line in args.without_labels.read_text().splitlines()} if args.without_labels else set()
    )
    found = []
    rows = [line.rstrip("\n").split("\t")[:2] for line in args.relations.open(encoding="utf-8")]
    names: dict[str, tuple[str, ...]] = {id: (label,) for id, label in rows if label}
    texts = {id: list(each) for id, each in read_wordings(args.wordings).items() if id in names}
    for line in (args.own / "wikidata.jsonl").read_text(encoding="utf-8").splitlines():
        own = json.loads(line)
        names[own["id"]] = tuple(dict.fromkeys([own["label"], *own["aliases"]]))
        texts[own["id"]] = [*texts.get(own["id"], ()), *own["statements"], *own["questions"]]
    if args.hold_out_wordings:
        from held_out import is_held_out_wording

        texts = {id: [text for text in each if not is_held_out_wording(id, text)] for id, each in texts.items()}
    for id, label in names.items():  # those without clauses are known by name, as in a graph
        found.append(RelationTexts(label, () if id in without else _clauses(texts.get(id, ()))))
    for line in (args.own / "own.jsonl").read_text(encoding="utf-8").splitlines():
        own = json.loads(line)
        all_names = tuple(dict.fromkeys([own["label"], *own["aliases"]]))
        left_out = not labels.isdisjoint(name.casefold() for name in all_names)
        clauses = () if left_out else _clauses([*own["statements"], *own["questions"]])
        found.append(RelationTexts(all_names, clauses, f"{own['domain']}: {own['head']}"))
    return found


def _clauses(wordings: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found for text in wordings if (found := clause(text))))


def right_first(
    encoder: Encoder, relations: Sequence[RelationTexts], asked: Sequence[RelationTexts]
) -> dict[str, float]:
    """Share of the clauses whose relation is the first among all without a table, or among those of its table."""
    by_table = {
        table: [each for each in relations if each.table == table] for table in {each.table for each in relations}
    }
    hits: dict[str, list[bool]] = {"no table": [], "tables": []}
    for table, among in by_table.items():
        vectors = [torch.from_numpy(encoder.encode(each.names)) for each in among]
        for right, each in enumerate(among):
            if each not in asked or not each.clauses:
                continue
            clause_NC = torch.from_numpy(encoder.encode(each.clauses))
            best_NR = torch.stack([(clause_NC @ name_YC.T).max(-1).values for name_YC in vectors], -1)
            hits["tables" if table else "no table"] += (best_NR.argmax(-1) == right).tolist()
    return {kind: sum(each) / max(len(each), 1) for kind, each in hits.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    parser.add_argument("--own", type=Path, required=True, help="folder of our own wordings")
    parser.add_argument("--wordings", type=Path, required=True)
    parser.add_argument("--relations", type=Path, required=True, help="ids and labels of Wikidata's relations")
    parser.add_argument("--to", type=Path)
    parser.add_argument("--without", type=Path)
    parser.add_argument("--without-labels", type=Path)
    parser.add_argument("--hold-out-wordings", action="store_true")
    parser.add_argument("--test", action="store_true")
    parser.add_argument("--steps", type=int, default=AdapterConfig.steps)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    encoder = SentenceEncoder.required()
    relations = read_relations(args)
    config = AdapterConfig(steps=args.steps, seed=args.seed)
    if args.test:
        held = [each for each in relations if _is_held_out(each)]
        print(f"{len(held)} held-out relations of {len(relations)}; before", right_first(encoder, relations, held))
        adapter = train_adapter(encoder, [each for each in relations if each not in held], config)
        print("after", right_first(encoder.adapted(adapter), relations, held))
        return
    adapter = train_adapter(encoder, relations, config)
    with new_artefact(args.to) as writer:
        write_tensors(writer, "adapter.safetensors", {name: value.half() for name, value in adapter.items()})


def _is_held_out(relation: RelationTexts) -> bool:
    key = (relation.table or relation.names[0]).split(":")[0]
    return hashlib.blake2b(key.encode(), digest_size=4).digest()[0] % 5 == 0


if __name__ == "__main__":
    main()

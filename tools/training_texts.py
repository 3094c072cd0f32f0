"""python tools/training_texts.py --kg train.kg --wordings wikifactdiff.json.gz --trex evidence.jsonl.gz --to texts

Write the training texts of heads: facts in many wordings, questions with answers, and sentences of T-REx with their two
entities linked. With --without FILE (lines that begin with a relation id), facts of these relations are in no text, and
with --hold-out-wordings a fifth of the wordings is left out (see `benchmarks/pretrained/held_out.py`).

    texts/wordings.jsonl     one to three statements a document
    texts/questions.jsonl    a question and its answer
    texts/trex.jsonl         one sentence a document
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
from collections import Counter
from pathlib import Path

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import NEW, REVERSE
from kglm.text.document import END, START, Document, Mention, write_documents
from kglm.text.tokenizer import tokenizer
from kglm.writing.linked_sentences import FactDrawer, SentenceWriter, document, read_wordings
from kglm.writing.questions import QuestionWriter
from kglm.writing.verbalise import graph_facts

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks" / "pretrained"))

ENDINGS = (".", ".", ".", ".", ".", ",", ";", " .")


def statements(graph: KnowledgeGraph, wordings: dict[str, list[str]], drawer: FactDrawer, count: int) -> list[Document]:
    """Documents of one to three statements."""
    writer, found = SentenceWriter(graph), []
    for number in range(count):
        rng = random.Random(f"statements {number}")
        sentences = []
        for _ in range(rng.choices((1, 2, 3), (0.6, 0.25, 0.15))[0]):
            fact = drawer.draw(rng)
            texts = wordings.get(graph.relation_id(fact.relation), [])
            sentence = writer.fill(rng.choice(texts) + rng.choice(ENDINGS), fact, rng) if texts else None
            if sentence is not None:
                sentences.append(sentence)
        if sentences:
            found.append(document(sentences, graph, f"statement {number}"))
    return found


def questions(graph: KnowledgeGraph, drawer: FactDrawer, count: int) -> list[Document]:
    """Questions with answers."""
    writer, found = QuestionWriter(graph), []
    for number in range(count):
        rng = random.Random(f"questions {number}")
        made = writer.document(drawer.draw(rng), rng, f"question {number}")
        if made is not None:
            found.append(made)
    return found


def trex(path: Path, graph: KnowledgeGraph, without: set[str], count: int) -> list[Document]:
    """Sentences of T-REx whose two entities are found, at most `count` for each relation."""
    found, taken = [], Counter[str]()
    with gzip.open(path, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    random.Random(0).shuffle(rows)
    for row in rows:
        text, relation = row["masked"], row["relation"]
        if relation in without or taken[relation] >= count or text.count("[MASK]") != 1:
            continue
        place = text.index("[MASK]")
        text = text.replace("[MASK]", row["obj_surface"])
        tail = (place, place + len(row["obj_surface"]), row["object_id"])
        at = text.find(row["sub_surface"])
        if at < 0 or (at < tail[1] and tail[0] < at + len(row["sub_surface"])):
            continue
        head = (at, at + len(row["sub_surface"]), row["subject_id"])
        if graph.find(head[2]) is None or graph.find(tail[2]) is None or len(text) > 500:
            continue
        taken[relation] += 1
        tokens = [START]
        spans = sorted([head, tail])
        words = tokenizer().tokens(text, [edge for span in spans for edge in span[:2]])
        tokens += [word.text for word in words] + [END]
        mentions = []
        for n, (begin, end, id) in enumerate(spans):
            inside = [k for k, word in enumerate(words) if begin <= word.start and word.end <= end]
            if not inside:
                break
            other = spans[0][2]
            derivation = ((NEW,), (id,)) if n == 0 else ((relation if id == tail[2] else REVERSE + relation,), (other,))
            mentions.append(Mention(inside[0] + 1, inside[-1] + 2, id, "KG", *derivation))
        if len(mentions) == 2:
            found.append(Document(f"trex {len(found)}", tokens, mentions))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    parser.add_argument("--kg", type=Path, required=True)
    parser.add_argument("--wordings", type=Path, required=True)
    parser.add_argument("--trex", type=Path, required=True)
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--without", type=Path)
    parser.add_argument("--hold-out-wordings", action="store_true")
    parser.add_argument("--statements", type=int, default=16_000)
    parser.add_argument("--questions", type=int, default=12_000)
    parser.add_argument("--trex-sentences", type=int, default=420, help="for each relation")
    args = parser.parse_args()
    lines = args.without.read_text().splitlines() if args.without else []
    without = {line.split()[0] for line in lines if line.strip() and not line.startswith("#")}
    wordings = read_wordings(args.wordings)
    if args.hold_out_wordings:
        from held_out import is_held_out_wording

        wordings = {id: [text for text in texts if not is_held_out_wording(id, text)] for id, texts in wordings.items()}
    args.to.mkdir(parents=True, exist_ok=True)
    with KnowledgeGraph.open(args.kg) as graph:
        heads, relations, tails = (column.tolist() for column in graph_facts(graph))
        ids = {number: graph.relation_id(number) for number in sorted(set(relations))}
        usable = [number for number, id in ids.items() if ":" not in id and id not in without]
        drawer = FactDrawer(heads, relations, tails, usable)
        worded = FactDrawer(heads, relations, tails, [number for number in usable if wordings.get(ids[number])])
        made = {
            "wordings": statements(graph, wordings, worded, args.statements),
            "questions": questions(graph, drawer, args.questions),
            "trex": trex(args.trex, graph, without, args.trex_sentences),
        }
    for name, documents in made.items():
        write_documents(args.to / f"{name}.jsonl", documents)
        print(f"{name}: {len(documents):,} documents, {sum(len(each.tokens) for each in documents):,} tokens")


if __name__ == "__main__":
    main()

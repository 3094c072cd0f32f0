"""python tools/training_texts.py --kg train.kg --wordings wikifactdiff.json.gz --own tools/wordings/wikidata.jsonl
    --invented invented --trex evidence.jsonl.gz --to texts

Write the training texts of heads: facts in many wordings, questions with answers, and sentences of T-REx with their two
entities linked. With --without FILE (lines that begin with a relation id), facts of these relations are in no text, and
with --hold-out-wordings a fifth of the wordings is left out (see `benchmarks/pretrained/held_out.py`).

    texts/wordings.jsonl     one to three statements a document
    texts/questions.jsonl    a question and its answer
    texts/invented.jsonl     both, of the invented entities that `invented_world.py` makes
    texts/trex.jsonl         one sentence a document
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import sys
from collections import Counter
from pathlib import Path

from kglm.kg.graph import KnowledgeGraph
from kglm.kg.ids import NEW, REVERSE
from kglm.text.document import END, START, Document, Mention, write_documents
from kglm.text.tokenizer import tokenizer
from kglm.writing.linked_sentences import (
    HEAD,
    TAIL,
    Fact,
    FactDrawer,
    LinkedSentence,
    SentenceWriter,
    document,
    read_wordings,
)
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


def questions(graph: KnowledgeGraph, wordings: dict[str, list[str]], drawer: FactDrawer, count: int) -> list[Document]:
    """Questions with answers."""
    writer, found = QuestionWriter(graph, wordings), []
    for number in range(count):
        rng = random.Random(f"questions {number}")
        made = writer.document(drawer.draw(rng), rng, f"question {number}")
        if made is not None:
            found.append(made)
    return found


def invented(graph: KnowledgeGraph, folder: Path, count: int) -> list[Document]:
    """Statements about invented entities, and questions with answers, in equal numbers of documents."""
    kind_of: dict[str, str] = json.loads((folder / "entities.json").read_text(encoding="utf-8"))
    worded: dict[str, dict[str, dict[str, list[str]]]] = json.loads(
        (folder / "wordings.json").read_text(encoding="utf-8")
    )
    facts = {}
    for id, kind in kind_of.items():
        head = graph.number(id)
        own = [(int(r), int(e)) for r, e in zip(*graph.edges(head), strict=True)]
        facts[id] = [Fact(head, r, e) for r, e in own if graph.relation_id(r) in worded[kind]]
    ids = sorted(id for id in facts if facts[id])
    sentences, asker, found = SentenceWriter(graph), QuestionWriter(graph), []
    for number in range(count):
        rng = random.Random(f"invented {number}")
        id = rng.choice(ids)
        words = worded[kind_of[id]]
        if number % 2:
            fact = rng.choice(facts[id])
            asked = fitting(rng.choice(words[graph.relation_id(fact.relation)]["questions"]), graph.label(fact.head))
            made = asker.document(fact, rng, f"invented {number}", f"{asked} {TAIL}")
            found += [made] if made is not None else []
            continue
        size = rng.choices((1, 2, 3), (0.6, 0.25, 0.15))[0]
        part = []
        for fact in rng.sample(facts[id], min(size, len(facts[id]))):
            wording = fitting(rng.choice(words[graph.relation_id(fact.relation)]["statements"]), graph.label(fact.head))
            sentence = sentences.fill(wording + rng.choice(ENDINGS[:4]), fact, rng)
            if sentence is not None:
                part.append(capitalised(sentence) if rng.random() < 0.5 else sentence)
        if part:
            found.append(document(part, graph, f"invented {number}"))
    return found


def fitting(wording: str, name: str) -> str:
    """A wording without a second article before a name."""
    return re.sub(rf"\b[Tt]he {HEAD}", HEAD, wording) if name.startswith("The ") else wording


def capitalised(sentence: LinkedSentence) -> LinkedSentence:
    """A sentence that begins with a capital, whatever its name begins with."""
    return sentence._replace(text=sentence.text[0].upper() + sentence.text[1:])


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
    parser.add_argument("--own", type=Path, required=True, help="our own wordings and questions")
    parser.add_argument("--invented", type=Path, required=True, help="folder that invented_world.py made")
    parser.add_argument("--trex", type=Path, required=True)
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--without", type=Path)
    parser.add_argument("--hold-out-wordings", action="store_true")
    parser.add_argument("--statements", type=int, default=16_000)
    parser.add_argument("--questions", type=int, default=12_000)
    parser.add_argument("--invented-texts", type=int, default=10_000)
    parser.add_argument("--trex-sentences", type=int, default=420, help="for each relation")
    args = parser.parse_args()
    lines = args.without.read_text().splitlines() if args.without else []
    without = {line.split()[0] for line in lines if line.strip() and not line.startswith("#")}
    wordings, asked = dict(read_wordings(args.wordings)), {}
    for line in args.own.read_text(encoding="utf-8").splitlines():
        own = json.loads(line)
        wordings[own["id"]] = [*wordings.get(own["id"], []), *own["statements"]]
        asked[own["id"]] = [f"{question} {TAIL}" for question in own["questions"]]
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
            "questions": questions(graph, asked, drawer, args.questions),
            "invented": invented(graph, args.invented, args.invented_texts),
            "trex": trex(args.trex, graph, without, args.trex_sentences),
        }
    for name, documents in made.items():
        write_documents(args.to / f"{name}.jsonl", documents)
        print(f"{name}: {len(documents):,} documents, {sum(len(each.tokens) for each in documents):,} tokens")


if __name__ == "__main__":
    main()

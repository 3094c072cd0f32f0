"""What the measurements share: halves, results that can be resumed, and the judgement of answers."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch

import kglm
from kglm.kg.graph import KnowledgeGraph
from kglm.progress import progress
from kglm.text.tokenizer import tokenizer

HALVES = ("development", "reported")
TOP = 5
SURE = 0.5
"""Probability from which a name counts as linked to an entity."""
Model = Any
"""A loaded model: `kglm.load` of heads on a pretrained model, or of a run."""
Row = dict[str, Any]


def half_of(key: str) -> str:
    """The half that a question belongs to, by a hash of its key."""
    return HALVES[hashlib.blake2b(key.encode(), digest_size=8).digest()[0] % 2]


def sampled(key: str, seed: int) -> int:
    """A number by which questions are ordered at random; it does not depend on the other questions."""
    return int.from_bytes(hashlib.blake2b(f"{seed}\t{key}".encode(), digest_size=8).digest())


def read_gz(path: Path) -> Iterator[Row]:
    """The objects of a compressed file of JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        yield from map(json.loads, stream)


# Questions and answers


@dataclass(frozen=True)
class Question:
    """A prompt that asks for the tails of a subject and a relation."""

    key: str
    prompt: str
    subject: str
    """Id of the subject."""
    name: str
    """Its name in the prompt."""
    relation: str
    tails: tuple[str, ...]
    """Ids of the right answers."""
    kind: str = ""

    def to_json(self) -> Row:
        return asdict(self)


@dataclass(frozen=True)
class Accepted:
    """Right answers: ids, names in normal form, and first words of names."""

    ids: frozenset[str]
    names: frozenset[str]
    first: frozenset[str]

    @classmethod
    def of(cls, graph: KnowledgeGraph, ids: Iterable[str], names: Iterable[str] = ()) -> Accepted:
        """The entities or literals with these ids under all their names, and further names."""
        ids = frozenset(ids)
        nodes = [node for id in ids if (node := graph.find(id)) is not None]
        texts = [*names, *(name for node in nodes for name in graph.aliases(node))]
        first = {words[0] for text in texts if (words := tokenizer().words(text))}
        return cls(ids, frozenset(filter(None, map(normal, texts))), frozenset(first))

    def answer(self, answer: Any) -> bool:
        """True if an answer is right as a whole."""
        return (answer.entity is not None and answer.entity.id in self.ids) or normal(answer.text) in self.names


def normal(text: str) -> str:
    """A name in lower case, without an article before it and without marks around it."""
    return re.sub(r"^(?:the|an?) ", "", " ".join(text.casefold().split()).strip(" .,;:!?\"'“”"))


def judged(completion: Any, accepted: Accepted) -> Row:
    """The best answers and words of a completion, and which of them are right.

    answer1, answer5    one of the best 1 or 5 answers is right as a whole
    word1, word5        one of the best 1 or 5 next words is the first word of a right name (the paper's strict measure)
    """
    answers, words = completion.answers[:TOP], completion.words[:TOP]
    right = [accepted.answer(answer) for answer in answers]
    first = [word.word in accepted.first for word in words]
    missing = completion.missing[0] if completion.missing else None
    best = answers[0].reasons[0] if answers and len(answers[0].reasons) else None
    return {
        "answer1": any(right[:1]),
        "answer5": any(right),
        "word1": any(first[:1]),
        "word5": any(first),
        "answers": [(each.text, each.entity and each.entity.id, round(each.p, 6)) for each in answers],
        "words": [(each.word, round(each.p, 6)) for each in words],
        "reason": None if best is None else best.fact,
        "says_missing": bool(completion.asks_for_missing),
        "missing": missing and {"p": missing.p, "parent": missing.parent.id, "relation": missing.relation.id},
        "linked": [(mention.text, mention.id, round(mention.p, 4)) for mention in completion.mentions],
    }


def is_found(question: Question, row: Row) -> bool:
    """True if the subject is the most probable entity of a name."""
    return any(id == question.subject and p >= SURE for _, id, p in row["linked"])


def complete(model: Model, question: Question, *, how: str = "linked") -> Any:
    """Complete a prompt: subject `linked`, subject `given`, or by the `base` alone."""
    options: dict[str, Any] = {"trust": -math.inf} if how == "base" else {}
    entities = [f"{question.name}={question.subject}"] if how == "given" else []
    return model.complete(question.prompt, entities, top=TOP, **options)


# Running


def arguments(description: str | None, *, graph: bool = True) -> argparse.ArgumentParser:
    """A parser with the options of all measurements."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", help="run of heads (otherwise the default heads)")
    if graph:
        parser.add_argument("--kg", type=Path, required=True, help="the shared graph")
        parser.add_argument("--data", type=Path, required=True, help="folder of the shared data")
    parser.add_argument("--half", choices=HALVES, default=HALVES[0])
    parser.add_argument("--limit", type=int, help="questions of each set, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--to", type=Path, required=True, help="folder for results; what is there is not done again")
    return parser


def load(run: str | None, kg: str | Path | KnowledgeGraph | None = None) -> Model:
    """Load a model on one thread."""
    torch.set_num_threads(1)
    return kglm.load(run, kg=kg)


def resumed(path: Path, tasks: Sequence[tuple[str, Callable[[], Row]]], *, title: str, every: int = 1) -> list[Row]:
    """Run named tasks and append each result to a file as a JSON line; tasks whose line is there are skipped."""
    path.parent.mkdir(parents=True, exist_ok=True)
    done = {row["task"]: row for row in read_lines(path)}
    missing = [(name, task) for name, task in tasks if name not in done]
    with path.open("a", encoding="utf-8") as stream, progress(title, len(missing), "tasks") as advance:
        for place, (name, task) in enumerate(missing):
            done[name] = {"task": name, **task()}
            stream.write(json.dumps(done[name], ensure_ascii=False) + "\n")
            if place % every == 0:
                stream.flush()
            advance()
    return [done[name] for name, _ in tasks]


def read_lines(path: Path) -> list[Row]:
    """The complete lines of a file of JSON lines; a last line that was cut off is dropped."""
    if not path.exists():
        return []
    content = path.read_text(encoding="utf-8")
    if not content.endswith("\n"):
        content = content[: content.rfind("\n") + 1]
        path.write_text(content, encoding="utf-8")
    return [json.loads(line) for line in content.splitlines()]


# Numbers


def share(rows: Sequence[Row], key: str) -> float | None:
    """Rows in percent for which the value is true; None without rows."""
    return 100 * sum(bool(row[key]) for row in rows) / len(rows) if rows else None


def mean_over(rows: Sequence[Row], group: str, key: str) -> float | None:
    """Mean over groups of the share in each."""
    shares = [share([row for row in rows if row[group] == name], key) for name in {row[group] for row in rows}]
    found = [each for each in shares if each is not None]
    return sum(found) / len(found) if found else None


def margin(rows: Sequence[Row], key: str) -> float | None:
    """Half of the 95 % interval of a share, in percent, by the normal approximation."""
    p = share(rows, key)
    return None if p is None else 196 * math.sqrt(p / 100 * (1 - p / 100) / len(rows))


def save(path: Path, result: Any) -> None:
    """Write a result as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


How = Literal["linked", "given", "base"]

"""python -m benchmarks.pretrained.rival --kg shared.kg --data ../shared/data --run RUN --to results [--formats …]

Facts in the prompt: the same base, the same questions, with the subject's facts as text before the question.

The rival is told the subject and gets all of its facts, at most what fits into its context, in random order, the asked
one among them. The model with the graph has to find the subject itself. Questions are statements in wordings that no
training text used, about facts with one object; as many for each number of facts of the subject.

The rival writes its answer greedily (`free`), or greedily among the names of the facts that it was given (`names`).
An answer is right if its text begins with a name of the object; a date needs its year, and its day if the fact has one.
The same rule is applied to the best answer of the model with the graph. `inside` is more lenient: the text has the name
somewhere. `subwords` counts those read and written for
an answer.

--formats tunes the rival: how facts are written, how the question is put, and how many facts are given. The best format
on the development half is `BEST`, for each way to answer.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import torch
from benchmarks.pretrained.common import (
    SURE,
    Model,
    Question,
    Row,
    arguments,
    complete,
    half_of,
    load,
    normal,
    resumed,
    sampled,
    save,
    share,
)
from benchmarks.pretrained.completion import drawn
from benchmarks.table import print_table
from torch import Tensor

from kglm.kg.arrays import is_fact
from kglm.kg.graph import KnowledgeGraph
from kglm.kg.literals.dates import DAY, Date
from kglm.kg.literals.literal import is_date
from kglm.pretrained.base import BaseModel
from kglm.pretrained.llama import KeyValues

BUCKETS = {"<= 10": (1, 10), "<= 30": (11, 30), "<= 100": (31, 100), "more": (101, 10**9)}
"""Numbers of facts of the subject."""
EACH = 60
"""Questions for each number of facts."""
WRITTEN = 24
"""Subwords of an answer at most."""
SPARE = 160
"""Subwords of the context that facts do not fill."""
SHOTS = (
    ("Harlan Veldt", ("country of citizenship: Norway", "date of birth: 3 June 1921", "occupation: painter",
                      "place of birth: Bergen"), "Harlan Veldt is a native of", "Bergen"),
    ("Osprey Bridge", ("inception: 1931", "architect: Lena Storm", "length: 412 metres", "country: Canada"),
     "The length of Osprey Bridge is", "412 metres"),
    ("The Tin Garden", ("author: Paul Marsh", "genre: novel", "publication date: 12 May 1978",
                        "publisher: Corvid House"), "The Tin Garden first appeared in print on", "12 May 1978"),
)  # fmt: skip
"""Examples of prompts with their answers, about entities that do not exist."""


class Format(NamedTuple):
    """How facts and a question are put to the base."""

    facts: str
    """lines: "label: object"; sentences: "The label of X is object."; grouped: objects of a relation on one line."""
    question: str
    """plain: the statement goes on after the facts; twice: it also stands before them; chat: a question, the answer
    goes on from the statement; chat-short: the object alone."""
    shots: int = 0
    most: int = 10**9
    """Facts at most."""

    @property
    def name(self) -> str:
        return f"{self.facts} {self.question} {self.shots} shots" + (f" {self.most} facts" if self.most < 10**9 else "")


FORMATS = [
    *(Format(facts, question) for facts in ("lines", "sentences", "grouped") for question in ("plain", "chat")),
    *(Format("lines", question, shots) for question in ("plain", "chat") for shots in (1, 3)),
    Format("lines", "twice"),
    Format("grouped", "twice"),
    Format("lines", "chat-short"),
    Format("lines", "chat-short", 3),
    Format("lines", "plain", 0, 30),
    Format("lines", "plain", 0, 100),
]
BEST = {"free": Format("grouped", "twice"), "names": Format("lines", "plain")}
"""The best formats on the development half."""


# Questions


def degree(graph: KnowledgeGraph, node: int) -> int:
    """Facts with this entity as head, without qualifiers."""
    return len(own_facts(graph, node))


def own_facts(graph: KnowledgeGraph, node: int) -> list[tuple[int, int]]:
    """(relation, tail) of the facts of an entity, without qualifiers and without tails that have no name."""
    pairs = zip(*(column.tolist() for column in graph.edges(node)), strict=True)
    return [
        (relation, tail)
        for relation, tail in pairs
        if is_fact(relation) and relation % 2 == 0 and ":" not in graph.relation_id(relation) and graph.aliases(tail)
    ]


def bucket_of(count: int) -> str:
    return next(name for name, (least, most) in BUCKETS.items() if least <= count <= most)


def questions(graph: KnowledgeGraph, data: Path, half: str, each: int, seed: int) -> list[tuple[str, Question]]:
    """Questions in held-out wordings with the bucket of their subject; at most two of each relation and bucket."""
    found: dict[str, list[Question]] = {name: [] for name in BUCKETS}
    pool = [question for question in drawn(graph, data, seed, relations=False) if half_of(question.kind) == half]
    used: dict[tuple[str, str], int] = {}
    for question in sorted(pool, key=lambda question: sampled(question.key, seed)):
        bucket = bucket_of(degree(graph, graph.number(question.subject)))
        of_relation = used.get((bucket, question.relation), 0)
        if len(found[bucket]) < each and of_relation < 2:
            found[bucket].append(question)
            used[bucket, question.relation] = of_relation + 1
    return [(bucket, question) for bucket, group in found.items() for question in group]


# Prompts


def fact_lines(graph: KnowledgeGraph, question: Question, form: Format, rng: random.Random) -> list[str]:
    """The subject's facts as text in random order; the asked one is among them if `form.most` leaves some out."""
    node, [tail] = graph.number(question.subject), question.tails
    facts = own_facts(graph, node)
    rng.shuffle(facts)
    asked = (graph.find_relation(question.relation), graph.number(tail))
    if len(facts) > form.most:
        kept = [fact for fact in facts if fact != asked][: form.most - 1]
        kept.insert(rng.randrange(len(kept) + 1), asked)  # type: ignore[arg-type]
        facts = kept
    named = [(graph.relation_label(relation), spoken(graph, tail)) for relation, tail in facts]
    if form.facts == "sentences":
        return [f"The {label} of {question.name} is {name}." for label, name in named]
    if form.facts == "grouped":
        of: dict[str, list[str]] = {}
        for label, name in named:
            of.setdefault(label, []).append(name)
        return [f"{label}: {', '.join(names)}" for label, names in of.items()]
    return [f"{label}: {name}" for label, name in named]


def spoken(graph: KnowledgeGraph, tail: int) -> str:
    """The name of an object as it is written in a list of facts: a date with its year, a quantity with its unit."""
    names = graph.aliases(tail)
    units = [name for name in names if not re.fullmatch(r"[\d.,−-]+", name)]
    return units[0] if graph.id(tail).startswith("V") and units else names[0]


def assembled(base: BaseModel, question: Question, lines: Sequence[str], form: Format) -> tuple[list[int], int]:
    """Subwords of the prompt, and the number of facts in it: as many as fit."""

    def text(facts: Sequence[str]) -> str:
        chat = base.subwords.chat
        examples = [block(form, *shot[:3], answer=shot[3], chat=chat) for shot in SHOTS[: form.shots]]
        return "".join([*examples, block(form, question.name, facts, question.prompt, chat=chat)])

    facts = list(lines)
    room = base.model.config.context - WRITTEN - SPARE
    ids = base.subwords.encode(text(facts)).ids
    while len(ids) > room:
        keep = max(1, int(len(facts) * room / len(ids)) - 1)
        facts = facts[:keep] if keep < len(facts) else facts[:-1]
        ids = base.subwords.encode(text(facts)).ids
    return ids, len(facts)


def block(form: Format, name: str, facts: Sequence[str], statement: str, *, answer: str = "", chat: object) -> str:
    """One prompt; an example goes on with its answer."""
    listed = "\n".join(f"- {fact}" if form.facts != "sentences" else fact for fact in facts)
    if form.question == "plain":
        return f"Facts about {name}:\n{listed}\n\n{statement}" + (f" {answer}.\n\n\n" if answer else "")
    if form.question == "twice":
        return f"{statement} ... ?\n\nFacts about {name}:\n{listed}\n\n{statement}" + (
            f" {answer}.\n\n\n" if answer else ""
        )
    before, after, end = chat.before, chat.after, chat.end  # type: ignore[attr-defined]
    if form.question == "chat":
        asked = f"Here are facts about {name}:\n{listed}\n\nComplete this sentence with the right fact: {statement} ..."
        return f"{before}{asked}{after}{statement}" + (f" {answer}.{end}\n" if answer else "")
    asked = (
        f"Here are facts about {name}:\n{listed}\n\nWhich words complete this sentence? Give only these words.\n"
        f"{statement} ___"
    )
    return f"{before}{asked}{after}" + (f"{answer}{end}\n" if answer else "")


# Answers


def full_names(graph: KnowledgeGraph, id: str, prompt: str = "") -> list[str]:
    """Names that an answer may begin with: of a date those with its year, and with its day if it has one.

    After a prompt that ends in "in", the day may be left out.
    """
    node = graph.number(id)
    names = list(graph.aliases(node))
    if is_date(id):
        date = Date.parse_id(id)
        names = [name for name in names if str(abs(date.year)) in name]
        if date.precision >= DAY and not prompt.endswith(" in"):
            longer = [name for name in names if len(re.findall(r"\w+", name)) >= 3]
            return longer or names
    return names


def is_right(graph: KnowledgeGraph, question: Question, text: str) -> bool:
    """True if a text begins with a name of a right object."""
    said = re.sub(r"^(?:in|on|at|by|a|an|the)\s+", "", " ".join(text.casefold().split()).lstrip(" .,:;\"'“*-"))
    said = re.sub(r"^(?:a|an|the)\s+", "", said)
    names = {normal(name) for tail in question.tails for name in full_names(graph, tail, question.prompt)}
    return any(re.match(rf"{re.escape(name)}(?!\w|[.,]\d)", said) for name in names if name)


def is_inside(graph: KnowledgeGraph, question: Question, text: str) -> bool:
    """True if the text has a name of a right object anywhere: more lenient than `is_right`."""
    names = {name.casefold() for tail in question.tails for name in full_names(graph, tail, question.prompt)}
    return any(re.search(rf"(?<![\w.,]){re.escape(name)}(?!\w|[.,]\d)", text.casefold()) for name in names if name)


class Read(NamedTuple):
    """A prompt that the base has read."""

    cache: KeyValues
    last_D: Tensor
    """State after its last subword."""


def read(base: BaseModel, ids: Sequence[int]) -> Read:
    cache = base.model.new_cache()
    return Read(cache, base.model.hidden(torch.tensor([list(ids)]), cache).last_BTD[0, -1])


@torch.no_grad()
def greedy(base: BaseModel, prompt: Read, allowed: Callable[[list[int]], Sequence[int]] | None) -> list[int]:
    """The best subword after the prompt, then the best after it …; among `allowed` ones if there are any."""
    cache, state_D, written = prompt.cache.rewound(prompt.cache.length), prompt.last_D, list[int]()
    end = base.subwords.encode(base.subwords.chat.end).ids[0] if base.subwords.chat else -1
    while len(written) < WRITTEN:
        logits_V = base.model.logits(state_D)
        if allowed is None:
            best = int(logits_V.argmax())
        elif choice := allowed(written):
            best = max(choice, key=lambda subword: float(logits_V[subword]))
        else:
            break
        if best in (end, base.subwords.start) or "\n" in base.subwords.decode([best]):
            break
        written.append(best)
        state_D = base.model.hidden(torch.tensor([[best]]), cache).last_BTD[0, -1]
    return written


def only(names: Sequence[list[int]], stops: Sequence[int]) -> Callable[[list[int]], Sequence[int]]:
    """Subwords that continue one of these names; after a whole name also the subwords that may end it."""

    def allowed(written: list[int]) -> Sequence[int]:
        count = len(written)
        found = {name[count] for name in names if name[:count] == written and len(name) > count}
        return sorted(found | (set(stops) if written in names and found else set()))

    return allowed


class Asker(NamedTuple):
    """What all questions of a run share."""

    base: BaseModel
    graph: KnowledgeGraph
    seed: int

    def rival(self, bucket: str, question: Question, form: Format, ways: Sequence[str]) -> Row:
        """Answer a question from facts in the prompt, in each way."""
        base, graph = self.base, self.graph
        started = time.perf_counter()
        lines = fact_lines(graph, question, form, random.Random(f"{self.seed} {question.key}"))
        ids, count = assembled(base, question, lines, form)
        found: Row = {"bucket": bucket, **question.to_json(), "facts": len(lines), "facts_read": count}
        prompt = read(base, ids)
        reading = time.perf_counter() - started
        for way in ways:
            started = time.perf_counter()
            written = greedy(base, prompt, self._names(question, form) if way == "names" else None)
            text = base.subwords.decode(written)
            found |= {
                f"{way}_text": text,
                f"{way}_right": is_right(graph, question, text),
                f"{way}_inside": is_inside(graph, question, text),
                f"{way}_subwords": len(ids) + len(written),
                f"{way}_seconds": reading + time.perf_counter() - started,
            }
        return found

    def _names(self, question: Question, form: Format) -> Callable[[list[int]], Sequence[int]]:
        """Only the names of the subject's objects."""
        tails = {tail for _, tail in own_facts(self.graph, self.graph.number(question.subject))}
        blank = "" if form.question == "chat-short" else " "
        names = [self.base.subwords.encode(blank + spoken(self.graph, tail)).ids for tail in tails]
        return only(names, [self.base.subwords.encode(mark).ids[0] for mark in (".", ",", "\n")])


def ours(model: Model, base: BaseModel, bucket: str, question: Question, how: str) -> Row:
    """Answer a question with the graph, or with the base alone."""
    started = time.perf_counter()
    found = complete(model, question, how=how)
    first = found.answers[0] if found.answers else None
    seconds = time.perf_counter() - started
    text = first.text if first else ""
    read = len(base.subwords.encode(question.prompt).ids)
    return {
        "bucket": bucket,
        **question.to_json(),
        "text": text,
        "right": is_right(model.graph, question, text),
        "inside": is_inside(model.graph, question, text),
        "subwords": read + len(base.subwords.encode(" " + text).ids),
        "seconds": seconds,
        "subject_found": any(each.id == question.subject and each.p >= SURE for each in found.mentions),
        "says_missing": bool(found.asks_for_missing),
    }


# Tables


def lines_of(rows: Sequence[Row], model: str, prefix: str = "") -> Iterator[Row]:
    """Accuracy, subwords and seconds by the number of facts."""
    for bucket in (*BUCKETS, "all"):
        group = [row for row in rows if bucket in (row["bucket"], "all")]
        if group:
            yield {
                "model": model, "facts": bucket, "n": len(group), "right": share(group, f"{prefix}right"),
                "inside": share(group, f"{prefix}inside"),
                "subwords": mean(row[f"{prefix}subwords"] for row in group),
                "seconds": mean(row[f"{prefix}seconds"] for row in group),
            }  # fmt: skip


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--formats", nargs="*", help="formats to compare, by name; without names all of them")
    parser.add_argument("--how", nargs="*", choices=("linked", "given", "base"), default=["linked", "base"])
    parser.add_argument("--buckets", nargs="+", choices=BUCKETS, default=list(BUCKETS), help="numbers of facts")
    parser.add_argument("--each", type=int, default=EACH, help="questions for each number of facts")
    options = parser.parse_args()
    torch.set_num_threads(1)
    base = BaseModel.open()
    with KnowledgeGraph.open(options.kg) as graph:
        asker = Asker(base, graph, options.seed)
        asked = questions(graph, options.data, options.half, options.each, options.seed)
        asked = [pair for pair in asked if pair[0] in options.buckets][: options.limit]
        if options.formats is not None:
            forms = [form for form in FORMATS if not options.formats or form.name in options.formats]
        else:
            forms = list(dict.fromkeys(BEST.values()))
        table: list[Row] = []
        for form in forms:
            ways = ("free", "names") if options.formats is not None else [way for way in BEST if BEST[way] == form]
            key = f"{form.name} {'+'.join(ways)}"
            tasks = [(f"{key} {q.key}", partial(asker.rival, bucket, q, form, ways)) for bucket, q in asked]
            rows = resumed(options.to / f"rival-{options.half}.jsonl", tasks, title=form.name)
            for way in ways:
                table += lines_of(rows, f"{form.name}, {way}", f"{way}_")
    if options.formats is None:
        model = load(options.run, options.kg)
        for how in options.how:
            tasks = [(f"{how} {q.key}", partial(ours, model, base, bucket, q, how)) for bucket, q in asked]
            rows = resumed(options.to / f"rival-ours-{options.half}.jsonl", tasks, title=how)
            table += lines_of(rows, {"base": "base alone"}.get(how, f"graph, subject {how}"))
    columns = ("model", "facts", "n", "right", "inside", "subwords", "seconds")
    print_table(columns, [[row[column] for column in columns] for row in table])
    name = "formats" if options.formats is not None else "rival"
    save(options.to / f"{name}-{options.half}.json", table)


if __name__ == "__main__":
    main()

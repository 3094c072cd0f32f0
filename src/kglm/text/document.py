"""Linked documents: tokens, and mentions that name the entity and the facts behind it.

The file form is the Linked WikiText-2 JSONL, read and written as it is: what is read and not repaired is
written back byte for byte. Files older than July 2019 nest the tokens by sentence; they are converted.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import msgspec

from kglm.errors import DataError, misfit
from kglm.files import atomic_file, read_lines
from kglm.kg.ids import NEW, REFLEXIVE, is_document_relation

START, END = "@@START@@", "@@END@@"
SOURCES = ("WIKI", "NEL", "KG", "COREF")
"""Where a mention comes from: article link, entity linker, match with the local graph, coreference."""


@dataclass(frozen=True, slots=True)
class Mention:
    """Tokens [start, end) name the entity `id`; the facts (parents[i], relations[i], id) say why."""

    start: int
    end: int
    id: str
    source: str
    relations: tuple[str, ...]
    parents: tuple[str, ...]

    @property
    def is_new(self) -> bool:
        """Whether the entity comes from nowhere: no fact of an earlier entity explains it."""
        return self.relations == (NEW,)

    @property
    def explanations(self) -> tuple[tuple[str, str], ...]:
        """The distinct (parent, relation) pairs, in order; none for a new mention."""
        pairs = zip(self.parents, self.relations, strict=True)
        return tuple(dict.fromkeys(pair for pair in pairs if pair[1] != NEW))

    def moved(self, start: int, end: int) -> Mention:
        return Mention(start, end, self.id, self.source, self.relations, self.parents)


@dataclass(slots=True)
class Document:
    """A text in tokens: `@@START@@` first, `@@END@@` after every sentence."""

    title: str
    tokens: list[str]
    mentions: list[Mention] = field(default_factory=list)
    annotated: bool = True
    """False for a plain text: its file has no `annotations` at all."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Further keys of the JSON object; kept and written back, not used."""

    def text(self, mention: Mention) -> str:
        return " ".join(self.tokens[mention.start : mention.end])

    def sentences(self) -> Iterator[list[str]]:
        """The words of each sentence, without markers."""
        sentence: list[str] = []
        for token in self.tokens:
            if token == END:
                if sentence:
                    yield sentence
                sentence = []
            elif token != START:
                sentence.append(token)
        if sentence:
            yield sentence


# The JSON records. Only their types are checked here; what the values mean is checked in `_document`.


class _Annotation(msgspec.Struct, forbid_unknown_fields=True):
    source: str
    id: str
    relation: list[str]
    parent_id: list[str]
    span: tuple[int, int]


class _Record(msgspec.Struct):
    title: str
    tokens: list[str | list[str]]
    annotations: list[_Annotation] | None = None


_RECORD = msgspec.json.Decoder(_Record)
_KNOWN_KEYS = frozenset(_Record.__struct_fields__)


def parse_document(line: bytes, place: str) -> Document:
    """One document from one line of JSON. `place` names the line in errors."""
    try:
        record = _RECORD.decode(line)
    except msgspec.ValidationError as error:
        raise DataError(misfit(error), place=place, remedy="see docs/formats.md for the form of a document") from error
    except UnicodeDecodeError as error:
        raise DataError(
            f"invalid UTF-8 at byte {error.start}", place=place, remedy="convert the file to UTF-8"
        ) from error
    except msgspec.DecodeError as error:
        raise DataError(_not_json(line), place=place, remedy="one JSON object a line is expected") from error
    return _document(record, other_keys(line, _KNOWN_KEYS), place)


def _not_json(line: bytes) -> str:
    """What is wrong, in the words of the standard library, which takes the one thing that ours does not."""
    try:
        json.loads(line)
    except ValueError as error:
        return f"not JSON ({error})"
    return "holds a lone surrogate, half of a character"


def other_keys(line: bytes, known: Collection[str]) -> dict[str, Any]:
    """What else a JSON object holds."""
    fields = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    return {key: msgspec.json.decode(raw) for key, raw in fields.items() if key not in known}


def _document(record: _Record, extra: dict[str, Any], place: str) -> Document:
    nested = bool(record.tokens) and any(isinstance(item, list) for item in record.tokens)
    if nested:
        tokens, position = _flatten(record.tokens, place)
    else:
        tokens = [str(token) for token in record.tokens]
        position = None
    mentions = []
    last_end = 0
    for index, annotation in enumerate(record.annotations or ()):
        where = f"{place}, annotation {index + 1}"
        mention = _mention(annotation, len(position if position is not None else tokens), where)
        if position is not None:
            last = mention.end - 1
            while last > mention.start and tokens[position[last]] == END:
                last -= 1
            mention = mention.moved(position[mention.start], position[last] + 1)
        if mention.start < last_end:
            raise DataError(
                f"span [{mention.start}, {mention.end}) overlaps or precedes the one before, which ends at {last_end}",
                place=where,
                remedy="order annotations by span, without overlaps",
            )
        last_end = mention.end
        mentions.append(mention)
    return Document(record.title, tokens, mentions, record.annotations is not None, extra)


def _mention(annotation: _Annotation, length: int, place: str) -> Mention:
    start, end = annotation.span
    relations, parents = tuple(annotation.relation), tuple(annotation.parent_id)
    problem = None
    if not 0 <= start < end <= length:
        problem = f"span [{start}, {end}) does not fit {length} tokens", "give 0 <= start < end <= length"
    elif annotation.source not in SOURCES:
        problem = f"unknown source {annotation.source!r}", f"use one of {', '.join(SOURCES)}"
    elif len(relations) != len(parents) or not relations:
        problem = (
            f"{len(relations)} relations for {len(parents)} parents",
            "give one parent_id for each relation, at least one",
        )
    elif unknown := [relation for relation in relations if not is_document_relation(relation)]:
        problem = f"unknown relation {unknown[0]!r}", f"use P…, P…:P…, R:P…, {REFLEXIVE} or {NEW}"
    elif NEW in relations and (relations != (NEW,) or parents != (annotation.id,)):
        problem = (
            f"{NEW} with another relation or parent",
            f"a new mention has {NEW} alone, and itself as parent",
        )
    if problem:
        raise DataError(problem[0], place=place, remedy=problem[1])
    return Mention(start, end, annotation.id, annotation.source, relations, parents)


def _flatten(sentences: Sequence[str | list[str]], place: str) -> tuple[list[str], list[int]]:
    """Tokens of a nested (pre-July-2019) document, and for each old flat index the new one.

    Word i of sentences s_1 … s_K moves to m(i) = 1 + i + (sentences completed before i).
    """
    tokens: list[str] = [START]
    position: list[int] = []
    for number, sentence in enumerate(sentences):
        if isinstance(sentence, str):
            raise DataError(
                "tokens mixes words and sentences", place=place, remedy="nest all tokens by sentence, or none"
            )
        if number == 0 and sentence == [START]:
            position.append(0)
            continue
        if number == len(sentences) - 1 and sentence == [END]:
            position.append(max(len(tokens) - 1, 0))
            continue
        for token in sentence:
            position.append(len(tokens))
            tokens.append(token)
        if sentence and tokens[-1] != END:
            tokens.append(END)
    if tokens[-1] != END:
        tokens.append(END)
    return tokens, position


def to_json(document: Document) -> dict[str, Any]:
    """The JSON object of a document, keys in the published order."""
    record: dict[str, Any] = {"title": document.title, "tokens": document.tokens}
    if document.annotated:
        record["annotations"] = [
            {
                "source": mention.source,
                "id": mention.id,
                "relation": list(mention.relations),
                "parent_id": list(mention.parents),
                "span": [mention.start, mention.end],
            }
            for mention in document.mentions
        ]
    return record | document.extra


def to_line(document: Document) -> bytes:
    """One line of JSONL, in ASCII as the published files are."""
    return json.dumps(to_json(document)).encode() + b"\n"


def read_documents(path: str | PathLike[str]) -> Iterator[Document]:
    """The documents of a JSONL file (also `.gz`, `.bz2`, `.zst`), as they stand; see `repair` for their quirks."""
    for number, line in read_lines(path):
        yield parse_document(line, f"{path}, line {number}")


def mentioned_entities(paths: Iterable[str | PathLike[str]]) -> set[str]:
    """The entities of a corpus: mentioned, or parents of what is mentioned."""
    paths = list(paths)
    ids: set[str] = set()
    for path in paths:
        for document in read_documents(path):
            for mention in document.mentions:
                ids.add(mention.id)
                ids.update(mention.parents)
    if not ids:
        raise DataError("mention no entity", place=", ".join(map(str, paths)), remedy="annotate them first")
    return ids


def write_documents(path: str | PathLike[str], documents: Iterable[Document]) -> int:
    """Write JSONL (compressed if the name ends in `.gz`); the file appears whole or not at all."""
    count = 0
    with atomic_file(path) as stream:
        for document in documents:
            stream.write(to_line(document))
            count += 1
    return count

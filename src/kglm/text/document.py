"""Linked documents: tokens, and mentions annotated with an entity and the facts that explain it.

The file format is the Linked WikiText-2 JSONL. A document that is read and written without repair keeps its bytes.
Files older than July 2019 nest the tokens by sentence; reading flattens them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import msgspec

from kglm.errors import DataError, misfit
from kglm.files import atomic_file, read_lines
from kglm.kg.ids import NEW, REFLEXIVE, is_document_relation

START, END = "@@START@@", "@@END@@"
ANSWER = "@@ANSWER@@"
"""Ends a question; the rest of the document is its answer."""
SOURCES = ("WIKI", "NEL", "KG", "COREF")
"""Sources of a mention: article link, entity linker, match with the local graph, coreference."""


@dataclass(frozen=True, slots=True)
class Mention:
    """Tokens [start, end) mention the entity `id`; each fact (parents[i], relations[i], id) explains it."""

    start: int
    end: int
    id: str
    source: str
    relations: tuple[str, ...]
    parents: tuple[str, ...]

    @property
    def is_new(self) -> bool:
        """True if no fact of an earlier entity explains the mention."""
        return self.relations == (NEW,)

    @property
    def explanations(self) -> tuple[tuple[str, str], ...]:
        """Distinct (parent, relation) pairs, in order; empty for a new mention."""
        pairs = zip(self.parents, self.relations, strict=True)
        return tuple(dict.fromkeys(pair for pair in pairs if pair[1] != NEW))

    def moved(self, start: int, end: int) -> Mention:
        """The same mention with another span."""
        return Mention(start, end, self.id, self.source, self.relations, self.parents)


@dataclass(slots=True)
class Document:
    """A tokenized text: `@@START@@` first, `@@END@@` after every sentence."""

    title: str
    tokens: list[str]
    mentions: list[Mention] = field(default_factory=list)
    annotated: bool = True
    """False for a plain text, whose record has no key `annotations`."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Other keys of the JSON object; written back unchanged."""

    def text(self, mention: Mention) -> str:
        """Words of a mention, joined with blanks."""
        return " ".join(self.tokens[mention.start : mention.end])

    def sentences(self) -> Iterator[list[str]]:
        """Words of each sentence, without the markers."""
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


# JSON records. msgspec checks the types; `_document` checks the values.


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
    """Parse one line of JSONL. `place` names the line in errors."""
    with decoding(line, place, "see docs/formats.md for the form of a document"):
        record = _RECORD.decode(line)
    return _document(record, other_keys(line, _KNOWN_KEYS, place), place)


@contextmanager
def decoding(line: bytes, place: str, remedy: str) -> Iterator[None]:
    """Turn the errors of decoding a line of JSON into a DataError; `remedy` is for JSON of another form."""
    try:
        yield
    except msgspec.ValidationError as error:
        raise DataError(misfit(error), place=place, remedy=remedy) from error
    except UnicodeDecodeError as error:
        what = f"invalid UTF-8 at byte {error.start}"
        raise DataError(what, place=place, remedy="convert the file to UTF-8") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise DataError(_not_json(line), place=place, remedy="write one JSON object per line") from error


def _not_json(line: bytes) -> str:
    """Describe a decoding error with the message of the standard library, which accepts lone surrogates."""
    try:
        json.loads(line)
    except ValueError as error:
        return f"not JSON ({error})"
    except RecursionError:
        return "not JSON (nested too deeply)"
    return "not JSON (a lone surrogate, half of a character)"


def other_keys(line: bytes, known: Collection[str], place: str) -> dict[str, Any]:
    """Keys of a JSON object outside `known`, with their values."""
    with decoding(line, place, "leave out the value, or write it as a string"):
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
                f"span [{mention.start}, {mention.end}) overlaps or precedes the previous, which ends at {last_end}",
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
            f"give a new mention the single relation {NEW} and its own id as parent",
        )
    if problem:
        raise DataError(problem[0], place=place, remedy=problem[1])
    return Mention(start, end, annotation.id, annotation.source, relations, parents)


def _flatten(sentences: Sequence[str | list[str]], place: str) -> tuple[list[str], list[int]]:
    """Tokens of a nested (pre-July-2019) document, and the new position of each old flat index.

    Word i of sentences s_1 … s_K moves to m(i) = 1 + i + (number of sentences that end before i).
    """
    tokens: list[str] = [START]
    position: list[int] = []
    for number, sentence in enumerate(sentences):
        if isinstance(sentence, str):
            raise DataError(
                "tokens mix words and sentences", place=place, remedy="nest all tokens by sentence, or none"
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
    """JSON object of a document, keys in the order of the published files."""
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
    """One line of JSONL, in ASCII like the published files."""
    return json.dumps(to_json(document)).encode() + b"\n"


def read_documents(path: str | PathLike[str]) -> Iterator[Document]:
    """Read a JSONL file (also `.gz`, `.bz2`, `.zst`) without changes; `repair` fixes known annotation errors."""
    for number, line in read_lines(path):
        if not line.lstrip().startswith(b"{") and number == 1:
            raise DataError(
                "not JSON, so no linked documents",
                place=f"{path}, line 1",
                remedy=f"if it is plain text, annotate it first: kglm annotate {path} --kg KG --to DOCS.jsonl",
            )
        yield parse_document(line, f"{path}, line {number}")


def mentioned_entities(paths: Iterable[str | PathLike[str]]) -> set[str]:
    """Ids of all entities in a corpus: mentions and their parents."""
    paths = list(paths)
    ids: set[str] = set()
    for path in paths:
        for document in read_documents(path):
            for mention in document.mentions:
                ids.add(mention.id)
                ids.update(mention.parents)
    if not ids:
        where = ", ".join(map(str, paths))
        raise DataError("mention no entity", place=where, remedy="annotate the documents first: kglm annotate")
    return ids


def write_documents(path: str | PathLike[str], documents: Iterable[Document]) -> int:
    """Write JSONL atomically (compressed if the name ends in `.gz`) and return the number of documents."""
    count = 0
    with atomic_file(path) as stream:
        for document in documents:
            stream.write(to_line(document))
            count += 1
    return count

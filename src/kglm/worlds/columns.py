"""The bundled world as compressed columns: `pack` writes them, `unpack` reads them as batches of an import.

The file is one Zstandard frame of a header and columns. The header is a line of JSON: the names, kinds and sizes in
bytes of the columns. A column of text has one line a value. A column of numbers has 32 bits a value, byte by byte: the
lowest byte of all values first, because bytes of one place repeat more than those of one value. Sorted numbers are
stored as differences.

    entity_number   Wikidata numbers of the items Q…, sorted, as differences; then come the ids of `entity_other`
    literal         dates and quantities, sorted
    fact_*          facts sorted by relation, head and tail. Heads are differences within a relation; a tail is the
                    index of an entity, or the number of entities plus that of a literal
    statement_*     the facts with a rank or a time: their place among all facts, as differences
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import zstandard

from kglm.errors import DamagedError
from kglm.kg.ids import END_TIME, POINT_IN_TIME, START_TIME, normalise_title
from kglm.kg.importers.records import Batch
from kglm.kg.literals.literal import is_literal
from kglm.worlds.records import World, WorldEntity, WorldFact

Numbers = npt.NDArray[np.uint32]
LEVEL = 19
WINDOW_LOG = 26
"""Zstandard looks back 64 MiB: the whole file."""
FACTS_A_BATCH = 100_000
NO_TITLE, LABEL_AS_TITLE, OTHER_TITLE = range(3)


def pack(world: World) -> bytes:
    """The compressed file of a world. The same world gives the same bytes, in whatever order its parts are."""
    columns: dict[str, str | Sequence[str] | Numbers] = {}
    entities = sorted(world.entities, key=lambda entity: _order(entity.id))
    place = {entity.id: k for k, entity in enumerate(entities)}
    facts = sorted(world.facts, key=lambda fact: (fact.relation, place[fact.head], fact.tail))
    times = {time for fact in facts for time in fact[4:] if time is not None}
    literals = sorted({fact.tail for fact in facts if is_literal(fact.tail)} | times)
    place |= {id: len(entities) + k for k, id in enumerate(literals)}
    columns |= _entity_columns(entities) | {"literal": literals}
    relations = sorted(world.relations)
    columns["relation_id"], columns["relation_label"] = [id for id, _ in relations], [label for _, label in relations]
    columns |= _fact_columns(facts, place, [id for id, _ in relations])
    return _joined(columns)


def _order(id: str) -> tuple[bool, int, str]:
    """Sorts Wikidata's items by number, then all other ids."""
    number = id[1:] if id.startswith("Q") and id[1:].isdecimal() else None
    return (False, int(number), "") if number is not None else (True, 0, id)


def _entity_columns(entities: Sequence[WorldEntity]) -> dict[str, Sequence[str] | Numbers]:
    orders = [_order(entity.id) for entity in entities]
    descriptions = sorted({entity.description for entity in entities if entity.description})
    numbered = {text: k for k, text in enumerate(descriptions, 1)}
    kinds = [_title_kind(entity) for entity in entities]
    return {
        "entity_number": _differences([number for other, number, _ in orders if not other]),
        "entity_other": [id for other, _, id in orders if other],
        "label": [entity.label for entity in entities],
        "alias_count": _numbers(len(entity.aliases) for entity in entities),
        "alias": [alias for entity in entities for alias in entity.aliases],
        "title_kind": _numbers(kinds),
        "title": [str(each.title) for each, kind in zip(entities, kinds, strict=True) if kind == OTHER_TITLE],
        "description": descriptions,
        "description_of": _numbers(numbered.get(entity.description or "", 0) for entity in entities),
    }


def _title_kind(entity: WorldEntity) -> int:
    if entity.title is None:
        return NO_TITLE
    return LABEL_AS_TITLE if entity.title == normalise_title(entity.label) else OTHER_TITLE


def _fact_columns(
    facts: Sequence[WorldFact], place: dict[str, int], relations: Sequence[str]
) -> dict[str, Sequence[str] | Numbers]:
    index = {id: k for k, id in enumerate(relations)}
    relation = np.array([index[fact.relation] for fact in facts], np.int64)
    head = np.array([place[fact.head] for fact in facts], np.int64)
    step = np.diff(head, prepend=0)
    first = np.flatnonzero(np.diff(relation, prepend=-1))
    step[first] = head[first]
    stated = [(k, fact) for k, fact in enumerate(facts) if fact[3:] != (0, None, None, None)]
    columns: dict[str, Sequence[str] | Numbers] = {
        "fact_count": np.bincount(relation, minlength=len(relations)).astype(np.uint32),
        "fact_head": step.astype(np.uint32),
        "fact_tail": _numbers(place[fact.tail] for fact in facts),
        "statement": _differences([k for k, _ in stated]),
        "statement_rank": _numbers(fact.rank for _, fact in stated),
    }
    for name in ("start", "end", "point"):
        columns[f"statement_{name}"] = _numbers(1 + place[t] if (t := getattr(f, name)) else 0 for _, f in stated)
    return columns


def _numbers(values: Iterable[int]) -> Numbers:
    return np.fromiter(values, np.uint32)


def _differences(values: Sequence[int]) -> Numbers:
    return np.diff(np.array(values, np.int64), prepend=0).astype(np.uint32)


def _joined(columns: dict[str, Any]) -> bytes:
    header, bodies = [], []
    for name, column in columns.items():
        if isinstance(column, np.ndarray):
            body, kind = column.astype("<u4").view(np.uint8).reshape(-1, 4).T.tobytes(), "numbers"
        else:
            if any("\n" in line for line in column):
                raise ValueError(f"a line break in {name}")
            body, kind = "".join(f"{line}\n" for line in column).encode(), "text"
        header.append((name, kind, len(body)))
        bodies.append(body)
    parameters = zstandard.ZstdCompressionParameters.from_level(
        LEVEL, window_log=WINDOW_LOG, enable_ldm=True, write_checksum=True
    )
    return zstandard.ZstdCompressor(compression_params=parameters).compress(
        b"".join([json.dumps(header).encode() + b"\n", *bodies])
    )


class PackedWorld:
    """The unpacked columns of a world."""

    def __init__(self, content: bytes) -> None:
        """Raises DamagedError if the content is not a packed world."""
        try:
            data = zstandard.ZstdDecompressor(max_window_size=1 << WINDOW_LOG).decompress(content)
            header, _, body = data.partition(b"\n")
            self._columns: dict[str, Any] = {}
            start = 0
            for name, kind, size in json.loads(header):
                part = body[start : start + size]
                if len(part) != size:
                    raise ValueError(f"column {name} is too short")
                self._columns[name] = _read_numbers(part) if kind == "numbers" else part.decode().split("\n")[:-1]
                start += size
            self.ids = [f"Q{number}" for number in np.cumsum(self._numbers("entity_number"), dtype=np.int64).tolist()]
            self.ids += self._texts("entity_other")
            self.terms = self.ids + self._texts("literal")
        except (ValueError, KeyError, TypeError, zstandard.ZstdError) as error:
            raise DamagedError(f"is no packed world ({error})", remedy="install kglm again") from error

    def _numbers(self, name: str) -> Numbers:
        column: Numbers = self._columns[name]
        return column

    def _texts(self, name: str) -> list[str]:
        column: list[str] = self._columns[name]
        return column

    @property
    def fact_count(self) -> int:
        return len(self._numbers("fact_tail"))

    def entities(self) -> Iterator[WorldEntity]:
        aliases, titles = iter(self._texts("alias")), iter(self._texts("title"))
        descriptions = [None, *self._texts("description")]
        for id, label, count, kind, about in zip(
            self.ids,
            self._texts("label"),
            self._numbers("alias_count").tolist(),
            self._numbers("title_kind").tolist(),
            self._numbers("description_of").tolist(),
            strict=True,
        ):
            title = None if kind == NO_TITLE else normalise_title(label) if kind == LABEL_AS_TITLE else next(titles)
            yield WorldEntity(id, label, tuple(islice(aliases, count)), title, descriptions[about])

    def relations(self) -> list[tuple[str, str]]:
        return list(zip(self._texts("relation_id"), self._texts("relation_label"), strict=True))

    def facts(self) -> Iterator[WorldFact]:
        terms = self.terms
        ids, counts = self._texts("relation_id"), self._numbers("fact_count").tolist()
        steps, tails = self._numbers("fact_head").tolist(), self._numbers("fact_tail").tolist()
        places = np.cumsum(self._numbers("statement"), dtype=np.int64).tolist()
        columns = [self._numbers(f"statement_{name}").tolist() for name in ("rank", "start", "end", "point")]
        stated = dict(zip(places, zip(*columns, strict=True), strict=True))
        first = 0
        for relation, count in zip(ids, counts, strict=True):
            head = 0
            for k in range(first, first + count):
                head += steps[k]
                rank, *times = stated.get(k, (0, 0, 0, 0))
                yield WorldFact(
                    terms[head], relation, terms[tails[k]], rank, *(terms[t - 1] if t else None for t in times)
                )
            first += count

    def world(self) -> World:
        return World(list(self.entities()), self.relations(), list(self.facts()))

    def batches(self) -> Iterator[Batch]:
        """The world as batches of an import: names first, then facts."""
        batch = Batch(relations=self.relations())
        for id, label, aliases, title, description in self.entities():
            batch.entities.append((id, description, title))
            batch.names.append((id, 0, label))
            batch.names += [(id, 1, alias) for alias in aliases]
        yield batch
        facts = enumerate(self.facts())
        while part := list(islice(facts, FACTS_A_BATCH)):
            yield _fact_batch(part)


def _fact_batch(facts: Iterable[tuple[int, WorldFact]]) -> Batch:
    batch = Batch()
    for k, (head, relation, tail, rank, start, end, point) in facts:
        times = [(START_TIME, start), (END_TIME, end), (POINT_IN_TIME, point)]
        qualifiers = [(property, time) for property, time in times if time is not None]
        statement = f"{k}" if qualifiers else None
        batch.facts.append((head, relation, tail, rank, statement))
        batch.qualifiers += [(f"{k}", property, time) for property, time in qualifiers]
    return batch


def _read_numbers(body: bytes) -> Numbers:
    planes = np.frombuffer(body, np.uint8).reshape(4, -1)
    return np.ascontiguousarray(planes.T).view("<u4").reshape(-1).astype(np.uint32)

"""Import the files of the paper's authors, `alias.pkl` and `knowledge_graph.pkl`, without running code from them.

Loading a pickle can execute arbitrary code. This reader builds dict, defaultdict, list, tuple and str and refuses
everything else. It is the only module of the project that reads pickles.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from kglm.errors import DataError
from kglm.files import reading
from kglm.kg.ids import NEW, REFLEXIVE, REVERSE, is_item_id
from kglm.kg.importers.records import Batch, Source, TermReader
from kglm.kg.literals.literal import is_literal
from kglm.packed import open_binary

RECORDS_A_BATCH = 20_000
_ALLOWED = {
    ("collections", "defaultdict"): defaultdict,
    ("builtins", "list"): list,
    ("builtins", "dict"): dict,
    ("builtins", "str"): str,
    ("builtins", "tuple"): tuple,
    ("__builtin__", "list"): list,
    ("__builtin__", "dict"): dict,
}


class _Unpickler(pickle._Unpickler):
    """The unpickler written in Python: that in C allocates gigabytes if a damaged file asks for a huge memo index."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it contains {module}.{name}") from None


def load_restricted(path: str) -> Any:
    """Load a pickle of dict, defaultdict, list, tuple and str; any other type raises DataError."""
    with reading(path), open_binary(path) as stream:
        try:
            content = _Unpickler(stream).load()
        except (OSError, DataError):
            raise
        except Exception as error:  # damaged pickles raise almost anything
            raise DataError(
                f"is not a pickle of plain data ({error or type(error).__name__})",
                place=path,
                remedy="only dict, list, tuple and str are accepted",
            ) from error
    _check_types(content, path)
    return content


def _check_types(value: Any, path: str) -> None:
    pending = [value]
    seen: set[int] = set()
    while pending:
        value = pending.pop()
        if type(value) is str:
            continue
        if id(value) in seen:
            continue
        seen.add(id(value))
        if type(value) in (dict, defaultdict):
            pending.extend(value.keys())
            pending.extend(value.values())
        elif type(value) in (list, tuple):
            pending.extend(value)
        else:
            raise DataError(
                f"holds a {type(value).__name__}",
                place=path,
                remedy="only dict, list, tuple and str are accepted",
            )


def read_authors(source: Source) -> Iterator[Batch]:
    """Read facts `{head: [(relation, tail), …]}` or aliases `{id: [alias, …]}`; an alias may be a list of words."""
    content = load_restricted(source.path)
    if not isinstance(content, dict):
        raise DataError(
            f"holds a {type(content).__name__}", place=source.path, remedy="expected a dict from ids to lists"
        )
    batch, count = Batch(), 0
    for record, (id, values) in enumerate(content.items(), 1):
        terms = TermReader(batch, source.options)
        if isinstance(id, str) and not is_item_id(id) and not is_literal(id):
            batch.skip("not an entity id")
            continue
        if not isinstance(id, str) or not isinstance(values, list | tuple):
            raise DataError(f"entry {record} is not an id with a list", place=source.path, remedy="see docs/formats.md")
        for value in values:
            _add(terms, record, id, value, source.path)
            count += 1
        if count >= RECORDS_A_BATCH:
            yield batch
            batch, count = Batch(), 0
    yield batch


def _add(terms: TermReader, record: int, id: str, value: Any, path: str) -> None:
    if isinstance(value, str):
        if is_item_id(id):
            terms.batch.name(id, value, 1)
    elif isinstance(value, tuple) and len(value) == 2 and all(isinstance(part, str) for part in value):
        _add_edge(terms, record, id, *value)
    elif isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        if len(value) == 2 and _is_relation(value[0]):
            _add_edge(terms, record, id, *value)
        else:
            terms.batch.name(id, " ".join(value), 1)
    else:
        raise DataError(f"entry {record} ({id!r}) holds neither aliases nor (relation, tail) pairs", place=path)


def _is_relation(text: str) -> bool:
    return text in (REFLEXIVE, NEW) or (text.startswith((REVERSE + "P", "P")) and text.lstrip("R:P")[:1].isdigit())


def _add_edge(terms: TermReader, record: int, head: str, relation: str, tail: str) -> None:
    if relation in (REFLEXIVE, NEW):
        terms.batch.skip("derived relation")
    elif relation.startswith(REVERSE):  # derived as well, but the file may lack the forward fact
        terms.fact(record, tail, relation.removeprefix(REVERSE), head)
    else:
        terms.fact(record, head, relation, tail)

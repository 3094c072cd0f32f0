"""The history of a graph file: its edits, with time, author and changes."""

from __future__ import annotations

from typing import NamedTuple

from kglm.kg.journal import Change, changes_since
from kglm.kg.schema import AUTHOR
from kglm.kg.store import Store


class LoggedEdit(NamedTuple):
    """An edit of the history."""

    number: int
    time: str
    """As in ISO 8601, in UTC."""
    author: str | None
    undoes: int | None
    undone_by: int | None
    changes: list[Change]


def history(store: Store, limit: int | None = None) -> list[LoggedEdit]:
    """The edits of a graph, the latest first."""
    rows = store.checked_rows(
        "SELECT e.number, e.time, m.value, e.undoes, (SELECT number FROM edit u WHERE u.undoes = e.number LIMIT 1)"
        " FROM edit e LEFT JOIN meta m ON m.key = ? || e.number ORDER BY e.number DESC LIMIT ?",
        (AUTHOR, -1 if limit is None else limit),
    )
    return [
        LoggedEdit(number, time, author, undoes, undone_by, changes_since(store, number - 1, number))
        for number, time, author, undoes, undone_by in rows
    ]

"""The SQLite file of a knowledge graph. Arrays and vectors are derived from it and can be rebuilt. The tables:

entity(number, id, description, title)       numbers are 0, 1, 2 … without gaps; literals are entities too
name(entity, position, text, folded)         position 0 is the label, the rest are aliases in order
relation(number, id, label)                  number 0 is `@@REFLEXIVE@@`
fact(number, head, relation, tail, rank)     rank 0 normal, 1 preferred; each triple once
qualifier(statement, fact)                   `fact` (relation P…:P…) qualifies the fact `statement`
source(fact, text)                           a source of the fact: the id of a work, an address, or a text
redirect(source, target)                     Wikipedia titles
edit, change                                 the journal: edits, their time, their changes, and which edit they undo
meta(key, value)                             digest of the import, language; `datatype:P…` the type of a relation's
                                             values, `author:N` who made edit N
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from kglm.kg.ids import REFLEXIVE

VERSION = 2
READABLE = (1, 2)
"""Formats that this version reads. Graphs of format 1 have no table `source`."""
APPLICATION_ID = 0x6B676C6D  # "kglm" in ASCII: identifies graph files
RANKS = ("normal", "preferred")
PREFERRED = RANKS.index("preferred")
DATATYPE, AUTHOR = "datatype:", "author:"
"""Beginnings of keys in the table `meta`."""

SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE entity(number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, description TEXT, title TEXT);
CREATE INDEX entity_title ON entity(title) WHERE title IS NOT NULL;
CREATE TABLE name(
    entity INTEGER NOT NULL REFERENCES entity, position INTEGER NOT NULL, text TEXT NOT NULL, folded TEXT NOT NULL,
    PRIMARY KEY (entity, position)) WITHOUT ROWID;
CREATE TABLE relation(number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, label TEXT);
CREATE TABLE fact(
    number INTEGER PRIMARY KEY,
    head INTEGER NOT NULL REFERENCES entity, relation INTEGER NOT NULL REFERENCES relation,
    tail INTEGER NOT NULL REFERENCES entity, rank INTEGER NOT NULL DEFAULT 0,
    UNIQUE (head, relation, tail));
CREATE TABLE qualifier(
    statement INTEGER NOT NULL REFERENCES fact, fact INTEGER NOT NULL REFERENCES fact,
    PRIMARY KEY (statement, fact)) WITHOUT ROWID;
CREATE TABLE source(fact INTEGER NOT NULL REFERENCES fact, text TEXT NOT NULL, PRIMARY KEY (fact, text)) WITHOUT ROWID;
CREATE TABLE redirect(source TEXT PRIMARY KEY, target TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE edit(
    number INTEGER PRIMARY KEY, time TEXT NOT NULL, undoes INTEGER REFERENCES edit, digest TEXT NOT NULL);
CREATE TABLE change(
    edit INTEGER NOT NULL REFERENCES edit, position INTEGER NOT NULL, action TEXT NOT NULL,
    head TEXT NOT NULL, relation TEXT, tail TEXT, detail TEXT,
    PRIMARY KEY (edit, position)) WITHOUT ROWID;
"""

INDEXES = """
CREATE INDEX name_folded ON name(folded);
CREATE INDEX fact_tail ON fact(tail, relation, head);
CREATE INDEX fact_relation ON fact(relation, tail);
CREATE INDEX qualifier_fact ON qualifier(fact);
"""
"""Created after the bulk load, which is faster than updating them during it."""


class FactRow(NamedTuple):
    """A stored fact; entities and the relation are ids."""

    head: str
    relation: str
    tail: str
    rank: int = 0


def create_schema(connection: sqlite3.Connection, schema: str = "main") -> None:
    """Create the empty tables of a graph in a new or attached database."""
    script = SCHEMA if schema == "main" else _qualified(SCHEMA, schema)
    for statement in filter(str.strip, script.split(";\n")):
        connection.execute(statement)
    connection.execute(f"PRAGMA {schema}.application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA {schema}.user_version = {VERSION}")
    connection.execute(f"INSERT INTO {schema}.relation VALUES (0, ?, 'itself')", (REFLEXIVE,))


def schema_statements(version: int) -> set[str]:
    """Definitions of the tables and indexes of a format, as SQLite stores them."""
    statements = {statement.strip().rstrip(";") for statement in (SCHEMA + INDEXES).split(";\n") if statement.strip()}
    return statements if version > 1 else {each for each in statements if not each.startswith("CREATE TABLE source")}


def create_indexes(connection: sqlite3.Connection, schema: str = "main") -> None:
    for statement in filter(str.strip, _qualified(INDEXES, schema).split(";\n")):
        connection.execute(statement)


def _qualified(script: str, schema: str) -> str:
    script = script.replace("CREATE TABLE ", f"CREATE TABLE {schema}.")
    return script.replace("CREATE INDEX ", f"CREATE INDEX {schema}.")

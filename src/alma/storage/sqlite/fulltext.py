"""The full-text tables of an SQLite file: their entries, how they are created, repaired and merged."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Any

from alma.model.kinds import KINDS, kind_named
from alma.model.record import Record, RecordSpec, reading
from alma.storage.ranking import OWNERS
from alma.storage.sql.clauses import Names
from alma.storage.sqlite.connections import roll_back, without_waiting
from alma.text.tokens import short_text_cache, spaced_terms

OWNER_COLUMN = "scope"
# Terms never contain this character, so an owner is never found as a word.
_OWNER_MARK = "\u00b7"
_BATCH = 1_000


def entries(spec: RecordSpec, records: Sequence[Record]) -> list[Sequence[str]]:
    """The columns of a full-text table: the terms of each searchable field, and the owner tokens."""
    texts, owners = _readers(spec.kind)
    if len(records) == 1:
        owner = _owner_text(_owner_names(spec), owners(records[0]))
        return [*((_terms_again(text),) for text in texts(records[0])), (owner,)]
    return _entries(spec, map(texts, records), map(owners, records))


def same_entries(old: Record, new: Record) -> bool:
    """Whether two records of a kind have the same searchable texts and owners."""
    texts, owners = _readers(old.spec.kind)
    return bool(texts(old) == texts(new) and owners(old) == owners(new))


def _entries(
    spec: RecordSpec, texts: Iterable[Sequence[str | None]], owners: Iterable[Sequence[str | None]]
) -> list[Sequence[str]]:
    names = _owner_names(spec)
    columns = list(zip(*texts, strict=True)) or [()] * len(spec.text)
    return [
        *([spaced_terms(text or "") for text in column] for column in columns),
        [_owner_text(names, tuple(values)) for values in owners],
    ]


def _terms_again(text: str | None) -> str:
    """The terms of a text, cached, as consecutive records often repeat texts."""
    if not text:
        return ""
    return _remembered_terms(text)


_remembered_terms = short_text_cache(4096)(spaced_terms)


@cache
def _readers(kind: str) -> tuple[Callable[[Record], Any], Callable[[Record], Any]]:
    """Functions that read the searchable texts and the owners of a record of the kind."""
    spec = kind_named(kind).spec
    return reading(spec.text), reading(_owner_names(spec))


@cache
def _owner_names(spec: RecordSpec) -> tuple[str, ...]:
    return tuple(name for name in OWNERS if name in spec.by_name)


@lru_cache(maxsize=4096)
def _owner_text(names: tuple[str, ...], values: tuple[str | None, ...]) -> str:
    owned = {name: (value,) for name, value in zip(names, values, strict=True) if value is not None}
    return " ".join(token for tokens in owner_tokens(owned).values() for token in tokens)


def owner_tokens(owned: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The tokens of each owner; agents are tokens together with their project."""
    tokens = {name: [_token(name, value) for value in values] for name, values in owned.items() if name != "agent"}
    if "agent" in owned and "project_id" in owned:
        agents = ((project, agent) for project in owned["project_id"] for agent in owned["agent"])
        tokens["agent"] = [_token("agent", *each) for each in agents]
    return tokens


@lru_cache(maxsize=4096)
def _token(*names: str) -> str:
    digest = blake2b("\0".join(names).encode("utf-8", "surrogatepass"), digest_size=8)
    return _OWNER_MARK + digest.hexdigest()


def index_everything(connection: sqlite3.Connection) -> None:
    """Fill empty full-text tables from the stored records."""
    specs = (cls.spec for cls in KINDS if cls.spec.text)
    index_all_of(connection, [spec for spec in specs if _is_empty(connection, spec)])


def _is_empty(connection: sqlite3.Connection, spec: RecordSpec) -> bool:
    return connection.execute(f"SELECT 1 FROM {spec.table}_fts_docsize LIMIT 1").fetchone() is None


def index_all_of(connection: sqlite3.Connection, specs: Iterable[RecordSpec]) -> None:
    """Fill the empty full-text tables of these kinds."""
    for spec in specs:
        last = 1 + len(spec.text)
        for rows in _stored(connection, spec):
            words = _entries(spec, (row[1:last] for row in rows), (row[last:] for row in rows))
            connection.executemany(_indexing(spec), zip((row[0] for row in rows), *words, strict=True))


def _stored(connection: sqlite3.Connection, spec: RecordSpec) -> Iterator[list[Any]]:
    """The row number, searchable texts and owners of each record, in batches."""
    columns = ", ".join(f'"{name}"' for name in (*spec.text, *_owner_names(spec)))
    records = connection.execute(f'SELECT seq, {columns} FROM "{spec.table}"')
    while rows := records.fetchmany(_BATCH):
        yield rows


def _indexing(spec: RecordSpec) -> str:
    names = ", ".join((*spec.text, OWNER_COLUMN))
    return f"INSERT INTO {spec.table}_fts (rowid, {names}) VALUES ({', '.join('?' * (2 + len(spec.text)))})"


_log = logging.getLogger("alma.storage")

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '%_fts%'"
# The shadow tables of an FTS5 index, all of which it needs.
_INNER = ("_data", "_idx", "_docsize", "_config")


def creating(spec: RecordSpec, names: Names) -> Iterator[str]:
    """The statements that create a contentless index: terms are computed in Python, and records hold the text."""
    # The first column costs two bytes less for every word, and content has the most words.
    texts = sorted(spec.text, key=lambda field: field != "content")
    name, columns = names.fts_table(spec), ", ".join((*texts, OWNER_COLUMN))
    yield f"CREATE VIRTUAL TABLE {name} USING fts5({columns}, content='', tokenize='ascii');"
    # Four times the default memory of FTS5, so that a large batch makes fewer segments.
    yield f"INSERT INTO {name} ({name}, rank) VALUES ('hashsize', 4000000);"


def make_missing(connection: sqlite3.Connection, names: Names) -> None:
    """Rebuild missing or incomplete full-text indexes from the records."""
    if not _missing_specs(connection, names):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have created them meanwhile.
        missing = _missing_specs(connection, names)
        for spec in missing:
            _remove_rest(connection, names.fts_table(spec))
            for statement in creating(spec, names):
                connection.execute(statement)
        index_all_of(connection, missing)
        connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise
    _log.warning("missing full-text tables were rebuilt", extra={"kinds": [spec.kind for spec in missing]})


def _missing_specs(connection: sqlite3.Connection, names: Names) -> list[RecordSpec]:
    there = {name for (name,) in connection.execute(_TABLES)}
    return [cls.spec for cls in KINDS if cls.spec.text and not _is_whole(connection, names.fts_table(cls.spec), there)]


def _is_whole(connection: sqlite3.Connection, fts: str, there: Container[str]) -> bool:
    """Whether an index has all its tables, its format version and its structure record."""
    if any(f"{fts}{part}" not in there for part in ("", *_INNER)):
        return False
    sql = f"SELECT (SELECT 1 FROM {fts}_config WHERE k = 'version') + (SELECT 1 FROM {fts}_data WHERE id = 10)"
    (found,) = connection.execute(sql).fetchone()
    return found is not None


def _remove_rest(connection: sqlite3.Connection, fts: str) -> None:
    """Remove the remains of an index."""
    try:
        connection.execute(f"DROP TABLE IF EXISTS {fts}")
    except sqlite3.DatabaseError:
        # FTS5 must read an index to drop it, and this one is unreadable.
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_master WHERE type = 'table' AND name = ?", (fts,))
        connection.execute("PRAGMA writable_schema = RESET")
    for part in _INNER:
        connection.execute(f"DROP TABLE IF EXISTS {fts}{part}")


# Every write adds a segment, and a search reads all segments, so FTS5 merges them. By default it merges a part of the
# index in every 64th write, and the first save after a large batch rewrites the batch. With these settings it merges
# sixteen segments of a size at once, so words are rewritten less often; large batches are merged explicitly.
_SETTINGS = {"automerge": 0, "crisismerge": 16, "usermerge": 2}
_ALL = 1 << 30

MANY = 1000


def tune(connection: sqlite3.Connection) -> None:
    """Apply the merge settings to every full-text index; they persist, so usually nothing is written.

    They only affect speed, so while another process writes, this is left to the next opener.
    """
    missing = {table: settings for table in _tables(connection) if (settings := _missing(connection, table))}
    if missing:
        with without_waiting(connection) as mine:
            for table, settings in missing.items() if mine else ():
                for name, value in settings.items():
                    _set_option(connection, table, name, value)


def merge(connection: sqlite3.Connection, table: str) -> None:
    """Merge segments after a large batch, so that later small writes do not rewrite it."""
    flush(connection)
    _set_option(connection, table, "merge", _ALL)


def flush(connection: sqlite3.Connection) -> None:
    """Write the entries of this transaction as a segment, which FTS5 does at a savepoint."""
    connection.execute("SAVEPOINT words")
    connection.execute("RELEASE words")


def rewrite(connection: sqlite3.Connection) -> None:
    """Merge every index into one segment; until then old segments contain the words of deleted entries."""
    for table in _tables(connection):
        connection.execute(f'INSERT INTO "{table}" ("{table}") VALUES (\'optimize\')')


def clear(connection: sqlite3.Connection) -> None:
    """Delete all entries of every full-text index."""
    for table in _tables(connection):
        connection.execute(f'INSERT INTO "{table}" ("{table}") VALUES (\'delete-all\')')


def _tables(connection: sqlite3.Connection) -> list[str]:
    found = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE % USING fts5%'"
    return [name for (name,) in connection.execute(found)]


def _missing(connection: sqlite3.Connection, table: str) -> Mapping[str, int]:
    known = dict(connection.execute(f'SELECT k, v FROM "{table}_config"'))
    return {name: value for name, value in _SETTINGS.items() if known.get(name) != value}


def _set_option(connection: sqlite3.Connection, table: str, what: str, value: int) -> None:
    connection.execute(f'INSERT INTO "{table}" ("{table}", rank) VALUES (?, ?)', (what, value))

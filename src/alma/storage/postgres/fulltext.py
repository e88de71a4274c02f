"""The full-text columns of PostgreSQL: their entries, and their recreation if they were dropped."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

import psycopg

from alma.model.kinds import KINDS
from alma.model.record import Record, RecordSpec
from alma.storage.postgres.pools import SCHEMA_LOCK
from alma.storage.sql.clauses import Names
from alma.text.tokens import stored_terms

# A tsvector is smaller than 1 MiB; the last term may exceed the bound a little.
_MOST_BYTES = (1 << 20) - 1_000
_MOST_POSITIONS = 255
_LAST_POSITION = 16_383
_BATCH = 1_000
COLUMNS = ("search", "search_length")
# Terms never contain this character. Alone it marks a record with too many tags to list.
_TAG = "\u00b7"
_MOST_TAGS = 1_000


def entries(records: Sequence[Record]) -> Iterator[tuple[Any, ...]]:
    """The values of `COLUMNS` for the records."""
    return zip(*map(_entry, records), strict=True)


def _entry(record: Record) -> tuple[str, int]:
    tags = record.spec.tags_field
    return _columns_of(record.text(), () if tags is None else getattr(record, tags))


def _columns_of(text: str, tags: Sequence[str]) -> tuple[str, int]:
    words = stored_terms(text)
    return _written(words, tags), len(words)


def _written(words: Sequence[str], tags: Sequence[str] = ()) -> str:
    """Terms with their positions, and tags, as the text of a tsvector.

    If there is no room for everything, positions are dropped first, then terms.
    """
    marks = list(map(quoted, map(_mark, tags) if len(tags) <= _MOST_TAGS else (_TAG,)))
    positions, room = _bounded(words, _MOST_BYTES - 24 * len(marks))
    for position, term in enumerate(words, start=1):
        places = positions.get(term)
        if places is None or (places and (room < 2 or len(places) == _MOST_POSITIONS)):
            continue
        room -= 2 if places else 0
        places.append(min(position, _LAST_POSITION))
    return " ".join((*(f"'{term}':{','.join(map(str, places))}" for term, places in positions.items()), *marks))


def _bounded(words: Sequence[str], room: int) -> tuple[dict[str, list[int]], int]:
    """As many distinct terms as fit, without positions yet, and the remaining room."""
    positions: dict[str, list[int]] = {}
    for term in dict.fromkeys(words):
        # A term is aligned to two bytes and has a position count, and two bytes for each position.
        room -= len(term.encode()) + 5
        if room < 0:
            break
        positions[term] = []
    return positions, room


def marks_of(tags: Iterable[str]) -> list[str]:
    """The terms of which the search column of a record with one of these tags has at least one."""
    return [*map(_mark, tags), _TAG]


def _mark(tag: str) -> str:
    # A hash has the same length for any tag.
    return f"{_TAG}{blake2b(tag.encode(), digest_size=8).hexdigest()}"


def index_everything(connection: Any) -> None:
    """Rewrite the full-text columns of every record."""
    for spec in (cls.spec for cls in KINDS if cls.spec.text):
        index_all_of(connection, spec)


def index_all_of(connection: Any, spec: RecordSpec) -> None:
    """Rewrite the full-text columns of every record of a kind."""
    with connection.cursor(name="alma_words") as reader:
        reader.itersize = _BATCH
        reader.execute(_reading(spec))
        while batch := reader.fetchmany(_BATCH):
            _write(connection, spec, batch)


def index_some_of(connection: Any, spec: RecordSpec, keys: Sequence[str]) -> None:
    """Rewrite the full-text columns of these records of a kind."""
    of_these = f"{_reading(spec)} WHERE {spec.key} = ANY(%s) ORDER BY {spec.key} FOR UPDATE"
    _write(connection, spec, connection.execute(of_these, [list(keys)]).fetchall())


def _reading(spec: RecordSpec) -> str:
    tags = f"ARRAY(SELECT tag FROM {Names.tags} WHERE memory_id = {spec.postgres_table}.{spec.key})"
    read = ", ".join((spec.key, "ARRAY[]::text[]" if spec.tags_field is None else tags, *spec.text))
    return f"SELECT {read} FROM {spec.postgres_table}"


def _write(connection: Any, spec: RecordSpec, rows: Sequence[tuple[Any, ...]]) -> None:
    changes = ", ".join(f"{name} = %s" for name in COLUMNS)
    texts = [(key, tags, "\n".join(filter(None, parts))) for key, tags, *parts in rows]
    with connection.cursor() as writer:
        writer.executemany(
            f"UPDATE {spec.postgres_table} SET {changes} WHERE {spec.key} = %s",
            [(*_columns_of(text, tags), key) for key, tags, text in texts],
        )


def quoted(word: str) -> str:
    """A word as a quoted tsquery or tsvector term."""
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"


_log = logging.getLogger("alma.storage")

# From pg_catalog: information_schema hides tables that the role may not read.
_THERE = """
    SELECT relname, attname FROM pg_attribute
    JOIN pg_class ON pg_class.oid = attrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = %s AND attname = ANY(%s) AND NOT attisdropped
"""
_NAMES = Names("postgresql")


def make_missing(connection: psycopg.Connection[Any], schema: str) -> None:
    """Recreate missing full-text columns, and fill them from the records."""
    if not _missing(connection, schema):
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [SCHEMA_LOCK])
        # Another process may have created them meanwhile.
        missing = _missing(connection, schema)
        for spec in missing:
            for statement in _making(spec):
                connection.execute(statement.encode())
            index_all_of(connection, spec)
    _log.warning("missing full-text columns were rebuilt", extra={"kinds": [spec.kind for spec in missing]})


def _missing(connection: psycopg.Connection[Any], schema: str) -> list[RecordSpec]:
    there = set(connection.execute(_THERE, (schema, list(COLUMNS))))
    every = (cls.spec for cls in KINDS if cls.spec.text)
    return [spec for spec in every if not there.issuperset((_NAMES.table(spec), column) for column in COLUMNS)]


def _making(spec: RecordSpec) -> tuple[str, ...]:
    """The same statements as in the migrations; dropping a column also drops its indexes."""
    table, (terms, length) = _NAMES.table(spec), COLUMNS
    return (
        f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {terms} TSVECTOR",
        f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {length} INTEGER DEFAULT 0 NOT NULL",
        f"CREATE INDEX IF NOT EXISTS idx_{spec.table}_content_fts ON {table} "
        f"USING gin ({terms}, ({_NAMES.owners(spec)}))",
    )

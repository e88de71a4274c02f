"""Hash partitions of the vectors on PostgreSQL, by the record's id; vectors are moved while others read and write."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import psycopg
from psycopg import sql

from alma.errors import ConflictError, ValidationError
from alma.storage.postgres import vector_index
from alma.storage.postgres.connection import Connection
from alma.storage.postgres.migrations import EMBEDDINGS_VIEW
from alma.storage.postgres.partitions import Partition, partitions
from alma.storage.postgres.sql_writes import keep_sql_writes_of_vectors

VECTORS = vector_index.VECTORS
_NEW = f"{VECTORS}_new"
_NUMBERS = f"{VECTORS}_number"
_MOST_PARTS = 256
_LOCK = (4, 1)
_BATCH = 1_000
_LOCK_WAIT_SECONDS = 0.5
_ATTEMPTS = 120
_SNAPSHOT_SECONDS = 10.0
_POLL_SECONDS = 0.05
# From here on whatever is written to the table is written to the new one too, by any process.
_MIRROR = f"""
CREATE OR REPLACE FUNCTION alma_mirror_vector() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM {_NEW} WHERE id = OLD.id AND memory_id = OLD.memory_id;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO {_NEW} VALUES (NEW.*);
    END IF;
    RETURN NULL;
END $$
"""
_TRIGGER = (
    f"CREATE TRIGGER alma_mirror_vector AFTER INSERT OR UPDATE OR DELETE ON {VECTORS} "
    "FOR EACH ROW EXECUTE FUNCTION alma_mirror_vector()"
)
# Rows are locked, so that none is changed or deleted between being read and being copied.
_COPY = f"""
WITH batch AS (SELECT * FROM {VECTORS} WHERE id > %s AND id <= %s ORDER BY id LIMIT {_BATCH} FOR SHARE),
copied AS (INSERT INTO {_NEW} SELECT * FROM batch ON CONFLICT DO NOTHING)
SELECT max(id), count(*) FROM batch
"""
_OLDER_SNAPSHOTS = """
SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
AND backend_type = 'client backend' AND age(backend_xmin) > age(%s::text::xid)
"""
_RIGHTS = "SELECT grantee::regrole::text, privilege_type FROM pg_class, aclexplode(relacl) WHERE oid = %s::regclass"

Told = Callable[[int, int], object]
Result = TypeVar("Result")


def partition_vectors(
    connection: Connection, parts: int = 8, on_progress: Told = lambda done, total: None
) -> list[Partition]:
    """Split the vectors into `parts` parts, unless they are; returns these. Reads and writes go on meanwhile."""
    if not 2 <= parts <= _MOST_PARTS:
        raise ValidationError("partition", "parts", parts, f"must be between 2 and {_MOST_PARTS}")
    with _alone(connection):
        if len(partitions(connection, VECTORS)) != parts:
            _undo(connection)
            try:
                _split(connection, parts, on_progress)
            except BaseException:
                if not connection.closed:
                    _undo(connection)
                raise
    return partitions(connection, VECTORS)


def _split(connection: Connection, parts: int, on_progress: Told) -> None:
    lengths = dict(connection.execute("SELECT model, dims FROM alma_embedding_models").fetchall())
    native = connection.execute("SELECT to_regtype('vector') IS NOT NULL").fetchone()
    indexed = vector_index.indexed(connection, lengths) if native and native[0] else []
    _patiently(connection, partial(_create, connection, parts))
    _copy(connection, on_progress)
    for of in indexed:
        vector_index.build(connection, of, _NEW)
    _await_older_snapshots(connection)
    names = {of: vector_index.free_index_name(connection, of) for of in indexed}
    _patiently(connection, partial(_swap, connection, names))
    connection.execute(f"ANALYZE {VECTORS}")


@contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    taken = connection.execute("SELECT pg_try_advisory_lock(%s, %s)", _LOCK).fetchone()
    if taken is None or not taken[0]:
        raise ConflictError("another process is partitioning the vectors: wait for it")
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute("SELECT pg_advisory_unlock(%s, %s)", _LOCK)


def _create(connection: Connection, parts: int) -> None:
    """The new table, which gets every write from here on."""
    connection.execute(
        f"CREATE TABLE {_NEW} (LIKE {VECTORS} INCLUDING DEFAULTS INCLUDING CONSTRAINTS) PARTITION BY HASH (memory_id)"
    )
    for part in range(parts):
        connection.execute(
            f"CREATE TABLE {VECTORS}_{parts}_{part} PARTITION OF {_NEW} "
            f"FOR VALUES WITH (MODULUS {parts}, REMAINDER {part})".encode()
        )
    connection.execute(f"ALTER TABLE {_NEW} ADD PRIMARY KEY (id, memory_id)")
    connection.execute(f"CREATE UNIQUE INDEX {_NEW}_type ON {_NEW} (memory_type, memory_id, model, part)")
    connection.execute(_MIRROR)
    # It waits for the transactions that write now, whose vectors are then there to be copied.
    connection.execute(_TRIGGER)


def _copy(connection: Connection, on_progress: Told) -> None:
    last, total = _one(connection, f"SELECT coalesce(max(id), 0), count(*) FROM {VECTORS}")
    copied, done = 0, 0
    while done < last:
        reached, count = _patiently(connection, partial(_one, connection, _COPY, (done, last)))
        if not count:
            break
        done, copied = reached, copied + count
        on_progress(min(copied, total), total)


def _await_older_snapshots(connection: Connection) -> None:
    """A snapshot that was taken before a vector was copied would not show it in the new table."""
    (moment,) = _one(connection, "SELECT pg_current_xact_id()::xid::text")
    deadline = time.monotonic() + _SNAPSHOT_SECONDS
    while time.monotonic() < deadline and connection.execute(_OLDER_SNAPSHOTS, (moment,)).fetchone():
        time.sleep(_POLL_SECONDS)


def _swap(connection: Connection, names: dict[vector_index.VectorsOf, str]) -> None:
    """The new table takes the place of the old one; this is the only moment at which others wait."""
    built = {of: vector_index.free_index_name(connection, of, _NEW) for of in names}
    connection.execute(f"LOCK TABLE {VECTORS}, {_NEW} IN ACCESS EXCLUSIVE MODE")
    _continue_numbering(connection)
    for role, right in connection.execute(_RIGHTS, (VECTORS,)).fetchall():
        connection.execute(f"GRANT {right} ON {_NEW} TO {'PUBLIC' if role == '-' else role}".encode())
    connection.execute(f"ALTER TABLE {VECTORS} RENAME TO {VECTORS}_old")
    connection.execute(f"ALTER TABLE {_NEW} RENAME TO {VECTORS}")
    # Replaced and not made anew, the view keeps its triggers and the rights on it.
    connection.execute(EMBEDDINGS_VIEW)
    connection.execute(f"DROP TABLE {VECTORS}_old")
    connection.execute("DROP FUNCTION alma_mirror_vector()")
    for old, new in ((f"{_NEW}_type", "idx_embeddings_type"), *((built[of], name) for of, name in names.items())):
        connection.execute(sql.SQL("ALTER INDEX {} RENAME TO {}").format(sql.Identifier(old), sql.Identifier(new)))
    keep_sql_writes_of_vectors(connection)


def _continue_numbering(connection: Connection) -> None:
    """Vectors go on being numbered where they were; an identity column cannot be moved to another table."""
    (last,) = _one(connection, f"SELECT coalesce(max(id), 0) + 1 FROM {VECTORS}")
    connection.execute(f"CREATE SEQUENCE IF NOT EXISTS {_NUMBERS} START {last}".encode())
    connection.execute(f"ALTER TABLE {_NEW} ALTER COLUMN id SET DEFAULT nextval('{_NUMBERS}')")
    connection.execute(f"ALTER SEQUENCE {_NUMBERS} OWNED BY {_NEW}.id")


def _undo(connection: Connection) -> None:
    """Remove what a run left that did not get to its end."""

    def remove() -> None:
        connection.execute(f"DROP TRIGGER IF EXISTS alma_mirror_vector ON {VECTORS}")
        connection.execute("DROP FUNCTION IF EXISTS alma_mirror_vector()")
        connection.execute(f"DROP TABLE IF EXISTS {_NEW}")

    with suppress(psycopg.errors.UndefinedTable):
        _patiently(connection, remove)


def _patiently(connection: Connection, step: Callable[[], Result]) -> Result:
    """Run a step in a transaction that gives way to others instead of making them wait for a lock."""
    for attempt in range(_ATTEMPTS):
        try:
            with connection.transaction():
                connection.execute(f"SET LOCAL lock_timeout = {int(1000 * _LOCK_WAIT_SECONDS)}".encode())
                return step()
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            if attempt == _ATTEMPTS - 1:
                raise
            time.sleep(_POLL_SECONDS)
    raise AssertionError("the last attempt returns or raises")


def _one(connection: Connection, query: str, values: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    row = connection.execute(query.encode(), values).fetchone()
    assert row is not None
    return tuple(row)

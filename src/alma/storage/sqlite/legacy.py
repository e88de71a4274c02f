"""Taking over a SQLite file that alma-memory 0.4 (or a later 0.x) made: every memory it holds is kept and found."""

from __future__ import annotations

import logging
import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from alma.errors import MigrationError
from alma.model.learning import Heuristic
from alma.model.record import Record
from alma.model.vector import Vector
from alma.storage.sql.backend import SqlBackend
from alma.storage.sql.clauses import Names
from alma.storage.sql.legacy import ADOPTION, OLDER_KINDS, adopt_vectors, claim_usual_length, record_of, vector_of
from alma.storage.transaction import Transaction

_log = logging.getLogger("alma.storage.legacy")

_PREFIX = "legacy_"


def set_aside(connection: sqlite3.Connection) -> list[str]:
    """Rename the tables of alma-memory whose names ours need; returns the old names."""
    ours = set(Names("sqlite").tables())
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    older = [name for (name,) in rows if name in ours]
    if older and not {Heuristic.spec.table, "embeddings"} <= set(older):
        raise MigrationError(
            f"the database holds tables of another program ({', '.join(older)}): give ALMA a file of its own"
        )
    for name in older:
        for (index,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL", (name,)
        ).fetchall():
            connection.execute(f'DROP INDEX "{index}"')
        connection.execute(f'ALTER TABLE "{name}" RENAME TO "{_PREFIX}{name}"')
    return older


def adopt(backend: SqlBackend) -> None:
    """Save every older memory as a record of today; a row that cannot become one stays in its legacy table."""
    vectors = _older_vectors(backend)
    for cls in OLDER_KINDS:
        _adopt_kind(backend, cls, vectors.get(cls.spec.table, {}))
    if _exists(backend, f"{_PREFIX}embeddings"):
        backend.run(f"DROP TABLE {_PREFIX}embeddings", {})


def _adopt_kind(backend: SqlBackend, cls: type[Record], vectors: Mapping[str, Vector]) -> None:
    table = f"{_PREFIX}{cls.spec.table}"
    if not _exists(backend, table):
        return
    records = [record for row in _older_rows(backend, table) if (record := record_of(cls, row)) is not None]
    Transaction(backend, ADOPTION).save(*records)
    adopt_vectors(backend, cls, {record.key: vectors[record.key] for record in records if record.key in vectors})
    backend.run_many(f'DELETE FROM "{table}" WHERE id = ?', [(record.key,) for record in records])
    left = backend.rows(f'SELECT count(*) FROM "{table}"', {})[0][0]
    if left:
        _log.warning(
            "some older memories could not be read and stay in their table", extra={"table": table, "rows": left}
        )
    else:
        backend.run(f'DROP TABLE "{table}"', {})


def _older_vectors(backend: SqlBackend) -> dict[str, dict[str, Vector]]:
    """The vectors of each table."""
    if not _exists(backend, f"{_PREFIX}embeddings"):
        return {}
    rows = backend.rows(f"SELECT memory_type, memory_id, embedding FROM {_PREFIX}embeddings", {})
    usable = [(table, key, vector) for table, key, blob in rows if (vector := vector_of(blob)) is not None]
    claim_usual_length(backend, (len(vector) for _, _, vector in usable))
    found: dict[str, dict[str, Vector]] = defaultdict(dict)
    for table, key, vector in usable:
        found[table][key] = vector
    return found


def _older_rows(backend: SqlBackend, table: str) -> list[dict[str, Any]]:
    names = [row[1] for row in backend.rows(f'PRAGMA table_info("{table}")', {})]
    return [dict(zip(names, row, strict=True)) for row in backend.rows(f'SELECT * FROM "{table}"', {})]


def _exists(backend: SqlBackend, table: str) -> bool:
    return bool(backend.rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name", {"name": table}))

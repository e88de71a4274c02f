"""Taking over a SQLite file that alma-memory 0.4 (or a later 0.x) made: every memory it holds is kept and found."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from alma.errors import MigrationError, ValidationError
from alma.model.fields import FieldSpec, FieldType
from alma.model.governance import Attribution
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.record import Record
from alma.model.vector import Vector
from alma.storage.records import DEFAULT_MODEL
from alma.storage.sql.backend import SqlBackend
from alma.storage.sql.clauses import Names
from alma.storage.transaction import Transaction

_log = logging.getLogger("alma.storage.legacy")

ADOPTION = Attribution(reason="taken over from alma-memory")
_PREFIX = "legacy_"
_KINDS: tuple[type[Record], ...] = (Heuristic, Outcome, UserPreference, DomainKnowledge, AntiPattern)
_BYTES_PER_FLOAT = 4


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
    for cls in _KINDS:
        _adopt_kind(backend, cls, vectors.get(cls.spec.table, {}))
    if _exists(backend, f"{_PREFIX}embeddings"):
        backend.run(f"DROP TABLE {_PREFIX}embeddings", {})


def _adopt_kind(backend: SqlBackend, cls: type[Record], vectors: Mapping[str, Vector]) -> None:
    table = f"{_PREFIX}{cls.spec.table}"
    if not _exists(backend, table):
        return
    records = [record for row in _older_rows(backend, table) if (record := _record(cls, row)) is not None]
    Transaction(backend, ADOPTION).save(*records)
    _adopt_vectors(backend, cls, {record.key: vectors[record.key] for record in records if record.key in vectors})
    backend.run_many(f'DELETE FROM "{table}" WHERE id = ?', [(record.key,) for record in records])
    left = backend.rows(f'SELECT count(*) FROM "{table}"', {})[0][0]
    if left:
        _log.warning(
            "some older memories could not be read and stay in their table", extra={"table": table, "rows": left}
        )
    else:
        backend.run(f'DROP TABLE "{table}"', {})


def _adopt_vectors(backend: SqlBackend, cls: type[Record], vectors: Mapping[str, Vector]) -> None:
    """Vectors of the store's own length become its own; those of another are kept apart under a model of theirs."""
    by_length: dict[int, dict[str, Vector]] = defaultdict(dict)
    for key, vector in vectors.items():
        by_length[len(vector)][key] = vector
    own = backend.dims_of(backend.embedding_model, None) or backend.embedding_dim
    for dims, group in by_length.items():
        model = backend.embedding_model if dims == own else f"alma-memory, {dims} dimensions"
        backend.dims_of(model, dims)
        backend.put_vectors(cls.spec, group, model)


def _older_vectors(backend: SqlBackend) -> dict[str, dict[str, Vector]]:
    """The vectors of each table."""
    if not _exists(backend, f"{_PREFIX}embeddings"):
        return {}
    rows = backend.rows(f"SELECT memory_type, memory_id, embedding FROM {_PREFIX}embeddings", {})
    usable = [(table, key, vector) for table, key, blob in rows if (vector := _vector(blob)) is not None]
    usual = Counter(len(vector) for _, _, vector in usable).most_common(1)
    # Without a named model the store takes that of these vectors; a named one has vectors of one length only.
    if usual and backend.embedding_model == DEFAULT_MODEL:
        backend.dims_of(backend.embedding_model, usual[0][0])
    found: dict[str, dict[str, Vector]] = defaultdict(dict)
    for table, key, vector in usable:
        found[table][key] = vector
    return found


def _vector(blob: bytes) -> Vector | None:
    if not blob or len(blob) % _BYTES_PER_FLOAT:
        return None
    try:
        return Vector(list(Vector.from_bytes(blob)))
    except ValidationError:
        return None


def _older_rows(backend: SqlBackend, table: str) -> list[dict[str, Any]]:
    names = [row[1] for row in backend.rows(f'PRAGMA table_info("{table}")', {})]
    return [dict(zip(names, row, strict=True)) for row in backend.rows(f'SELECT * FROM "{table}"', {})]


def _record(cls: type[Record], row: Mapping[str, Any]) -> Record | None:
    try:
        return cls(**_values(cls, row))
    except (ValidationError, ValueError, TypeError):
        return None


def _values(cls: type[Record], row: Mapping[str, Any]) -> dict[str, Any]:
    """What the row says; beside that, in the metadata, what no field of today can hold."""
    fields = {name: cls.spec.by_name[name] for name in row if name in cls.spec.by_name}
    values: dict[str, Any] = {name: None for name, field in fields.items() if field.nullable}
    more = {name: value for name, value in row.items() if name not in fields and value is not None}
    for name, field in fields.items():
        if row[name] is None:
            continue
        try:
            values[name] = cls.spec.checked(name, _value(field, row[name]))
        except (ValidationError, ValueError, TypeError):
            # A memory is kept even if a date or a count of it cannot be read.
            if field.required:
                raise
            more[name] = row[name]
    if more:
        values["metadata"] = {**values.get("metadata", {}), "alma_memory": more}
    return values


def _value(field: FieldSpec, value: Any) -> Any:
    match field.type:
        case FieldType.TIMESTAMP:
            return _moment(value)
        case FieldType.JSON:
            return json.loads(value, parse_constant=lambda _: None)
        case FieldType.BOOLEAN:
            return bool(value)
        case FieldType.FLOAT if field.range is not None:
            return min(max(float(value), field.range.low), field.range.high)
        case FieldType.INTEGER if isinstance(value, float) and value.is_integer():
            return int(value)
        case _:
            return value


def _moment(text: str) -> datetime:
    """An older timestamp; those without an offset were written in UTC."""
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _exists(backend: SqlBackend, table: str) -> bool:
    return bool(backend.rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name", {"name": table}))

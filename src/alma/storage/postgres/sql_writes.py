"""Triggers that keep a store whole where SQL writes to it: history, tags, words, vectors, audit events and marks.

They do not fire for the store's own connections, which do all of it themselves.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

import psycopg
from psycopg import sql

from alma.model.fields import LONGEST_NAME, FieldSpec, FieldType, MaxLength, NotEmpty
from alma.model.kinds import KINDS, kind_named, references_to
from alma.model.record import OnDelete, RecordSpec
from alma.storage.postgres.fulltext import index_some_of
from alma.storage.sql.clauses import Names

_NAMES = Names("postgresql")
_IS_SQL = "WHEN (current_setting('alma.writer', true) IS DISTINCT FROM 'on')"
# Names of the Orchestrator's document, for messages.
_DOCUMENTED: Mapping[str, Mapping[str, str]] = {
    "memory": {"id": "memory_id"},
    "session": {"id": "session_id"},
    "user": {"id": "user_id", "profile_json": "profile_data", "preferences_json": "preferences"},
    "memory_relationship": {"from_memory_id": "source_memory_id", "to_memory_id": "target_memory_id"},
}
# Both documents say that memories go with their session, and that what an agent keeps outlives it.
_DOCUMENTED_DELETES = {("memory", "session_id"): OnDelete.CASCADE, ("agent_state", "session_id"): OnDelete.CLEAR}
# Rows that SQL inserts under a documented name, whose missing values are filled in.
_COMPLETED = ("user", "session", "agent_state", "memory_relationship")
_NAME = {NotEmpty(), MaxLength(LONGEST_NAME)}
_EMPTY: Mapping[FieldType, Any] = {FieldType.JSON: {}, FieldType.STRINGS: []}
_LARGEST_BATCH = 500


def keep_sql_writes(connection: psycopg.Connection[Any]) -> None:
    """Create or replace the functions and triggers."""
    text = resources.files("alma.storage.postgres").joinpath("sql_writes.sql").read_text(encoding="utf-8")
    connection.execute(text.encode())
    for statement in _triggers():
        connection.execute(statement)
    keep_sql_writes_of_vectors(connection)


def keep_sql_writes_of_vectors(connection: psycopg.Connection[Any]) -> None:
    """Make the trigger of the view of vectors, which comes after the migrations: its column depends on the server."""
    made = connection.execute("SELECT to_regclass('vector_embeddings'), to_regproc('alma_write_vector')").fetchone()
    if made is not None and None not in made:
        connection.execute(_instead_of("vector_embeddings", "alma_write_vector"))


def index_due_words(connection: psycopg.Connection[Any]) -> None:
    """Index the words of records that SQL has written with the tokenizer of the records."""
    while connection.execute(f"SELECT 1 FROM {_NAMES.words_due} LIMIT 1").fetchone():
        with connection.transaction():
            if not _index_a_batch(connection):
                # Another process has them.
                return


def _index_a_batch(connection: psycopg.Connection[Any]) -> bool:
    due: dict[str, list[str]] = defaultdict(list)
    for kind, record_id in connection.execute(
        f"DELETE FROM {_NAMES.words_due} WHERE (kind, record_id) IN (SELECT kind, record_id FROM {_NAMES.words_due} "
        f"ORDER BY kind, record_id LIMIT {_LARGEST_BATCH} FOR UPDATE SKIP LOCKED) RETURNING kind, record_id"
    ).fetchall():
        due[kind].append(record_id)
    for kind, keys in due.items():
        index_some_of(connection, kind_named(kind).spec, keys)
    return bool(due)


def _triggers() -> Iterator[sql.Composed]:
    for spec in (cls.spec for cls in KINDS if cls.spec.audited):
        table, given = _NAMES.table(spec), _description(spec)
        yield _trigger(table, "alma_keep", "AFTER INSERT OR UPDATE OR DELETE", given)
        completed = "INSERT OR UPDATE" if spec.kind in _COMPLETED else "UPDATE"
        yield _trigger(table, "alma_complete", f"BEFORE {completed}", given)
    yield _trigger(_NAMES.tags, "alma_keep_tag", "BEFORE INSERT OR UPDATE OR DELETE", "")
    yield _instead_of("memory_entries", "alma_write_entry")


def _trigger(table: str, function: str, moment: str, given: str) -> sql.Composed:
    return sql.SQL(
        f"CREATE OR REPLACE TRIGGER {function} {moment} ON {{}} FOR EACH ROW {_IS_SQL} "
        f"EXECUTE FUNCTION {function}({{}})"
    ).format(sql.Identifier(table), sql.Literal(given))


def _instead_of(view: str, function: str) -> sql.Composed:
    return sql.SQL(
        f"CREATE OR REPLACE TRIGGER {function} INSTEAD OF INSERT OR UPDATE OR DELETE ON {{}} "
        f"FOR EACH ROW EXECUTE FUNCTION {function}()"
    ).format(sql.Identifier(view))


@cache
def _description(spec: RecordSpec) -> str:
    """The description of a kind for the triggers, as JSON."""
    said: dict[str, Any] = {
        "kind": spec.kind,
        "table": _NAMES.table(spec),
        "key": spec.key,
        "versioned": spec.versioned,
        "names": _DOCUMENTED.get(spec.kind, {}),
        "limited": [field.name for field in spec.stored if set(field.rules) >= _NAME],
        "objects": [field.name for field in spec.stored if field.type is FieldType.JSON],
        "moments": [f.name for f in spec.stored if f.type is FieldType.TIMESTAMP and not f.nullable],
        "defaults": {field.name: each for field in spec.stored if (each := _default(field)) is not None},
        "references": dict(_references(spec)),
        "dependents": list(_dependents(spec)),
    }
    return json.dumps({**said, "text": spec.text} if spec.text else said)


def _default(field: FieldSpec) -> Any:
    """The default of a column that must have a value."""
    return None if field.nullable else _EMPTY.get(field.type, field.default)


def _references(spec: RecordSpec) -> Iterator[tuple[str, str]]:
    """The columns that the documents declare as foreign keys, with their tables."""
    for each in spec.references:
        if each.must_exist or (spec.kind, each.field) in _DOCUMENTED_DELETES:
            yield each.field, _NAMES.table(kind_named(each.kind).spec)


def _dependents(spec: RecordSpec) -> Iterator[tuple[str, str, bool]]:
    """Tables and columns that hold ids of the kind, and whether their rows go with it."""
    if spec.tags_field is not None:
        yield _NAMES.tags, "memory_id", True
    for dependent, each in references_to(spec.kind):
        goes = _DOCUMENTED_DELETES.get((dependent.kind, each.field), each.on_delete) is OnDelete.CASCADE
        yield _NAMES.table(dependent), each.field, goes

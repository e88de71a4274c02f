"""Multi-row inserts into SQLite keep every row."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.errors import ConflictError
from alma.model.fields import FieldType
from alma.model.governance import AuditEvent
from alma.model.memory import Memory, MemoryRelationship
from alma.model.scope import Scope
from alma.storage.document import timestamp_of, timestamp_text
from alma.storage.sql.clauses import DialectName
from alma.storage.sql.statements import Dialect
from alma.storage.sqlite.backend import write_rows
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing import builders as make

EVERYWHERE = Scope.everywhere()


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 64, 100])
@pytest.mark.parametrize("width", [1, 3, 40])
def test_every_row_arrives_whatever_their_number(count: int, width: int) -> None:
    columns = [f"c{number}" for number in range(width)]
    rows = [tuple(range(row, row + width)) for row in range(count)]
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute(f"CREATE TABLE t ({', '.join(columns)})")
        write_rows(connection, "t", columns, iter(rows))
        assert connection.execute("SELECT * FROM t ORDER BY rowid").fetchall() == rows


def test_values_that_only_some_records_have_are_stored(tmp_path: Path) -> None:
    memories = [
        make.a_memory(id=f"m{number:03}", summary="short" if number == 77 else None, is_private=number % 2 == 0)
        for number in range(100)
    ]
    with SQLiteStorage(tmp_path / "alma.db", embedding_dim=3) as store:
        store.save_many(memories)
        assert store.find(Memory, EVERYWHERE) == memories


def test_a_row_that_collides_takes_the_whole_batch_with_it(tmp_path: Path) -> None:
    first, second = (MemoryRelationship(from_memory_id="a", to_memory_id=to, relationship_type="x") for to in "bc")
    with SQLiteStorage(tmp_path / "alma.db", embedding_dim=3) as store:
        store.save_many([make.a_memory(id=key) for key in "abc"])
        events = store.count(AuditEvent, EVERYWHERE)
        with closing(sqlite3.connect(store.path)) as other:
            # What no call of ours would let happen, so that the database itself has to refuse a row.
            other.execute("CREATE UNIQUE INDEX one_from ON memory_relationships (from_memory_id)")
            other.commit()
        with pytest.raises(ConflictError):
            store.save_many([first, second])
        assert store.count(MemoryRelationship, EVERYWHERE) == 0
        assert store.count(AuditEvent, EVERYWHERE) == events


def test_a_new_file_has_pages_that_long_rows_fill(tmp_path: Path) -> None:
    SQLiteStorage(tmp_path / "alma.db").close()
    with closing(sqlite3.connect(tmp_path / "alma.db")) as connection:
        assert connection.execute("PRAGMA page_size").fetchone() == (8192,)


@given(st.datetimes(timezones=st.just(UTC)))
def test_an_instant_is_spelled_to_the_microsecond(moment: datetime) -> None:
    text = timestamp_text(moment)
    assert text == moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
    assert timestamp_of(text) == moment


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
@given(texts=st.lists(st.text() | st.sampled_from(["a1", "ö", 'say "so"', "back\\slash", ""])))
def test_a_list_of_texts_is_written_as_json_whatever_is_in_them(dialect: DialectName, texts: list[str]) -> None:
    written = Dialect(dialect).encode(FieldType.STRINGS, texts)
    assert json.loads(written) == texts
    assert written == json.dumps(texts, ensure_ascii=False, separators=(",", ":"))

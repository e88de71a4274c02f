"""Migrations of an SQLite file: applied once, in order, under a lock, after a backup."""

from __future__ import annotations

import contextlib
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from alma.bootstrap import open_migrator
from alma.embeddings.mock import MockEmbedder
from alma.errors import MigrationError, ModelMismatchError, StorageError, ValidationError
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage.migrations.base import HISTORY_TABLE, Migration, known_migrations
from alma.storage.migrations.generate import schema_sql
from alma.storage.sqlite import fulltext as sqlite_entries
from alma.storage.sqlite.migrations import SQLiteMigrator
from alma.storage.sqlite_local import SQLiteStorage
from alma.sync.reembed import reembed
from alma.testing import builders as make
from tests.support.together import together

EVERYWHERE = Scope.everywhere()
OLDER_STORE = Path(__file__).parent / "data" / "alma_memory_0_4.db"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "alma.db"


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def catalogue(connection: sqlite3.Connection) -> set[tuple[str, str, str]]:
    """Everything a schema consists of, white space and the order of a table's columns and constraints aside."""
    rows = connection.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master")
    return {(kind, name, in_any_order(" ".join(sql.split()))) for kind, name, sql in rows if HISTORY_TABLE not in name}


def in_any_order(sql: str) -> str:
    """A statement that makes a table with its parts sorted: a column that was added later stands at another place."""
    head, opening, body = sql.partition("(")
    if not head.startswith("CREATE TABLE"):
        return sql
    # A constraint may stand behind its column or by itself.
    parts = re.split(r", (?![^(]*\))| (?=CONSTRAINT )", body.removesuffix(")").strip())
    return f"{head}{opening}{', '.join(sorted(part.strip() for part in parts if part.strip()))})"


def test_the_migrated_database_equals_the_records(path: Path, connection: sqlite3.Connection) -> None:
    SQLiteStorage(path).close()
    with closing(sqlite3.connect(":memory:")) as fresh:
        for statement in schema_sql("sqlite"):
            fresh.execute(statement)
        assert catalogue(connection) == catalogue(fresh)


def test_a_new_file_is_migrated_without_a_backup(path: Path) -> None:
    SQLiteStorage(path).close()
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_pending_migrations_can_be_seen_before_they_run(path: Path, connection: sqlite3.Connection) -> None:
    migrator = SQLiteMigrator(path, connection)
    assert [m.file_name for m in migrator.pending()] == [m.file_name for m in known_migrations("sqlite")]
    assert catalogue(connection) == set()
    assert all(state.applied_at is None for state in migrator.status())
    migrator.migrate()
    assert migrator.pending() == migrator.migrate() == []
    assert all(state.applied_at is not None for state in migrator.status())


def test_a_later_migration_backs_the_file_up_and_keeps_the_data(path: Path, connection: sqlite3.Connection) -> None:
    with SQLiteStorage(path) as store:
        store.save(make.a_heuristic(id="h"))
    later = (*known_migrations("sqlite"), Migration(9001, "later", "CREATE TABLE later (x);\n"))
    migrator = SQLiteMigrator(path, connection, later)
    assert [migration.version for migration in migrator.migrate()] == [9001]
    assert migrator.backup is not None
    with closing(sqlite3.connect(migrator.backup)) as backup:
        assert backup.execute("SELECT id FROM heuristics").fetchall() == [("h",)]
        assert backup.execute("SELECT count(*) FROM sqlite_master WHERE name = 'later'").fetchone() == (0,)


def test_a_migration_that_fails_changes_nothing(path: Path, connection: sqlite3.Connection) -> None:
    SQLiteStorage(path).close()
    before = catalogue(connection)
    broken = Migration(9001, "broken", "CREATE TABLE half (x);\nCREATE TABLE half (x);\n")
    with pytest.raises(sqlite3.OperationalError):
        SQLiteMigrator(path, connection, (*known_migrations("sqlite"), broken)).migrate()
    assert catalogue(connection) == before
    assert SQLiteMigrator(path, connection).pending() == []


def test_a_changed_old_file_is_an_error_that_names_it(path: Path, connection: sqlite3.Connection) -> None:
    SQLiteStorage(path).close()
    first = known_migrations("sqlite")[0]
    changed = Migration(first.version, first.name, first.sql + "-- changed\n")
    with pytest.raises(MigrationError, match=r"0001_initial\.sql"):
        SQLiteMigrator(path, connection, (changed,)).status()


def test_a_newer_schema_is_an_error_that_says_to_upgrade(path: Path, connection: sqlite3.Connection) -> None:
    SQLiteStorage(path).close()
    connection.execute(f"INSERT INTO {HISTORY_TABLE} VALUES (9999, 'future', '2030-01-01T00:00:00.000000Z', 'x')")
    with pytest.raises(MigrationError, match=r"9999 \(future\).*upgrade alma-agent-memory"):
        SQLiteStorage(path)


def test_many_openers_of_a_new_file_migrate_it_once(path: Path) -> None:
    assert together(*[lambda: SQLiteStorage(path).close()] * 8) == []
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(f"SELECT count(*) FROM {HISTORY_TABLE}").fetchone()[0] == len(
            known_migrations("sqlite")
        )


def test_vectors_that_were_alone_are_kept_beside_passages(path: Path, connection: sqlite3.Connection) -> None:
    SQLiteMigrator(path, connection, known_migrations("sqlite")[:1]).migrate()
    connection.execute(
        "INSERT INTO heuristics (id, agent, project_id, condition, strategy) VALUES ('h', 'a', 'p', 1, 1)"
    )
    connection.execute("INSERT INTO embedding_models VALUES ('default', 2)")
    connection.execute(
        "INSERT INTO embeddings VALUES (7, 'heuristic', 'h', 'default', 2, ?)", (Vector([1, 0]).to_bytes(),)
    )
    with SQLiteStorage(path, embedding_dim=2) as store:
        assert store.require(Heuristic, "h", EVERYWHERE).embedding == [1, 0]
        store.put_passages(Heuristic, {"h": [[0, 1]]})
        assert store.nearest_ids(Heuristic, [0, 1], EVERYWHERE) == [("h", 1.0)]
    assert connection.execute("SELECT id, part FROM embeddings ORDER BY id").fetchall() == [(7, 0), (8, 1)]


# ---------------------------------------------------------------------- steps beyond SQL


def an_older_store(path: Path, records: int) -> None:
    """A store as it was before words were stemmed, with heuristics in it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        SQLiteMigrator(path, connection, known_migrations("sqlite")[:1]).migrate()
        rows = [(seq, f"h{seq}", f"agent {seq % 7}", f"When testing form{seq}") for seq in range(1, records + 1)]
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO heuristics (seq, id, agent, project_id, condition, strategy, last_validated, created_at) "
            "VALUES (?, ?, ?, 'shop', ?, 'cafés', '2025-01-01T00:00:00.000000Z', '2025-01-01T00:00:00.000000Z')",
            rows,
        )
        connection.executemany(
            "INSERT INTO heuristics_fts (rowid, condition, strategy) VALUES (?, ?, 'cafés')",
            [(seq, text) for seq, _, _, text in rows],
        )
        connection.execute("COMMIT")


def check_every_word_is_found(path: Path, records: int) -> None:
    with SQLiteStorage(path) as store:
        for seq in (1, records // 2, records):
            own = Scope(project_id="shop", agent=f"agent {seq % 7}")
            assert [key for key, _ in store.matching_ids(Heuristic, f"form{seq}", own)] == [f"h{seq}"]
        assert len(store.matching_ids(Heuristic, "tests in the cafe", EVERYWHERE, limit=50)) == 50
        store.save(make.a_heuristic(id="h1", agent="agent 1", condition="rewritten"))
        assert store.matching_ids(Heuristic, "form1", EVERYWHERE) == []
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO heuristics_fts (heuristics_fts) VALUES ('integrity-check')")
        entries = connection.execute("SELECT count(*) FROM heuristics_fts WHERE heuristics_fts MATCH 'cafe'")
        assert entries.fetchone() == (records - 1,)


def test_the_words_of_an_older_store_are_found_by_their_stems(path: Path) -> None:
    an_older_store(path, 50)
    check_every_word_is_found(path, 50)


def test_a_migration_killed_while_it_indexes_is_done_by_the_next_opener(path: Path) -> None:
    records = 20_000
    an_older_store(path, records)
    code = f"from alma.storage.sqlite_local import SQLiteStorage; print(flush=True); SQLiteStorage({str(path)!r})"
    for delay in (0.05, 0.15, 0.3):
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as opener:
            assert opener.stdout is not None
            opener.stdout.readline()
            with contextlib.suppress(subprocess.TimeoutExpired):
                opener.wait(delay)
            opener.kill()
    check_every_word_is_found(path, records)


def test_parts_of_korean_words_are_found_in_an_older_store(path: Path, connection: sqlite3.Connection) -> None:
    with SQLiteStorage(path) as store:
        store.save(make.a_heuristic(id="h", condition="회의를 했습니다"))
    connection.execute(f"DELETE FROM {HISTORY_TABLE} WHERE version = 19")
    connection.execute("INSERT INTO heuristics_fts (heuristics_fts) VALUES ('delete-all')")
    connection.execute("INSERT INTO heuristics_fts (rowid, condition) VALUES (1, '회의를 했습니다')")
    with SQLiteStorage(path) as store:
        assert [hit.record.id for hit in store.search_text(Heuristic, "회의", EVERYWHERE)] == ["h"]
        store.update(Heuristic, "h", {"condition": "something else"}, EVERYWHERE)
        assert store.search_text(Heuristic, "회의를", EVERYWHERE) == []


@pytest.mark.parametrize("versions", ["22, 25, 27", "25, 27", "27"])
def test_signs_names_and_the_ends_of_long_texts_are_found_in_an_older_store(
    versions: str, path: Path, connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "filling " * 13_000 + "zeppelin"
    texts = {"sign": "great pizza 🍕 in C++", "long": long, "name": "getUserName of 1,000"}
    with monkeypatch.context() as before, SQLiteStorage(path) as store:
        before.setattr(sqlite_entries, "spaced_terms", lambda _: "old")
        store.save_many([make.a_heuristic(id=key, condition=text) for key, text in texts.items()])
        assert len(store.matching_ids(Heuristic, "old", EVERYWHERE)) == 3
    connection.execute(f"DELETE FROM {HISTORY_TABLE} WHERE version IN ({versions})")
    with SQLiteStorage(path) as store:
        for question, found in {
            "🍕": "sign",
            "C++": "sign",
            "zeppelin": "long",
            "user": "name",
            "1000": "name",
        }.items():
            assert [key for key, _ in store.matching_ids(Heuristic, question, EVERYWHERE)] == [found], question
        for key in texts:
            store.update(Heuristic, key, {"condition": "rewritten"}, EVERYWHERE)
        for question in ("old", "pizza 🍕", "filling", "user", "C++", "1000"):
            assert store.matching_ids(Heuristic, question, EVERYWHERE) == [], question
    connection.execute("INSERT INTO heuristics_fts (heuristics_fts) VALUES ('integrity-check')")


def test_a_step_runs_once_after_all_the_sql(path: Path, connection: sqlite3.Connection) -> None:
    an_older_store(path, 5)
    again = Migration(9001, "again", "-- then: index_words\nCREATE TABLE later (x);\n")
    SQLiteMigrator(path, connection, (*known_migrations("sqlite"), again)).migrate()
    assert again.step == "index_words"
    found = connection.execute("SELECT count(*) FROM heuristics_fts WHERE heuristics_fts MATCH 'cafe'").fetchone()
    assert found == (5,)


def test_a_step_that_no_one_knows_changes_nothing(path: Path, connection: sqlite3.Connection) -> None:
    SQLiteStorage(path).close()
    before = catalogue(connection)
    unknown = Migration(9001, "unknown", "-- then: dance\nCREATE TABLE later (x);\n")
    with pytest.raises(MigrationError, match="no step 'dance'"):
        SQLiteMigrator(path, connection, (*known_migrations("sqlite"), unknown)).migrate()
    assert catalogue(connection) == before


# ---------------------------------------------------------------------- files that alma-memory made


@pytest.fixture
def older(path: Path) -> Path:
    shutil.copy(OLDER_STORE, path)
    return path


def test_a_store_of_alma_memory_opens_and_its_memories_are_found(older: Path) -> None:
    with SQLiteStorage(older, embedding_dim=8) as store:
        counts = [
            store.count(kind, EVERYWHERE) for kind in (Heuristic, Outcome, UserPreference, DomainKnowledge, AntiPattern)
        ]
        assert counts == [3, 3, 2, 2, 2]
        heuristic = store.require(Heuristic, "heur-1", Scope(project_id="shop", agent="tester"))
        assert heuristic.confidence == 0.9
        assert heuristic.metadata == {"source": "review", "tags": ["form", "e2e"], "depth": {"level": 2}}
        assert heuristic.created_at == datetime(2025, 1, 2, 9, 30, 15, tzinfo=UTC)
        assert heuristic.embedding is not None
        nearest = store.search_vector(Heuristic, heuristic.embedding, EVERYWHERE, limit=1)
        assert [hit.record.id for hit in nearest] == ["heur-1"]
        assert [hit.record.id for hit in store.search_text(Heuristic, "happy path", EVERYWHERE)] == ["heur-1"]
        assert len(store.history(Heuristic, "heur-1", EVERYWHERE)) == 1


def test_an_older_store_is_backed_up_before_it_is_changed(older: Path) -> None:
    SQLiteStorage(older, embedding_dim=8).close()
    (backup,) = older.parent.glob("alma.db.backup-*")
    with closing(sqlite3.connect(backup)) as kept, closing(sqlite3.connect(OLDER_STORE)) as original:
        assert list(kept.iterdump()) == list(original.iterdump())


def test_an_older_store_opens_with_any_embedding_dim_and_keeps_its_vectors(older: Path) -> None:
    with SQLiteStorage(older) as store:
        assert len(store.require(Heuristic, "heur-1", EVERYWHERE).embedding or ()) == 8
        with pytest.raises(ValidationError, match="8 dimensions"):
            store.save(make.a_heuristic(embedding=[0.1] * 384))
        store.save(make.a_heuristic())
        assert store.update_heuristic_confidence("heur-1", 0.5)
        assert len(store.require(Heuristic, "heur-1", EVERYWHERE).embedding or ()) == 8


def test_older_rows_are_read_generously(older: Path) -> None:
    with closing(sqlite3.connect(older)) as connection:
        connection.execute("UPDATE heuristics SET created_at = '2025-01-02T09:30:15', metadata = '{\"x\": NaN}'")
        connection.execute("UPDATE outcomes SET timestamp = NULL, metadata = NULL, success = NULL")
        connection.execute("UPDATE domain_knowledge SET confidence = 1.4")
        connection.execute("UPDATE anti_patterns SET pattern = '' WHERE id = 'anti-1'")
        connection.execute(
            "INSERT INTO embeddings (memory_type, memory_id, embedding) VALUES ('heuristics', 'gone', ?)", (b"\0" * 32,)
        )
        connection.execute("UPDATE embeddings SET embedding = x'00' WHERE memory_id = 'heur-1'")
        connection.commit()
    with SQLiteStorage(older, embedding_dim=8) as store:
        heuristic = store.require(Heuristic, "heur-1", EVERYWHERE)
        assert heuristic.created_at == datetime(2025, 1, 2, 9, 30, 15, tzinfo=UTC)
        assert heuristic.metadata == {"x": None}
        assert heuristic.embedding is None
        assert store.count(Outcome, EVERYWHERE) == 3
        assert {fact.confidence for fact in store.find(DomainKnowledge, EVERYWHERE)} == {1.0}
        assert [pattern.id for pattern in store.find(AntiPattern, EVERYWHERE)] == ["anti-2"]
    with closing(sqlite3.connect(older)) as connection:
        assert connection.execute("SELECT id FROM legacy_anti_patterns").fetchall() == [("anti-1",)]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("metadata", "null"),
        ("metadata", "[1]"),
        ("metadata", "{torn"),
        ("metadata", ""),
        ("created_at", ""),
        ("created_at", "yesterday"),
        ("created_at", "1736071872.5"),
        ("occurrence_count", -4),
        ("occurrence_count", "many"),
    ],
)
def test_an_older_memory_is_taken_over_whatever_is_wrong_with_its_details(
    older: Path, column: str, value: object
) -> None:
    with closing(sqlite3.connect(older)) as connection:
        connection.execute(f"UPDATE heuristics SET {column} = ? WHERE id = 'heur-1'", (value,))
        connection.commit()
    with SQLiteStorage(older, embedding_dim=8) as store:
        heuristic = store.require(Heuristic, "heur-1", EVERYWHERE)
        assert heuristic.metadata["alma_memory"] == {column: value}
        assert heuristic.created_at is None or column != "created_at"
        assert heuristic.confidence == 0.9


def test_vectors_of_another_length_are_not_taken_for_those_of_the_model_that_the_store_is_opened_for(
    older: Path,
) -> None:
    embedder = MockEmbedder(16)
    with SQLiteStorage(older, embedding_dim=16, embedding_model=embedder.model) as store:
        assert store.models() == {"alma-memory, 8 dimensions": 8}
        with pytest.raises(ModelMismatchError, match="alma reembed"):
            store.search_vector(Heuristic, embedder.encode("forms"), EVERYWHERE)
        assert reembed(store, embedder) == 12
        assert len(store.search_vector(Heuristic, embedder.encode("forms"), EVERYWHERE)) == 3


def test_the_database_of_another_program_is_left_alone(path: Path, connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE users (login TEXT)")
    connection.execute("INSERT INTO users VALUES ('root')")
    with pytest.raises(MigrationError, match=r"another program \(users\)"):
        SQLiteStorage(path)
    assert connection.execute("SELECT login FROM users").fetchall() == [("root",)]


@pytest.mark.parametrize("died", [False, True], ids=["closed", "left by a writer that died"])
def test_looking_at_the_migrations_of_a_store_leaves_every_file_as_it_was(path: Path, died: bool) -> None:
    SQLiteStorage(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"DELETE FROM {HISTORY_TABLE} WHERE version > 1")
        connection.commit()
        if died:
            copies = {each.name: each.read_bytes() for each in path.parent.glob("alma.db*")}
    if died:
        for name, content in copies.items():
            (path.parent / name).write_bytes(content)
    before = {each.name: each.read_bytes() for each in path.parent.iterdir() if not each.name.endswith("-shm")}
    with open_migrator(str(path)) as migrator:
        assert len(migrator.pending()) == len(known_migrations("sqlite")) - 1
    after = {each.name: each.read_bytes() for each in path.parent.iterdir() if not each.name.endswith("-shm")}
    assert after == before
    assert died or not path.with_name("alma.db-shm").exists()


def test_a_file_that_is_not_a_database_is_an_error_and_stays(path: Path) -> None:
    path.write_text("these are my notes " * 1000)
    with pytest.raises(StorageError, match="not a database"):
        SQLiteStorage(path)
    assert path.read_text().startswith("these are my notes")
    with (
        pytest.raises(StorageError, match="is not an SQLite database, or it is damaged"),
        open_migrator(str(path)) as migrator,
    ):
        migrator.status()


def test_vacuum_does_not_separate_words_from_their_records(path: Path) -> None:
    with SQLiteStorage(path) as store:
        store.save_many([make.a_heuristic(id=str(n), strategy=f"number {n}") for n in range(20)])
        store.delete(Heuristic, [str(n) for n in range(10)], EVERYWHERE)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM")
    with SQLiteStorage(path) as store:
        assert [hit.record.id for hit in store.search_text(Heuristic, "15", EVERYWHERE)] == ["15"]

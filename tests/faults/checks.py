"""What must hold of a store after a fault: everything acknowledged is there, and everything that is there agrees."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import psycopg

from alma.memory.audit import AuditTrail
from alma.model.governance import AuditEvent
from alma.model.learning import Heuristic
from alma.model.memory import ChangeType, MemoryVersion
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.text.tokens import terms
from tests.faults.records import EVERYWHERE, PROJECTION, content_of, revision_of, vector_of, word_of, writes_of


class Acknowledged:
    """What writers said they had written."""

    def __init__(self) -> None:
        self.saved: set[str] = set()
        self.deleted: set[str] = set()
        self.revisions: dict[str, int] = {}
        self.increments: Counter[str] = Counter()
        self.failures: list[str] = []

    @property
    def varied(self) -> bool:
        """Whether there was some of every sort of write, so that checking them says something."""
        return all((self.saved, self.deleted, self.revisions, self.increments))

    def add(self, lines: Iterable[str]) -> None:
        """Take in the lines of a writer, each a moment and what was done."""
        for line in lines:
            match line.split()[1:]:
                case ["saved", *keys]:
                    self.saved.update(keys)
                case ["deleted", key]:
                    self.deleted.add(key)
                case ["updated", key, revision]:
                    self.revisions[key] = int(revision)
                case ["incremented", key]:
                    self.increments[key] += 1
                case ["failed", *_]:
                    self.failures.append(line)


def prepare(store: StorageBackend, *records: Heuristic) -> None:
    """Give a new store an index to mark changes for, and these records."""
    store.register_projection(PROJECTION, [Heuristic])
    store.save_many(records)


def check_acknowledged(store: StorageBackend, acknowledged: Acknowledged) -> None:
    """Nothing that was acknowledged is lost; something that was not may be there as well."""
    found = {record.id: record for record in store.find(Heuristic, EVERYWHERE)}
    assert acknowledged.saved - found.keys() == set()
    assert acknowledged.deleted & found.keys() == set()
    assert {key for key, revision in acknowledged.revisions.items() if revision_of(found[key]) < revision} == set()
    assert {key for key, n in acknowledged.increments.items() if found[key].occurrence_count < n} == set()


def check_agreement(store: StorageBackend) -> None:
    """Every record is whole, with its vector, its batch, its history, its audit events and its marks."""
    found = {record.id: record for record in store.find(Heuristic, EVERYWHERE)}
    deleted = _check_history(store, found)
    writes = {key: writes_of(record) for key, record in found.items()} | dict.fromkeys(deleted, 2)
    for record in found.values():
        content = content_of(record.id, revision_of(record))
        assert {name: getattr(record, name) for name in content} == content
        assert record.success_count == record.occurrence_count
        assert set(record.metadata["batch"]) <= found.keys()
    assert {mark.record_id: mark.generation for mark in store.pending(PROJECTION)} == writes
    assert _audit_events(store) == writes


def check_found(store: StorageBackend) -> None:
    """Every record is found by its vector and by its words, and no longer by words it has lost."""
    with store.snapshot() as tx:
        for record in tx.find(Heuristic, EVERYWHERE):
            key, revision = record.id, revision_of(record)
            own = Scope(agent=record.agent)
            [nearest] = tx.search_vector(Heuristic, vector_of(key, revision), own, limit=1)
            assert (nearest.record.id, round(nearest.score, 5)) == (key, 1.0)
            words = (word_of(key, known) for known in range(revision + 1))
            hits = [[hit.record.id for hit in tx.search_text(Heuristic, word, own)] for word in words]
            assert hits == [*([] for _ in range(revision)), [key]]


def check_sqlite_file(path: Path) -> None:
    """The file is sound, and its vectors and full text are those of its heuristics, no more and no fewer."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.execute("INSERT INTO heuristics_fts (heuristics_fts) VALUES ('integrity-check')")
        connection.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab('main', 'heuristics_fts', 'instance')")
        indexed = set(connection.execute("SELECT doc, term FROM temp.words WHERE col <> 'scope'"))
        owned = {doc for (doc,) in connection.execute("SELECT doc FROM temp.words WHERE col = 'scope'")}
        heuristics = connection.execute("SELECT seq, id, condition, strategy FROM heuristics").fetchall()
        vectors = connection.execute("SELECT memory_id FROM embeddings").fetchall()
    assert indexed == {(seq, term) for seq, _, *texts in heuristics for text in texts for term in terms(text)}
    assert owned == {seq for seq, *_ in heuristics}
    assert sorted(key for (key,) in vectors) == sorted(key for _, key, *_ in heuristics)


def check_postgres_database(dsn: str) -> None:
    """Tables and indexes are sound, and the vectors are those of the heuristics, no more and no fewer."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS amcheck")
        connection.execute(
            "SELECT bt_index_check(i.indexrelid, true) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
            "JOIN pg_am a ON a.oid = c.relam WHERE a.amname = 'btree' AND c.relkind = 'i'"
        )
        torn = connection.execute(
            "SELECT relname, v.msg FROM pg_class, verify_heapam(oid) v "
            "WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        ).fetchall()
        heuristics = connection.execute("SELECT id FROM alma_heuristics ORDER BY id").fetchall()
        vectors = connection.execute("SELECT memory_id FROM alma_embeddings ORDER BY memory_id").fetchall()
    assert torn == []
    assert vectors == heuristics


def _check_history(store: StorageBackend, found: dict[str, Heuristic]) -> set[str]:
    """No version is missing and the last of a record that is gone says so; returns the ids of those."""
    numbers: dict[str, list[int]] = defaultdict(list)
    ended: set[str] = set()
    for version in store.find(MemoryVersion, EVERYWHERE):
        numbers[version.memory_id].append(version.version_number)
        if version.change_type is ChangeType.DELETED:
            ended.add(version.memory_id)
    expected = {key: writes_of(record) for key, record in found.items()} | dict.fromkeys(ended, 2)
    assert {key: sorted(of_one) for key, of_one in numbers.items()} == {
        key: list(range(1, last + 1)) for key, last in expected.items()
    }
    assert ended & found.keys() == set()
    return ended


def _audit_events(store: StorageBackend) -> Counter[str]:
    """How many audit events there are of each record; their chains are whole."""
    assert AuditTrail(store).verify().findings == ()
    events = (event for event in store.find(AuditEvent, EVERYWHERE) if event.resource_type == Heuristic.spec.kind)
    return Counter(key for event in events for key in (event.resource_ids or [event.resource_id]))

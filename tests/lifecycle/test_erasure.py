"""What is deleted for good leaves its text nowhere: not in rows, not in files, not in exports and backups."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from alma import ALMA
from alma.clock import now
from alma.model.governance import Attribution, AuditEvent
from alma.model.memory import Memory, MemoryRelationship, MemoryVersion
from alma.model.query import Order
from alma.model.scope import Scope
from alma.storage.audit import digest_before_erasure
from alma.transfer import backup_store, export_store
from tests.faces.rest import client_of, memory_at, place_of, served

SHOP = Scope(project_id="shop")
ANA = Attribution(user_id="ana", reason="tidying")
# No part of it occurs anywhere else.
SECRET = "Wolframina Quexley keeps her passport in the mauve strongbox"
REWORDED = "Wolframina Quexley moved her passport to the vermilion strongbox"
WORDS = ("Wolframina", "Quexley", "mauve", "vermilion", "strongbox")


@pytest.fixture
def place(request: pytest.FixtureRequest) -> str:
    return place_of(request)


on_every_store = pytest.mark.parametrize("place", ["sqlite", "postgresql", "files"], indirect=True)


@pytest.fixture
def alma(place: str) -> Iterator[ALMA]:
    with memory_at(place) as memory:
        yield memory


def told(alma: ALMA) -> Memory:
    """A memory that was changed, related, refused a change, archived, restored and answered for."""
    other = alma.journal.create("The office closes at six", by=ANA, project_id="shop")
    made = alma.journal.create(SECRET, by=ANA, project_id="shop", title="Quexley's passport, the whole story")
    alma.journal.update(made.id, {"content": REWORDED}, SHOP, by=ANA, reason="the strongbox is vermilion now")
    alma.storage.save_many(
        [
            MemoryRelationship(
                id="r", from_memory_id=other.id, to_memory_id=made.id, relationship_type="relates_to", context=SECRET
            )
        ]
    )
    alma.storage.write(lambda tx: tx.delete(MemoryRelationship, ["r"], Scope.everywhere()))
    with pytest.raises(Exception):  # noqa: B017, PT011 - what kind of refusal it is does not matter here
        alma.journal.update(made.id, {"title": "Quexley's strongbox", "importance_score": 7}, SHOP, by=ANA)
    with pytest.raises(Exception):  # noqa: B017, PT011
        alma.journal.create("x", by=ANA, title="Quexley's passport, the whole story", importance_score=7)
    alma.archive.restore(alma.archive.put(Memory, made.id, SHOP, by=ANA, reason="Quexley left"), SHOP)
    alma.journal.search("Who keeps a passport?", SHOP, by=ANA)
    alma.retrieve("Where is the passport of Quexley?", agent="helena")
    return made


def rows_with(place: str, words: tuple[str, ...]) -> list[str]:
    """The tables of a PostgreSQL store in which a row says one of these words."""
    found = []
    with psycopg.connect(place) as connection:
        names = connection.execute(
            "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.relkind IN ('r', 'm') AND (n.nspname = 'public' OR c.relname = 'pg_statistic')"
        ).fetchall()
        for (name,) in names:
            query = sql.SQL("SELECT count(*) FROM {} AS t WHERE t::text ~* %s").format(sql.SQL(name))
            if connection.execute(query, ("|".join(words),)).fetchone() != (0,):
                found.append(name)
    return found


def files_with(folder: Path, words: tuple[str, ...]) -> list[str]:
    pattern = re.compile("|".join(words).encode(), re.IGNORECASE)
    return [str(path) for path in folder.rglob("*") if path.is_file() and pattern.search(path.read_bytes())]


def assert_nothing_left(alma: ALMA, place: str, folder: Path) -> None:
    export_store(alma.storage, folder / "export.jsonl")
    backup_store(alma.storage, folder / "backup")
    assert files_with(folder, WORDS) == []
    if place.startswith("postgres"):
        assert rows_with(place, WORDS) == []
    assert alma.audit.verify(), alma.audit.verify().findings


@on_every_store
def test_what_is_deleted_for_good_leaves_its_text_nowhere(alma: ALMA, place: str, tmp_path: Path) -> None:
    made = told(alma)
    assert alma.audit.verify()
    if place.startswith("postgres"):
        # The server notes common words, for the plans of its queries.
        with psycopg.connect(place) as connection:
            connection.execute("ANALYZE")

    assert alma.journal.delete(made.id, SHOP, by=ANA, hard=True)

    assert_nothing_left(alma, place, tmp_path)


@on_every_store
def test_many_memories_are_deleted_for_good_as_one_is(alma: ALMA, place: str, tmp_path: Path) -> None:
    made = told(alma)

    gone = alma.journal.bulk_delete(SHOP, older_than=now(), by=ANA, hard=True)

    assert made.id in gone.ids
    assert_nothing_left(alma, place, tmp_path)


@on_every_store
def test_a_purge_takes_what_was_softly_deleted(alma: ALMA, place: str, tmp_path: Path) -> None:
    made = told(alma)
    alma.journal.delete(made.id, SHOP, by=ANA, reason="Quexley asked for it")

    assert alma.purge(retention_days=30) == 0
    assert alma.purge(retention_days=0) == 1

    assert alma.journal.get(made.id, SHOP, by=ANA, include_deleted=True) is None
    assert_nothing_left(alma, place, tmp_path)


@on_every_store
def test_a_purge_takes_what_was_archived(alma: ALMA, place: str, tmp_path: Path) -> None:
    made = told(alma)
    alma.archive.put(Memory, made.id, SHOP, by=ANA, reason="Quexley left")

    assert alma.purge(retention_days=0) == 1

    assert_nothing_left(alma, place, tmp_path)


@on_every_store
def test_the_audit_log_keeps_that_it_was_deleted_by_whom_and_when(alma: ALMA) -> None:
    made = told(alma)
    before = alma.audit.find(Scope.everywhere(), resource_id=made.id, limit=100)

    alma.journal.delete(made.id, SHOP, by=Attribution(user_id="ben", reason="asked to"), hard=True)

    after = alma.audit.find(Scope.everywhere(), resource_id=made.id, limit=100)
    deleted = after.events[0]
    assert (deleted.action, deleted.user_id, deleted.details_json) == ("delete", "ben", {"reason": "asked to"})
    kept = [(event.id, event.action, event.user_id, event.created_at) for event in after.events]
    assert kept[-len(before) :] == [(e.id, e.action, e.user_id, e.created_at) for e in before]
    whose, last = [row for row in alma.storage.find(MemoryVersion, Scope.everywhere()) if row.memory_id == made.id]
    assert (last.change_type, last.created_by, last.content) == ("deleted", "ben", None)
    assert (whose.content, (whose.record_json or {})["project_id"]) == ("(erased)", "shop")
    assert alma.storage.get(Memory, made.id, SHOP, as_of=last.created_at - timedelta(microseconds=1)) is None
    assert alma.storage.get(Memory, made.id, SHOP, as_of=last.created_at) is None


def test_a_change_of_the_log_shows_after_an_erasure(alma: ALMA, place: str) -> None:
    made = told(alma)
    alma.journal.delete(made.id, SHOP, by=ANA, hard=True)
    with sqlite3.connect(place) as connection:
        connection.execute(
            "UPDATE audit_log SET user_id = 'eve' WHERE resource_id = ? AND action = 'update'", (made.id,)
        )
    connection.close()

    assert not alma.audit.verify()


def as_written_by_an_older_version(place: str, alma: ALMA) -> None:
    """Give every event the hash that it got when hashes covered the details themselves."""
    before = ""
    with sqlite3.connect(place) as connection:
        for event in alma.storage.find(AuditEvent, Scope.everywhere(), order=(Order("id"),), limit=None):
            before = digest_before_erasure(event, before)
            connection.execute("UPDATE audit_log SET chain_hash = ? WHERE id = ?", (before, event.id))
        connection.execute("UPDATE audit_chains SET hash = ?", (before,))
    connection.close()


def test_the_log_of_an_older_version_verifies_after_an_erasure(alma: ALMA, place: str, tmp_path: Path) -> None:
    made = told(alma)
    as_written_by_an_older_version(place, alma)
    assert alma.audit.verify()

    alma.journal.delete(made.id, SHOP, by=ANA, hard=True)

    assert_nothing_left(alma, place, tmp_path)
    with sqlite3.connect(place) as connection:
        connection.execute(
            "UPDATE audit_log SET user_id = 'eve' WHERE resource_id = ? AND action = 'update'", (made.id,)
        )
    connection.close()
    assert not alma.audit.verify()


def test_a_kept_answer_does_not_repeat_what_was_deleted_for_good(alma: ALMA, place: str, tmp_path: Path) -> None:
    with served(alma) as address, client_of(address) as client:
        said = {"content": SECRET}
        created = client.post("/v1/memories", json=said, headers={"Idempotency-Key": "k"}).json()
        memory_id = created["memory"]["id"]
        gone = client.delete(f"/v1/memories/{memory_id}", params={"hard": "true"})
        assert gone.status_code == 200, gone.text
        assert files_with(tmp_path, WORDS) == []

"""Maintenance: what a running service does from time to time, and `alma maintain` at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from alma import ALMA
from alma.clock import now
from alma.errors import ConfigurationError, NotFoundError, StorageError, TransferError, ValidationError
from alma.maintenance import Maintenance, MaintenancePolicy, Task
from alma.memory.audit import AuditTrail
from alma.model.governance import AuditEvent
from alma.model.learning import Outcome
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.operations.access import Caller
from alma.operations.upkeep import maintain
from alma.storage.base import Transaction
from tests.faces.rest import memory_at, place_of, served
from tests.lifecycle.test_expiry import wait_until
from tests.support.command_line import run

EVERYWHERE = Scope.everywhere()
OLD = now() - timedelta(days=900)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest) -> str:
    return place_of(request)


@pytest.fixture
def alma(place: str) -> Iterator[ALMA]:
    with memory_at(place) as memory:
        yield memory


def with_policy(alma: ALMA, **changes: object) -> Maintenance:
    policy = replace(MaintenancePolicy(), **changes)  # type: ignore[arg-type]
    return Maintenance(alma.storage, alma.archive, policy, lambda: ["qdrant"])


def fill(alma: ALMA) -> None:
    """Something for each task."""
    old: dict[str, Any] = {"project_id": "shop", "created_at": OLD, "updated_at": OLD, "last_accessed_at": OLD}
    alma.storage.save_many(
        [
            Memory(id="over", content="a", project_id="shop", expires_at=OLD),
            Memory(id="faded", content="b", importance_score=0.1, **old),
            Memory(id="deleted", content="c", is_active=False, importance_score=0.95, **old),
            Memory(id="young", content="d", project_id="shop"),
            Outcome(
                id="old",
                agent="a",
                project_id="shop",
                task_description="t",
                strategy_used="s",
                success=True,
                timestamp=OLD,
            ),
        ]
    )


def test_every_task_does_its_work_and_a_dry_run_only_counts_it(alma: ALMA) -> None:
    fill(alma)
    counted = {each.task: each.count for each in alma.maintenance.run(dry_run=True) if each.is_on}
    assert len(alma.storage.find(Memory, EVERYWHERE)) == 4
    done = {each.task: each.count for each in alma.maintenance.run() if each.is_on}
    assert [memory.id for memory in alma.storage.find(Memory, EVERYWHERE)] == ["young"]
    assert alma.storage.find(Outcome, EVERYWHERE) == []
    assert done[Task.EXPIRE] == counted[Task.EXPIRE] == 1
    assert set(done) == {"expire", "decay", "cleanup", "benefit", "retention", "outbox"}
    assert all(each.count == 0 for each in alma.maintenance.run())
    alma.restore("faded")
    assert alma.storage.get(Memory, "faded", EVERYWHERE) is not None


def test_the_setting_switches_decay_off(alma: ALMA) -> None:
    fill(alma)
    alma.settings.set("memory_decay_enabled", False)
    alma.maintenance.run([Task.DECAY])
    assert alma.storage.get(Memory, "faded", EVERYWHERE) is not None


def test_marks_that_nothing_reads_are_dropped(alma: ALMA, monkeypatch: pytest.MonkeyPatch) -> None:
    for reader in ("redis", "qdrant"):
        alma.storage.register_projection(reader, [Memory])
    alma.storage.save(Memory(content="x", project_id="shop"))
    assert with_policy(alma).run([Task.OUTBOX])[0].count == 0
    later = now() + timedelta(days=31)
    monkeypatch.setattr("alma.clock.now", lambda: later)
    assert with_policy(alma).run([Task.OUTBOX])[0].count == 1
    assert list(alma.storage.projections()) == ["qdrant"]


# ---------------------------------------------------------------------- audit retention


def test_old_audit_events_are_deleted_and_the_rest_still_verifies(alma: ALMA, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        alma.storage.save(Memory(content=f"{number}", project_id="shop"))
    noted = alma.audit.heads()
    later = now() + timedelta(days=40)
    monkeypatch.setattr("alma.clock.now", lambda: later)
    alma.storage.save(Memory(id="new", content="new", project_id="shop"))
    before = alma.storage.count(AuditEvent, EVERYWHERE)
    work = with_policy(alma, audit_days=30.0)
    assert work.run([Task.AUDIT], dry_run=True)[0].count == 20
    assert work.run([Task.AUDIT])[0].count == 20
    assert alma.storage.count(AuditEvent, EVERYWHERE) == before - 20 + 1
    assert alma.audit.verify(noted).ok
    much_later = later + timedelta(days=40)
    monkeypatch.setattr("alma.clock.now", lambda: much_later)
    alma.storage.save(Memory(content="newest", project_id="shop"))
    assert work.run([Task.AUDIT])[0].count == 2
    found = alma.audit.verify()
    assert found.ok, found.findings


def test_a_retention_does_not_hide_what_was_removed_otherwise(alma: ALMA, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        alma.storage.save(Memory(content=f"{number}", project_id="shop"))
    later = now() + timedelta(days=40)
    monkeypatch.setattr("alma.clock.now", lambda: later)
    for number in range(4):
        alma.storage.save(Memory(content=f"new {number}", project_id="shop"))
    AuditTrail(alma.storage).delete_before(later - timedelta(days=1))
    events = alma.storage.find(AuditEvent, EVERYWHERE)
    first = min(events, key=lambda each: each.id or 0)
    alma.storage.write(lambda tx: tx.delete_events([first]))
    assert [each.kind for each in alma.audit.verify().findings] == ["removed"]


def test_the_record_of_a_retention_must_be_intact(alma: ALMA, monkeypatch: pytest.MonkeyPatch) -> None:
    alma.storage.save(Memory(content="x", project_id="shop"))
    later = now() + timedelta(days=40)
    monkeypatch.setattr("alma.clock.now", lambda: later)
    AuditTrail(alma.storage).delete_before(later - timedelta(days=1))
    (record,) = [each for each in alma.storage.find(AuditEvent, EVERYWHERE) if each.action == "retention"]
    forged = record.replace(details_json={**(record.details_json or {}), "deleted": 0})

    def forge(tx: Transaction) -> None:
        with tx.writing():
            tx.backend.replace(AuditEvent.spec, [forged], [record])

    alma.storage.write(forge)
    assert not alma.audit.verify().ok


# ---------------------------------------------------------------------- cold storage


@pytest.fixture
def cold(alma: ALMA, tmp_path: Path) -> Maintenance:
    """Two ended sessions, one of them long ago, and the folder of cold storage."""
    for name in ("last year", "this week"):
        session = alma.sessions.create(project_id="shop", name=name, session_id=name)
        alma.storage.save_many(
            [
                Memory(
                    id=f"{name} {number}",
                    content=f"{name} said {number}",
                    project_id="shop",
                    session_id=session.id,
                    tags=("talk",),
                    embedding=Vector([float(number + 1)] + [0.0] * (alma.embedder.dimension - 1)),
                )
                for number in range(3)
            ]
        )
        alma.sessions.end(session.id, EVERYWHERE)
    alma.relationships.relate("last year 0", "this week 0", "builds_on", EVERYWHERE)
    held = alma.sessions.require("last year", EVERYWHERE)
    alma.storage.save(held.replace(ended_at=OLD))
    return with_policy(alma, session_days=365.0, cold_storage_dir=tmp_path / "cold")


def test_a_task_that_fails_does_not_keep_the_others(alma: ALMA, cold: Maintenance, tmp_path: Path) -> None:
    fill(alma)
    (tmp_path / "cold").write_text("This is not a folder.")
    results = {each.task: each for each in cold.run()}
    assert "cold storage cannot be made: Not a directory" in str(results[Task.SESSIONS].error)
    assert results[Task.CLEANUP].count >= 1
    assert alma.storage.count(Memory, Scope(session_id="last year")) == 3


def test_an_old_session_moves_to_a_file_and_back_without_loss(alma: ALMA, cold: Maintenance) -> None:
    store = cold.cold_storage
    assert store is not None
    before = {each.id: each for each in alma.storage.find(Memory, Scope(session_id="last year"))}
    vectors = alma.storage.vectors_of(Memory, before)
    assert len(vectors) == 3
    assert cold.run([Task.SESSIONS], dry_run=True)[0].count == 1
    assert cold.run([Task.SESSIONS])[0].count == 1
    assert cold.run([Task.SESSIONS])[0].count == 0
    (stored,) = store.stored()
    assert stored.file.read_bytes()[:2] == b"\x1f\x8b"
    assert stored.memories == 3
    assert alma.sessions.require("last year", EVERYWHERE).is_archived
    assert {each.session_id for each in alma.storage.find(Memory, EVERYWHERE)} == {"this week"}
    assert alma.archive.count(EVERYWHERE) == 0
    store.restore("last year")
    assert {each.id: each for each in alma.storage.find(Memory, Scope(session_id="last year"))} == before
    assert alma.storage.vectors_of(Memory, before) == vectors
    (near,) = alma.relationships.neighbours("last year 0", EVERYWHERE)
    assert near.memory.id == "this week 0"
    assert store.stored() == []


def test_a_damaged_or_missing_file_is_a_sentence_and_changes_nothing(alma: ALMA, cold: Maintenance) -> None:
    store = cold.cold_storage
    assert store is not None
    stored = store.store("last year")
    whole = stored.file.read_bytes()
    stored.file.write_bytes(whole[:-20])
    with pytest.raises((TransferError, StorageError), match="jsonl"):
        store.restore("last year")
    stored.file.unlink()
    with pytest.raises(StorageError, match="is missing: put it back"):
        store.restore("last year")
    assert alma.storage.find(Memory, Scope(session_id="last year")) == []
    stored.file.write_bytes(whole)
    assert store.restore("last year").memories == 3
    with pytest.raises(NotFoundError):
        store.restore("this week")


def test_an_interrupted_move_and_restore_are_continued(
    alma: ALMA, cold: Maintenance, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = cold.cold_storage
    assert store is not None

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(type(store), "_write", killed)
        with pytest.raises(KeyboardInterrupt):
            store.store("last year")
    assert store.store("last year").memories == 3
    with monkeypatch.context() as patched:
        patched.setattr(type(store), "_note", killed)
        with pytest.raises(KeyboardInterrupt):
            store.restore("last year")
    assert store.restore("last year").memories == 3
    assert len(alma.storage.find(Memory, EVERYWHERE)) == 6


# ---------------------------------------------------------------------- in a service, by hand, and configured


def test_a_service_runs_it_and_says_when(place: str) -> None:
    with memory_at(place) as alma:
        fill(alma)
        with served(alma):
            wait_until(lambda: alma.maintenance.last_run is not None)
            assert alma.maintenance.is_running
        last = alma.maintenance.last_run
        assert last is not None
        assert last.error is None
        assert last.counts["cleanup"] >= 1
        assert alma.maintenance.next_run == last.started_at + timedelta(days=1)
    with memory_at(place, maintenance={"enabled": False}) as alma, served(alma):
        assert not alma.maintenance.is_running


def test_the_command_says_what_it_did(tmp_path: Path) -> None:
    place = str(tmp_path / "alma.db")
    with memory_at(place) as alma:
        fill(alma)
    assert "expire     would change 1" in run("maintain", "--dry-run", "--store", place).stdout
    said = run("maintain", "--store", place).stdout.splitlines()
    assert "expire     changed 1" in said
    assert "audit      off" in said
    shown = json.loads(run("maintenance", "status", "--store", place, "--json").stdout)
    assert shown["tasks"] == ["expire", "decay", "cleanup", "benefit", "retention", "outbox"]


def test_only_callers_without_limits_may_run_it(alma: ALMA) -> None:
    assert maintain.perform(Caller(alma), {"tasks": ["expire"]}).results[0].task == "expire"


def test_bad_values_are_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="audit_days must be a number of days above 0"):
        MaintenancePolicy(audit_days=0)
    with pytest.raises(ConfigurationError, match=r"maintenance\.session_days"):
        memory_at(tmp_path / "alma.db", maintenance={"session_days": -1})
    with memory_at(tmp_path / "alma.db") as alma, pytest.raises(ValidationError, match="must be one of expire, decay"):
        alma.maintenance.run(["tidy"])

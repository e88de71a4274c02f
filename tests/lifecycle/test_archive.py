"""The archive: out of sight, back as it was, or gone for good."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from alma.errors import (
    AlreadyExistsError,
    ConflictError,
    NotFoundError,
    ScopeViolationError,
    UnsupportedOperation,
    ValidationError,
)
from alma.memory.archive import ARCHIVABLE, Archive
from alma.model.governance import ArchiveCause, ArchivedRecord, Attribution, AuditEvent
from alma.model.kinds import KINDS
from alma.model.learning import Heuristic, Outcome
from alma.model.memory import ChangeType, Memory, MemoryRelationship, MemoryVersion
from alma.model.query import Compare
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.model.workspace import Session, SessionMemory
from alma.storage.base import StorageBackend
from alma.storage.file_based import FileBasedStorage
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing.builders import (
    a_heuristic,
    a_memory,
    a_pattern,
    a_place_in,
    a_preference,
    a_relationship,
    a_session,
    an_anti_pattern,
    an_outcome,
    some_knowledge,
)
from alma.vectors.mapped import MappedIndex
from alma.vectors.mapped.state import Tuning
from tests.lifecycle.conftest import Opener
from tests.support.together import together

EVERYWHERE = Scope.everywhere()
SHOP = Scope(project_id="shop")
AT_ONCE = timedelta(0)
VECTOR = [0.5, 0.25, -0.125, 0.75]
BUILDERS = (a_heuristic, an_outcome, a_preference, some_knowledge, an_anti_pattern, a_memory, a_pattern)


def everything_about(store: StorageBackend, cls: type[Record], record_id: str) -> object:
    with store.snapshot() as tx:
        return tx.get(cls, record_id, EVERYWHERE), tx.vectors_of(cls, [record_id])


@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
def test_a_memory_of_any_kind_comes_back_exactly_as_it_was(any_store: StorageBackend, build: object) -> None:
    record: Record = build(embedding=VECTOR)  # type: ignore[operator]
    cls, key = type(record), str(record.key)
    any_store.save(record)
    any_store.put_passages(cls, {key: [VECTOR, [1, 0, 0, 0]]})
    any_store.put_vectors(cls, {key: [1.0, 2.0]}, "another-model")
    any_store.put_passages(cls, {key: [[3.0, 4.0]]}, "another-model")
    before = everything_about(any_store, cls, key)
    archive = Archive(any_store)
    (archive_id,) = archive.put(cls, [key], EVERYWHERE)
    assert everything_about(any_store, cls, key) == (None, [])
    (restored,) = archive.restore(archive_id, EVERYWHERE)
    assert restored == record
    assert everything_about(any_store, cls, key) == before
    assert archive.find(EVERYWHERE) == []


def test_every_kind_of_memory_can_be_archived() -> None:
    assert {type(build()) for build in BUILDERS} == set(ARCHIVABLE)


def test_every_field_survives_the_archive(any_store: StorageBackend) -> None:
    deep: object = "the deepest that a record may hold"
    for _ in range(62):
        deep = {"deeper": deep}
    memory = a_memory(
        content="línea\n“quoted” 😀 " * 50,
        content_json={"a": [1, 2.5, None, True, {"b": "c"}], "big": 2**70},
        context_json={"deep": deep},
        tags=["b", "a"],
        priority=7,
        expires_at=datetime(2031, 5, 6, 7, 8, 9, 123456, tzinfo=UTC),
        event_time=datetime(1999, 1, 1, tzinfo=UTC),
        session_id="s",
        is_private=True,
        is_archived=True,
    )
    any_store.save(memory)
    archive = Archive(any_store)
    archive.put(Memory, memory.id, EVERYWHERE)
    assert archive.record(archive.find(EVERYWHERE)[0]) == memory
    assert archive.restore(memory.id, EVERYWHERE) == [memory]
    assert any_store.get(Memory, memory.id, EVERYWHERE) == memory


def test_no_reader_meets_what_is_archived(any_store: StorageBackend) -> None:
    record = a_heuristic(strategy="juggle seven oranges", embedding=VECTOR)
    any_store.save(record)
    Archive(any_store).put(Heuristic, [record.id], SHOP)
    assert any_store.find(Heuristic, EVERYWHERE) == []
    assert any_store.search_text(Heuristic, "oranges", EVERYWHERE) == []
    assert any_store.search_vector(Heuristic, VECTOR, EVERYWHERE) == []
    assert any_store.get_heuristics("shop", embedding=VECTOR) == []
    assert any_store.get_stats("shop")["total_count"] == 0
    Archive(any_store).restore(record.id, SHOP)
    assert [hit.record for hit in any_store.search_text(Heuristic, "oranges", SHOP)] == [record]
    assert [hit.record for hit in any_store.search_vector(Heuristic, VECTOR, SHOP)] == [record]


def test_the_archive_says_what_whose_why_who_and_when(any_store: StorageBackend) -> None:
    record = a_memory(session_id="s1", source_agent="helena")
    any_store.save(record)
    before = datetime.now(UTC)
    (archive_id,) = Archive(any_store).put(
        Memory, [record.id], SHOP, "forgotten", "not used for 90 days", Attribution(user_id="ana")
    )
    archived = Archive(any_store).get(archive_id, SHOP)
    assert archived is not None
    assert (archived.kind, archived.record_id) == ("memory", record.id)
    assert (archived.cause, archived.reason) == (ArchiveCause.FORGOTTEN, "not used for 90 days")
    assert (archived.user_id, archived.project_id, archived.session_id) == ("ana", "shop", "s1")
    assert (archived.agent, archived.archived_by) == ("helena", "ana")
    assert before <= archived.archived_at <= datetime.now(UTC)


def test_relations_and_places_go_and_come_with_their_memory(any_store: StorageBackend) -> None:
    one, two, session = a_memory(), a_memory(), a_session()
    relation, place = a_relationship(one, two), a_place_in(session, one)
    any_store.save_many([one, two, session])
    any_store.save_many([relation, place])
    archive = Archive(any_store)
    archive.put(Memory, one.id, EVERYWHERE)
    assert any_store.count(MemoryRelationship, EVERYWHERE) == any_store.count(SessionMemory, EVERYWHERE) == 0
    archive.restore(one.id, EVERYWHERE)
    assert any_store.find(MemoryRelationship, EVERYWHERE) == [relation]
    assert any_store.find(SessionMemory, EVERYWHERE) == [place]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("together_", [True, False])
def test_a_relation_comes_back_when_both_of_its_ends_are_back(
    store: StorageBackend, first: int, together_: bool
) -> None:
    pair = a_memory(), a_memory()
    relation = a_relationship(*pair)
    store.save_many(pair)
    store.save(relation)
    archive = Archive(store)
    for ids in [[pair[0].id, pair[1].id]] if together_ else [[pair[0].id], [pair[1].id]]:
        archive.put(Memory, ids, EVERYWHERE)
    archive.restore(pair[first].id, EVERYWHERE)
    assert store.find(MemoryRelationship, EVERYWHERE) == []
    archive.restore(pair[1 - first].id, EVERYWHERE)
    assert store.find(MemoryRelationship, EVERYWHERE) == [relation]


def test_a_memory_comes_back_without_its_place_in_a_session_that_is_gone(store: StorageBackend) -> None:
    memory, session = a_memory(), a_session()
    store.save_many([memory, session])
    store.save(a_place_in(session, memory))
    archive = Archive(store)
    archive.put(Memory, memory.id, EVERYWHERE)
    store.delete(Session, session.id, EVERYWHERE)
    assert archive.restore(memory.id, EVERYWHERE) == [memory]
    assert store.count(SessionMemory, EVERYWHERE) == 0


def test_nothing_is_restored_over_a_record_that_exists_again(any_store: StorageBackend) -> None:
    old, new = a_heuristic(id="h", strategy="old"), a_heuristic(id="h", strategy="new")
    any_store.save(old)
    archive = Archive(any_store)
    archive.put(Heuristic, "h", EVERYWHERE)
    any_store.save(new)
    with pytest.raises(AlreadyExistsError, match=r"a heuristic with the id 'h' exists: delete or archive"):
        archive.restore("h", EVERYWHERE)
    assert any_store.get(Heuristic, "h", EVERYWHERE) == new
    assert len(archive.find(EVERYWHERE)) == 1
    archive.put(Heuristic, "h", EVERYWHERE)
    assert archive.restore("h", EVERYWHERE) == [new]


def test_restoring_many_is_all_or_nothing(store: StorageBackend) -> None:
    records = [a_heuristic(id=str(i)) for i in range(3)]
    store.save_many(records)
    archive = Archive(store)
    archive.put(Heuristic, ["0", "1", "2"], EVERYWHERE)
    store.save(records[2])
    with pytest.raises(ConflictError):
        archive.restore(["0", "1", "2"], EVERYWHERE)
    assert store.count(Heuristic, EVERYWHERE) == 1
    assert archive.count(EVERYWHERE) == 3


def test_a_scope_neither_puts_away_nor_sees_nor_restores_nor_purges_what_is_outside(any_store: StorageBackend) -> None:
    record = a_heuristic(agent="victor")
    any_store.save(record)
    archive = Archive(any_store)
    helena = Scope(project_id="shop", agent="helena")
    assert archive.put(Heuristic, record.id, helena) == []
    (archive_id,) = archive.put(Heuristic, record.id, SHOP)
    assert archive.find(helena) == []
    assert archive.get(archive_id, helena) is None
    with pytest.raises(NotFoundError):
        archive.restore(archive_id, helena)
    assert archive.purge(AT_ONCE, helena) == 0
    assert [each.id for each in archive.find(Scope(project_id="shop", agent="victor"))] == [archive_id]


def test_what_is_archived_can_be_listed_by_kind_cause_record_and_time(store: StorageBackend) -> None:
    records = [a_heuristic(id="h"), an_outcome(id="o"), a_memory(id="m")]
    store.save_many(records)
    archive = Archive(store)
    archive.put(Heuristic, "h", SHOP, "forgotten")
    archive.put(Outcome, "o", SHOP, "merged")
    archive.put(Memory, "m", SHOP)

    def found(**filters: object) -> list[str]:
        return [each.record_id for each in archive.find(SHOP, **filters)]  # type: ignore[arg-type]

    assert found() == ["m", "o", "h"]
    assert found(cls=Heuristic) == ["h"]
    assert found(cause="merged") == ["o"]
    assert found(record_ids=["m", "h"]) == ["m", "h"]
    assert found(limit=1) == ["m"]
    middle = archive.find(SHOP)[1].archived_at
    assert found(since=middle) == ["m", "o"]
    assert found(until=middle) == ["o", "h"]
    assert archive.count(SHOP, cause="merged") == 1


def test_a_record_id_that_two_kinds_share_must_be_named_with_its_kind(store: StorageBackend) -> None:
    store.save_many([a_heuristic(id="x"), an_outcome(id="x")])
    archive = Archive(store)
    archive.put(Heuristic, "x", SHOP)
    archive.put(Outcome, "x", SHOP)
    with pytest.raises(ValidationError, match="heuristic or outcome"):
        archive.restore("x", SHOP)
    assert isinstance(archive.restore("x", SHOP, cls=Outcome)[0], Outcome)


def test_history_tells_of_the_way_into_the_archive_and_back(any_store: StorageBackend) -> None:
    record = a_heuristic()
    any_store.save(record)
    archive = Archive(any_store)
    archive.put(Heuristic, record.id, SHOP, "forgotten", "too old")
    between = datetime.now(UTC)
    archive.restore(record.id, SHOP, Attribution(user_id="ana"))
    rows = any_store.history(Heuristic, record.id, SHOP)
    assert [row.change_type for row in rows] == [ChangeType.CREATED, ChangeType.DELETED, ChangeType.RESTORED]
    assert [row.change_reason for row in rows] == [None, "too old", "restored from the archive"]
    assert any_store.get(Heuristic, record.id, SHOP, as_of=between) is None


def test_every_act_is_audited_under_the_kind_of_the_memory(any_store: StorageBackend) -> None:
    records = [a_heuristic(id="a"), a_heuristic(id="b")]
    any_store.save_many(records)
    archive, ana = Archive(any_store), Attribution(user_id="ana")
    archive.put(Heuristic, ["a", "b"], SHOP, "forgotten", "stale", ana)
    archive.restore("a", SHOP, ana)
    archive.purge(AT_ONCE, SHOP, ana)
    archive.add(an_outcome(id="o"), "quarantined", "suspicious", ana)
    events = any_store.find(AuditEvent, EVERYWHERE, Compare("user_id", "eq", "ana"))
    assert [(e.action, e.resource_type, e.resource_id) for e in events] == [
        ("archive", "heuristic", "*"),
        ("restore", "heuristic", "a"),
        ("erase", "audit_event", "*"),
        ("purge", "heuristic", "b"),
        ("quarantine", "outcome", "o"),
    ]
    # Reasons of what was purged may repeat its text.
    assert events[0].details_json is not None
    assert events[0].details_json.keys() == {"erased"}


def test_purge_deletes_only_what_was_archived_before_the_window(any_store: StorageBackend) -> None:
    old, young = a_heuristic(id="old"), a_heuristic(id="young")
    any_store.save_many([old, young])
    archive = Archive(any_store)
    archive.put(Heuristic, "old", SHOP)
    (row,) = archive.find(SHOP)
    any_store.save(row.replace(archived_at=row.archived_at - timedelta(days=31)))
    archive.put(Heuristic, "young", SHOP)
    assert archive.purge(timedelta(days=30), SHOP) == 1
    assert [each.record_id for each in archive.find(SHOP)] == ["young"]
    with pytest.raises(NotFoundError):
        archive.restore("old", SHOP)
    assert archive.purge(timedelta(days=30), SHOP) == 0


def test_purge_erases_the_history_of_what_it_deletes_and_of_nothing_else(any_store: StorageBackend) -> None:
    any_store.save(a_heuristic(id="h", strategy="first life"))
    archive = Archive(any_store)
    archive.put(Heuristic, "h", SHOP)
    any_store.save(a_heuristic(id="h", strategy="second life"))
    any_store.save(a_heuristic(id="other"))
    archive.purge(AT_ONCE, SHOP)
    assert "first life" not in str(any_store.find(MemoryVersion, EVERYWHERE))
    assert [row.change_type for row in any_store.history(Heuristic, "h", SHOP)] == [ChangeType.RESTORED]
    assert len(any_store.history(Heuristic, "other", SHOP)) == 1


def test_purge_can_be_limited_to_a_kind_a_cause_and_ids(store: StorageBackend) -> None:
    store.save_many([a_heuristic(id="a"), a_heuristic(id="b"), an_outcome(id="c"), a_heuristic(id="d")])
    archive = Archive(store)
    archive.put(Heuristic, ["a"], SHOP, "merged")
    archive.put(Outcome, ["c"], SHOP, "forgotten")
    (b, d) = archive.put(Heuristic, ["b", "d"], SHOP, "forgotten")
    assert archive.purge(AT_ONCE, SHOP, cls=Outcome, scrub=False) == 1
    assert archive.purge(AT_ONCE, SHOP, cause="merged", scrub=False) == 1
    assert archive.purge(AT_ONCE, SHOP, ids=[d], scrub=False) == 1
    assert [each.id for each in archive.find(SHOP)] == [b]


def test_after_a_purge_no_byte_of_the_text_is_left_in_the_file(tmp_path: Path) -> None:
    with SQLiteStorage(tmp_path / "alma.db", embedding_dim=4) as store:
        secret, other = "zyxwvut plover", "a memory that stays"
        memory = a_memory(content=f"the word is {secret}", title=secret, tags=["zyxwvuttag"], embedding=VECTOR)
        kept = [a_memory(content=f"{other} {i}") for i in range(300)]
        store.save_many([*kept[:150], memory, *kept[150:]])
        store.update(Memory, memory.id, {"summary": f"about {secret}", "content_json": {"say": secret}}, EVERYWHERE)
        store.save(a_relationship(memory, kept[0], context=f"because of {secret}"))
        archive = Archive(store)
        archive.put(Memory, memory.id, EVERYWHERE, reason="over")
        assert any(b"zyxwvut" in path.read_bytes() for path in tmp_path.iterdir())
        assert archive.purge(AT_ONCE, EVERYWHERE) == 1
        for path in tmp_path.iterdir():
            assert b"zyxwvut" not in path.read_bytes(), path
            assert b"plover" not in path.read_bytes(), path
        assert len(store.search_text(Memory, other, EVERYWHERE, limit=400)) == 300


def test_after_a_purge_no_vector_is_left_in_the_files_of_the_index(tmp_path: Path) -> None:
    unit = [0.6, 0.0, 0.8, 0.0]
    with SQLiteStorage(tmp_path / "alma.db", embedding_dim=4) as store:
        memory = a_memory(embedding=unit)
        store.save_many([memory, *(a_memory(embedding=[i, 1, 2, 3]) for i in range(5))])
        index = MappedIndex(store, tmp_path / "vectors", tuning=Tuning(flush_rows=1))
        index.search(Memory, unit, EVERYWHERE)
        assert index.settle()
        # The index keeps 16-bit fixed-point numbers.
        written = struct.pack("<4h", *(round(each * 32_767) for each in unit))
        assert [path for path in tmp_path.rglob("*.vectors") if written in path.read_bytes()]
        archive = Archive(store, index)
        archive.put(Memory, memory.id, EVERYWHERE)
        archive.purge(AT_ONCE, EVERYWHERE)
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert not [
            path for path in files if written in path.read_bytes() or Vector(unit).to_bytes() in path.read_bytes()
        ]
        assert len(index.search(Memory, unit, EVERYWHERE)) == 5
        index.close()


def test_after_a_purge_no_byte_of_the_text_is_left_in_the_files(tmp_path: Path) -> None:
    with FileBasedStorage(tmp_path, embedding_dim=4) as store:
        store.save(a_heuristic(id="h", strategy="zyxwvut plover", embedding=VECTOR))
        archive = Archive(store)
        archive.put(Heuristic, "h", EVERYWHERE)
        archive.purge(AT_ONCE, EVERYWHERE)
        assert not [path for path in tmp_path.iterdir() if b"zyxwvut" in path.read_bytes()]


def test_after_a_purge_no_row_has_the_text(store: StorageBackend) -> None:
    store.save(a_heuristic(id="h", strategy="zyxwvut plover", embedding=VECTOR))
    store.update(Heuristic, "h", {"strategy": "zyxwvut again"}, EVERYWHERE)
    archive = Archive(store)
    archive.put(Heuristic, "h", EVERYWHERE)
    archive.purge(AT_ONCE, EVERYWHERE)
    for cls in KINDS:
        assert "zyxwvut" not in str(store.find(cls, EVERYWHERE)), cls


def test_a_record_is_archived_once_however_many_try(opener: Opener) -> None:
    with opener() as one, opener() as two:
        one.save_many([a_heuristic(id=str(i)) for i in range(20)])
        ids = [str(i) for i in range(20)]
        failed = together(
            *(lambda store=store: [Archive(store).put(Heuristic, i, SHOP) for i in ids] for store in (one, two))
        )
        assert failed == []
        assert sorted(each.record_id for each in Archive(one).find(SHOP)) == sorted(ids)


def test_a_record_is_restored_once_however_many_try(opener: Opener) -> None:
    with opener() as one, opener() as two:
        one.save(a_heuristic(id="h"))
        Archive(one).put(Heuristic, "h", SHOP)
        failed = together(*(lambda store=store: Archive(store).restore("h", SHOP) for store in (one, two)))
        assert [type(each) for each in failed] == [NotFoundError]
        assert one.count(Heuristic, SHOP) == 1
        assert one.count(ArchivedRecord, SHOP) == 0


def test_a_record_that_was_never_stored_can_be_archived_and_released(any_store: StorageBackend) -> None:
    record = some_knowledge(fact="press the red button", embedding=VECTOR)
    archive = Archive(any_store)
    archive_id = archive.add(record, "quarantined", "looks like an order", passages=[VECTOR, VECTOR])  # type: ignore[list-item]
    assert any_store.find(type(record), EVERYWHERE) == []
    assert archive.restore(archive_id, SHOP) == [record]
    with any_store.snapshot() as tx:
        assert [each.part for each in tx.vectors_of(type(record), [record.id])] == [0, 1, 2]


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda a: a.put(Heuristic, ["h"], SHOP, "lost"), ValidationError, "forgotten, archived, quarantined, merged"),
        (lambda a: a.put(Session, ["s"], SHOP), UnsupportedOperation, "session records cannot be archived"),
        (lambda a: a.put(ArchivedRecord, ["s"], SHOP), UnsupportedOperation, "cannot be archived"),
        (lambda a: a.put("heuristic", ["s"], SHOP), ValidationError, "record class"),
        (lambda a: a.put(Heuristic, ["h"], None), ScopeViolationError, "needs a Scope"),
        (lambda a: a.put(Heuristic, ["h"], SHOP, by="ana"), ValidationError, "Attribution"),
        (lambda a: a.put(Heuristic, [3], SHOP), ValidationError, "text"),
        (lambda a: a.find(None), ScopeViolationError, "needs a Scope"),
        (lambda a: a.find(SHOP, cause="lost"), ValidationError, "must be one of"),
        (lambda a: a.restore("nobody", SHOP), NotFoundError, "archived record"),
        (lambda a: a.restore(["nobody"], None), ScopeViolationError, "needs a Scope"),
        (lambda a: a.purge(timedelta(days=-1), SHOP), ValidationError, "negative"),
        (lambda a: a.purge(datetime(2020, 1, 1), SHOP), ValidationError, "time zone"),  # noqa: DTZ001
        (lambda a: a.purge(30, SHOP), ValidationError, "timedelta"),
        (lambda a: a.purge(AT_ONCE, None), ScopeViolationError, "needs a Scope"),
    ],
)
def test_bad_input_is_an_error_that_names_it(tmp_path: Path, call: object, error: type[Exception], says: str) -> None:
    with SQLiteStorage(tmp_path / "alma.db", embedding_dim=4) as store, pytest.raises(error, match=says):
        call(Archive(store))  # type: ignore[operator]

"""Export and import: what goes out comes back, on every store and from one to another."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.errors import ConflictError, TransferError
from alma.memory.audit import AuditTrail
from alma.model.governance import AuditEvent, Setting
from alma.model.kinds import KINDS
from alma.model.learning import Heuristic, UserPreference
from alma.model.memory import Memory, MemoryRelationship, MemoryVersion
from alma.model.query import And
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.workspace import Project, Session
from alma.storage.audit import statement
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from alma.transfer import export_store, import_store, verify_export
from alma.transfer.parcels import STAYING, TRAVELLING
from tests.agreement.stores import population, refill
from tests.support.examples import examples
from tests.transfer.conftest import OpenStore

EVERYWHERE = Scope.everywhere()
SOME_TIME = datetime(2026, 1, 1, tzinfo=UTC)
WAYS = [("sqlite", "sqlite"), ("sqlite", "postgresql"), ("postgresql", "files"), ("files", "sqlite")]


def contents(storage: StorageBackend) -> dict[str, Any]:
    """Everything that travels: records, vectors of every model, history."""
    found: dict[str, Any] = {}
    for cls in TRAVELLING:
        records: list[Any] = [record for record in storage.find(cls, EVERYWHERE) if record.key != "store_id"]
        if cls is Setting:
            records = [setting.replace(updated_at=SOME_TIME) for setting in records]
        found[cls.spec.kind] = records
        if cls.spec.embeds:
            found[f"{cls.spec.kind} vectors"] = storage.vectors_of(cls, [record.key for record in records])
    found["versions"] = sorted(
        (row.replace(id=None) for row in storage.find(MemoryVersion, EVERYWHERE)),
        key=lambda row: (row.kind, row.memory_id, row.version_number),
    )
    return found


def fill(storage: StorageBackend) -> None:
    """A bit of everything, with a past."""
    first, second = make.a_memory(id="m1", tags=["a", "b"]), make.a_memory(id="m2", embedding=[1, 0, 0])
    session = make.a_session(id="s1")
    storage.save_many([make.a_user(id="ana"), make.a_project(id="shop"), session, first, second])
    storage.save_many(
        [
            make.a_relationship(first, second),
            make.a_place_in(session, first),
            make.a_pattern(),
            make.a_handoff(),
            make.a_work_item(),
            make.an_agent_state(session_id="s1"),
        ]
    )
    storage.save_many(
        [
            make.a_heuristic(id="h1"),
            make.an_outcome(),
            make.a_preference(),
            make.some_knowledge(),
            make.an_anti_pattern(),
        ]
    )
    storage.update(Memory, "m1", {"content": "the build was moved back"}, EVERYWHERE)
    storage.put_vectors(Memory, {"m1": [0.5] * 5, "m2": [0.25] * 5}, "other")
    storage.put_passages(Memory, {"m2": [[0, 1, 0], [0, 0, 1]]})
    storage.put_passages(Memory, {"m1": [[1] * 5]}, "other")
    storage.save(make.a_memory(id="gone"))
    storage.delete(Memory, ["gone"], EVERYWHERE)


@pytest.mark.parametrize(("source", "target"), WAYS)
def test_what_goes_out_comes_back(source: str, target: str, new_store: OpenStore, tmp_path: Path) -> None:
    old, new = new_store(source), new_store(target)
    fill(old)
    written = export_store(old, tmp_path / "all.jsonl")
    report = import_store(new, tmp_path / "all.jsonl")
    assert contents(new) == contents(old)
    assert written.counts["memory"] == report.new["memory"] == 2
    events = {statement(event.values()) for event in new.find(AuditEvent, EVERYWHERE)}
    assert {statement(event.values()) for event in old.find(AuditEvent, EVERYWHERE)} <= events
    assert AuditTrail(new).verify()


@pytest.mark.parametrize("kind", ["sqlite", "files", "postgresql"])
def test_importing_twice_changes_nothing(kind: str, new_store: OpenStore, tmp_path: Path) -> None:
    old, new = new_store("sqlite"), new_store(kind)
    fill(old)
    export_store(old, tmp_path / "all.jsonl.gz")
    import_store(new, tmp_path / "all.jsonl.gz")
    once, events = contents(new), new.find(AuditEvent, EVERYWHERE)
    again = import_store(new, tmp_path / "all.jsonl.gz")
    assert contents(new) == once
    assert new.find(AuditEvent, EVERYWHERE) == events
    assert (again.new, again.changed, again.conflicts) == ({}, {}, [])


def emptied(*stores: StorageBackend) -> None:
    """Nothing at all is left, not even what every new store has."""
    for store in stores:
        store.write(lambda tx: tx.erase())
        store.delete_where(Setting, EVERYWHERE, And())


@pytest.mark.parametrize("cls", TRAVELLING, ids=lambda cls: cls.spec.kind)
def test_any_record_of_any_kind_comes_back_as_it_was(cls: type[Record], new_store: OpenStore, tmp_path: Path) -> None:
    source, target = new_store("sqlite"), new_store("sqlite")
    path = tmp_path / "some.jsonl"

    @given(population(cls))
    @examples(4)
    def check(batch: list[Record]) -> None:
        emptied(source, target)
        refill(source, cls, batch)
        export_store(source, path, force=True)
        import_store(target, path)
        assert contents(target) == contents(source)

    check()


def test_every_kind_travels_or_is_history_or_audit_or_belongs_to_one_service() -> None:
    assert {*TRAVELLING, *STAYING, MemoryVersion, AuditEvent} == set(KINDS)


@pytest.mark.parametrize("kind", ["postgresql", "files"])
def test_any_population_goes_to_another_store_and_back(kind: str, new_store: OpenStore, tmp_path: Path) -> None:
    server, local = new_store(kind), new_store("sqlite")
    path = tmp_path / "some.jsonl"

    @given(st.data())
    @examples(6 if kind == "postgresql" else 3)
    def check(data: st.DataObject) -> None:
        cls = data.draw(st.sampled_from(TRAVELLING))
        batch = data.draw(population(cls, size=3))
        emptied(server, local)
        refill(local, cls, batch)
        export_store(local, path, force=True)
        import_store(server, path)
        before = contents(local)
        export_store(server, path, force=True)
        emptied(local)
        import_store(local, path)
        assert contents(local) == before == contents(server)

    check()


def test_a_newer_record_replaces_an_older_one_and_not_the_other_way_round(new_store: OpenStore, tmp_path: Path) -> None:
    old, new = new_store("sqlite"), new_store("sqlite")
    now = datetime(2026, 1, 1, tzinfo=UTC)
    old.save(make.a_memory(id="m", content="later", updated_at=now + timedelta(days=1)))
    new.save(make.a_memory(id="m", content="earlier", updated_at=now))
    export_store(old, tmp_path / "later.jsonl")
    export_store(new, tmp_path / "earlier.jsonl")
    assert import_store(new, tmp_path / "later.jsonl").changed["memory"] == 1
    assert import_store(old, tmp_path / "earlier.jsonl").kept["memory"] == 1
    assert new.require(Memory, "m", EVERYWHERE).content == old.require(Memory, "m", EVERYWHERE).content == "later"


def test_a_dry_run_says_what_would_come_and_leaves_the_store_as_it_is(new_store: OpenStore, tmp_path: Path) -> None:
    old, new = new_store("sqlite"), new_store("sqlite")
    fill(old)
    export_store(old, tmp_path / "all.jsonl")
    before = contents(new)
    report = import_store(new, tmp_path / "all.jsonl", dry_run=True)
    assert report.dry_run
    assert report.new["memory_relationship"] == 1
    assert contents(new) == before


def _tear(lines: list[bytes]) -> list[bytes]:
    return [*lines[:-2], lines[-2][: len(lines[-2]) // 2]]


def _cut(lines: list[bytes]) -> list[bytes]:
    return lines[:4]


def _edit(lines: list[bytes]) -> list[bytes]:
    return [*lines[:4], lines[4].replace(b":", b": ", 1), *lines[5:]]


def _drop(lines: list[bytes]) -> list[bytes]:
    return [*lines[:4], *lines[5:]]


@pytest.mark.parametrize(("harm", "line"), [(_tear, -1), (_cut, 5), (_edit, 5), (_drop, 5)])
def test_a_torn_or_edited_file_is_refused_by_line_and_nothing_is_stored(
    harm: Any, line: int, new_store: OpenStore, tmp_path: Path
) -> None:
    old, new = new_store("sqlite"), new_store("sqlite")
    fill(old)
    path = tmp_path / "all.jsonl"
    whole = export_store(old, path)
    path.write_bytes(b"".join(harm(path.read_bytes().splitlines(keepends=True))))
    before = contents(new)
    with pytest.raises(TransferError) as refused:
        import_store(new, path)
    assert refused.value.line == (line if line > 0 else whole.lines - 1)
    assert contents(new) == before


def test_a_torn_compressed_file_and_one_that_is_not_an_export_are_refused(new_store: OpenStore, tmp_path: Path) -> None:
    old = new_store("sqlite")
    fill(old)
    export_store(old, tmp_path / "all.jsonl.gz")
    packed = (tmp_path / "all.jsonl.gz").read_bytes()
    (tmp_path / "torn.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n')
    for name in ("torn.jsonl.gz", "other.jsonl"):
        with pytest.raises(TransferError):
            verify_export(tmp_path / name)
    assert json.loads(gzip.decompress(packed).splitlines()[0])["counts"]["memory"] == 2


def test_an_export_does_not_overwrite_a_file_unless_told_to(new_store: OpenStore, tmp_path: Path) -> None:
    store = new_store("sqlite")
    export_store(store, tmp_path / "all.jsonl")
    with pytest.raises(ConflictError, match="exists already"):
        export_store(store, tmp_path / "all.jsonl")
    export_store(store, tmp_path / "all.jsonl", force=True)
    assert [each.name for each in tmp_path.glob("*all*")] == ["all.jsonl"]


def test_one_project_goes_out_with_what_hangs_on_it_and_nothing_else(new_store: OpenStore, tmp_path: Path) -> None:
    store, other = new_store("sqlite"), new_store("sqlite")
    fill(store)
    away = make.a_memory(id="away", project_id="bank")
    store.save_many([away, make.a_heuristic(id="h2", project_id="bank"), make.a_project(id="bank", name="bank")])
    store.save(make.a_relationship(store.require(Memory, "m1", EVERYWHERE), away))
    export_store(store, tmp_path / "shop.jsonl", Scope(project_id="shop"))
    import_store(other, tmp_path / "shop.jsonl")
    assert {memory.id for memory in other.find(Memory, EVERYWHERE)} == {"m1", "m2"}
    assert [heuristic.id for heuristic in other.find(Heuristic, EVERYWHERE)] == ["h1"]
    assert [project.id for project in other.find(Project, EVERYWHERE)] == ["shop"]
    assert other.count(MemoryRelationship, EVERYWHERE) == 1
    assert other.count(Session, EVERYWHERE) == 1
    assert other.count(UserPreference, EVERYWHERE) == 0
    assert not other.history(Memory, "gone", Scope(project_id="bank"))


def test_one_user_goes_out_alone(new_store: OpenStore, tmp_path: Path) -> None:
    store, other = new_store("sqlite"), new_store("sqlite")
    fill(store)
    store.save_many([make.a_user(id="ben", username="ben"), make.a_memory(id="his", user_id="ben")])
    store.save(make.a_preference(user_id="ben", preference="long answers"))
    export_store(store, tmp_path / "ben.jsonl", Scope(user_id="ben"))
    import_store(other, tmp_path / "ben.jsonl")
    assert [memory.id for memory in other.find(Memory, EVERYWHERE)] == ["his"]
    assert [each.preference for each in other.find(UserPreference, EVERYWHERE)] == ["long answers"]


def test_vectors_of_another_model_do_not_take_the_store_over(new_store: OpenStore, tmp_path: Path) -> None:
    old, new = new_store("sqlite", 5, embedding_model="theirs"), new_store("sqlite", embedding_model="mine")
    old.save(make.a_memory(id="m", embedding=[1, 0, 0, 0, 0]))
    export_store(old, tmp_path / "all.jsonl")
    import_store(new, tmp_path / "all.jsonl")
    new.save(make.a_memory(id="own", embedding=[1, 0, 0]))
    assert [hit.record.id for hit in new.search_vector(Memory, [1, 0, 0], EVERYWHERE)] == ["own"]
    assert [part.model for part in new.vectors_of(Memory, ["m"])] == ["theirs"]


def test_vectors_that_do_not_fit_are_refused_and_their_records_come(new_store: OpenStore, tmp_path: Path) -> None:
    old, new = new_store("sqlite", 5), new_store("sqlite")
    old.save(make.a_memory(id="m", embedding=[1, 0, 0, 0, 0]))
    export_store(old, tmp_path / "all.jsonl")
    report = import_store(new, tmp_path / "all.jsonl")
    assert "5 dimensions" in report.refused[0].reason
    assert new.get(Memory, "m", EVERYWHERE) is not None


def test_history_and_vectors_can_be_left_behind(new_store: OpenStore, tmp_path: Path) -> None:
    old, new = new_store("sqlite"), new_store("sqlite")
    fill(old)
    export_store(old, tmp_path / "short.jsonl", history=False, audit=False, vectors=False)
    import_store(new, tmp_path / "short.jsonl")
    assert len(new.history(Memory, "m1", EVERYWHERE)) == 1
    assert not new.vectors_of(Memory, ["m1", "m2"])
    assert new.get(Setting, "default_decay_rate", EVERYWHERE) is not None

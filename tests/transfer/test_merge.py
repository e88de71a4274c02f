"""Merge: two stores become one, in any order and as often as one likes."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.bootstrap import open_storage
from alma.errors import ConfigurationError
from alma.model.learning import Heuristic
from alma.model.memory import Memory, MemoryRelationship, ProjectPattern
from alma.model.scope import Scope
from alma.model.workspace import Project, User
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from alma.transfer import merge_stores
from tests.support.examples import examples
from tests.transfer.conftest import OpenStore
from tests.transfer.test_export import contents, fill

EVERYWHERE = Scope.everywhere()
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(params=[("sqlite", "sqlite"), ("files", "postgresql")], ids="-".join)
def two(request: pytest.FixtureRequest, new_store: OpenStore) -> tuple[StorageBackend, StorageBackend]:
    source, target = request.param
    return new_store(source), new_store(target)


def without_marks(storage: StorageBackend) -> dict[str, Any]:
    found = contents(storage)
    del found["merge_mark"]
    return found


def counts(storage: StorageBackend, heuristic_id: str = "h") -> tuple[int, int]:
    found = storage.require(Heuristic, heuristic_id, EVERYWHERE)
    return found.occurrence_count, found.success_count


def test_an_empty_store_becomes_what_is_merged_into_it(two: tuple[StorageBackend, StorageBackend]) -> None:
    source, target = two
    fill(source)
    merge_stores(source, target)
    assert without_marks(target) == without_marks(source)


def test_of_two_records_the_newer_wins_and_the_conflict_is_reported(two: tuple[StorageBackend, StorageBackend]) -> None:
    source, target = two
    for days, store, said in ((1, source, "ours is blue"), (0, target, "ours is red")):
        store.save(make.a_memory(id="m", content=said, updated_at=NOW + timedelta(days=days)))
        store.save(make.a_memory(id="n", content=said, updated_at=NOW - timedelta(days=days)))
    report = merge_stores(source, target)
    assert target.require(Memory, "m", EVERYWHERE).content == "ours is blue"
    assert target.require(Memory, "n", EVERYWHERE).content == "ours is red"
    told = {conflict.id: conflict for conflict in report.conflicts}
    assert told["m"].stored == {"content": "ours is red"}
    assert told["m"].arriving == {"content": "ours is blue"}
    assert (told["m"].taken, told["n"].taken) == ("arriving", "stored")
    assert len(target.history(Memory, "m", EVERYWHERE)) == 2


def test_counters_add_and_merging_again_adds_nothing(two: tuple[StorageBackend, StorageBackend]) -> None:
    source, target = two
    source.save(make.a_heuristic(id="h", occurrence_count=5, success_count=4))
    target.save(make.a_heuristic(id="h", occurrence_count=3, success_count=1))
    merge_stores(source, target)
    assert counts(target) == (8, 5)
    before = contents(target)
    report = merge_stores(source, target)
    assert contents(target) == before
    assert (report.new, report.changed) == ({}, {})
    source.increment(Heuristic, "h", {"occurrence_count": 2}, EVERYWHERE)
    target.increment(Heuristic, "h", {"occurrence_count": 1, "success_count": 1}, EVERYWHERE)
    merge_stores(source, target)
    assert counts(target) == (11, 6)


def test_counters_are_right_in_both_directions_and_round_a_ring(new_store: OpenStore) -> None:
    a, b, c = (new_store("sqlite") for _ in range(3))
    for number, store in ((5, a), (3, b), (1, c)):
        store.save(make.a_heuristic(id="h", occurrence_count=number, success_count=0))
    for source, target in ((a, b), (b, a), (b, c), (c, a), (a, b), (c, b), (b, c), (a, c)):
        merge_stores(source, target)
    assert counts(a) == counts(b) == counts(c) == (9, 0)


def test_a_store_and_its_copy_add_only_what_happened_since(new_store: OpenStore, tmp_path: Path) -> None:
    first = new_store("sqlite")
    first.save_many([make.a_heuristic(id="h", occurrence_count=100, success_count=90), make.a_pattern(id="p")])
    merge_stores(new_store("sqlite"), first)
    first.close()
    shutil.copy(tmp_path / "store1.db", tmp_path / "copy.db")
    with open_storage(str(tmp_path / "store1.db"), 3) as first, open_storage(str(tmp_path / "copy.db"), 3) as copy:
        first.increment(Heuristic, "h", {"occurrence_count": 5}, EVERYWHERE)
        copy.increment(Heuristic, "h", {"occurrence_count": 3}, EVERYWHERE)
        copy.increment(ProjectPattern, "p", {"usage_count": 4}, EVERYWHERE)
        merge_stores(copy, first)
        assert counts(first) == (108, 90)
        assert first.require(ProjectPattern, "p", EVERYWHERE).usage_count == 5
        merge_stores(copy, first)
        merge_stores(first, copy)
        merge_stores(copy, first)
        assert counts(first) == counts(copy) == (108, 90)


def test_an_older_backup_of_a_store_brings_nothing_back(new_store: OpenStore, tmp_path: Path) -> None:
    store = new_store("sqlite")
    fill(store)
    store.close()
    shutil.copy(tmp_path / "store1.db", tmp_path / "old.db")
    with open_storage(str(tmp_path / "store1.db"), 3) as store, open_storage(str(tmp_path / "old.db"), 3) as old:
        store.update(Memory, "m2", {"content": "changed since"}, EVERYWHERE)
        report = merge_stores(old, store)
        assert store.require(Memory, "m2", EVERYWHERE).content == "changed since"
        assert report.conflicts == []


def test_a_change_of_one_side_alone_is_not_a_conflict(two: tuple[StorageBackend, StorageBackend]) -> None:
    source, target = two
    source.save(make.a_memory(id="m", content="one"))
    merge_stores(source, target)
    for said in ("two", "three"):
        source.update(Memory, "m", {"content": said}, EVERYWHERE)
        assert merge_stores(source, target).conflicts == []
        assert target.require(Memory, "m", EVERYWHERE).content == said
    target.update(Memory, "m", {"content": "four"}, EVERYWHERE)
    assert merge_stores(source, target).conflicts == []
    assert target.require(Memory, "m", EVERYWHERE).content == "four"


def test_what_was_deleted_here_since_stays_deleted(two: tuple[StorageBackend, StorageBackend]) -> None:
    source, target = two
    source.save(make.a_memory(id="m"))
    merge_stores(source, target)
    target.delete(Memory, ["m"], EVERYWHERE)
    assert merge_stores(source, target).kept["memory"] == 1
    assert target.get(Memory, "m", EVERYWHERE) is None
    source.update(Memory, "m", {"content": "it matters", "updated_at": datetime.now(UTC)}, EVERYWHERE)
    merge_stores(source, target)
    assert target.require(Memory, "m", EVERYWHERE).content == "it matters"


def test_people_and_projects_are_known_by_their_names(two: tuple[StorageBackend, StorageBackend]) -> None:
    source, target = two
    source.save_many([make.a_user(id="u1", display_name="Ana"), make.a_project(id="p1", user_id="u1")])
    target.save_many([make.a_user(id="u2"), make.a_project(id="p2", user_id="u2")])
    source.save(make.a_memory(id="m", user_id="u1", project_id="p1"))
    source.save(make.a_pattern(id="pat1", project_id="p1", usage_count=2))
    target.save(make.a_pattern(id="pat2", project_id="p2", usage_count=3))
    report = merge_stores(source, target)
    assert [user.id for user in target.find(User, EVERYWHERE)] == ["u2"]
    assert [project.id for project in target.find(Project, EVERYWHERE)] == ["p2"]
    memory = target.require(Memory, "m", EVERYWHERE)
    assert (memory.user_id, memory.project_id) == ("u2", "p2")
    assert target.require(ProjectPattern, "pat2", EVERYWHERE).usage_count == 5
    told = {(each.kind, each.id, each.stored_id) for each in report.renamed}
    assert told == {("user", "u1", "u2"), ("project", "p1", "p2"), ("project_pattern", "pat1", "pat2")}
    before = contents(target)
    merge_stores(source, target)
    assert contents(target) == before


def test_a_mail_address_that_another_user_has_is_left_out(new_store: OpenStore) -> None:
    source, target = new_store("sqlite"), new_store("sqlite")
    source.save(make.a_user(id="u1", username="ana", email="ana@example.org", updated_at=NOW + timedelta(days=900)))
    target.save_many(
        [make.a_user(id="u2", username="ana"), make.a_user(id="u3", username="b", email="ana@example.org")]
    )
    report = merge_stores(source, target)
    assert target.require(User, "u2", EVERYWHERE).email is None
    assert "belongs to 'u3'" in report.refused[0].reason


def test_an_id_that_belongs_to_someone_else_is_refused(two: tuple[StorageBackend, StorageBackend]) -> None:
    source, target = two
    source.save_many([make.a_memory(id="m", project_id="bank"), make.a_memory(id="n", project_id="bank")])
    target.save(make.a_memory(id="m", project_id="shop"))
    report = merge_stores(source, target)
    assert [refused.id for refused in report.refused] == ["m"]
    assert target.require(Memory, "m", EVERYWHERE).project_id == "shop"
    assert target.get(Memory, "n", EVERYWHERE) is not None


def test_relationships_that_are_the_same_stay_one(two: tuple[StorageBackend, StorageBackend]) -> None:
    source, target = two
    memories = [make.a_memory(id="m"), make.a_memory(id="n")]
    for store in two:
        store.save_many(memories)
        store.save(make.a_relationship(*memories))
    report = merge_stores(source, target)
    assert target.count(MemoryRelationship, EVERYWHERE) == 1
    assert len(report.renamed) == 1


def test_a_dry_run_of_a_merge_leaves_both_stores_as_they_are(two: tuple[StorageBackend, StorageBackend]) -> None:
    source, target = two
    fill(source)
    before = contents(source), contents(target)
    report = merge_stores(source, target, dry_run=True)
    assert report.new["memory"] == 2
    assert (contents(source), contents(target)) == before


def test_a_store_is_not_merged_into_itself(new_store: OpenStore) -> None:
    store = new_store("sqlite")
    with pytest.raises(ConfigurationError, match="itself"):
        merge_stores(store, store)


def test_any_order_of_merges_counts_everything_once(new_store: OpenStore) -> None:
    stores = [new_store("sqlite") for _ in range(3)]

    @given(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=6), st.lists(st.integers(0, 2), max_size=4)
    )
    @examples(5)
    def check(merges: list[tuple[int, int]], uses: list[int]) -> None:
        for number, store in enumerate(stores):
            store.write(lambda tx: tx.erase())
            store.save(make.a_heuristic(id="h", occurrence_count=10**number, success_count=0))
        for (source, target), user in zip(merges, [*uses, *([0] * len(merges))], strict=False):
            if source != target:
                merge_stores(stores[source], stores[target])
            stores[user].increment(Heuristic, "h", {"occurrence_count": 1000}, EVERYWHERE)
        merge_stores(stores[0], stores[1])
        merge_stores(stores[1], stores[2])
        assert counts(stores[2])[0] == 111 + 1000 * len(merges)

    check()

"""The life of general memories: deleted, expired, decayed, archived, retained; with a way back, and audited."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest

from alma import clock
from alma.errors import NotFoundError, ValidationError
from alma.learning.confidence_decay import ConfidenceDecayer
from alma.learning.lifecycle import MemoryLifecycle
from alma.learning.pruning import ForgettingEngine, PrunePolicy
from alma.memory.audit import AuditTrail
from alma.memory.history import History
from alma.memory.relationships import Relationships
from alma.memory.settings import SystemSettings
from alma.model.governance import Attribution, Setting
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.testing import builders as make

SHOP = Scope(project_id="shop")
EVERYWHERE = Scope.everywhere()
ANA = Attribution(user_id="ana")


@pytest.fixture
def life(store: StorageBackend) -> MemoryLifecycle:
    return MemoryLifecycle(store)


def old_memory(key: str, days: int, **values: object) -> Memory:
    moment = clock.now() - timedelta(days=days)
    times = {"created_at": moment, "updated_at": moment, "last_accessed_at": moment}
    return make.a_memory(id=key, **{**times, **values})


def test_soft_deletion_hides_a_memory_and_can_be_taken_back(store: StorageBackend, life: MemoryLifecycle) -> None:
    store.save_many([make.a_memory(id="m"), make.a_memory(id="n")])
    assert life.soft_delete(["m", "nowhere"], SHOP, "wrong", ANA) == ["m"]
    with pytest.raises(NotFoundError):
        Relationships(store).of("m", SHOP)
    assert History(store).versions(Memory, "m", SHOP)[-1].reason == "wrong"
    assert life.soft_delete("m", SHOP) == []
    assert life.undelete("m", SHOP) == ["m"]
    assert Relationships(store).of("m", SHOP) == []


def test_what_has_expired_goes_to_the_archive_and_comes_back(store: StorageBackend, life: MemoryLifecycle) -> None:
    past = clock.now() - timedelta(minutes=1)
    store.save_many([make.a_memory(id="due", expires_at=past), make.a_memory(id="stays")])
    assert [item.id for item in life.expire_due(SHOP, dry_run=True).items] == ["due"]
    assert store.count(Memory, SHOP) == 2
    assert life.expire_due(SHOP).total == 1
    assert [memory.id for memory in store.find(Memory, SHOP)] == ["stays"]
    assert [record.key for record in life.unarchive("due", SHOP)] == ["due"]


def test_an_archived_memory_keeps_its_relationships_and_its_past(store: StorageBackend, life: MemoryLifecycle) -> None:
    store.save_many([make.a_memory(id="a", content="tea"), make.a_memory(id="b")])
    Relationships(store).relate("a", "b", "references", SHOP)
    then = clock.now()
    life.archive_memory("a", SHOP, "no longer needed", ANA)
    assert store.get(Memory, "a", SHOP) is None
    assert [hit.record.id for hit in History(store).search(Memory, "tea", SHOP, known_at=then)] == ["a"]
    life.unarchive("a", SHOP, ANA)
    assert [each.memory.id for each in Relationships(store).of("a", SHOP)] == ["b"]
    actions = [event.action for event in AuditTrail(store).find(EVERYWHERE, resource_id="a")]
    assert actions == ["restore", "archive", "create"]
    assert AuditTrail(store).verify().ok


def test_decay_is_a_dry_run_unless_told_otherwise(store: StorageBackend, life: MemoryLifecycle) -> None:
    store.save_many(
        [
            old_memory("faded", 900, importance_score=0.3),
            old_memory("important", 900, importance_score=1.0),
            old_memory("fresh", 2, importance_score=0.3),
            old_memory("slow", 900, importance_score=0.3, decay_rate=0.0),
        ]
    )
    told = life.process_memory_decay(SHOP)
    assert (told.dry_run, [item.id for item in told.items]) == (True, ["faded"])
    assert store.count(Memory, SHOP) == 4
    assert life.process_memory_decay(SHOP, dry_run=False).total == 1
    assert {memory.id for memory in store.find(Memory, SHOP)} == {"important", "fresh", "slow"}


def test_decay_can_be_switched_off_by_its_setting(store: StorageBackend, life: MemoryLifecycle) -> None:
    store.save(old_memory("faded", 900, importance_score=0.1))
    store.update(Setting, "memory_decay_enabled", {"value": "false"}, Scope.everywhere())
    assert life.process_memory_decay(SHOP).total == 0


def test_users_choose_for_themselves_whether_their_memories_decay(store: StorageBackend, life: MemoryLifecycle) -> None:
    store.save_many(
        [
            old_memory(name, 900, importance_score=0.1, user_id=user)
            for name, user in (("a", "ana"), ("b", "bob"), ("c", None))
        ]
    )
    settings = SystemSettings(store)
    settings.set("memory_decay_enabled", False, user_id="ana")
    assert {item.id for item in life.process_memory_decay(SHOP).items} == {"b", "c"}
    settings.set("memory_decay_enabled", False)
    settings.set("memory_decay_enabled", True, user_id="bob")
    assert {item.id for item in life.process_memory_decay(SHOP, dry_run=False).items} == {"b"}
    assert {memory.id for memory in store.find(Memory, SHOP)} == {"a", "c"}


def test_memories_that_do_not_decay_are_kept_by_every_forgetting(store: StorageBackend) -> None:
    store.save_many([old_memory(name, 900, importance_score=0.1, user_id=name) for name in ("ana", "bob")])
    store.save(make.some_knowledge(last_verified=clock.now() - timedelta(days=900)))
    settings, engine = SystemSettings(store), ForgettingEngine(store)
    settings.set("memory_decay_enabled", False, user_id="ana")
    weak = PrunePolicy(stale_after_days={}, min_strength=0.05)
    assert [item.id for item in engine.prune(SHOP, weak, dry_run=True, kinds=Memory).items] == ["bob"]
    # Without decay, age does not make a memory worth less when room is made.
    crowded = PrunePolicy(stale_after_days={}, max_memories=1)
    assert [item.id for item in engine.prune(SHOP, crowded, dry_run=True, kinds=Memory).items] == ["bob"]
    assert ConfidenceDecayer(store).apply(SHOP, dry_run=True).total == 1
    settings.set("memory_decay_enabled", False)
    assert engine.prune(SHOP, weak, dry_run=True).total == 0
    assert ConfidenceDecayer(store).apply(SHOP).total == 0


def test_retention_archives_what_was_deleted_long_ago_and_purges_old_archives(
    store: StorageBackend, life: MemoryLifecycle
) -> None:
    store.save_many([old_memory("long", 60, is_active=False), old_memory("lately", 3, is_active=False)])
    month = timedelta(days=30)
    assert life.retain(SHOP, deleted_for=month, dry_run=True).ids == ("long",)
    assert len(life.retain(SHOP, deleted_for=month, by=ANA).ids) == 1
    assert [memory.id for memory in store.find(Memory, SHOP)] == ["lately"]
    assert life.retain(SHOP, deleted_for=month, archived_for=month).purged == 0
    assert life.retain(SHOP, deleted_for=month, archived_for=timedelta(0)).purged == 1
    with pytest.raises(NotFoundError):
        life.unarchive("long", SHOP)
    with pytest.raises(ValidationError, match="negative"):
        life.retain(SHOP, deleted_for=-month)


def test_a_dry_run_of_retention_tells_what_would_be_purged(store: StorageBackend, life: MemoryLifecycle) -> None:
    store.save(old_memory("deleted", 3, is_active=False))
    retain = partial(life.retain, SHOP, deleted_for=timedelta(0), archived_for=timedelta(0))
    foretold = retain(dry_run=True)
    assert (len(foretold.ids), foretold.purged) == (1, 0)
    assert retain().purged == 0
    assert retain(dry_run=True).purged == retain().purged == 1


def test_the_life_of_other_projects_is_left_alone(store: StorageBackend, life: MemoryLifecycle) -> None:
    past = clock.now() - timedelta(days=1)
    store.save(make.a_memory(id="theirs", project_id="bank", expires_at=past))
    assert life.soft_delete("theirs", SHOP) == []
    assert life.archive_memory("theirs", SHOP) == []
    assert life.expire_due(SHOP).total == 0

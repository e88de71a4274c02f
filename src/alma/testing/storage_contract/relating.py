"""What leads from memory to memory, and what chains audit events."""

from __future__ import annotations

import pytest

from alma import clock
from alma.errors import ScopeViolationError, ValidationError
from alma.model.governance import AuditEvent
from alma.model.memory import ChangeType, Memory, MemoryRelationship
from alma.model.query import Compare, Order
from alma.storage.audit import digest
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from alma.testing.storage_contract.common import EVERYWHERE, SHOP, Oops


def _web(storage: StorageBackend) -> None:
    """a → b → c → a, and b → d, which lies in another project."""
    memories = {key: make.a_memory(id=key, project_id="bank" if key == "d" else "shop") for key in "abcd"}
    pairs = (("a", "b"), ("b", "c"), ("c", "a"), ("b", "d"))
    edges = [make.a_relationship(memories[one], memories[other], strength=0.5) for one, other in pairs]
    storage.save_many([*memories.values(), *edges])


class RelatingContract:
    """Promises about relationships that are followed."""

    def test_a_walk_goes_as_far_as_asked_and_ends_in_circles(self, storage: StorageBackend) -> None:
        _web(storage)
        for depth, meant in ((1, [("b", 1)]), (9, [("b", 1), ("c", 2), ("d", 2)])):
            found = storage.reachable(["a"], EVERYWHERE, direction="out", max_depth=depth)
            assert [(each.id, each.depth) for each in found] == meant
        assert [each.id for each in storage.reachable(["a"], EVERYWHERE, direction="in")] == ["c"]
        assert [each.id for each in storage.reachable(["a"], EVERYWHERE)] == ["b", "c"]
        assert len(storage.reachable(["a"], EVERYWHERE, max_depth=3, limit=1)) == 1

    def test_a_walk_stays_inside_the_scope_and_the_predicates(self, storage: StorageBackend) -> None:
        _web(storage)
        assert [each.id for each in storage.reachable(["a"], SHOP, max_depth=3)] == ["b", "c"]
        assert storage.reachable(["d"], SHOP) == []
        without_b = storage.reachable(["a"], SHOP, Compare("id", "ne", "b"), direction="out", max_depth=3)
        assert without_b == []
        assert storage.reachable(["a"], SHOP, along=Compare("strength", "gt", 0.5)) == []
        with pytest.raises(ScopeViolationError):
            storage.reachable(["a"], None)  # type: ignore[arg-type]

    def test_a_walk_that_makes_no_sense_is_refused(self, storage: StorageBackend) -> None:
        with pytest.raises(ValidationError, match="from 1 to 16"):
            storage.reachable(["a"], SHOP, max_depth=17)
        with pytest.raises(ValidationError, match="out, in, both"):
            storage.reachable(["a"], SHOP, direction="up")  # type: ignore[arg-type]

    def test_relationships_of_the_past_are_remembered(self, storage: StorageBackend) -> None:
        _web(storage)
        then = clock.now()
        storage.delete(Memory, ["b"], EVERYWHERE)
        assert len(storage.find(MemoryRelationship, EVERYWHERE)) == 1
        assert len(storage.find(MemoryRelationship, EVERYWHERE, as_of=then)) == 4

    def test_a_change_can_be_given_its_name(self, storage: StorageBackend) -> None:
        memory = make.a_memory()
        storage.save(memory)
        with storage.transaction() as tx, tx.known_as(ChangeType.MERGED):
            tx.save(memory.replace(title="both"))
        assert [version.change_type for version in storage.history(Memory, memory.id, SHOP)] == ["created", "merged"]


class ChainContract:
    """Promises about the chain of audit events."""

    def test_every_event_follows_from_the_one_before_it(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_memory(id="a"), make.a_memory(id="b")])
        storage.update(Memory, "a", {"title": "é"}, SHOP)
        with pytest.raises(Oops), storage.transaction() as tx:
            tx.save(make.a_memory())
            raise Oops
        details = {"float": -0.0, "z": [1.0, 10**30, None], "a": {"ü": True}}
        storage.save(AuditEvent(action="read", resource_type="memory", resource_id="a", details_json=details))
        events = storage.find(AuditEvent, EVERYWHERE, order=[Order("id")])
        before = ""
        for position, event in enumerate(events, start=1):
            assert (event.chain_position, event.chain_hash) == (position, digest(event, before))
            before = event.chain_hash or ""
        (head,) = storage.audit_heads()
        assert (head.length, head.hash, head.unchained) == (len(events), before, 0)

    def test_a_transaction_sees_where_the_chain_ends_that_it_writes(self, storage: StorageBackend) -> None:
        with storage.transaction() as tx:
            tx.save(make.a_memory(id="a"))
            tx.save(make.a_memory(id="b"))
            assert [head.length for head in tx.audit_heads()] == [2]
            tx.save(make.a_memory(id="c"), make.a_memory(id="d"))
            tx.delete(Memory, ["a"], EVERYWHERE)
        (head,) = storage.audit_heads()
        events = storage.find(AuditEvent, EVERYWHERE, order=[Order("id")])
        assert (head.length, head.hash) == (len(events), events[-1].chain_hash)

    def test_a_place_in_the_chain_is_given_by_the_store_alone(self, storage: StorageBackend) -> None:
        forged = AuditEvent(action="read", resource_type="memory", resource_id="a", chain=7, chain_position=9)
        storage.save(forged)
        (event,) = storage.find(AuditEvent, EVERYWHERE)
        assert (event.chain, event.chain_position) != (7, 9)
        assert event.chain_hash == digest(event, "")

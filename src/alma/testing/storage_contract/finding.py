"""Queries: predicates, orders, pages, relationships and the audit chain."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from alma import clock
from alma.errors import (
    NotFoundError,
    ScopeViolationError,
    ValidationError,
)
from alma.model.governance import AuditEvent
from alma.model.learning import Heuristic, Outcome
from alma.model.memory import ChangeType, Memory, MemoryRelationship
from alma.model.query import And, At, Compare, Cursor, Has, In, Missing, Or, Order, Predicate
from alma.model.record import Record
from alma.storage.audit import digest
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from alma.testing.builders import EVERYWHERE, NOON, SHOP, Oops


class FindingContract:
    """Predicates, orders, limits and pages."""

    def test_the_first_record_of_a_kind_is_found_at_once(self, storage: StorageBackend) -> None:
        assert storage.find(Heuristic, SHOP) == []
        kept = make.a_heuristic()
        with storage.transaction() as tx:
            assert tx.find(Heuristic, SHOP) == []
            tx.save(kept)
            assert tx.find(Heuristic, SHOP) == [kept]
        assert storage.find(Heuristic, SHOP) == [kept]

    def test_unknown_words_find_nothing(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic())
        with storage.snapshot() as tx:
            assert tx.size(Outcome, SHOP) == 0
            assert tx.find(Outcome, SHOP) == []
            assert tx.values(Outcome, ("id",), SHOP) == []

    def test_predicates_combine(self, storage: StorageBackend) -> None:
        low, high = make.a_heuristic(confidence=0.2), make.a_heuristic(confidence=0.85, last_validated=NOON)
        storage.save_many([low, high])
        assert storage.find(Heuristic, SHOP, In("confidence", [0.85])) == [high]
        assert storage.find(Heuristic, SHOP, Compare("confidence", "lt", 0.5)) == [low]
        assert storage.find(Heuristic, SHOP, Missing("last_validated")) == [low]
        both = Or(Compare("confidence", "eq", 0.2), And(Compare("confidence", "ge", 0.85)))
        assert storage.count(Heuristic, SHOP, both) == 2
        assert storage.find(Heuristic, SHOP, Or()) == []
        assert storage.find(Heuristic, SHOP, In("id", [])) == []

    def test_values_inside_of_json_are_found(self, storage: StorageBackend) -> None:
        deep = make.a_memory(content_json={"deploy": {"region": 'e"u'}, "n": 1, "done": True, "none": None})
        listed = make.a_memory(content_json={"deploy": {"region": ["us", "asia"]}, "n": [1.5, 2], "done": 1})
        storage.save_many([deep, listed, make.a_memory()])
        for path, value, found in (
            (("deploy", "region"), 'e"u', [deep]),
            (("deploy", "region"), "asia", [listed]),
            ("n", 1.0, [deep]),
            ("n", 2, [listed]),
            ("done", True, [deep]),
            ("done", 1, [listed]),
            ("none", None, [deep]),
            ("absent", None, []),
            (("deploy", "region", "x"), "asia", []),
            ("deploy.region", "asia", []),
        ):
            assert storage.find(Memory, SHOP, At("content_json", path, value)) == found, (path, value)

    def test_objects_inside_of_json_are_found_by_their_values(self, storage: StorageBackend) -> None:
        one = make.a_memory(content_json={"items": [{"sku": "x", "n": 2, "in": {"a": [1, 2]}}, {"sku": "y"}]})
        other = make.a_memory(content_json={"items": {"sku": "x", "n": True, "in": None}})
        storage.save_many([one, other, make.a_memory(content_json={"items": [["x"], "x", 2]}), make.a_memory()])
        for value, found in (
            ({"sku": "x"}, [one, other]),
            ({"sku": "x", "n": 2.0}, [one]),
            ({"sku": "y", "n": 2}, []),
            ({"in": {"a": [2]}}, [one]),
            ({"in": {"a": 2}}, []),
            ({"in": None}, [other]),
            ({"n": True}, [other]),
        ):
            seen = storage.find(Memory, SHOP, At("content_json", "items", value))
            assert {each.id for each in seen} == {each.id for each in found}, value

    @pytest.mark.parametrize(
        "place",
        [
            ("content_json", (), 1),
            ("content_json", "a", []),
            ("content_json", "a", {}),
            ("title", "a", 1),
            ("nothing", "a", 1),
        ],
    )
    def test_a_wrong_look_into_json_is_refused(self, storage: StorageBackend, place: tuple[Any, Any, Any]) -> None:
        with pytest.raises(ValidationError):
            storage.find(Memory, SHOP, At(*place))

    def test_instants_compare_as_instants(self, storage: StorageBackend) -> None:
        from datetime import timezone

        outcome = make.an_outcome(timestamp=NOON)
        storage.save(outcome)
        elsewhere = NOON.astimezone(timezone(timedelta(hours=9)))
        assert storage.find(Outcome, SHOP, Compare("timestamp", "eq", elsewhere)) == [outcome]
        assert storage.find(Outcome, SHOP, Compare("timestamp", "gt", NOON - timedelta(microseconds=1))) == [outcome]
        assert storage.find(Outcome, SHOP, Compare("timestamp", "lt", NOON)) == []

    def test_records_come_in_order_with_missing_values_last(self, storage: StorageBackend) -> None:
        early, late = make.a_heuristic(last_validated=NOON), make.a_heuristic(last_validated=NOON + timedelta(days=1))
        never = make.a_heuristic()
        storage.save_many([never, late, early])
        assert storage.find(Heuristic, SHOP, order=[Order("last_validated")]) == [early, late, never]
        assert storage.find(Heuristic, SHOP, order=[Order("last_validated", "desc")]) == [late, early, never]

    def test_ids_break_ties_byte_by_byte(self, storage: StorageBackend) -> None:
        ids = ["b", "B", "a", "ä", "Z", "_", "10", "9", "日"]
        storage.save_many([make.a_heuristic(id=each) for each in ids])
        found = storage.find(Heuristic, SHOP, order=[Order("confidence")])
        assert [heuristic.id for heuristic in found] == sorted(ids, key=str.encode)

    def test_pages_joined_by_cursors_are_the_whole(self, storage: StorageBackend) -> None:
        heuristics = [
            make.a_heuristic(confidence=number % 3 / 2, last_validated=None if number % 4 else NOON)
            for number in range(23)
        ]
        storage.save_many(heuristics)
        order = [Order("last_validated", "desc"), Order("confidence", "desc")]
        whole = storage.find(Heuristic, SHOP, order=order)
        assert list(storage.iterate(Heuristic, SHOP, order=order, page_size=5)) == whole
        third = storage.find(Heuristic, SHOP, order=order, limit=4, after=Cursor.after(whole[7], order))
        assert third == whole[8:12]

    def test_a_limit_may_be_larger_than_any_store(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic(embedding=[1, 0, 0, 0]))
        for limit in (2**31, 2**63, 2**70):
            assert len(storage.find(Heuristic, SHOP, limit=limit)) == 1
            assert len(storage.search_text(Heuristic, "form", SHOP, limit=limit)) == 1
            assert len(storage.search_vector(Heuristic, [1, 0, 0, 0], SHOP, limit=limit)) == 1

    def test_a_page_has_at_least_one_record(self, storage: StorageBackend) -> None:
        with pytest.raises(ValidationError, match=r"query\.page_size must be a whole number of at least 1 \(got 0\)"):
            list(storage.iterate(Heuristic, SHOP, page_size=0))

    def test_predicates_may_have_thousands_of_parts(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic(occurrence_count=4_999)
        storage.save_many([heuristic, make.a_heuristic(occurrence_count=5_000)])
        counts = [Compare("occurrence_count", "eq", number) for number in range(5_000)]
        assert storage.find(Heuristic, SHOP, Or(*counts)) == [heuristic]
        grown: Predicate = Or()
        for count in counts:
            grown = Or(grown, count)
        assert storage.find(Heuristic, SHOP, grown) == [heuristic]

    def test_predicates_that_alternate_too_deep_are_refused(self, storage: StorageBackend) -> None:
        predicate: Predicate = Missing("last_validated")
        for _ in range(500):
            predicate = Or(And(predicate, Missing("last_validated")), Compare("confidence", "eq", 1.0))
        with pytest.raises(ValidationError, match="must not be nested deeper than 20 levels"):
            storage.find(Heuristic, SHOP, predicate)

    def test_one_id_may_stand_for_a_list_of_one(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic(id="h1")
        storage.save(heuristic)
        assert storage.get_many(Heuristic, "h1", SHOP) == [heuristic]
        assert storage.delete(Heuristic, "h1", SHOP) == 1

    def test_unknown_names_and_wrong_values_are_refused(self, storage: StorageBackend) -> None:
        refused: list[dict[str, Any]] = [
            {"where": Compare("nope", "eq", 1)},
            {"where": Compare("confidence", "eq", "high")},
            {"where": Compare("agent", "lt", "x")},
            {"where": Compare("confidence", "like", 1.0)},  # type: ignore[arg-type]
            {"where": Compare("confidence", "eq", None)},
            {"where": Compare("last_validated", "gt", datetime(2026, 1, 1))},  # noqa: DTZ001
            {"where": Has("agent", "x")},
            {"where": Compare("metadata", "eq", {})},
            {"where": "confidence > 0"},
            {"order": [Order("nope")]},
            {"order": [Order("metadata")]},
            {"order": ["agent"]},
            {"order": [Order("agent", "up")]},  # type: ignore[arg-type]
            {"limit": -1},
            {"after": Cursor((1,), "x")},
            {"after": "x"},
            {"order": Order("agent")},
            {"order": 7},
        ]
        for arguments in refused:
            with pytest.raises(ValidationError):
                storage.find(Heuristic, SHOP, **arguments)

    @pytest.mark.parametrize("ids", [None, 7, [["x"]], [None]])
    def test_invalid_lists_of_ids_are_refused(self, storage: StorageBackend, ids: Any) -> None:
        calls: list[Callable[[], object]] = [
            lambda: storage.get_many(Heuristic, ids, EVERYWHERE),
            lambda: storage.delete(Heuristic, ids, EVERYWHERE),
            lambda: storage.find(Heuristic, EVERYWHERE, In("id", ids)),
            lambda: storage.write(lambda tx: tx.lock(Heuristic, ids, EVERYWHERE)),
        ]
        for call in calls:
            with pytest.raises(ValidationError):
                call()

    def test_a_text_is_one_id_and_not_a_list_of_letters(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_heuristic(id=key) for key in ("ab", "a", "b")])
        assert [found.id for found in storage.get_many(Heuristic, "ab", EVERYWHERE)] == ["ab"]
        assert storage.write(lambda tx: tx.delete(Heuristic, "ab", EVERYWHERE)) == 1
        assert {found.id for found in storage.find(Heuristic, EVERYWHERE)} == {"a", "b"}

    @pytest.mark.parametrize("kind", ["heuristic", str, None, Record])
    def test_unknown_kinds_are_refused(self, storage: StorageBackend, kind: Any) -> None:
        calls: list[Callable[[], object]] = [
            lambda: storage.find(kind, EVERYWHERE),
            lambda: storage.count(kind, EVERYWHERE),
            lambda: storage.get(kind, "x", EVERYWHERE),
            lambda: storage.search_text(kind, "x", EVERYWHERE),
            lambda: storage.delete(kind, ["x"], EVERYWHERE),
            lambda: storage.update(kind, "x", {}, EVERYWHERE),
        ]
        for call in calls:
            with pytest.raises(ValidationError, match="record class"):
                call()

    def test_records_are_fetched_in_the_given_order(self, storage: StorageBackend) -> None:
        one, two = make.a_heuristic(), make.a_heuristic()
        storage.save_many([one, two])
        assert storage.get_many(Heuristic, [two.id, "nobody", one.id, two.id], SHOP) == [two, one]
        with pytest.raises(NotFoundError, match="nobody"):
            storage.require(Heuristic, "nobody", SHOP)

    def test_thousands_of_ids_are_one_question(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic()
        storage.save(heuristic)
        ids = [*(f"absent {number}" for number in range(40_000)), heuristic.id]
        assert storage.get_many(Heuristic, ids, SHOP) == [heuristic]


def _web(storage: StorageBackend) -> None:
    """a → b → c → a, and b → d in another project."""
    memories = {key: make.a_memory(id=key, project_id="bank" if key == "d" else "shop") for key in "abcd"}
    pairs = (("a", "b"), ("b", "c"), ("c", "a"), ("b", "d"))
    edges = [make.a_relationship(memories[one], memories[other], strength=0.5) for one, other in pairs]
    storage.save_many([*memories.values(), *edges])


class RelatingContract:
    """Traversal of relationships."""

    def test_a_walk_ends_at_its_depth_and_in_circles(self, storage: StorageBackend) -> None:
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
    """The hash chain of audit events."""

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

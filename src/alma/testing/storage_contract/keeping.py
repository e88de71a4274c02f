"""Transactions, history, outbox and subscriptions."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import datetime

import pytest

from alma import clock
from alma.errors import (
    ConflictError,
    StorageError,
    UnsupportedOperation,
    ValidationError,
)
from alma.model.governance import Attribution, AuditEvent
from alma.model.learning import Heuristic, UserPreference
from alma.model.memory import ChangeType, Memory, MemoryVersion
from alma.model.query import Compare, Has, Order
from alma.model.scope import Scope
from alma.model.workspace import User
from alma.storage.base import Backlog, StorageBackend, Transaction
from alma.storage.transactional import Change
from alma.testing import builders as make
from alma.testing.builders import EVERYWHERE, SHOP, Oops


class TransactionContract:
    """Transactions commit all or nothing."""

    def test_an_error_undoes_everything(self, storage: StorageBackend) -> None:
        storage.register_projection("index", [Heuristic])
        kept = make.a_heuristic(embedding=[1, 0, 0, 0])
        storage.save(kept)
        with pytest.raises(Oops), storage.transaction() as tx:
            tx.save(make.a_heuristic(embedding=[1, 0, 0, 0]), make.a_memory(tags=["t"]))
            tx.delete(Heuristic, [kept.id], SHOP)
            raise Oops
        assert storage.find(Heuristic, EVERYWHERE) == [kept]
        assert [hit.record for hit in storage.search_vector(Heuristic, [1, 0, 0, 0], EVERYWHERE)] == [kept]
        assert [hit.record for hit in storage.search_text(Heuristic, "form", EVERYWHERE)] == [kept]
        assert storage.count(AuditEvent, EVERYWHERE) == 1
        assert storage.count(MemoryVersion, EVERYWHERE) == 1
        assert [mark.record_id for mark in storage.pending("index")] == [kept.id]
        assert storage.count(Memory, EVERYWHERE) == 0

    def test_a_callers_own_error_comes_through_as_it_is(self, storage: StorageBackend) -> None:
        for error in (OSError(28, "No space left on device"), FileNotFoundError("elsewhere"), KeyError("k")):
            with pytest.raises(type(error)) as caught, storage.transaction() as tx:
                tx.save(make.a_heuristic())
                raise error
            assert caught.value is error
        assert storage.count(Heuristic, EVERYWHERE) == 0

    def test_a_transaction_sees_its_own_writes(self, storage: StorageBackend) -> None:
        with storage.transaction() as tx:
            tx.save(make.a_heuristic(id="h", embedding=[1, 0, 0, 0]))
            assert tx.require(Heuristic, "h", SHOP)
            assert tx.search_text(Heuristic, "form", SHOP)
            assert tx.search_vector(Heuristic, [1, 0, 0, 0], SHOP)
            assert storage.count(Heuristic, SHOP) == 1

    def test_calls_on_the_store_join_the_open_transaction(self, storage: StorageBackend) -> None:
        with pytest.raises(Oops), storage.transaction():
            storage.save(make.a_heuristic())
            with storage.transaction():
                storage.save(make.a_heuristic())
            raise Oops
        assert storage.count(Heuristic, EVERYWHERE) == 0

    def test_other_threads_do_not_see_what_is_not_committed(self, storage: StorageBackend) -> None:
        seen: list[int] = []
        with storage.transaction() as tx:
            tx.save(make.a_heuristic())
            reader = threading.Thread(target=lambda: seen.append(storage.count(Heuristic, EVERYWHERE)))
            reader.start()
            reader.join(timeout=20)
        assert seen == [0]
        assert storage.count(Heuristic, EVERYWHERE) == 1

    def test_a_snapshot_stays_the_same_and_refuses_writes(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic())
        with storage.snapshot() as tx:
            assert tx.count(Heuristic, EVERYWHERE) == 1
            writer = threading.Thread(target=lambda: storage.save(make.a_heuristic()))
            writer.start()
            writer.join(timeout=20)
            assert tx.count(Heuristic, EVERYWHERE) == 1
            with pytest.raises(StorageError, match="read-only"):
                tx.save(make.a_heuristic())
        assert storage.count(Heuristic, EVERYWHERE) == 2

    def test_a_write_that_failed_cannot_be_committed_by_swallowing_its_error(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic(id="h"))
        with pytest.raises(StorageError, match="rolled back"), storage.transaction() as tx:
            tx.save(make.a_heuristic())
            with pytest.raises(ConflictError), tx.writing():
                tx.backend.insert(Heuristic.spec, [make.a_heuristic(id="h")])
        assert storage.count(Heuristic, EVERYWHERE) == 1

    def test_a_closed_store_says_so(self, storage: StorageBackend) -> None:
        storage.close()
        storage.close()
        with pytest.raises(StorageError):
            storage.count(Heuristic, EVERYWHERE)


class HistoryContract:
    """Every change is a version, and the past can be read."""

    def test_every_change_is_a_version_with_author_and_reason(self, storage: StorageBackend) -> None:
        memory = make.a_memory(title="one")
        storage.save(memory, by=Attribution(user_id="ana", reason="noticed"))
        storage.update(Memory, memory.id, {"title": "two"}, EVERYWHERE, by=Attribution(agent="bot"))
        storage.update(Memory, memory.id, {"is_archived": True}, EVERYWHERE)
        storage.update(Memory, memory.id, {"is_archived": False}, EVERYWHERE)
        storage.delete(Memory, [memory.id], EVERYWHERE)
        versions = storage.history(Memory, memory.id, EVERYWHERE)
        assert [version.version_number for version in versions] == [1, 2, 3, 4, 5]
        assert [version.change_type for version in versions] == list(
            map(ChangeType, ("created", "updated", "archived", "restored", "deleted"))
        )
        assert [version.title for version in versions] == ["one", "two", "two", "two", None]
        assert versions[1].diff_json == {"title": "one"}
        assert (versions[0].created_by, versions[0].change_reason) == ("ana", "noticed")
        assert versions[1].created_by == "bot"

    def test_the_newest_version_has_its_content(self, storage: StorageBackend) -> None:
        memory = make.a_memory(title="only", tags=["t"])
        storage.save(memory)
        (version,) = storage.history(Memory, memory.id, EVERYWHERE)
        assert (version.title, version.content) == ("only", memory.content)
        assert version.record_json is not None
        assert version.record_json["tags"] == ["t"]

    def test_the_past_is_read_as_it_was(self, storage: StorageBackend) -> None:
        before = clock.now()
        heuristic = make.a_heuristic(confidence=0.1, metadata={"a": 1}, embedding=[1, 0, 0, 0])
        storage.save(heuristic)
        saved = clock.now()
        storage.update(Heuristic, heuristic.id, {"confidence": 0.9, "metadata": {}}, SHOP)
        changed = clock.now()
        storage.delete(Heuristic, [heuristic.id], SHOP)
        assert storage.get(Heuristic, heuristic.id, SHOP, as_of=before) is None
        assert storage.get(Heuristic, heuristic.id, SHOP, as_of=saved) == heuristic.replace(embedding=None)
        then = storage.get(Heuristic, heuristic.id, SHOP, as_of=changed)
        assert then == heuristic.replace(confidence=0.9, metadata={}, embedding=None)
        assert storage.get(Heuristic, heuristic.id, SHOP, as_of=clock.now()) is None

    def test_the_past_is_searched_with_predicate_order_and_scope(self, storage: StorageBackend) -> None:
        heuristics = [make.a_heuristic(confidence=number / 4) for number in range(4)]
        storage.save_many(heuristics)
        then = clock.now()
        storage.delete_where(Heuristic, SHOP, Compare("confidence", "gt", 0.1))
        storage.save(make.a_heuristic(confidence=1.0))
        wanted = Compare("confidence", "ge", 0.25)
        found = storage.find(Heuristic, SHOP, wanted, [Order("confidence", "desc")], limit=2, as_of=then)
        assert found == [heuristics[3], heuristics[2]]
        assert storage.find(Heuristic, Scope(project_id="bank"), as_of=then) == []

    def test_kinds_without_history_say_so(self, storage: StorageBackend) -> None:
        with pytest.raises(UnsupportedOperation):
            storage.history(User, "x", EVERYWHERE)
        with pytest.raises(UnsupportedOperation):
            storage.find(User, EVERYWHERE, as_of=clock.now())
        with pytest.raises(ValidationError, match="time zone"):
            storage.find(Heuristic, EVERYWHERE, as_of=datetime(2026, 1, 1))  # noqa: DTZ001

    def test_every_write_is_audited(self, storage: StorageBackend) -> None:
        by = Attribution(user_id="ana", agent="helena", session_id="s", ip_address="::1", reason="because")
        heuristic = make.a_heuristic()
        storage.save(heuristic, by=by)
        storage.update(Heuristic, heuristic.id, {"confidence": 1.0}, SHOP)
        storage.delete(Heuristic, [heuristic.id], SHOP)
        events = storage.find(AuditEvent, EVERYWHERE, order=[Order("id")])
        assert [(event.action, event.resource_type, event.resource_id) for event in events] == [
            (action, "heuristic", heuristic.id) for action in ("create", "update", "delete")
        ]
        first = events[0]
        assert (first.user_id, first.agent_id, first.session_id, first.ip_address) == ("ana", "helena", "s", "::1")
        assert first.details_json == {"reason": "because"}

    def test_a_batch_is_one_event_that_names_its_records(self, storage: StorageBackend) -> None:
        ids = storage.save_many([make.a_heuristic() for _ in range(3)])
        (event,) = storage.find(AuditEvent, EVERYWHERE, Has("resource_ids", ids[1]))
        assert event.resource_ids == tuple(ids)


class OutboxContract:
    """Outbox marks, which survive the process that claimed them."""

    def test_changes_of_registered_kinds_are_marked_once(self, storage: StorageBackend) -> None:
        storage.register_projection("index", [Heuristic])
        heuristic = make.a_heuristic()
        storage.save(heuristic)
        storage.save(make.a_memory())
        storage.update(Heuristic, heuristic.id, {"confidence": 1.0}, SHOP)
        storage.delete(Heuristic, [heuristic.id], SHOP)
        (mark,) = storage.pending("index")
        assert (mark.kind, mark.record_id, mark.generation) == ("heuristic", heuristic.id, 3)

    def test_a_claimed_mark_belongs_to_one_worker_until_its_lease_ends(self, storage: StorageBackend) -> None:
        storage.register_projection("index", [Heuristic])
        storage.save_many([make.a_heuristic() for _ in range(3)])
        first, second = storage.claim("index", limit=2), storage.claim("index")
        assert len(first) == 2
        assert len(second) == 1
        assert storage.claim("index") == []
        assert storage.acknowledge(first) == 2
        storage.fail(second[0], "down")
        assert len(storage.claim("index", lease_seconds=0)) == 1
        assert len(storage.claim("index")) == 1

    def test_a_change_after_the_claim_keeps_the_mark(self, storage: StorageBackend) -> None:
        storage.register_projection("index", [Heuristic])
        heuristic = make.a_heuristic()
        storage.save(heuristic)
        claimed = storage.claim("index")
        storage.update(Heuristic, heuristic.id, {"confidence": 1.0}, SHOP)
        assert storage.claim("index") == []
        assert storage.acknowledge(claimed) == 0
        assert [mark.generation for mark in storage.claim("index")] == [2]

    def test_repeated_failure_parks_a_mark_with_its_error(self, storage: StorageBackend) -> None:
        storage.register_projection("index", [Heuristic])
        storage.save(make.a_heuristic())
        for _ in range(2):
            (mark,) = storage.claim("index")
            storage.fail(mark, "index is down", park_after=2)
        assert storage.claim("index") == []
        (parked,) = storage.pending("index")
        assert (parked.parked, parked.error, parked.attempts) == (True, "index is down", 2)
        assert storage.unpark("index") == 1
        assert len(storage.claim("index")) == 1

    def test_a_dropped_projection_leaves_nothing(self, storage: StorageBackend) -> None:
        storage.register_projection("index", [Heuristic])
        storage.save(make.a_heuristic())
        storage.drop_projection("index")
        storage.save(make.a_heuristic())
        assert storage.pending("index") == []

    def test_a_new_mark_is_not_taken_for_an_older_one_of_the_same_record(self, storage: StorageBackend) -> None:
        storage.register_projection("index", [Heuristic])
        heuristic = make.a_heuristic()
        storage.save(heuristic)
        slow = storage.claim("index", lease_seconds=0)
        assert storage.acknowledge(storage.claim("index")) == 1
        storage.update(Heuristic, heuristic.id, {"confidence": 1.0}, SHOP)
        assert storage.acknowledge(slow) == 0
        assert len(storage.pending("index")) == 1

    def test_a_worker_that_was_overtaken_marks_its_records_again(self, storage: StorageBackend) -> None:
        storage.register_projection("index", [Heuristic])
        heuristic = make.a_heuristic()
        storage.save(heuristic)
        slow = storage.claim("index", lease_seconds=0)
        storage.update(Heuristic, heuristic.id, {"confidence": 1.0}, SHOP)
        assert storage.acknowledge(storage.claim("index")) == 1
        assert storage.acknowledge(slow, again=False) == 0
        assert storage.pending("index") == []
        assert storage.acknowledge(slow) == 0
        assert [mark.record_id for mark in storage.claim("index")] == [heuristic.id]

    def test_a_worker_that_was_overtaken_does_not_clear_the_mark_in_work(self, storage: StorageBackend) -> None:
        storage.register_projection("index", [Heuristic])
        heuristic = make.a_heuristic()
        storage.save(heuristic)
        slow = storage.claim("index", lease_seconds=0)
        storage.update(Heuristic, heuristic.id, {"confidence": 1.0}, SHOP)
        working = storage.claim("index")
        assert storage.acknowledge(slow) == 0
        assert storage.claim("index") == []
        assert storage.acknowledge(working) == 0
        assert storage.acknowledge(storage.claim("index")) == 1

    def test_released_marks_are_as_they_were(self, storage: StorageBackend) -> None:
        storage.register_projection("index", [Heuristic])
        storage.save_many([make.a_heuristic() for _ in range(2)])
        before = storage.pending("index")
        storage.release(storage.claim("index"))
        assert storage.pending("index") == before

    def test_a_failed_mark_waits_for_its_pause(self, storage: StorageBackend) -> None:
        storage.register_projection("index", [Heuristic])
        storage.save(make.a_heuristic())
        (mark,) = storage.claim("index")
        storage.fail(mark, "slow down", pause_seconds=3600)
        assert storage.claim("index") == []
        assert [(each.attempts, each.parked) for each in storage.pending("index")] == [(1, False)]

    def test_an_acknowledgement_marks_nothing_for_a_dropped_projection(self, storage: StorageBackend) -> None:
        storage.register_projection("index", [Heuristic])
        storage.save(make.a_heuristic())
        claimed = storage.claim("index")
        storage.drop_projection("index")
        assert storage.acknowledge(claimed) == 0
        assert storage.pending("index") == []

    def test_the_backlog_is_counted(self, storage: StorageBackend) -> None:
        storage.register_projection("index", [Heuristic])
        storage.register_projection("other", [Memory, Heuristic])
        assert storage.projections() == {"index": ("heuristic",), "other": ("heuristic", "memory")}
        assert storage.backlog("index") == Backlog()
        one, other = make.a_heuristic(), make.a_heuristic()
        storage.save(one)
        storage.save(other)
        (mark,) = storage.claim("index", limit=1)
        storage.fail(mark, "refused", park_after=1)
        with storage.snapshot() as tx:
            backlog = tx.backlog("index")
            assert (backlog.pending, backlog.parked) == (2, 1)
            assert backlog.oldest == storage.pending("index")[1].marked_at
            marks = tx.marks_of("index", "heuristic", [one.id, other.id, "another"])
            assert {each.record_id: each.parked for each in marks} == {one.id: True, other.id: False}
            assert tx.can_claim("index")
        assert len(storage.claim("index")) == 1
        with storage.snapshot() as tx:
            assert not tx.can_claim("index")

    def test_one_projection_alone_is_marked(self, storage: StorageBackend) -> None:
        storage.register_projection("index", [Heuristic])
        storage.register_projection("other", [Heuristic])
        with storage.transaction() as tx:
            tx.mark_again("index", "heuristic", ["a", "b", "a"])
        assert [mark.record_id for mark in storage.pending("index")] == ["a", "b"]
        assert storage.pending("other") == []


class TellingContract:
    """`subscribe` and `along`."""

    def test_a_listener_hears_of_every_transaction_once_after_its_commit(self, storage: StorageBackend) -> None:
        seen: list[tuple[list[str], int]] = []

        def note(changes: Sequence[Change]) -> None:
            seen.append(([change.action for change in changes], storage.count(Heuristic, SHOP)))

        storage.subscribe(note)
        ids = storage.save_many([make.a_heuristic(), make.a_heuristic()])
        storage.update(Heuristic, ids[0], {"confidence": 0.5}, SHOP)
        storage.delete(Heuristic, ids, SHOP)
        storage.find(Heuristic, SHOP)
        storage.register_projection("index", [Heuristic])
        assert seen == [(["create", "create"], 2), (["update"], 2), (["delete", "delete"], 0)]

    def test_a_change_names_record_owner_and_author(self, storage: StorageBackend) -> None:
        seen: list[Change] = []
        storage.subscribe(seen.extend)
        by = Attribution(user_id="ben")
        storage.save(make.a_heuristic(id="h1"), by)
        (change,) = seen
        assert (change.kind, change.id, change.action, change.by) == ("heuristic", "h1", "create", by)
        assert (change.project_id, change.agent, change.user_id) == ("shop", "helena", None)

    def test_listeners_get_no_changes_that_were_rolled_back(self, storage: StorageBackend) -> None:
        seen: list[Change] = []
        storage.subscribe(seen.extend)
        with pytest.raises(RuntimeError), storage.transaction() as tx:
            tx.save(make.a_heuristic())
            raise RuntimeError("changed my mind")
        assert seen == []

    def test_changes_of_a_joined_transaction_are_reported_with_the_outer_one(self, storage: StorageBackend) -> None:
        seen: list[Sequence[Change]] = []
        storage.subscribe(seen.append)
        with storage.transaction():
            storage.save(make.a_heuristic(id="h1"))
            with storage.transaction() as inner:
                inner.save(make.a_heuristic(id="h2"))
            before_commit = list(seen)
        assert before_commit == []
        assert [[change.id for change in changes] for changes in seen] == [["h1", "h2"]]

    def test_work_along_is_committed_with_every_change(self, storage: StorageBackend) -> None:
        seen: list[list[str]] = []

        def note(tx: Transaction) -> None:
            seen.append([action for action, _, _ in tx.acts or ()])
            tx.save(UserPreference(id=f"note {len(seen)}", user_id="ana", category="notes", preference="x"))

        with storage.before_commit(note):
            storage.save_many([make.a_heuristic(id="h1"), make.a_heuristic(id="h2")])
            storage.count(Heuristic, SHOP)
            storage.register_projection("index", [Heuristic])
            storage.delete(Heuristic, ["h1"], SHOP)
        storage.delete(Heuristic, ["h2"], SHOP)
        assert seen == [["create"], ["delete"]]
        assert len(storage.get_many(UserPreference, ["note 1", "note 2", "note 3"], Scope.everywhere())) == 2

    def test_an_error_along_rolls_the_change_back(self, storage: StorageBackend) -> None:
        def fail(_: Transaction) -> None:
            raise RuntimeError("no")

        with pytest.raises(RuntimeError), storage.before_commit(fail):
            storage.save(make.a_heuristic())
        assert storage.count(Heuristic, SHOP) == 0
        storage.save(make.a_heuristic())
        assert storage.count(Heuristic, SHOP) == 1

    def test_ending_one_of_two_equal_subscriptions_leaves_the_other(self, storage: StorageBackend) -> None:
        seen: list[object] = []
        end = storage.subscribe(seen.append)
        storage.subscribe(seen.append)
        end()
        end()
        storage.save(make.a_heuristic())
        assert len(seen) == 1

    def test_a_failing_listener_fails_neither_the_write_nor_the_next_listener(
        self, storage: StorageBackend, caplog: pytest.LogCaptureFixture
    ) -> None:
        seen: list[object] = []

        def fail(_: object) -> None:
            raise RuntimeError("no")

        storage.subscribe(fail)
        storage.subscribe(seen.append)
        storage.save(make.a_heuristic())
        assert storage.count(Heuristic, SHOP) == 1
        assert len(seen) == 1
        assert "a listener failed after a commit" in caplog.text

"""Whom a store tells of its commits."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from alma.model.governance import Attribution
from alma.model.learning import Heuristic, UserPreference
from alma.model.scope import Scope
from alma.storage.base import StorageBackend, Transaction
from alma.storage.transactional import Change
from alma.testing import builders as make
from alma.testing.storage_contract.common import SHOP


class TellingContract:
    """Promises about `subscribe` and `along`."""

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

    def test_a_change_says_what_whose_and_by_whom(self, storage: StorageBackend) -> None:
        seen: list[Change] = []
        storage.subscribe(seen.extend)
        by = Attribution(user_id="ben")
        storage.save(make.a_heuristic(id="h1"), by)
        (change,) = seen
        assert (change.kind, change.id, change.action, change.by) == ("heuristic", "h1", "create", by)
        assert (change.project_id, change.agent, change.user_id) == ("shop", "helena", None)

    def test_what_is_rolled_back_is_told_to_nobody(self, storage: StorageBackend) -> None:
        seen: list[Change] = []
        storage.subscribe(seen.extend)
        with pytest.raises(RuntimeError), storage.transaction() as tx:
            tx.save(make.a_heuristic())
            raise RuntimeError("changed my mind")
        assert seen == []

    def test_a_joined_transaction_is_told_with_the_one_it_joined(self, storage: StorageBackend) -> None:
        seen: list[Sequence[Change]] = []
        storage.subscribe(seen.append)
        with storage.transaction():
            storage.save(make.a_heuristic(id="h1"))
            with storage.transaction() as inner:
                inner.save(make.a_heuristic(id="h2"))
            before_commit = list(seen)
        assert before_commit == []
        assert [[change.id for change in changes] for changes in seen] == [["h1", "h2"]]

    def test_what_is_done_along_is_committed_with_every_change_and_only_then(self, storage: StorageBackend) -> None:
        seen: list[list[str]] = []

        def note(tx: Transaction) -> None:
            seen.append([action for action, _, _ in tx.acts or ()])
            tx.save(UserPreference(id=f"note {len(seen)}", user_id="ana", category="notes", preference="x"))

        with storage.along(note):
            storage.save_many([make.a_heuristic(id="h1"), make.a_heuristic(id="h2")])
            storage.count(Heuristic, SHOP)
            storage.register_projection("index", [Heuristic])
            storage.delete(Heuristic, ["h1"], SHOP)
        storage.delete(Heuristic, ["h2"], SHOP)
        assert seen == [["create"], ["delete"]]
        assert len(storage.get_many(UserPreference, ["note 1", "note 2", "note 3"], Scope.everywhere())) == 2

    def test_what_fails_along_takes_the_change_with_it(self, storage: StorageBackend) -> None:
        def fail(_: Transaction) -> None:
            raise RuntimeError("no")

        with pytest.raises(RuntimeError), storage.along(fail):
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

"""The lifecycle of general memories: soft deletion, expiry, decay, archive and retention."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from alma import clock
from alma.errors import ValidationError
from alma.learning.policy import PrunePolicy
from alma.learning.pruning import ForgettingEngine, PruneSummary
from alma.memory.archive import Archive, moment_before
from alma.model.governance import ANONYMOUS, ApiKey, ArchiveCause, Attribution
from alma.model.kinds import KINDS
from alma.model.memory import Memory
from alma.model.query import And, Compare, Predicate, matches
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.base import StorageBackend, Transaction, checked_storage

_AT_ONCE = 200
_NOTHING: dict[object, float] = {}


@dataclass(frozen=True, slots=True)
class Retained:
    """The archive ids of the memories that a retention archived, and how many archived ones it purged.

    In a dry run: the ids of the memories, and how many would be purged.
    """

    dry_run: bool
    ids: tuple[str, ...]
    purged: int


class MemoryLifecycle:
    """Changes of general memories over time; all but `purge` can be undone, and all are audited."""

    def __init__(self, storage: StorageBackend, archive: Archive | None = None) -> None:
        self._storage = checked_storage("lifecycle", storage)
        self._archive = archive or Archive(storage)
        self._forgetting = ForgettingEngine(storage, archive=self._archive)

    # ------------------------------------------------------------------ soft deletion

    def soft_delete(
        self, memory_ids: str | Iterable[str], scope: Scope, reason: str | None = None, by: Attribution = ANONYMOUS
    ) -> list[str]:
        """Hide memories without moving them; returns the ids of those that existed."""
        return self._set_active(memory_ids, scope, False, reason, by)

    def undelete(
        self, memory_ids: str | Iterable[str], scope: Scope, reason: str | None = None, by: Attribution = ANONYMOUS
    ) -> list[str]:
        """Undo soft deletion; returns the ids of those that were deleted."""
        return self._set_active(memory_ids, scope, True, reason, by)

    def _set_active(
        self, memory_ids: str | Iterable[str], scope: Scope, active: bool, reason: str | None, by: Attribution
    ) -> list[str]:
        wanted = [memory_ids] if isinstance(memory_ids, str) else list(memory_ids)

        def change(tx: Transaction) -> list[str]:
            found = [memory for memory in tx.lock(Memory, wanted, scope) if memory.is_active is not active]
            moment = clock.now()
            with tx.audited_as("restore" if active else "delete"):
                tx.save(*(memory.replace(is_active=active, updated_at=moment) for memory in found))
            return [memory.id for memory in found]

        return self._storage.write(change, _because(by, reason))

    # ------------------------------------------------------------------ the archive

    def archive_memory(
        self, memory_ids: str | Iterable[str], scope: Scope, reason: str | None = None, by: Attribution = ANONYMOUS
    ) -> list[str]:
        """Move memories to the cold table with their vectors and relationships; returns the archive ids."""
        return self._archive.put(Memory, memory_ids, scope, ArchiveCause.ARCHIVED, reason, by)

    def unarchive(self, ids: str | Iterable[str], scope: Scope, by: Attribution = ANONYMOUS) -> list[Record]:
        """Restore memories by their own or their archive ids; returns them."""
        return self._archive.restore(ids, scope, by, Memory)

    # ------------------------------------------------------------------ time

    def expire_due(self, scope: Scope, *, dry_run: bool = False, by: Attribution = ANONYMOUS) -> PruneSummary:
        """Archive the memories whose time to live is over; a dry run only returns which."""
        policy = PrunePolicy(stale_after_days=_NOTHING, min_confidence=_NOTHING, expired=True)
        return self._forgetting.prune(scope, policy, dry_run, by, [Memory])

    def process_memory_decay(
        self,
        scope: Scope,
        *,
        dry_run: bool = True,
        min_strength: float = 0.05,
        policy: PrunePolicy | None = None,
        by: Attribution = ANONYMOUS,
    ) -> PruneSummary:
        """Archive the memories whose strength, by importance, decay rate and last use, is below `min_strength`.

        A dry run, the default, only returns which. Memories of users for whom the setting `memory_decay_enabled` is
        false do not decay.
        """
        chosen = policy or PrunePolicy(
            stale_after_days=_NOTHING, min_confidence=_NOTHING, min_strength=min_strength, expired=False
        )
        return self._forgetting.prune(scope, chosen, dry_run, by, [Memory])

    # ------------------------------------------------------------------ retention

    def retain(
        self,
        scope: Scope,
        *,
        deleted_for: timedelta,
        archived_for: timedelta | None = None,
        dry_run: bool = False,
        by: Attribution = ANONYMOUS,
    ) -> Retained:
        """Archive what was soft-deleted before `deleted_for`; purge what was archived before `archived_for`.

        Without `archived_for`, nothing is purged.
        """
        moment = clock.now()
        deleted_until = moment_before(moment, deleted_for, "retention", "deleted_for")
        # What this archives itself was not archived before.
        archived_until = (
            None if archived_for is None else moment_before(moment, archived_for, "retention", "archived_for")
        )
        old = And(Compare("is_active", "eq", False), Compare("updated_at", "lt", deleted_until))
        ids = [str(key) for (key,) in self._storage.values(Memory, ["id"], scope, old)]
        if dry_run:
            due = 0 if archived_until is None else self._archive.count(scope, Memory, until=archived_until)
            return Retained(True, tuple(ids), due)
        reason = f"deleted more than {deleted_for.days:,} days ago"
        moved: list[str] = []
        for start in range(0, len(ids), _AT_ONCE):
            # The deletion may have been undone meanwhile.
            chunk = ids[start : start + _AT_ONCE]
            moved += self._archive.put(
                Memory, chunk, scope, ArchiveCause.ARCHIVED, reason, by, only_if=lambda record: matches(old, record)
            )
        purged = (
            0 if archived_until is None else self._archive.purge(archived_until, scope, by, Memory, soft_deleted=False)
        )
        return Retained(False, tuple(moved), purged)


def _because(by: Attribution, reason: str | None) -> Attribution:
    return by if reason is None else replace(by, reason=reason)


_log = logging.getLogger("alma.learning")

DEFAULT_INTERVAL_SECONDS = 300.0
_EVERYWHERE = Scope.everywhere()
_BY = Attribution(agent="expiry", reason="expired")
_DELETE_BATCH = 500
# Expired API keys stay listed as such; memories are archived until they are purged.
_EXPIRING = tuple(cls for cls in KINDS if "expires_at" in cls.spec.by_name and cls not in (ApiKey, Memory))


class Expiry:
    """Removes expired rows at an interval, in a thread; without any, it writes nothing.

    Memories are archived, other rows are deleted. Of several processes on one store, one at a time works.
    """

    def __init__(
        self, storage: StorageBackend, archive: Archive, interval_seconds: float = DEFAULT_INTERVAL_SECONDS
    ) -> None:
        if not interval_seconds > 0:
            raise ValidationError("expiry", "interval_seconds", interval_seconds, "must be above 0")
        self._storage = checked_storage("expiry", storage)
        self._lifecycle = MemoryLifecycle(storage, archive)
        self._interval_seconds = interval_seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="alma-expiry", daemon=True)

    def start(self) -> None:
        """Start the thread; it runs at once."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current batch."""
        self._ended.set()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def run_once(self) -> Mapping[str, int]:
        """Remove expired rows now; returns how many of each kind."""
        removed = {cls.spec.kind: self._remove(cls) for cls in _EXPIRING}
        if self._storage.values(Memory, ("id",), _EVERYWHERE, _due(), limit=1):
            removed["memory"] = self._lifecycle.expire_due(_EVERYWHERE, by=_BY).total
        found = {kind: count for kind, count in removed.items() if count}
        if found:
            _log.info("expired rows were removed", extra={"removed": found})
        return found

    def due(self) -> Mapping[str, int]:
        """How many rows of each kind would be removed now."""
        kinds: tuple[type[Record], ...] = (*_EXPIRING, Memory)
        return {cls.spec.kind: self._storage.count(cls, _EVERYWHERE, _due()) for cls in kinds}

    def _loop(self) -> None:
        while not self._ended.is_set():
            try:
                self.run_once()
            except Exception as exc:  # noqa: BLE001 - whatever a store does, the next look must come
                _log.warning("expired rows could not be removed", extra={"error": self._storage.masked(str(exc))})
            self._ended.wait(self._interval_seconds)

    def _remove(self, cls: type[Record]) -> int:
        removed, due = 0, _due()
        while not self._ended.is_set():
            ids = [key for (key,) in self._storage.values(cls, (cls.spec.key,), _EVERYWHERE, due, limit=_DELETE_BATCH)]
            if not ids:
                break
            removed += self._storage.write(lambda tx, ids=ids: _delete(tx, cls, ids, due), _BY)  # type: ignore[misc]
        return removed


def _due() -> Predicate:
    return Compare("expires_at", "le", clock.now())


def _delete(tx: Transaction, cls: type[Record], ids: Sequence[str], due: Predicate) -> int:
    # Other processes wait for this lock, and then find nothing to do.
    tx.hold("expiry")
    held = [record.key for record in tx.lock(cls, ids, _EVERYWHERE) if matches(due, record)]
    return tx.delete(cls, held, _EVERYWHERE, action="expire")

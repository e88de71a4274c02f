"""Expiry: what has an end is removed when that is past, by a service that runs, in the background."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence

from alma import clock
from alma.errors import ValidationError
from alma.learning.lifecycle import MemoryLifecycle
from alma.memory.archive import Archive
from alma.model.governance import ApiKey, Attribution
from alma.model.kinds import KINDS
from alma.model.memory import Memory
from alma.model.query import Compare, Predicate, matches
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.base import StorageBackend, Transaction, checked_storage

_log = logging.getLogger("alma.learning")

DEFAULT_INTERVAL_SECONDS = 300.0
_EVERYWHERE = Scope.everywhere()
_BY = Attribution(agent="expiry", reason="expired")
_AT_ONCE = 500
# An expired key stays in the list of keys, which says so; memories go to the archive, from where a purge takes them.
_EXPIRING = tuple(cls for cls in KINDS if "expires_at" in cls.spec.by_name and cls not in (ApiKey, Memory))


class Expiry:
    """Removes what is past its end every interval, in a thread; nothing is written while there is nothing to remove.

    Memories go to the archive, other rows are deleted. Of several processes on one store, one at a time works.
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
        """Begin; the first look is at once."""
        self._thread.start()

    def stop(self) -> None:
        """End, after the batch that is being removed."""
        self._ended.set()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def run_once(self) -> Mapping[str, int]:
        """Remove what is past its end now; returns how many of each kind there were."""
        removed = {cls.spec.kind: self._remove(cls) for cls in _EXPIRING}
        if self._storage.values(Memory, ("id",), _EVERYWHERE, _due(), limit=1):
            removed["memory"] = self._lifecycle.expire_due(_EVERYWHERE, by=_BY).total
        found = {kind: count for kind, count in removed.items() if count}
        if found:
            _log.info("expired rows were removed", extra={"removed": found})
        return found

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
            ids = [key for (key,) in self._storage.values(cls, (cls.spec.key,), _EVERYWHERE, due, limit=_AT_ONCE)]
            if not ids:
                break
            removed += self._storage.write(lambda tx, ids=ids: _delete(tx, cls, ids, due), _BY)  # type: ignore[misc]
        return removed


def _due() -> Predicate:
    return Compare("expires_at", "le", clock.now())


def _delete(tx: Transaction, cls: type[Record], ids: Sequence[str], due: Predicate) -> int:
    # Other processes wait here, and find nothing left to do.
    tx.hold("expiry")
    held = [record.key for record in tx.lock(cls, ids, _EVERYWHERE) if matches(due, record)]
    return tx.delete(cls, held, _EVERYWHERE, action="expire")

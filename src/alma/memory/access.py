"""Access: counts who reads which memory, beside the reads instead of in their way."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from alma import clock
from alma.errors import ALMAError
from alma.model.memory import Memory, MemoryAccess
from alma.model.query import In
from alma.model.scope import Scope
from alma.storage.base import Reads, StorageBackend, Transaction

_log = logging.getLogger("alma.memory")

FLUSH_SECONDS = 10.0
_MOST_PENDING = 2_000
_AT_ONCE = 500
_EVERYWHERE = Scope.everywhere()

Key = tuple[str, str | None]


@dataclass(slots=True)
class _Tally:
    """What one session did with one memory since the last flush."""

    reads: int
    last: datetime
    helpful: int = 0
    unhelpful: int = 0

    def add(self, other: _Tally) -> None:
        self.reads += other.reads
        self.helpful += other.helpful
        self.unhelpful += other.unhelpful
        self.last = max(self.last, other.last)


class AccessRecorder:
    """Gathers reads in memory and adds them to the stored counters from a thread of its own.

    Counters are added to, never set, so that those of several processes add up. What was gathered since the last flush,
    at most `flush_seconds` ago, is lost when the process is killed; `close` writes it.
    """

    def __init__(self, storage: StorageBackend, flush_seconds: float = FLUSH_SECONDS) -> None:
        self._storage = storage
        self._seconds = flush_seconds
        self._pending: dict[Key, _Tally] = {}
        self._lock = threading.Lock()
        # One flush at a time: what one of them failed to write is pending again before the next looks.
        self._flushing = threading.Lock()
        self._due = threading.Event()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()
        self._closed = False

    def record(self, memory_ids: Iterable[str], session_id: str | None = None) -> None:
        """Note that these memories were read just now."""
        moment = clock.now()
        with self._lock:
            self._own_process()
            for memory_id in memory_ids:
                known = self._pending.get((memory_id, session_id))
                if known is None:
                    self._pending[memory_id, session_id] = _Tally(1, moment)
                else:
                    known.reads += 1
                    known.last = moment
            self._wake()

    def judge(self, memory_id: str, helpful: bool, session_id: str | None = None) -> None:
        """Note that a memory helped, or did not."""
        tally = _Tally(0, clock.now(), helpful=int(helpful), unhelpful=int(not helpful))
        with self._lock:
            self._own_process()
            self._put_back({(memory_id, session_id): tally})
            self._wake()

    def flush(self) -> None:
        """Write everything gathered so far."""
        with self._flushing:
            with self._lock:
                self._own_process()
                taken, self._pending = self._pending, {}
            keys = sorted(taken, key=lambda key: (key[0], key[1] or ""))
            for start in range(0, len(keys), _AT_ONCE):
                batch = {key: taken[key] for key in keys[start : start + _AT_ONCE]}
                try:
                    self._storage.write(lambda tx, batch=batch: _write(tx, batch))  # type: ignore[misc]
                except BaseException:
                    with self._lock:
                        self._put_back({key: taken[key] for key in keys[start:]})
                    raise

    def close(self) -> None:
        """Write what is left and end the thread; closing twice is fine."""
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
        self._due.set()
        if thread is not None and self._process == os.getpid():
            thread.join()
        self.flush()

    # ------------------------------------------------------------------ the thread

    def _own_process(self) -> None:
        """After a fork the counts are the parent's to write, and the thread is there alone."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._pending, self._thread = {}, None
            self._due = threading.Event()
            self._flushing = threading.Lock()

    def _put_back(self, tallies: dict[Key, _Tally]) -> None:
        for key, tally in tallies.items():
            known = self._pending.setdefault(key, tally)
            if known is not tally:
                known.add(tally)

    def _wake(self) -> None:
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._run, name="alma-access", daemon=True)
            self._thread.start()
        if len(self._pending) >= _MOST_PENDING:
            self._due.set()

    def _run(self) -> None:
        due = self._due
        while not self._closed:
            due.wait(self._seconds)
            due.clear()
            if self._closed or not self._pending:
                continue
            try:
                self.flush()
            except ALMAError as exc:
                # They stay pending; the next flush may succeed.
                _log.warning("reads were not counted yet", extra={"error": str(exc)})


def _write(tx: Transaction, tallies: dict[Key, _Tally]) -> None:
    reads: dict[str, Reads] = {}
    for (memory_id, _), tally in tallies.items():
        before = reads.get(memory_id, Reads(0, tally.last))
        reads[memory_id] = Reads(before.count + tally.reads, max(before.last, tally.last))
    tx.count_reads(Memory, reads)
    # A memory that is gone meanwhile has nobody to count for; those that were counted just now cannot go before we end.
    known = {memory_id for (memory_id,) in tx.values(Memory, ("id",), _EVERYWHERE, In("id", list(reads)))}
    rows = {row.id: row for row in (_row(*key, tally) for key, tally in tallies.items() if key[0] in known)}
    for stored in tx.lock(MemoryAccess, rows, _EVERYWHERE):
        rows[stored.id] = _sum(stored, rows[stored.id])
    tx.save(*rows.values())


def _row(memory_id: str, session_id: str | None, tally: _Tally) -> MemoryAccess:
    return MemoryAccess(
        id=MemoryAccess.id_of(memory_id, session_id),
        memory_id=memory_id,
        session_id=session_id,
        access_count=tally.reads,
        helpful_count=tally.helpful,
        unhelpful_count=tally.unhelpful,
        last_accessed_at=tally.last,
    )


def _sum(stored: MemoryAccess, new: MemoryAccess) -> MemoryAccess:
    return stored.replace(
        access_count=stored.access_count + new.access_count,
        helpful_count=stored.helpful_count + new.helpful_count,
        unhelpful_count=stored.unhelpful_count + new.unhelpful_count,
        last_accessed_at=max(stored.last_accessed_at, new.last_accessed_at),
    )

"""Count which session reads which memory, in the background."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from alma import clock
from alma.errors import ALMAError
from alma.model.common import checked_names
from alma.model.memory import Memory, MemoryAccess
from alma.model.query import In
from alma.model.scope import Scope
from alma.storage.base import Reads, StorageBackend, Transaction

_log = logging.getLogger("alma.memory")

FLUSH_SECONDS = 10.0
_MAX_PENDING = 10_000
_BATCH_SIZE = 500
_EVERYWHERE = Scope.everywhere()

Key = tuple[str, str | None]


@dataclass(slots=True)
class _Tally:
    """Counts of one session for one memory since the last flush."""

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
    """Collects reads in memory and adds them to the stored counters from a background thread.

    Counters are incremented, never set, so that several processes add up. Reads since the last flush, at most
    `flush_seconds` ago, are lost when the process is killed; `close` writes them.
    """

    def __init__(self, storage: StorageBackend, flush_seconds: float = FLUSH_SECONDS) -> None:
        self._storage = storage
        self._seconds = flush_seconds
        # Readers only append, which needs no lock.
        self._reads: deque[tuple[str, str | None, datetime]] = deque()
        self._pending: deque[tuple[Key, _Tally]] = deque()
        # One flush at a time, so that reads which could not be written are pending again before the next one.
        self._flushing = threading.Lock()
        self._due = threading.Event()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()
        self._closed = False

    def record(self, memory_ids: Iterable[str], session_id: str | None = None) -> None:
        """Count these memories as read now; ignored after `close`."""
        if self._closed:
            return
        if self._process != os.getpid():
            self._reset_after_fork()
        moment = clock.now()
        # Check here, because an invalid id would end the background thread.
        for memory_id in checked_names("record_reads", "memory_ids", memory_ids):
            self._reads.append((memory_id, session_id, moment))
        if self._thread is None or len(self._reads) >= _MAX_PENDING:
            self._wake()

    def flush(self) -> None:
        """Write all reads collected so far."""
        if self._process != os.getpid():
            self._reset_after_fork()
        with self._flushing:
            taken = self._collected()
            keys = sorted(taken, key=lambda key: (key[0], key[1] or ""))
            for start in range(0, len(keys), _BATCH_SIZE):
                batch = {key: taken[key] for key in keys[start : start + _BATCH_SIZE]}
                try:
                    self._storage.write(lambda tx, batch=batch: _write(tx, batch))  # type: ignore[misc]
                except BaseException:
                    self._pending.extend((key, taken[key]) for key in keys[start:])
                    raise

    def _collected(self) -> dict[Key, _Tally]:
        """Take the collected reads, summed up by memory and session."""
        summed: dict[Key, _Tally] = {}
        for _ in range(len(self._pending)):
            key, tally = self._pending.popleft()
            _add(summed, key, tally)
        for _ in range(len(self._reads)):
            memory_id, session_id, moment = self._reads.popleft()
            _add(summed, (memory_id, session_id), _Tally(1, moment))
        return summed

    def close(self) -> None:
        """Write the remaining reads and end the thread; closing twice is fine."""
        self._closed = True
        self._due.set()
        thread, self._thread = self._thread, None
        if thread is not None and self._process == os.getpid():
            thread.join()
        self.flush()

    # ------------------------------------------------------------------ the thread

    def _reset_after_fork(self) -> None:
        """Start empty after a fork: the parent writes its own counts."""
        self._process = os.getpid()
        self._reads, self._pending, self._thread = deque(), deque(), None
        self._due, self._flushing = threading.Event(), threading.Lock()

    def _wake(self) -> None:
        if self._thread is None and not self._closed:
            self._start()
        if len(self._reads) >= _MAX_PENDING:
            self._due.set()

    def _start(self) -> None:
        with self._flushing:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="alma-access", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        due = self._due
        while not self._closed:
            due.wait(self._seconds)
            due.clear()
            if self._closed or not (self._reads or self._pending):
                continue
            try:
                self.flush()
            except ALMAError as exc:
                # The reads stay pending for the next flush.
                _log.warning("reads were not counted yet", extra={"error": str(exc)})


def _add(summed: dict[Key, _Tally], key: Key, tally: _Tally) -> None:
    known = summed.setdefault(key, tally)
    if known is not tally:
        known.add(tally)


def _write(tx: Transaction, tallies: dict[Key, _Tally]) -> None:
    reads: dict[str, Reads] = {}
    for (memory_id, _), tally in tallies.items():
        before = reads.get(memory_id, Reads(0, tally.last))
        reads[memory_id] = Reads(before.count + tally.reads, max(before.last, tally.last))
    tx.count_reads(Memory, reads)
    # Rows of deleted memories are skipped; those just counted are locked until the transaction ends.
    known = {memory_id for (memory_id,) in tx.values(Memory, ("id",), _EVERYWHERE, In("id", list(reads)))}
    rows = {
        row.id: row for row in (_row(*key, tally) for key, tally in tallies.items() if _needs_row(*key, tally, known))
    }
    for stored in tx.lock(MemoryAccess, rows, _EVERYWHERE):
        rows[stored.id] = _sum(stored, rows[stored.id])
    tx.save(*rows.values())


def _needs_row(memory_id: str, session_id: str | None, tally: _Tally, known: set[str]) -> bool:
    """Whether a row is needed besides the read counter of the memory."""
    return memory_id in known and (session_id is not None or tally.helpful > 0 or tally.unhelpful > 0)


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


def add_feedback(tx: Transaction, memory_id: str, helpful: bool, session_id: str | None) -> None:
    """Record in a transaction that a memory helped, or did not."""
    row = _row(memory_id, session_id, _Tally(0, clock.now(), helpful=int(helpful), unhelpful=int(not helpful)))
    for stored in tx.lock(MemoryAccess, [row.id], _EVERYWHERE):
        row = _sum(stored, row)
    tx.save(row)


def _sum(stored: MemoryAccess, new: MemoryAccess) -> MemoryAccess:
    return stored.replace(
        access_count=stored.access_count + new.access_count,
        helpful_count=stored.helpful_count + new.helpful_count,
        unhelpful_count=stored.unhelpful_count + new.unhelpful_count,
        last_accessed_at=max(stored.last_accessed_at, new.last_accessed_at),
    )

"""TransactionCoordinator: transactions of the store that are named by an id."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from alma import clock
from alma.clock import new_id
from alma.errors import NotFoundError, ValidationError
from alma.model.governance import ANONYMOUS, Attribution, checked_by
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.base import StorageBackend, Transaction, checked_storage

Step = Callable[[Transaction], Any]
"""Writes something in a transaction of the store; also calls of services on that store, which join it."""

_OPEN_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The results of the steps, and the number of changes in the outbox for each engine."""

    transaction_id: str
    committed_at: datetime
    results: tuple[Any, ...]
    pending: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RollbackResult:
    """How many steps were discarded."""

    transaction_id: str
    discarded: int


@dataclass(slots=True)
class _Open:
    by: Attribution
    until: datetime
    steps: list[Step] = field(default_factory=list)
    committing: threading.Lock = field(default_factory=threading.Lock)


class TransactionCoordinator:
    """Begins, commits and rolls back transactions by id, from any thread.

    The store is the only participant: a commit writes all steps in one transaction of it, with the marks from which
    the relay brings them to Qdrant, Neo4j and Redis. Steps are kept until then, so an open transaction holds no lock;
    it is rolled back after `open_seconds`, and with the process.
    """

    def __init__(self, storage: StorageBackend, *, open_seconds: float = _OPEN_SECONDS) -> None:
        self._storage = checked_storage("transactions", storage)
        if isinstance(open_seconds, bool) or not isinstance(open_seconds, int | float) or not open_seconds > 0:
            raise ValidationError("transactions", "open_seconds", open_seconds, "must be a number above 0")
        self._lasts = timedelta(seconds=open_seconds)
        self._open: dict[str, _Open] = {}
        self._lock = threading.Lock()

    def begin(self, by: Attribution = ANONYMOUS) -> str:
        """Begin a transaction; returns its id."""
        checked_by("transaction", by)
        transaction_id, moment = new_id(), clock.now()
        with self._lock:
            self._open = {key: each for key, each in self._open.items() if each.until > moment}
            self._open[transaction_id] = _Open(by, moment + self._lasts)
        return transaction_id

    def add(self, transaction_id: str, step: Step) -> None:
        """Add a step: a function of the store's transaction, which the commit calls."""
        if not callable(step):
            raise ValidationError("transactions", "step", step, "must be a function of a transaction")
        found = self._require(transaction_id)
        with found.committing:
            self._require(transaction_id).steps.append(step)

    def save(self, transaction_id: str, *records: Record) -> None:
        """Add that these records are saved; the step returns their ids."""
        for record in records:
            if not isinstance(record, Record):
                raise ValidationError("transactions", "records", record, "must be records, as alma.Memory")

        def write(tx: Transaction) -> list[str]:
            tx.save(*records)
            return [str(record.key) for record in records]

        self.add(transaction_id, write)

    def delete(self, transaction_id: str, cls: type[Record], ids: Collection[str], scope: Scope) -> None:
        """Add that these records are deleted where the scope has them; the step returns how many."""
        wanted = list(ids)
        self.add(transaction_id, lambda tx: tx.delete(cls, wanted, scope))

    def commit(self, transaction_id: str) -> CommitResult:
        """Write all steps in one transaction of the store.

        After an error nothing was written and the transaction is still open: commit it again, or roll it back.
        """
        found = self._require(transaction_id)
        with found.committing:
            # Another thread may have ended it meanwhile.
            self._require(transaction_id)
            results = self._storage.write(lambda tx: tuple(step(tx) for step in found.steps), found.by)
            self._end(transaction_id)
        with self._storage.snapshot() as tx:
            pending = {name: tx.backlog(name).pending for name in tx.projections()}
        return CommitResult(transaction_id, clock.now(), results, pending)

    def rollback(self, transaction_id: str) -> RollbackResult:
        """Discard all steps."""
        found = self._require(transaction_id)
        with found.committing:
            self._require(transaction_id)
            self._end(transaction_id)
        return RollbackResult(transaction_id, len(found.steps))

    # The names of the Layered Memory document.
    begin_transaction = begin
    commit_transaction = commit
    rollback_transaction = rollback

    def _require(self, transaction_id: str) -> _Open:
        with self._lock:
            found = self._open.get(transaction_id)
            if found is None or found.until <= clock.now():
                raise NotFoundError("open transaction", transaction_id)
            return found

    def _end(self, transaction_id: str) -> None:
        with self._lock:
            self._open.pop(transaction_id, None)

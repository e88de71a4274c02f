"""TransactionalStore: joins transactions of a thread, retries after conflicts, notifies subscribers after commits."""

from __future__ import annotations

import logging
import threading
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from alma.clock import new_id, now
from alma.closeable import Closeable
from alma.errors import ConflictError, ConnectionLostError, StorageError, UniquenessError
from alma.model.governance import ANONYMOUS, Attribution, checked_by
from alma.model.record import Record, RecordSpec
from alma.storage.backend import Backend
from alma.storage.transaction import Transaction
from alma.storage.writer import Act

_log = logging.getLogger("alma.storage")


@dataclass(frozen=True, slots=True)
class Change:
    """One record that a committed transaction changed, whose it is, and who did it.

    `action` is what the audit log calls it: create, update, delete, or archive and restore where a record went to the
    archive or came back.
    """

    kind: str
    id: str
    action: str
    project_id: str | None
    agent: str | None
    user_id: str | None
    session_id: str | None
    by: Attribution
    at: datetime


Listener = Callable[[Sequence[Change]], object]


def changes_of(acts: Sequence[Act], by: Attribution, at: datetime) -> list[Change]:
    """The changes that these acts of one transaction made, in their order."""
    return [change for action, spec, records in acts for change in _changes(action, spec, records, by, at)]


def notify(listeners: Sequence[Listener], changes: Sequence[Change]) -> None:
    """Call each listener with the changes; a listener that fails does not undo the commit."""
    for listener in listeners:
        try:
            listener(changes)
        except Exception:  # noqa: BLE001 - the write is done and must not seem to have failed
            _log.exception("a listener failed after a commit", extra={"changes": len(changes)})


def _changes(
    action: str, spec: RecordSpec, records: Sequence[Record], by: Attribution, at: datetime
) -> Iterator[Change]:
    for record in records:
        yield Change(
            kind=spec.kind,
            id=str(spec.key_of(record)),
            action=action,
            project_id=getattr(record, "project_id", None),
            agent=getattr(record, "agent", None),
            user_id=getattr(record, "user_id", None),
            session_id=getattr(record, "session_id", None),
            by=by,
            at=at,
        )


Result = TypeVar("Result")

_ATTEMPTS = 5


class TransactionalStore(Closeable):
    """Runs transactions, one at a time in each thread."""

    def __init__(self) -> None:
        # A further redactor for reasons, set by a memory on this store.
        self.mask: Callable[[str], str] | None = None
        self._current = threading.local()
        self._listeners: tuple[Listener, ...] = ()
        self._listeners_lock = threading.Lock()
        self._scrubbing = threading.Lock()
        self._scrubbed_at = 0.0

    # ------------------------------------------------------------------ implemented by a store

    @abstractmethod
    def _begin(self, *, write: bool) -> AbstractContextManager[Backend]:
        """Begin a transaction of the database; leaving the context commits it, an exception rolls it back."""

    @abstractmethod
    def _generation(self) -> str:
        """The value of `generation` outside of transactions."""

    # ------------------------------------------------------------------ transactions

    @contextmanager
    def transaction(self, by: Attribution = ANONYMOUS) -> Iterator[Transaction]:
        """Everything done inside becomes visible together, or not at all.

        Inside another transaction of the same thread this joins it; calls on the store itself join as well.
        """
        checked_by("transaction", by)
        by = self._without_secrets(by)
        outer = self._transaction_here()
        if outer is not None:
            if not outer.writable:
                raise StorageError("a write was tried inside a read-only snapshot")
            yield outer
            return
        listeners, also = self._listeners, getattr(self._current, "also", None)
        with self._begin(write=True) as backend:
            tx = self._current.transaction = Transaction(backend, by)
            try:
                if listeners or also is not None:
                    tx.watch()
                yield tx
                if also is not None and tx.acts:
                    also(tx)
                tx.require_sound()
            finally:
                self._current.transaction = None
        if tx.acts:
            notify(listeners, changes_of(tx.acts, by, now()))

    def write(self, operation: Callable[[Transaction], Result], by: Attribution = ANONYMOUS) -> Result:
        """Run one operation in a transaction; returns its result.

        It is run again after a conflict, or where the connection was lost before the commit.
        """
        if self._transaction_here() is not None:
            with self.transaction(by) as tx:
                return operation(tx)
        for attempt in range(_ATTEMPTS):
            try:
                with self.transaction(by) as tx:
                    tx.cautious = attempt > 0
                    return operation(tx)
            except UniquenessError:
                raise
            except (ConflictError, ConnectionLostError):
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError("the last attempt returns or raises")

    @contextmanager
    def before_commit(self, also: Callable[[Transaction], object]) -> Iterator[None]:
        """Inside, run this callback at the end of every transaction of this thread that changed a record.

        The changes are in the transaction's `acts`. An error of the callback rolls back the transaction.
        """
        self._current.also = also
        try:
            yield
        finally:
            self._current.also = None

    def _transaction_here(self) -> Transaction | None:
        return getattr(self._current, "transaction", None)

    @property
    def is_writing(self) -> bool:
        """Whether this thread is inside a transaction that writes, whose changes others do not see yet."""
        here = self._transaction_here()
        return here is not None and here.writable

    # ------------------------------------------------------------------ snapshots

    def snapshot(self) -> AbstractContextManager[Transaction]:
        """Several reads that all see the same committed state."""
        outer = self._transaction_here()
        # Most are opened inside another one, which is reused.
        return self._snapshot() if outer is None else nullcontext(outer)

    @contextmanager
    def _snapshot(self) -> Iterator[Transaction]:
        with self._begin(write=False) as backend:
            tx = self._current.transaction = Transaction(backend, ANONYMOUS)
            try:
                yield tx
            finally:
                self._current.transaction = None

    @contextmanager
    def reading(self) -> Iterator[tuple[Transaction, str]]:
        """A snapshot with its generation, or an earlier one."""
        # The generation of an older snapshot is unknown, so a fresh one is used and a cache is never hit.
        generation = self.generation() if self._transaction_here() is None else new_id()
        with self.snapshot() as tx:
            yield tx, generation

    def generation(self) -> str:
        """A text that changes with every commit of any process.

        It may also change without a commit, and does inside a transaction that writes. It differs between stores, and
        may differ between processes.
        """
        return new_id() if self.is_writing else self._generation()

    # ------------------------------------------------------------------ subscribers

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call the listener with the changes of every transaction that this object commits; returns an unsubscribe.

        It is called after the commit, in the thread that wrote, once for each transaction that changed a record, and
        never after a rollback. An error of the listener is logged and not raised.
        """
        # One object for each subscription, so that ending one of two equal ones leaves the other.
        subscription = partial(listener)
        with self._listeners_lock:
            self._listeners = (*self._listeners, subscription)
        # A reference to the unsubscribe function does not keep the store alive.
        return partial(_unsubscribe, weakref.ref(self), subscription)

    # ------------------------------------------------------------------ reasons

    def masked(self, text: str) -> str:
        """A reason with its secrets masked, as history, archive and audit store it."""
        from alma.redaction.redactor import redact_text

        clean = redact_text(text).text
        return clean if self.mask is None else self.mask(clean)

    def _without_secrets(self, by: Attribution) -> Attribution:
        if self.mask is None or (by.reason is None and by.user_agent is None):
            return by
        said = {"reason": by.reason, "user_agent": by.user_agent}
        return replace(by, **{name: self.mask(text) for name, text in said.items() if text is not None})


def _unsubscribe(store: weakref.ref[TransactionalStore], subscription: Listener) -> None:
    here = store()
    if here is not None:
        with here._listeners_lock:
            here._listeners = tuple(each for each in here._listeners if each is not subscription)

"""The relay: carries the marks of one projection from the outbox to its engine."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain

from alma import clock
from alma.errors import StorageError, ValidationError
from alma.storage.base import Mark, StorageBackend
from alma.sync.options import RelayOptions
from alma.sync.projection import Change, Projection
from alma.sync.reading import changes_of
from alma.sync.rebuilding import Progress, advance, clear, prepare, progress_of, register

_log = logging.getLogger("alma.sync")

_LONGEST_PAUSE_SECONDS = 60.0
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_ERROR = 2_000


class EngineDownError(StorageError):
    """The engine does not answer; its marks wait, and no attempt is counted."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The result of a relay for the marks of one batch."""

    applied: int = 0
    failed: int = 0


Work = tuple[Mark, Change]


class Relay:
    """Claims marks with a lease, applies the current state of their records, and acknowledges them.

    Any number of relays, of any process, share the marks of a projection. A record that fails does not keep the others
    of its batch: the batch is halved until that record is alone.
    """

    def __init__(self, storage: StorageBackend, projection: Projection, options: RelayOptions | None = None) -> None:
        self.projection = projection
        self._storage = storage
        self._options = options or RelayOptions()
        self._is_prepared = False

    def step(self) -> Batch | None:
        """Apply one batch; None if nothing waits. Raises `EngineDownError` if the engine does not answer."""
        self.prepare()
        with self._storage.snapshot() as tx:
            # A restore of the store, or `alma sync drop`, forgets the projection.
            self._is_prepared = self.projection.name in tx.projections()
            can_claim = tx.can_claim(self.projection.name)
        if can_claim:
            marks = self._storage.claim(self.projection.name, self._options.batch_size, self._options.lease_seconds)
            # Empty if other relays were faster.
            if marks:
                return self._carry(marks)
        return Batch() if self._advance() else None

    def run(self, on_batch: Callable[[Batch], object] = lambda _: None, until: Callable[[], bool] = bool) -> Batch:
        """Apply batches until nothing waits that this relay may claim, or `until` is true; returns their sum."""
        done = Batch()
        while not until() and (batch := self.step()) is not None:
            done = Batch(done.applied + batch.applied, done.failed + batch.failed)
            on_batch(batch)
        return done

    def prepare(self) -> None:
        """Register the projection and create what its engine lacks; done once, and again after an error."""
        if self._is_prepared:
            return
        register(self._storage, self.projection)
        try:
            prepare(self._storage, self.projection)
        except StorageError as exc:
            raise EngineDownError(str(exc)) from exc
        self._is_prepared = True

    def clear(self) -> None:
        """Drop everything the engine has of this projection; `run` then rebuilds it, while others write."""
        self.prepare()
        clear(self._storage, self.projection)

    def progress(self) -> Progress:
        """How many of the records the engine has caught up with."""
        with self._storage.snapshot() as tx:
            return progress_of(tx, self.projection)

    # ------------------------------------------------------------------ one batch

    def _advance(self) -> bool:
        try:
            return advance(self._storage, self.projection, self._options.batch_size, self._options.lease_seconds)
        except StorageError:
            self.require_engine()
            raise

    def _carry(self, marks: Sequence[Mark]) -> Batch:
        try:
            with self._storage.snapshot() as tx:
                changes = changes_of(tx, self.projection, [(mark.kind, mark.record_id) for mark in marks])
        except BaseException:
            self._storage.release(marks)
            raise
        return self._apply(list(zip(marks, changes, strict=True)))

    def _apply(self, work: Sequence[Work]) -> Batch:
        """Apply a batch; after an error each half of it, unless the engine is down or the lease ends."""
        done, waiting = Batch(), [list(work)]
        while waiting:
            part = waiting.pop()
            if self._lease_ends(part):
                self._storage.release(_marks(part))
                continue
            try:
                self.projection.apply([change for _, change in part])
            except Exception as exc:  # noqa: BLE001 - whatever an engine does with one record, the others go on
                self._give_up_if_down(exc, [*part, *chain.from_iterable(waiting)])
                if len(part) == 1:
                    self._fail(part[0][0], exc)
                    done = Batch(done.applied, done.failed + 1)
                else:
                    waiting += [part[len(part) // 2 :], part[: len(part) // 2]]
            else:
                self._storage.acknowledge(_marks(part))
                done = Batch(done.applied + len(part), done.failed)
        return done

    def _lease_ends(self, part: Sequence[Work]) -> bool:
        """Whether more than half of the lease is over: what is applied after its end may overwrite a newer state."""
        until = part[0][0].leased_until
        return until is not None and clock.now() > until - timedelta(seconds=self._options.lease_seconds / 2)

    def _give_up_if_down(self, exc: Exception, left: Sequence[Work]) -> None:
        self._is_prepared = False
        if isinstance(exc, ValidationError):
            return
        try:
            self.require_engine()
        except EngineDownError:
            self._storage.release(_marks(left))
            raise

    def require_engine(self) -> None:
        """Raise `EngineDownError` if the engine does not answer, or came back without its data."""
        try:
            self.projection.ping()
        except StorageError as exc:
            # It may come back without its data.
            self._is_prepared = False
            raise EngineDownError(str(exc)) from exc

    def _fail(self, mark: Mark, exc: Exception) -> None:
        refused = isinstance(exc, ValidationError)
        error = self._storage.masked(str(exc) or type(exc).__name__)[:_LONGEST_ERROR]
        pause = pause_seconds(mark.attempts)
        park_after = 1 if refused else self._options.park_after
        self._storage.fail(mark, error, park_after, pause)
        if mark.attempts + 1 >= park_after:
            facts = {"engine": self.projection.name, "kind": mark.kind, "id": mark.record_id, "error": error}
            _log.warning("a record was parked", extra=facts)


def pause_seconds(failures: int) -> float:
    """Exponential back-off with jitter."""
    longest = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2 ** min(failures, 16))
    return random.uniform(longest / 2, longest)


def _marks(work: Sequence[Work]) -> list[Mark]:
    return [mark for mark, _ in work]

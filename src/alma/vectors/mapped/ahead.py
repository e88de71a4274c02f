"""Searches that are begun while the caller still asks the store for something else."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, NamedTuple

from alma.model.query import Predicate
from alma.model.record import Record
from alma.model.scope import Scope
from alma.process import PerProcess
from alma.storage.base import Transaction, VectorQuestion
from alma.vectors.mapped.ranking import Ranking, Scanned
from alma.vectors.mapped.state import Ready

_AT_ONCE = 2


class Asked(NamedTuple):
    """What is asked of an index, as it was given."""

    cls: type[Record]
    vector: Any
    scope: Scope
    where: Predicate
    limit: int

    def is_same(self, other: Asked) -> bool:
        """Whether it is the same question: about the very same vector, as comparing others may be no yes or no."""
        return self.vector is other.vector and self._replace(vector=None) == other._replace(vector=None)


class Begun(NamedTuple):
    """A search as far as it has come: in which snapshot, for which question, and with which rows."""

    tx: Transaction
    asked: Asked
    question: VectorQuestion
    ready: Ready
    ranking: Ranking


class Ahead:
    """The search that each thread has begun last; codes are scanned beside it, without holding Python's lock.

    No scan is left running when its search has ended: what it locks would be locked for ever in a process that is
    forked meanwhile.
    """

    def __init__(self) -> None:
        self._workers = PerProcess(lambda: ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="alma-vectors-ahead"))
        self._of_thread = PerProcess(threading.local)

    def begin(self, begun: Begun, most: int) -> None:
        """Keep what was begun, and scan for so many of the best beside the caller, if anybody has the time."""
        self.end()
        here = self._of_thread.get()
        here.begun = begun
        if begun.ranking.by_codes:
            # Refused after closing and while the interpreter ends: then whoever asks scans.
            with suppress(RuntimeError):
                here.scan = self._workers.get().submit(begun.ranking.scan, most)
                begun.ranking.take_over(most, here.scan)

    def begun(self, tx: Transaction, asked: Asked) -> Begun | None:
        """What was begun for this question in this snapshot: in another one there may be other rows."""
        begun: Begun | None = getattr(self._of_thread.get(), "begun", None)
        return begun if begun is not None and begun.tx is tx and begun.asked.is_same(asked) else None

    def end(self) -> None:
        """Give up what the thread has begun; where somebody is scanning already, that is waited for."""
        here = self._of_thread.get()
        scan: Future[Scanned] | None = getattr(here, "scan", None)
        here.begun = here.scan = None
        if scan is not None and not (scan.cancel() or scan.done()):
            wait((scan,))

    def close(self) -> None:
        self._workers.get().shutdown(wait=False, cancel_futures=True)

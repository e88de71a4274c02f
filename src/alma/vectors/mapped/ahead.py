"""Scans that are begun while the caller still asks the store for something else."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple

from alma.storage.base import VectorQuestion
from alma.vectors.mapped.ranking import Ranking, Scanned
from alma.vectors.mapped.state import Ready

_AT_ONCE = 2


class _Begun(NamedTuple):
    """A scan under way: for which question, of which rows, and for how many of the best."""

    question: VectorQuestion
    rows: tuple[object, ...]
    most: int
    scan: Future[Scanned]


class Ahead:
    """The scan that each thread has begun last; the scans themselves hold no lock of Python's and run beside it."""

    def __init__(self) -> None:
        self._workers: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._of_thread = threading.local()

    def begin(self, question: VectorQuestion, ready: Ready, ranking: Ranking, most: int) -> None:
        """Scan for so many of the best beside the caller, if anybody has the time."""
        # Refused while the interpreter ends: then whoever asks scans.
        with suppress(RuntimeError):
            scan = self._pool().submit(ranking.scan, most)
            self._of_thread.begun = _Begun(question, _rows_of(ready), most, scan)

    def hand_over(self, question: VectorQuestion, ready: Ready, ranking: Ranking) -> None:
        """Give the scan to a ranking for which it was begun, where the rows are still the same."""
        begun: _Begun | None = getattr(self._of_thread, "begun", None)
        if begun is None:
            return
        self._of_thread.begun = None
        if begun.question == question and begun.rows == _rows_of(ready):
            ranking.take_over(begun.most, begun.scan)
        else:
            begun.scan.cancel()

    def close(self) -> None:
        with self._lock:
            if self._workers is not None:
                self._workers.shutdown(wait=False, cancel_futures=True)

    def _pool(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._workers is None:
                self._workers = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="alma-vectors-ahead")
            return self._workers


def _rows_of(ready: Ready) -> tuple[object, ...]:
    """What is another whenever other rows are to be scanned: rows are only ever added, and buried, in a table."""
    return ready.table, ready.coarse, ready.settled, ready.view.count, ready.selection.count, ready.buried

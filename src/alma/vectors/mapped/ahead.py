"""Scans that are begun while the caller still asks the store for something else."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import NamedTuple

from alma.per_process import PerProcess
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
    """The scan that each thread has begun last; a scan holds no lock of Python's and runs beside whoever waits for it.

    None is left running when the search it was begun for has ended: its lock would be held for ever in a process that
    is forked meanwhile.
    """

    def __init__(self) -> None:
        self._workers = PerProcess(lambda: ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="alma-vectors-ahead"))
        self._of_thread = PerProcess(threading.local)

    def begin(self, question: VectorQuestion, ready: Ready, ranking: Ranking, most: int) -> None:
        """Scan for so many of the best beside the caller, if anybody has the time."""
        self.end()
        # Refused after closing and while the interpreter ends: then whoever asks scans.
        with suppress(RuntimeError):
            scan = self._workers.get().submit(ranking.scan, most)
            self._of_thread.get().begun = _Begun(question, _rows_of(ready), most, scan)

    def hand_over(self, question: VectorQuestion, ready: Ready, ranking: Ranking) -> None:
        """Give the scan to a ranking for which it was begun, where the rows are still the same."""
        begun = self._begun()
        if begun is not None and begun.question == question and begun.rows == _rows_of(ready):
            ranking.take_over(begun.most, begun.scan)

    def end(self) -> None:
        """Give up what the thread has begun; where somebody is at it already, that is waited for."""
        begun = self._begun()
        if begun is not None:
            self._of_thread.get().begun = None
            if not (begun.scan.cancel() or begun.scan.done()):
                wait((begun.scan,))

    def close(self) -> None:
        self._workers.get().shutdown(wait=False, cancel_futures=True)

    def _begun(self) -> _Begun | None:
        return getattr(self._of_thread.get(), "begun", None)


def _rows_of(ready: Ready) -> tuple[object, ...]:
    """What is another whenever other rows are to be scanned: rows are only ever added, and buried, in a table."""
    return ready.table, ready.coarse, ready.settled, ready.view.count, ready.selection.count, ready.buried

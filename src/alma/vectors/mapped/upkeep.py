"""Background maintenance of the index: build, flush, encode, sweep and compact, one task at a time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from alma.errors import StorageError
from alma.storage.base import StorageBackend
from alma.vectors.mapped.codes import Coarse
from alma.vectors.mapped.files import IndexFiles
from alma.vectors.mapped.state import State, Tuning
from alma.vectors.mapped.table import Flags, Kept, Numbers, Table

_log = logging.getLogger("alma.vectors")

_RETRY_SECONDS = 0.05
_WORTH_SAVING = 1.2
_FEWEST_COMPACTED = 256

Task = Callable[[], None]
Progress = Callable[[int, int], None]


class Upkeep:
    """Builds, writes, encodes, sweeps and compacts the rows of a state, on a thread that ends when idle."""

    def __init__(
        self,
        storage: StorageBackend,
        model: str,
        state: State,
        files: IndexFiles | None,
        tuning: Tuning,
        lock: threading.RLock,
        progress: Progress | None,
    ) -> None:
        self.state = state
        self._storage = storage
        self.model = model
        self._files = files
        self._tuning = tuning
        self._lock = lock
        self._progress = progress
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._behind = False
        self._files_unchecked = False
        self._erasing = False
        self._coming: Coarse | None = None
        self._codes_saved = 0
        self._without_codes = False
        self.start_if_due()

    # ------------------------------------------------------------------ called by the index, under its lock or not

    def start(self) -> None:
        """Catch up with the store in the background."""
        self._behind = True
        self.start_if_due()

    def check_files(self) -> None:
        """Check whether the rows belong to another store."""
        self._files_unchecked = True
        self.start_if_due()

    def erase(self) -> None:
        """Remove every row that is no longer stored, however few they are."""
        self._erasing = True
        self.start_if_due()

    def distrust(self, table: Table) -> None:
        """Discard rows that belong to another store, and rebuild."""
        with self._lock:
            if self.state.table is not table:
                return
            _log.warning("the vector index does not match its store and will be rebuilt", extra={"rows": table.count})
            if self._files is not None:
                self._files.reject(table.kept.generation)
            self._coming = None
            self.state = State(Table.from_nothing(table.dims), in_memory=self._files is None)
            self.start()

    def bury(self, table: Table, rows: Numbers) -> None:
        with self._lock:
            self.state.bury(table, rows)
            self.start_if_due()

    def start_if_due(self) -> None:
        with self._lock:
            running = self._thread is not None and self._thread.is_alive()
            if running or self._stopping.is_set() or self._next() is None:
                return
            self._thread = threading.Thread(target=self._run, name="alma-vectors", daemon=True)
            self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait until all tasks are done."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with self._lock:
                thread = self._thread
                if self._next() is None and (thread is None or not thread.is_alive()):
                    return True
            if thread is not None:
                thread.join(_RETRY_SECONDS)
            self.start_if_due()
        return False

    def abandon(self) -> None:
        """Stop at the next opportunity, without waiting for it."""
        self._stopping.set()

    def close(self) -> None:
        """Stop, after writing new rows to the files."""
        self._stopping.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        if self._files is not None and not self._behind:
            self._flush()

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        while not self._stopping.is_set():
            with self._lock:
                task = self._next()
                if task is None:
                    # Under the lock, so that a task added from now on starts a new thread.
                    self._thread = None
                    return
            try:
                task()
            except StorageError as exc:
                # Nothing is lost: searches use the store, and the next one starts this thread again.
                _log.warning("the background maintenance of the vector index failed", extra={"reason": str(exc)})
                self._behind = self._files_unchecked = self._erasing = False
                return

    def _next(self) -> Task | None:
        state, tuning = self.state, self._tuning
        if self._files_unchecked:
            return self._check
        if self._behind:
            return self._build
        if self._erasing:
            return self._erase
        if self._files is not None and state.table.tail.size >= tuning.flush_rows:
            return self._flush
        if self._codes_wanted():
            return self._encode
        if state.dead_met >= tuning.sweep_after or state.table.count > 2 * state.rows_at_last_sweep + tuning.flush_rows:
            return self._sweep
        if state.table.dead_count > max(_FEWEST_COMPACTED, tuning.dead_share * state.table.count):
            return self._compact
        return None

    def _codes_wanted(self) -> bool:
        settled = self.state.settled
        if settled < self._tuning.coarse_rows or self._without_codes:
            return False
        # Rows in files become final in batches, those in memory one by one.
        least_new = self._tuning.flush_rows if self.state.in_memory else 1
        return self.state.coarse is None or settled - self.state.coarse.count >= least_new

    # ------------------------------------------------------------------ tasks

    def _check(self) -> None:
        # The position of the rows is read before that of the store, as both may advance meanwhile.
        with self._lock:
            table, reached = self.state.table, self.state.table.position
        with self._storage.snapshot() as tx:
            position = tx.vector_position()
        self._files_unchecked = False
        if reached > position:
            self.distrust(table)

    def _build(self) -> None:
        """Read the feed page by page, each in its own short snapshot."""
        first = self.state.table.position
        _log.info("the vector index is reading new vectors of its store", extra={"from": first})
        while not self._stopping.is_set() and self._read_page(first):
            if self._files is not None and self.state.table.tail.size >= 4 * self._tuning.flush_rows:
                self._flush()
        if self._files is not None:
            self._flush()
        _log.info("the vector index is up to date", extra={"rows": self.state.table.count})

    def _read_page(self, first: int) -> bool:
        with self._lock:
            table = self.state.table
            start = table.position
        with self._storage.snapshot() as tx:
            newest = tx.vector_position()
            page = tx.vectors_after(self.model, start, self._tuning.page_rows)
        complete = len(page) < self._tuning.page_rows
        with self._lock:
            # Files of another process, or a search, may have brought the table further meanwhile.
            if self.state.table is table and table.position == start:
                self.state.extend(page, newest if complete else page[-1].position)
                self._behind = not complete
        if self._progress is not None:
            self._progress(self.state.table.position - first, newest - first)
        return self._behind

    def _flush(self) -> None:
        """Write new rows to the files, or map what another process has written."""
        with self._lock:
            state, table = self.state, self.state.table.copy()
        self._keep(state, table, None)

    def _keep(self, state: State, table: Table, alive: Flags | None) -> None:
        assert self._files is not None
        try:
            kept = self._files.keep(table, alive)
        except OSError as exc:
            self._leave_files(exc)
            return
        if kept is None:
            self._stopping.wait(_RETRY_SECONDS)
            return
        with self._lock:
            if self.state is state:
                self._rebase(kept)
            else:
                # The rows were found to belong to another store while they were written.
                self._files.reject(kept.generation)

    def _leave_files(self, exc: OSError) -> None:
        _log.warning("the vector index works in memory: its files cannot be written", extra={"reason": str(exc)})
        with self._lock:
            self._files = None
            self.state.in_memory = True

    def _rebase(self, kept: Kept) -> None:
        if kept.generation != self.state.table.kept.generation:
            self._coming = None
        self.state.rebase(kept)

    def _encode(self) -> None:
        """Compute missing codes in small batches; the first codes are used when all rows have one."""
        with self._lock:
            state, table = self.state, self.state.table
            view, settled = table.view(), state.settled
            coarse = state.coarse or self._coming
        try:
            if coarse is None:
                coarse = self._loaded_codes(table) or Coarse(table.dims)
            if coarse.count < settled:
                coarse.extend(view, settled)
            if settled - coarse.count < self._tuning.flush_rows:
                coarse.measure(view)
        except (ImportError, RuntimeError, ValueError) as exc:
            _log.warning("the vector index compares every vector: codes cannot be computed", extra={"reason": str(exc)})
            self._without_codes = True
            return
        with self._lock:
            if self.state is not state:
                return
            self._coming = coarse
            if settled - coarse.count < self._tuning.flush_rows:
                state.coarse, self._coming = coarse, None
        if state.coarse is coarse:
            self._save_codes(table, coarse)

    def _loaded_codes(self, table: Table) -> Coarse | None:
        generation = table.kept.generation
        if self._files is None or generation is None:
            return None
        coarse = Coarse.load(self._files.codes_path(generation), table.dims, table.kept.base.size)
        self._codes_saved = 0 if coarse is None else coarse.count
        return coarse

    def _save_codes(self, table: Table, coarse: Coarse) -> None:
        generation = table.kept.generation
        if self._files is None or generation is None or coarse.count < _WORTH_SAVING * self._codes_saved:
            return
        try:
            coarse.save(self._files.codes_path(generation))
        except OSError as exc:
            _log.warning("the codes of the vector index cannot be saved", extra={"reason": str(exc)})
        self._codes_saved = coarse.count

    def _sweep(self) -> None:
        """Find rows that are no longer stored."""
        with self._storage.snapshot() as tx:
            position, held = tx.vector_position(), tx.positions_held(self.model)
        with self._lock:
            self.state.swept(held, position)

    def _erase(self) -> None:
        self._sweep()
        if self.state.table.dead_count:
            self._compact()
        else:
            self._erasing = False

    def _compact(self) -> None:
        """Rewrite the files with the live rows only."""
        with self._lock:
            state, table = self.state, self.state.table.copy()
            if self._files is None:
                state.compact_in_memory()
                self._coming = None
                return
        self._keep(state, table, table.alive())

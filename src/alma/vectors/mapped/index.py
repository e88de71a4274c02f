"""The mapped index: reads new vectors of the store, ranks rows, and confirms the best in the store."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from enum import Enum, auto
from itertools import starmap
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alma.errors import ConfigurationError, StorageError
from alma.lazy import lazy_module
from alma.model.query import EVERYTHING, Predicate
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.base import Capability, StorageBackend, Transaction, VectorQuery
from alma.storage.nearest import cosines
from alma.storage.ranking import without_expiry
from alma.vectors.base import Nearest
from alma.vectors.mapped.files import IndexFiles
from alma.vectors.mapped.state import Ranked, Ranking, Ready, Selection, State, Tuning, disagrees_with_store
from alma.vectors.mapped.table import Floats, Table, units
from alma.vectors.mapped.upkeep import Upkeep

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy_module("numpy")

_log = logging.getLogger("alma.vectors")

_ATTEMPTS = 4
_SPARE = 4
# The number of times a search looks at more rows, and the factor by which it looks at more than it seems to need.
_LOOKS, _MORE = 4, 1.3
# The maximum number of rows that are checked, and of records that are listed for a selective predicate.
_MOST_CHECKED, _MOST_LISTED = 8_000, 20_000
# The cost of checking one row, in rows that the store passes over in its own search.
_CHECKING = 10
_MOST_SHARES = 256
# Much larger than the error of fixed-point vectors, much smaller than the distance of two texts.
_DISAGREEMENT = 1e-3

Progress = Callable[[int, int], None]


class _Stale(Enum):
    """Why the rows cannot be used for a search."""

    BEHIND = auto()
    """Too many vectors are new; the background thread is reading them."""
    AHEAD = auto()
    """Rows were removed that the snapshot of the caller may still see."""


class MappedIndex:
    """A `VectorIndex` of a store with a vector feed, with its rows in memory-mapped files that processes share.
    `folder` has the files, in one folder per model; without it the rows are in memory. A search reads new entries of
    the feed, ranks the rows in scope, and confirms the best ones in the store, all in one snapshot. While too many
    vectors are new, as at the first start, the store scans its vectors itself, and `progress` is called with (rows
    done, rows to do).
    """

    def __init__(
        self,
        storage: StorageBackend,
        folder: Path | None = None,
        model: str | None = None,
        tuning: Tuning = Tuning(),  # noqa: B008 - it is immutable
        progress: Progress | None = None,
    ) -> None:
        if Capability.VECTOR_FEED not in storage.capabilities:
            raise ConfigurationError(
                "storage must have a vector feed, as SQLite does; use NativeIndex for other stores"
            )
        self._storage = storage
        self._named_model = model
        self._folder = folder
        self._tuning = tuning
        self._progress = progress
        self._lock = threading.RLock()
        self._closed = False
        # The share of rows that fulfilled each predicate in its last search.
        self._shares: dict[Predicate, float] = {}
        self._opened_upkeep: Upkeep | None = None

    @property
    def _upkeep(self) -> Upkeep:
        """The rows and their upkeep; the first search opens the files."""
        if self._opened_upkeep is None:
            with self._lock:
                if self._opened_upkeep is None:
                    self._opened_upkeep = self._opened(self._storage.embedding_dim)
        return self._opened_upkeep

    @property
    def _model(self) -> str:
        """The given model, or that of the store, which may be named later."""
        return self._named_model or self._storage.embedding_model

    def search(
        self, cls: type[Record], vector: Any, scope: Scope, where: Predicate = EVERYTHING, limit: int = 10
    ) -> list[Nearest]:
        if self._closed:
            raise StorageError("the vector index was closed")
        for _ in range(_ATTEMPTS):
            with self._storage.snapshot() as tx:
                query = tx.vector_query(cls, vector, scope, where, limit, self._model)
                # The rows that a write transaction sees may be rolled back.
                ready = _Stale.BEHIND if tx.writable or not limit else self._ready(tx, query, scope)
                if ready is _Stale.BEHIND:
                    return _from_store(tx, query)
                if isinstance(ready, Ready):
                    return self._confirmed(tx, query, ready)
        self._upkeep.check_files()
        with self._storage.snapshot() as tx:
            return _from_store(tx, tx.vector_query(cls, vector, scope, where, limit, self._model))

    def settle(self, seconds: float = 600.0) -> bool:
        """Wait until the background work is done; False on timeout."""
        with self._storage.snapshot() as tx:
            self._catch_up(tx)
        return self._upkeep.wait(seconds)

    def compact(self, seconds: float = 600.0) -> bool:
        """Remove all rows of deleted vectors from the files now; False on timeout. A process with the old files mapped
        keeps their rows until it maps the new ones.
        """
        with self._storage.snapshot() as tx:
            self._catch_up(tx)
        self._upkeep.erase()
        return self._upkeep.wait(seconds)

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if self._opened_upkeep is not None:
            self._opened_upkeep.close()

    # ------------------------------------------------------------------ opening

    def _opened(self, dims: int) -> Upkeep:
        files = self._files(dims)
        table = Table.from_nothing(dims) if files is None else Table(files.load(), dims)
        state = State(table, in_memory=files is None)
        return Upkeep(self._storage, self._model, state, files, self._tuning, self._lock, self._progress)

    def _reopen(self, dims: int) -> None:
        self._upkeep.abandon()
        self._opened_upkeep = self._opened(dims)

    def _files(self, dims: int) -> IndexFiles | None:
        if self._folder is None:
            return None
        with self._storage.snapshot() as tx:
            feed = tx.feed_name()
        try:
            return IndexFiles(self._folder, feed, self._model, dims)
        except OSError as exc:
            _log.warning("the vector index works in memory: its folder cannot be used", extra={"reason": str(exc)})
            return None

    # ------------------------------------------------------------------ catching up

    def _ready(self, tx: Transaction, query: VectorQuery, scope: Scope) -> Ready | _Stale:
        with self._lock:
            if len(query.vector) != self._upkeep.state.table.dims:
                # The dimension of a model is unknown until the store has a vector of it.
                self._reopen(len(query.vector))
            cannot = self._catch_up(tx)
            return self._upkeep.state.ready(query, scope) if cannot is None else cannot

    def _catch_up(self, tx: Transaction) -> _Stale | None:
        """Read new vectors, so that the rows hold everything the snapshot can see."""
        with self._lock:
            if self._upkeep.model != self._model:
                self._reopen(self._upkeep.state.table.dims)
            table = self._upkeep.state.table
            if not table.kept.is_whole:
                self._upkeep.distrust(table)
            state, position = self._upkeep.state, tx.vector_position()
            if position < state.floor:
                return _Stale.AHEAD
            if not state.trusted:
                state = self._checked_against(tx)
            if position - state.table.position > self._tuning.inline_rows:
                self._upkeep.start()
                return _Stale.BEHIND
            while state.table.position < position:
                page = tx.vectors_after(self._model, state.table.position, self._tuning.page_rows)
                complete = len(page) < self._tuning.page_rows
                state.extend(page, position if complete else page[-1].position)
            self._upkeep.start_if_due()
            return None

    def _checked_against(self, tx: Transaction) -> State:
        table = self._upkeep.state.table
        if disagrees_with_store(table, tx, self._model):
            self._upkeep.distrust(table)
        self._upkeep.state.trusted = True
        return self._upkeep.state

    # ------------------------------------------------------------------ confirming

    def _confirmed(self, tx: Transaction, query: VectorQuery, ready: Ready) -> list[Nearest]:
        """The best rows that the store confirms, looking at more and more rows until there are enough."""
        if not ready.selection.count:
            return []
        few = ready.selection.count <= max(self._tuning.exact_rows, self._tuning.exact_share * ready.view.count)
        if not few and (known := tx.positions_inside(query, _MOST_LISTED, known=True)) is not None:
            return self._among_few(tx, query, ready, known)
        coarse = None if few or ready.coarse is None or not ready.coarse.times else ready.coarse
        ranking = Ranking(ready.view, ready.selection, coarse, ready.settled, _unit(query))
        best: dict[str, float] = {}
        seen = np.empty(0, np.int64)
        rows = self._first_rows(query)
        for _ in range(_LOOKS):
            ranked = ranking.best(rows)
            fresh = ranked.without(seen) if len(seen) else ranked
            if not self._confirm(tx, query, ready, fresh, best):
                return _from_store(tx, query)
            self._note_share(query, len(best) / max(1, len(ranked.rows)))
            if len(best) >= query.limit or ranked.complete:
                return _first(best, query.limit)
            seen = ranked.rows
            # An estimate: the other rows fulfil the predicate as often as those seen.
            rows = round(_MORE * query.limit * len(seen) / max(len(best), 0.5))
            if rows > _MOST_CHECKED or rows * _CHECKING > ready.selection.count:
                break
        positions = tx.positions_inside(query, _MOST_LISTED)
        if positions is None:
            return _from_store(tx, query)
        return self._among_few(tx, query, ready, positions)

    def _first_rows(self, query: VectorQuery) -> int:
        """The number of rows to look at first: as many as the last search with this predicate needed."""
        share = self._shares.get(without_expiry(query.where), 1.0) if self._shares else 1.0
        expected = round(_MORE * query.limit / share) if 0 < share < 1 / _MORE else 0
        return max(query.limit + _SPARE, min(expected, _MOST_CHECKED))

    def _note_share(self, query: VectorQuery, share: float) -> None:
        if share < 1 / _MORE or self._shares:
            if len(self._shares) >= _MOST_SHARES:
                self._shares.clear()
            self._shares[without_expiry(query.where)] = share

    def _among_few(self, tx: Transaction, query: VectorQuery, ready: Ready, positions: Sequence[int]) -> list[Nearest]:
        """The nearest of the vectors at these positions, which the store listed for a selective predicate."""
        rows = ready.view.rows_at(np.array(positions, np.int64))
        if len(rows) < len(positions):
            return _from_store(tx, query)
        selection = Selection(ready.view.count, len(rows), listed=rows)
        ranking = Ranking(ready.view, selection, None, ready.settled, _unit(query))
        ranked = ranking.best(query.limit + _SPARE)
        best: dict[str, float] = {}
        if not self._confirm(tx, query, ready, ranked, best):
            return _from_store(tx, query)
        if len(best) < query.limit and not ranked.complete:
            # Several passages of one record were among the best rows.
            return _from_store(tx, query)
        return _first(best, query.limit)

    def _confirm(
        self, tx: Transaction, query: VectorQuery, ready: Ready, ranked: Ranked, best: dict[str, float]
    ) -> bool:
        """Add the rows that the store confirms to the best; False if store and rows disagree."""
        positions = ready.view.positions(ranked.rows)
        if positions and (min(positions) < 1 or max(positions) > ready.table.position):
            self._upkeep.distrust(ready.table)
            return False
        stored = tx.vectors_at(query, positions)
        if len(stored) < len(positions):
            held = {position for position, _, _ in stored}
            gone = [row for row, position in zip(ranked.rows, positions, strict=True) if position not in held]
            self._upkeep.bury(ready.table, np.array(gone, np.int64))
        expected = dict(zip(positions, ranked.cosines.tolist(), strict=True))
        inside = [found for found in stored if found[2] is not None]
        exact = cosines(query.vector, list(map(itemgetter(2), inside)))
        for (position, key, _), cosine in zip(inside, exact, strict=True):
            if abs(cosine - expected[position]) > _DISAGREEMENT:
                self._upkeep.distrust(ready.table)
                return False
            if cosine > best.get(key, -2.0):
                best[key] = cosine
        return True


def _unit(query: VectorQuery) -> Floats:
    unit: Floats = units(query.vector.to_bytes(), len(query.vector))[0]
    return unit


def _first(best: dict[str, float], limit: int) -> list[Nearest]:
    # Sorting is stable: twice by one key is faster than once by two.
    ordered = sorted(sorted(best.items()), key=itemgetter(1), reverse=True)
    return list(starmap(Nearest, ordered[:limit]))


def _from_store(tx: Transaction, query: VectorQuery) -> list[Nearest]:
    return [Nearest(key, cosine) for key, cosine in tx.answer(query)]

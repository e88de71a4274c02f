"""The mapped index: catches up with the store, ranks rows, and lets the store have the last word."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from enum import Enum, auto
from itertools import starmap
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from alma.errors import ConfigurationError, StorageError
from alma.model.query import EVERYTHING, Predicate
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.base import Capability, StorageBackend, Transaction, VectorQuestion
from alma.storage.nearest import cosines
from alma.storage.ranking import without_expiry
from alma.vectors.base import Nearest
from alma.vectors.mapped.ahead import Ahead, Asked, Begun
from alma.vectors.mapped.files import IndexFiles
from alma.vectors.mapped.ranking import Ranked, Ranking
from alma.vectors.mapped.rows import Floats, units
from alma.vectors.mapped.scopes import Selection
from alma.vectors.mapped.state import Ready, State, Tuning, is_foreign
from alma.vectors.mapped.table import Table
from alma.vectors.mapped.upkeep import Upkeep

_log = logging.getLogger("alma.vectors")

_ATTEMPTS = 4
_SPARE = 4
# How often a search looks at more rows, each time at so many more than it seems to take, before it goes another way.
_LOOKS, _MORE = 4, 1.3
# So many rows are checked at most, or records listed that a predicate leaves.
_MOST_CHECKED, _MOST_LISTED = 8_000, 20_000
# What it takes the store to check a row that we name, where passing over one in its own search takes 1.
_CHECKING = 10
_MOST_SHARES = 256
# Far more than single precision loses, far less than lies between two texts.
_DISAGREEMENT = 1e-3

Progress = Callable[[int, int], None]


class _Cannot(Enum):
    """Why the rows cannot answer."""

    BEHIND = auto()
    """Too much is new: the background is working on it."""
    AHEAD = auto()
    """Rows were buried that the caller's snapshot may still see."""


class MappedIndex:
    """A `VectorIndex` for a store with a vector feed, in this process, with its rows in files that processes share.

    `folder` is where the files go, one folder in it for each model; without one everything stays in memory. A search
    reads the last position of the feed, takes in what is new, ranks the rows in scope and has the best ones checked by
    the store, all in one snapshot. While much is new, as at the first start, the store answers itself and `progress`
    is told (rows done, rows to do).
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
            raise ConfigurationError("a mapped index needs a store with a vector feed, as SQLite; use NativeIndex here")
        self._storage = storage
        self._named_model = model
        self._folder = folder
        self._tuning = tuning
        self._progress = progress
        self._lock = threading.RLock()
        self._closed = False
        # How often rows near a question fulfilled a predicate, as of the last time: it only says where to begin.
        self._shares: dict[Predicate, float] = {}
        self._upkeep = self._opened(storage.embedding_dim)
        self._ahead = Ahead()

    @property
    def _model(self) -> str:
        """The model that was named, or the store's, which may get its name after this was opened."""
        return self._named_model or self._storage.embedding_model

    def expect(self, cls: type[Record], vector: Any, scope: Scope, where: Predicate, limit: int) -> None:
        if self._closed or not limit:
            return
        with self._storage.snapshot() as tx:
            question = tx.vector_question(cls, vector, scope, where, limit, self._model)
            ready = _Cannot.BEHIND if tx.writable else self._ready(tx, question, scope)
            if isinstance(ready, Ready):
                asked, ranking = Asked(cls, vector, scope, where, limit), self._ranking(question, ready)
                self._ahead.begin(Begun(tx, asked, question, ready, ranking), self._first_look(question))

    def search(
        self, cls: type[Record], vector: Any, scope: Scope, where: Predicate = EVERYTHING, limit: int = 10
    ) -> list[Nearest]:
        if self._closed:
            raise StorageError("the vector index was closed")
        try:
            return self._found(Asked(cls, vector, scope, where, limit))
        finally:
            self._ahead.end()

    def _found(self, asked: Asked) -> list[Nearest]:
        for _ in range(_ATTEMPTS):
            with self._storage.snapshot() as tx:
                begun = self._ahead.begun(tx, asked)
                if begun is not None:
                    return self._judged(tx, begun.question, begun.ready, begun.ranking)
                question = tx.vector_question(*asked, self._model)
                # Inside a transaction that writes there are rows that may yet be rolled back.
                ready = _Cannot.BEHIND if tx.writable or not asked.limit else self._ready(tx, question, asked.scope)
                if ready is _Cannot.BEHIND:
                    return _from_store(tx, question)
                if isinstance(ready, Ready):
                    return self._judged(tx, question, ready, self._ranking(question, ready))
        self._upkeep.doubt()
        with self._storage.snapshot() as tx:
            return _from_store(tx, tx.vector_question(*asked, self._model))

    def settle(self, seconds: float = 600.0) -> bool:
        """Wait until nothing is left to do in the background; False if that took too long."""
        with self._storage.snapshot() as tx:
            self._catch_up(tx)
        return self._upkeep.wait(seconds)

    def compact(self, seconds: float = 600.0) -> bool:
        """Drop the rows of deleted vectors from the files now, however few; False if that took too long.

        Another process that has the old files mapped sees their rows until it takes over the new ones.
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
        self._ahead.close()
        self._upkeep.close()

    # ------------------------------------------------------------------ opening

    def _opened(self, dims: int) -> Upkeep:
        files = self._files(dims)
        table = Table.from_nothing(dims) if files is None else Table(files.load(), dims)
        state = State(table, in_memory=files is None)
        return Upkeep(self._storage, self._model, state, files, self._tuning, self._lock, self._progress)

    def _reopen(self, dims: int) -> None:
        self._upkeep.abandon()
        self._upkeep = self._opened(dims)

    def _files(self, dims: int) -> IndexFiles | None:
        if self._folder is None:
            return None
        with self._storage.snapshot() as tx:
            feed = tx.feed_name()
        try:
            return IndexFiles(self._folder, feed, self._model, dims)
        except OSError as exc:
            _log.warning("the vector index works from memory: no folder for it", extra={"reason": str(exc)})
            return None

    # ------------------------------------------------------------------ catching up

    def _ready(self, tx: Transaction, question: VectorQuestion, scope: Scope) -> Ready | _Cannot:
        with self._lock:
            if len(question.vector) != self._upkeep.state.table.dims:
                # A model's length is only certain once the store has a vector of it.
                self._reopen(len(question.vector))
            cannot = self._catch_up(tx)
            return self._upkeep.state.ready(question, scope) if cannot is None else cannot

    def _catch_up(self, tx: Transaction) -> _Cannot | None:
        """Take in what is new; everything the snapshot can see is here afterwards."""
        with self._lock:
            if self._upkeep.model != self._model:
                self._reopen(self._upkeep.state.table.dims)
            table = self._upkeep.state.table
            if not table.kept.is_whole:
                self._upkeep.distrust(table)
            state, position = self._upkeep.state, tx.vector_position()
            if position < state.floor:
                return _Cannot.AHEAD
            if not state.trusted:
                state = self._checked_against(tx)
            if position - state.table.position > self._tuning.inline_rows:
                self._upkeep.start()
                return _Cannot.BEHIND
            while state.table.position < position:
                page = tx.vectors_after(self._model, state.table.position, self._tuning.page_rows)
                complete = len(page) < self._tuning.page_rows
                state.extend(page, position if complete else page[-1].position)
            self._upkeep.start_if_due()
            return None

    def _checked_against(self, tx: Transaction) -> State:
        table = self._upkeep.state.table
        if is_foreign(table, tx, self._model):
            self._upkeep.distrust(table)
        self._upkeep.state.trusted = True
        return self._upkeep.state

    # ------------------------------------------------------------------ judging

    def _judged(self, tx: Transaction, question: VectorQuestion, ready: Ready, ranking: Ranking) -> list[Nearest]:
        """The best rows that the store confirms, more and more of them until there are enough."""
        if not ready.selection.count:
            return []
        if not self._few(ready) and (known := tx.positions_inside(question, _MOST_LISTED, known=True)) is not None:
            return self._among_few(tx, question, ready, known)
        best: dict[str, float] = {}
        seen = np.empty(0, np.int64)
        rows = self._first_look(question)
        for _ in range(_LOOKS):
            ranked = ranking.best(rows)
            fresh = ranked.without(seen) if len(seen) else ranked
            if not self._confirm(tx, question, ready, fresh, best):
                return _from_store(tx, question)
            self._note_share(question, len(best) / max(1, len(ranked.rows)))
            if len(best) >= question.limit or ranked.complete:
                return _first(best, question.limit)
            seen = ranked.rows
            rows = _rows_for(question.limit, len(best), len(seen))
            if rows > _MOST_CHECKED or rows * _CHECKING > ready.selection.count:
                break
        positions = tx.positions_inside(question, _MOST_LISTED)
        if positions is None:
            return _from_store(tx, question)
        return self._among_few(tx, question, ready, positions)

    def _few(self, ready: Ready) -> bool:
        """Whether every row inside is compared."""
        return ready.selection.count <= max(self._tuning.exact_rows, self._tuning.exact_share * ready.view.count)

    def _ranking(self, question: VectorQuestion, ready: Ready) -> Ranking:
        coarse = None if self._few(ready) or ready.coarse is None or not ready.coarse.times else ready.coarse
        return Ranking(ready.view, ready.selection, coarse, ready.settled, _unit(question))

    def _first_look(self, question: VectorQuestion) -> int:
        """How many rows to look at first: what it took when the predicate was last asked for, if it was."""
        share = self._shares.get(without_expiry(question.where), 1.0) if self._shares else 1.0
        expected = round(_MORE * question.limit / share) if 0 < share < 1 / _MORE else 0
        return max(question.limit + _SPARE, min(expected, _MOST_CHECKED))

    def _note_share(self, question: VectorQuestion, share: float) -> None:
        if share < 1 / _MORE or self._shares:
            if len(self._shares) >= _MOST_SHARES:
                self._shares.clear()
            self._shares[without_expiry(question.where)] = share

    def _among_few(
        self, tx: Transaction, question: VectorQuestion, ready: Ready, positions: Sequence[int]
    ) -> list[Nearest]:
        """Where little fulfils the predicate: the nearest of the vectors that the store has told of.

        Every row is compared, so that only rows which the store disowns can make the answer short.
        """
        rows = ready.view.rows_at(np.array(positions, np.int64))
        if len(rows) < len(positions):
            return _from_store(tx, question)
        selection = Selection(ready.view.count, len(rows), listed=rows)
        ranking = Ranking(ready.view, selection, None, ready.settled, _unit(question))
        ranked = ranking.best(question.limit + _SPARE)
        best: dict[str, float] = {}
        if not self._confirm(tx, question, ready, ranked, best):
            return _from_store(tx, question)
        if len(best) < question.limit and not ranked.complete:
            # Several passages of one record took the places of others.
            return _from_store(tx, question)
        return _first(best, question.limit)

    def _confirm(
        self, tx: Transaction, question: VectorQuestion, ready: Ready, ranked: Ranked, best: dict[str, float]
    ) -> bool:
        """Add what the store confirms of some rows to the best there is; False where store and rows disagree."""
        positions = ready.view.positions(ranked.rows)
        if positions and (min(positions) < 1 or max(positions) > ready.table.position):
            self._upkeep.distrust(ready.table)
            return False
        stored = tx.vectors_at(question, positions)
        if len(stored) < len(positions):
            held = {position for position, _, _ in stored}
            gone = [row for row, position in zip(ranked.rows, positions, strict=True) if position not in held]
            self._upkeep.bury(ready.table, np.array(gone, np.int64))
        expected = dict(zip(positions, ranked.cosines.tolist(), strict=True))
        inside = [found for found in stored if found[2] is not None]
        exact = cosines(question.vector, list(map(itemgetter(2), inside)))
        for (position, key, _), cosine in zip(inside, exact, strict=True):
            # A damaged row may give what is no number, which is neither more nor less.
            if not abs(cosine - expected[position]) <= _DISAGREEMENT:
                self._upkeep.distrust(ready.table)
                return False
            if cosine > best.get(key, -2.0):
                best[key] = cosine
        return True


def _unit(question: VectorQuestion) -> Floats:
    unit: Floats = units(question.vector.to_bytes(), len(question.vector))[0]
    return unit


def _rows_for(limit: int, found: int, seen: int) -> int:
    """So many rows must be looked at to find enough, if the others fulfil the predicate as often as those seen."""
    return round(_MORE * limit * seen / max(found, 0.5))


def _first(best: dict[str, float], limit: int) -> list[Nearest]:
    # Sorting is stable, and twice by one thing is faster than once by two.
    ordered = sorted(sorted(best.items()), key=itemgetter(1), reverse=True)
    return list(starmap(Nearest, ordered[:limit]))


def _from_store(tx: Transaction, question: VectorQuestion) -> list[Nearest]:
    return [Nearest(key, cosine) for key, cosine in tx.answer(question)]

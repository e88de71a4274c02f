"""Ranking rows by cosine: exactly where there are few, by codes first where there are many."""

from __future__ import annotations

from concurrent.futures import Future
from typing import NamedTuple

import numpy as np

from alma.vectors.mapped.coarse import LEAST_LOOKED_AT, Coarse
from alma.vectors.mapped.rows import Floats, Numbers
from alma.vectors.mapped.scopes import Selection
from alma.vectors.mapped.table import View

# What single precision may get wrong in a cosine of unit vectors; rows that close together are taken together.
_TIE = 2e-6
# Of many wanted rows not quite so many more are looked at exactly.
_TIMES_BY_CODES, _BESIDES = 2, 54


Scanned = tuple[Numbers, int]


class Ranked(NamedTuple):
    """The best rows with their cosines, in no order; `complete` where there are no others."""

    rows: Numbers
    cosines: Floats
    complete: bool

    def without(self, rows: Numbers) -> Ranked:
        """The others."""
        others = ~np.isin(self.rows, rows)
        return Ranked(self.rows[others], self.cosines[others], self.complete)


class Ranking:
    """The rows of one selection by their cosine with one vector."""

    def __init__(
        self,
        view: View,
        selection: Selection,
        coarse: Coarse | None,
        settled: int,
        wanted: Floats,
    ) -> None:
        self._view = view
        self._selection = selection
        self._coarse = coarse
        self._settled = settled
        self._wanted = wanted
        self._exact: tuple[Numbers, Floats] | None = None
        self._ahead: tuple[int, Future[Scanned]] | None = None

    @property
    def by_codes(self) -> bool:
        """Whether codes are scanned, which takes longer than anything else."""
        return self._coarse is not None

    def scan(self, most: int) -> Scanned:
        """The rows that seem best by their codes, of which so many are wanted, and how many rows have codes."""
        assert self._coarse is not None
        looked_at = self._coarse.times * _looked_for(most)
        return self._coarse.nearest(self._wanted, looked_at, self._selection.inside(), self._settled)

    def take_over(self, most: int, scan: Future[Scanned]) -> None:
        """Use a scan for so many that was begun elsewhere, of the same rows for the same vector."""
        self._ahead = most, scan

    def best(self, most: int) -> Ranked:
        """At least so many of the best rows, where there are that many."""
        return self._best_by_codes(most) if self.by_codes else self._best_of_all(most)

    def _best_of_all(self, most: int) -> Ranked:
        if self._exact is None:
            self._exact = self._every_cosine()
        return _top(*self._exact, most, complete=True)

    def _every_cosine(self) -> tuple[Numbers, Floats]:
        rows, view = self._selection.rows(), self._view
        # Reading everything in order is faster than picking most of it.
        if 2 * len(rows) > view.count:
            return rows, view.all_cosines(self._wanted)[rows]
        return rows, view.cosines(rows, self._wanted)

    def _best_by_codes(self, most: int) -> Ranked:
        found, covered = self._scanned(most)
        found.sort()
        # Rows without codes are few and lie together.
        late = self._view.all_cosines(self._wanted, covered)
        inside = self._selection.inside()
        chosen = np.arange(len(late)) if inside is None else np.flatnonzero(inside[covered:])
        rows = np.concatenate([found, covered + chosen])
        cosines = np.concatenate([self._view.cosines(found, self._wanted), late[chosen]])
        return _top(rows, cosines, most, complete=len(rows) >= self._selection.count)

    def _scanned(self, most: int) -> Scanned:
        if self._ahead is not None and self._ahead[0] == most:
            scan = self._ahead[1]
            # One that nobody has begun yet is not waited for.
            if not scan.cancel():
                return scan.result()
        return self.scan(most)


def _looked_for(most: int) -> int:
    return max(LEAST_LOOKED_AT, _TIMES_BY_CODES * most + _BESIDES)


def _top(rows: Numbers, cosines: Floats, most: int, *, complete: bool) -> Ranked:
    if len(rows) <= most:
        return Ranked(rows, cosines, complete)
    best = np.partition(cosines, len(cosines) - most)[len(cosines) - most :]
    if np.isnan(best).any():
        # They count as the greatest. Whoever has these rows checked learns that they are damaged.
        damaged = np.flatnonzero(np.isnan(cosines))[:most]
        return Ranked(rows[damaged], cosines[damaged], complete=False)
    chosen = cosines >= best[0] - _TIE
    return Ranked(rows[chosen], cosines[chosen], complete and bool(np.all(chosen)))

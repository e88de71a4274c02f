"""Ranking rows by cosine: exactly where there are few, by codes first where there are many."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from alma.model.record import RecordSpec
from alma.model.scope import Scope
from alma.vectors.mapped.codes import LEAST_LOOKED_AT, Coarse
from alma.vectors.mapped.table import NAMED, Flags, Floats, Names, Numbers, View

Column = NDArray[np.int32]
Conditions = tuple[tuple[str, tuple[int, ...]], ...]

_MOST_CACHED_BYTES = 32 << 20
_SPARSE = 32
_NARROW = 8


@dataclass(frozen=True)
class Selection:
    """The living rows of a scope among the first `total`: as numbers where they are few, as flags where they are many.

    Both are None where every row is inside.
    """

    total: int
    count: int
    listed: Numbers | None = None
    flagged: Flags | None = None

    def rows(self) -> Numbers:
        """The numbers of the rows, ascending."""
        if self.listed is not None:
            return self.listed
        return np.arange(self.total) if self.flagged is None else np.flatnonzero(self.flagged)

    def inside(self) -> Flags | None:
        """A flag for each row, or None where all are inside."""
        if self.listed is None:
            return self.flagged
        flags = np.zeros(self.total, np.bool_)
        flags[self.listed] = True
        return flags

    @property
    def bytes(self) -> int:
        return sum(each.nbytes for each in (self.listed, self.flagged) if each is not None)


class ScopeRows:
    """An LRU cache of the rows of recent scopes; used only under the lock of the index."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Conditions, Selection] = OrderedDict()
        self._bytes = 0
        # Numbers that are looked through again and again are kept together, not scattered among others.
        self._columns: dict[str, Column] = {}

    def forget(self) -> None:
        self._entries.clear()
        self._bytes = 0
        self._columns.clear()

    def select(self, view: View, wanted: Conditions, settled: int) -> Selection:
        """The living rows that fulfil the conditions; the first `settled` rows will keep their numbers."""
        known = self._entries.pop(wanted, None) or Selection(0, 0, flagged=np.empty(0, np.bool_))
        self._bytes -= known.bytes
        if known.total < settled:
            known = _joined(known, _fulfilling(lambda name: self._column(view, name, settled)[known.total :], wanted))
        self._cache(wanted, known)
        late = view.facts(settled, view.count)
        whole = _joined(known, _fulfilling(lambda name: late[name], wanted)) if len(late) else known
        return _alive(whole, view.dead) if view.any_dead else whole

    def _column(self, view: View, name: str, settled: int) -> Column:
        column = self._columns.get(name, np.empty(0, np.int32))
        if len(column) < settled:
            column = np.concatenate([column, view.facts(len(column), settled)[name]])
            self._columns[name] = column
        return column[:settled]

    def _cache(self, wanted: Conditions, selection: Selection) -> None:
        self._entries[wanted] = selection
        self._bytes += selection.bytes
        while self._bytes > _MOST_CACHED_BYTES and len(self._entries) > 1:
            self._bytes -= self._entries.popitem(last=False)[1].bytes


def conditions(spec: RecordSpec, scope: Scope, names: Names) -> Conditions:
    """What a row's numbers must be to lie inside the scope."""
    wanted: list[tuple[str, tuple[int, ...]]] = [("kind", (names.known(spec.kind),))]
    for name in NAMED[1:]:
        value: Any = getattr(scope, name)
        if value is not None:
            texts = value if isinstance(value, tuple) else (value,)
            wanted.append((name, tuple(sorted(map(names.known, texts)))))
    return tuple(wanted)


def _fulfilling(column_of: Callable[[str], Column], wanted: Conditions) -> Flags:
    inside: Flags | None = None
    # The last conditions are the narrowest; where they leave little, the others are looked at there only.
    for name, numbers in reversed(wanted):
        column = column_of(name)
        if inside is None:
            inside = _among(column, numbers)
            continue
        rows = np.flatnonzero(inside)
        if len(rows) < len(column) // _NARROW:
            inside[rows] = _among(column[rows], numbers)
        else:
            inside &= _among(column, numbers)
    assert inside is not None
    return inside


def _among(column: Column, numbers: tuple[int, ...]) -> Flags:
    if len(numbers) == 1:
        same: Flags = column == numbers[0]
        return same
    return np.isin(column, np.array(numbers, np.int32), kind="table" if numbers else None)


def _joined(first: Selection, more: Flags) -> Selection:
    """A selection of the rows of one, and behind them of those that are flagged."""
    total, count = first.total + len(more), first.count + int(np.count_nonzero(more))
    if count == total:
        return Selection(total, count)
    if _SPARSE * count <= total:
        return Selection(total, count, listed=np.concatenate([first.rows(), first.total + np.flatnonzero(more)]))
    flags = first.inside()
    before = np.ones(first.total, np.bool_) if flags is None else flags
    return Selection(total, count, flagged=np.concatenate([before, more]))


def _alive(selection: Selection, dead: Flags) -> Selection:
    if selection.listed is not None:
        listed = selection.listed[~dead[selection.listed]]
        return Selection(selection.total, len(listed), listed=listed)
    flagged = ~dead if selection.flagged is None else selection.flagged & ~dead
    return Selection(selection.total, int(np.count_nonzero(flagged)), flagged=flagged)


# The error of single precision in a cosine of unit vectors; rows that close are taken together.
_TIE = 2e-6
# Codes mistake the order of near rows, so more rows than wanted are compared exactly.
_TIMES_BY_CODES, _BESIDES = 2, 54


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

    def best(self, most: int) -> Ranked:
        """At least so many of the best rows, where there are that many."""
        return self._best_of_all(most) if self._coarse is None else self._best_by_codes(self._coarse, most)

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

    def _best_by_codes(self, coarse: Coarse, most: int) -> Ranked:
        looked_at = coarse.times * max(LEAST_LOOKED_AT, _TIMES_BY_CODES * most + _BESIDES)
        found, covered = coarse.nearest(self._wanted, looked_at, self._selection.inside(), self._settled)
        found.sort()
        # Rows without codes are few and lie together.
        late = self._view.all_cosines(self._wanted, covered)
        inside = self._selection.inside()
        chosen = np.arange(len(late)) if inside is None else np.flatnonzero(inside[covered:])
        rows = np.concatenate([found, covered + chosen])
        cosines = np.concatenate([self._view.cosines(found, self._wanted), late[chosen]])
        return _top(rows, cosines, most, complete=len(rows) >= self._selection.count)


def _top(rows: Numbers, cosines: Floats, most: int, *, complete: bool) -> Ranked:
    if len(rows) <= most:
        return Ranked(rows, cosines, complete)
    best = np.partition(cosines, len(cosines) - most)[len(cosines) - most :]
    if np.isnan(best).any():
        # NaN sorts last: these rows are damaged, which the check against the store finds.
        damaged = np.flatnonzero(np.isnan(cosines))[:most]
        return Ranked(rows[damaged], cosines[damaged], complete=False)
    chosen = cosines >= best[0] - _TIE
    return Ranked(rows[chosen], cosines[chosen], complete and bool(np.all(chosen)))

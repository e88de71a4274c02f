"""The state of the index: the table, its codes and cached scopes; every method is called under one lock."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from alma.lazy import lazy_module
from alma.model.record import RecordSpec
from alma.model.scope import Scope
from alma.storage.base import StoredVector, Transaction, VectorQuery
from alma.vectors.mapped.codes import LEAST_LOOKED_AT, Coarse
from alma.vectors.mapped.table import NAMED, Flags, Floats, Kept, Names, Numbers, Table, View, encoded, floats, units

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy_module("numpy")

Column: TypeAlias = "NDArray[np.int32]"
Conditions = tuple[tuple[str, tuple[int, ...]], ...]

_MOST_CACHED_BYTES = 32 << 20
_SPARSE = 32
_NARROW = 8


@dataclass(frozen=True)
class Selection:
    """The live rows of a scope among the first `total`: as row numbers if they are few, as a bitmap if they are many.
    Both are None if every row is inside.
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
        # Contiguous copies of the columns that are read repeatedly.
        self._columns: dict[str, Column] = {}

    def forget(self) -> None:
        self._entries.clear()
        self._bytes = 0
        self._columns.clear()

    def select(self, view: View, wanted: Conditions, settled: int) -> Selection:
        """The live rows that fulfil the conditions; the first `settled` rows keep their numbers."""
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
    """The conditions on a row's columns to be inside the scope."""
    wanted: list[tuple[str, tuple[int, ...]]] = [("kind", (names.known(spec.kind),))]
    for name in NAMED[1:]:
        value: Any = getattr(scope, name)
        if value is not None:
            texts = value if isinstance(value, tuple) else (value,)
            wanted.append((name, tuple(sorted(map(names.known, texts)))))
    return tuple(wanted)


def _fulfilling(column_of: Callable[[str], Column], wanted: Conditions) -> Flags:
    inside: Flags | None = None
    # The last conditions are the narrowest; if they leave few rows, the others are checked on these rows only.
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
    """The selected rows, followed by the flagged ones."""
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


# More than the error of a cosine of fixed-point vectors; rows within it count as ties.
_TIE = 1e-4
# Codes misorder near rows, so more rows than requested are compared exactly.
_TIMES_BY_CODES, _BESIDES = 2, 54


class Ranked(NamedTuple):
    """The best rows with their cosines, unordered; `complete` if there are no others."""

    rows: Numbers
    cosines: Floats
    complete: bool

    def without(self, rows: Numbers) -> Ranked:
        """The same without these rows."""
        others = ~np.isin(self.rows, rows)
        return Ranked(self.rows[others], self.cosines[others], self.complete)


class Ranking:
    """Ranks the rows of a selection by their cosine with a vector."""

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
        """At least this many of the best rows, if there are that many."""
        return self._best_of_all(most) if self._coarse is None else self._best_by_codes(self._coarse, most)

    def _best_of_all(self, most: int) -> Ranked:
        if self._exact is None:
            self._exact = self._every_cosine()
        return _top(*self._exact, most, complete=True)

    def _every_cosine(self) -> tuple[Numbers, Floats]:
        rows, view = self._selection.rows(), self._view
        # A sequential read is faster than picking most of the rows.
        if 2 * len(rows) > view.count:
            return rows, view.all_cosines(self._wanted)[rows]
        return rows, view.cosines(rows, self._wanted)

    def _best_by_codes(self, coarse: Coarse, most: int) -> Ranked:
        looked_at = coarse.times * max(LEAST_LOOKED_AT, _TIMES_BY_CODES * most + _BESIDES)
        found, covered = coarse.nearest(self._wanted, looked_at, self._selection.inside(), self._settled)
        found.sort()
        # Rows without codes are few and contiguous.
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
    chosen = cosines >= best[0] - _TIE
    return Ranked(rows[chosen], cosines[chosen], complete and bool(np.all(chosen)))


# Sampled from the last rows and evenly from all rows, to detect damage unless it is small.
_LAST, _SPREAD = 4, 32
_SAME = 1e-4


@dataclass(frozen=True)
class Tuning:
    """Thresholds of the index."""

    exact_rows: int = 5_000
    """Up to this number of rows in scope, every cosine is computed."""
    exact_share: float = 0.025
    """Also if the rows in scope are at most this share of all: a scan of codes reads all rows."""
    coarse_rows: int = 16_000
    """From this number of rows on, codes are computed."""
    flush_rows: int = 2_048
    """The number of new rows that are written to the files at once."""
    inline_rows: int = 10_000
    """The maximum number of new rows that a search reads itself; the background thread reads more."""
    page_rows: int = 4_096
    """The page size of reads from the feed."""
    sweep_after: int = 64
    """The number of dead rows found by searches after which all of them are searched."""
    dead_share: float = 0.25
    """With a larger share of dead rows the files are rewritten."""


@dataclass(frozen=True)
class Ready:
    """The state that one search needs, as of one moment."""

    table: Table
    view: View
    selection: Selection
    coarse: Coarse | None
    settled: int


class State:
    """The table, the codes of its settled rows, and the cache of recent scopes."""

    def __init__(self, table: Table, in_memory: bool) -> None:
        self.table = table
        self.coarse: Coarse | None = None
        self.in_memory = in_memory
        self.scopes = ScopeRows()
        # Older snapshots may need rows that have been removed since.
        self.floor = table.position
        self.trusted = table.count == 0
        self.dead_met = 0
        self.rows_at_last_sweep = table.count

    @property
    def settled(self) -> int:
        """The number of first rows whose row numbers are final."""
        return self.table.count if self.in_memory else self.table.kept.base.size

    def extend(self, page: Sequence[StoredVector], position: int) -> None:
        """Add a page of the feed, after which the table is complete up to the position."""
        block = encoded(page, self.table.names, self.table.dims)
        self.table.extend(block, position)
        self.floor = max(self.floor, position)

    def ready(self, question: VectorQuery, scope: Scope) -> Ready:
        view = self.table.view()
        wanted = conditions(question.spec, scope, self.table.names)
        selection = self.scopes.select(view, wanted, self.settled)
        return Ready(self.table, view, selection, self.coarse, self.settled)

    def bury(self, table: Table, rows: Numbers) -> None:
        """Mark rows as dead that are no longer stored, unless the row numbers have changed since."""
        self.dead_met += len(rows)
        if table is self.table:
            table.bury(rows)

    def swept(self, held: Sequence[int], position: int) -> None:
        """Mark every row as dead that the store no longer has at a position."""
        facts = self.table.view().facts(0, self.table.count)
        gone = (facts["position"] <= position) & ~np.isin(facts["position"], np.array(held, np.int64))
        self.table.bury(np.flatnonzero(gone))
        self.floor = max(self.floor, position)
        self.dead_met = 0
        self.rows_at_last_sweep = self.table.count

    def rebase(self, kept: Kept) -> None:
        """Switch to newer files."""
        same = kept.generation == self.table.kept.generation
        self.table = self.table.based_on(kept)
        self.floor = max(self.floor, kept.position)
        if not same:
            self.coarse = None
            self.scopes.forget()
            self.trusted = False
            self.rows_at_last_sweep = self.table.count

    def compact_in_memory(self) -> None:
        """Remove the dead rows of a table in memory."""
        table = self.table
        block = table.view().block(0, table.count).part(table.alive())
        self.table = Table(Kept(None, block, tuple(table.names.texts), table.position), table.dims)
        self.coarse = None
        self.scopes.forget()
        self.rows_at_last_sweep = self.table.count


def disagrees_with_store(table: Table, tx: Transaction, model: str) -> bool:
    """Whether rows from files disagree with the store, as after restoring a backup; checks a sample."""
    base = table.kept.base
    last = range(max(0, base.size - _LAST), base.size)
    spread = np.linspace(0, base.size - 1, _SPREAD).astype(int).tolist() if base.size else []
    return any(_differs(table, row, tx, model) for row in {*last, *spread})


def _differs(table: Table, row: int, tx: Transaction, model: str) -> bool:
    facts = table.kept.base.facts[row]
    if not 1 <= facts["position"] <= table.position:
        return True
    stored = tx.vectors_after(model, int(facts["position"]) - 1, 1)
    if not stored or stored[0].position != facts["position"]:
        return False
    # A recreated store may have the same texts with other owners.
    if any(table.names.known(getattr(stored[0], name)) != facts[name] for name in NAMED):
        return True
    if len(stored[0].data) != 4 * table.dims:
        return True
    return not np.allclose(units(stored[0].data, table.dims)[0], floats(table.kept.base.vectors[row]), atol=_SAME)

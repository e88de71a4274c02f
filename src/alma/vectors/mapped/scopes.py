"""Which rows lie inside a scope: found by numbers, remembered, and looked up again only for rows that are new."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alma.model.record import RecordSpec
from alma.model.scope import Scope
from alma.vectors.mapped.rows import NAMED, Flags, Names, Numbers
from alma.vectors.mapped.table import View

Column = NDArray[np.int32]
Conditions = tuple[tuple[str, tuple[int, ...]], ...]

_MOST_REMEMBERED_BYTES = 32 << 20
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
    """The rows of recent scopes; whoever uses it holds the index's lock."""

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
        self._remember(wanted, known)
        late = view.facts(settled, view.count)
        whole = _joined(known, _fulfilling(lambda name: late[name], wanted)) if len(late) else known
        return _alive(whole, view.dead) if view.any_dead else whole

    def _column(self, view: View, name: str, settled: int) -> Column:
        column = self._columns.get(name, np.empty(0, np.int32))
        if len(column) < settled:
            column = np.concatenate([column, view.facts(len(column), settled)[name]])
            self._columns[name] = column
        return column[:settled]

    def _remember(self, wanted: Conditions, selection: Selection) -> None:
        self._entries[wanted] = selection
        self._bytes += selection.bytes
        while self._bytes > _MOST_REMEMBERED_BYTES and len(self._entries) > 1:
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

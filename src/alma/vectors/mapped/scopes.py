"""Which rows lie inside a scope: found by numbers, remembered, and looked up again only for rows that are new."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np

from alma.model.record import RecordSpec
from alma.model.scope import Scope
from alma.vectors.mapped.rows import NAMED, Facts, Flags, Names, Numbers
from alma.vectors.mapped.table import View

Conditions = tuple[tuple[str, tuple[int, ...]], ...]

_MOST_REMEMBERED_BYTES = 32 << 20
_NARROW = 8


@dataclass
class _Entry:
    """The rows inside a scope among the first so many."""

    inside: Flags
    count: int


@dataclass(frozen=True)
class Selection:
    """The rows a search may find: how many, and which; `inside` is None where that is all of them."""

    inside: Flags | None
    count: int

    def rows(self) -> Numbers:
        assert self.inside is not None
        return np.flatnonzero(self.inside)


class ScopeRows:
    """The rows of recent scopes; whoever uses it holds the index's lock."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Conditions, _Entry] = OrderedDict()

    def forget(self) -> None:
        self._entries.clear()

    def select(self, view: View, conditions: Conditions, settled: int) -> Selection:
        """The living rows that fulfil the conditions; the first `settled` rows will keep their numbers."""
        entry = self._entries.pop(conditions, None) or _Entry(np.empty(0, np.bool_), 0)
        if len(entry.inside) < settled:
            more = _fulfilling(view.facts(len(entry.inside), settled), conditions)
            entry = _Entry(np.concatenate([entry.inside, more]), entry.count + int(np.count_nonzero(more)))
        self._entries[conditions] = entry
        while len(self._entries) > max(1, _MOST_REMEMBERED_BYTES // max(1, settled)):
            self._entries.popitem(last=False)
        late = _fulfilling(view.facts(len(entry.inside), view.count), conditions)
        inside, count = entry.inside, entry.count
        if len(late):
            inside, count = np.concatenate([inside, late]), count + int(np.count_nonzero(late))
        if view.any_dead:
            inside = inside & ~view.dead
            count = int(np.count_nonzero(inside))
        return Selection(None if count == view.count else inside, count)


def conditions(spec: RecordSpec, scope: Scope, names: Names) -> Conditions:
    """What a row's numbers must be to lie inside the scope."""
    wanted: list[tuple[str, tuple[int, ...]]] = [("kind", (names.known(spec.kind),))]
    for name in NAMED[1:]:
        value: Any = getattr(scope, name)
        if value is not None:
            texts = value if isinstance(value, tuple) else (value,)
            wanted.append((name, tuple(sorted(map(names.known, texts)))))
    return tuple(wanted)


def _fulfilling(facts: Facts, wanted: Conditions) -> Flags:
    inside = np.ones(len(facts), np.bool_)
    # The last conditions are the narrowest; where they leave little, the others are looked at there only.
    for name, numbers in reversed(wanted):
        rows = np.flatnonzero(inside)
        chosen = rows if len(rows) < len(facts) // _NARROW else slice(None)
        column = facts[name][chosen]
        inside[chosen] &= column == numbers[0] if len(numbers) == 1 else np.isin(column, numbers)
    return inside

"""The state of the index: the table, its codes and cached scopes; every method is called under one lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from alma.model.scope import Scope
from alma.storage.base import StoredVector, Transaction, VectorQuery
from alma.vectors.mapped.codes import Coarse
from alma.vectors.mapped.ranking import ScopeRows, Selection, conditions
from alma.vectors.mapped.table import NAMED, Kept, Numbers, Table, View, encoded, units

# Of the last rows, and of rows all over the files: what is damaged in one piece is seen unless it is small.
_LAST, _SPREAD = 4, 32
_SAME = 1e-4


@dataclass(frozen=True)
class Tuning:
    """Sizes at which the index switches between its methods."""

    exact_rows: int = 5_000
    """Up to so many rows in scope, every cosine is computed."""
    exact_share: float = 0.025
    """Of more rows as well, while they are no larger a share: a scan of codes passes over all of the others."""
    coarse_rows: int = 16_000
    """From so many rows on, codes are worth having."""
    flush_rows: int = 2_048
    """So many new rows are put into files together."""
    inline_rows: int = 10_000
    """A search catches up with so many new rows itself; more are left to the background."""
    page_rows: int = 4_096
    """So many rows are read from the feed at once."""
    sweep_after: int = 64
    """After so many dead rows were met, all of them are looked for."""
    dead_share: float = 0.25
    """With a larger share of dead rows the files are written anew."""


@dataclass(frozen=True)
class Ready:
    """What one search needs, as of one moment."""

    table: Table
    view: View
    selection: Selection
    coarse: Coarse | None
    settled: int


class State:
    """The table, the codes of its settled rows, and the cached rows of recent scopes."""

    def __init__(self, table: Table, in_memory: bool) -> None:
        self.table = table
        self.coarse: Coarse | None = None
        self.in_memory = in_memory
        self.scopes = ScopeRows()
        # A snapshot older than this may need rows that are buried by now.
        self.floor = table.position
        self.trusted = table.count == 0
        self.dead_met = 0
        self.rows_at_last_sweep = table.count

    @property
    def settled(self) -> int:
        """How many of the first rows will keep their numbers."""
        return self.table.count if self.in_memory else self.table.kept.base.size

    def extend(self, page: Sequence[StoredVector], position: int) -> None:
        """Take in a page of the feed; afterwards everything up to the position is here."""
        block = encoded(page, self.table.names, self.table.dims)
        self.table.extend(block, position)
        self.floor = max(self.floor, position)

    def ready(self, question: VectorQuery, scope: Scope) -> Ready:
        view = self.table.view()
        wanted = conditions(question.spec, scope, self.table.names)
        selection = self.scopes.select(view, wanted, self.settled)
        return Ready(self.table, view, selection, self.coarse, self.settled)

    def bury(self, table: Table, rows: Numbers) -> None:
        """Remember rows that were found to be stored no more, unless the numbers mean other rows by now."""
        self.dead_met += len(rows)
        if table is self.table:
            table.bury(rows)

    def swept(self, held: Sequence[int], position: int) -> None:
        """Bury every row that was not held at a position."""
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
        """Drop the dead rows of a table that is in no file."""
        table = self.table
        block = table.view().block(0, table.count).part(table.alive())
        self.table = Table(Kept(None, block, tuple(table.names.texts), table.position), table.dims)
        self.coarse = None
        self.scopes.forget()
        self.rows_at_last_sweep = self.table.count


def is_foreign(table: Table, tx: Transaction, model: str) -> bool:
    """Whether rows from files disagree with the store, as after a backup was put back; a sample is enough."""
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
    # A store that was made anew may hold the same texts with other owners.
    if any(table.names.known(getattr(stored[0], name)) != facts[name] for name in NAMED):
        return True
    if len(stored[0].data) != 4 * table.dims:
        return True
    return not np.allclose(units(stored[0].data, table.dims)[0], table.kept.base.vectors[row], atol=_SAME)

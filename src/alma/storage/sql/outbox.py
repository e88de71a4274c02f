"""The outbox as a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from alma.model.fields import FieldType
from alma.model.record import RecordSpec
from alma.storage.outbox import Mark, MarkTable
from alma.storage.sql.connected import Connected


class SqlOutbox(Connected):
    """Marks what was written for the projections that want to hear of it."""

    # Which projections want to hear of which kinds, once it was asked; only this transaction can change it then.
    projections: list[tuple[str, str]] | None = None

    def registered(self) -> list[tuple[str, str]]:
        """Which projections want to hear of which kinds."""
        found = self.rows(f"SELECT projection, kind FROM {self.names.projections} ORDER BY 1", {})
        return [(projection, kind) for projection, kind in found]

    def _mark(self, spec: RecordSpec, keys: Sequence[str]) -> None:
        if self.projections is None:
            self.projections = self.registered()
        if self.projections:
            super()._mark(spec, keys)

    def _marks(self) -> MarkTable:
        return SqlMarks(self)


class SqlMarks(MarkTable):
    """The outbox as a table."""

    _columns = "projection, kind, record_id, generation, marked_at, leased_until, attempts, error, parked"

    def __init__(self, tx: SqlOutbox) -> None:
        self._tx = tx
        self._outbox = tx.names.outbox
        self._projections = tx.names.projections
        self._named = tx.names.parameter
        self._mark = tx.names.mark

    @property
    def _same_mark(self) -> str:
        return " AND ".join(f"{name} = {self._mark}" for name in ("projection", "kind", "record_id"))

    def register(self, name: str, kinds: Sequence[str]) -> None:
        self._tx.projections = None
        self._delete_all(self._projections, name)
        self._tx.insert_rows(self._projections, ("projection", "kind"), [(name, kind) for kind in kinds])

    def drop(self, name: str) -> None:
        self._tx.projections = None
        for table in (self._projections, self._outbox):
            self._delete_all(table, name)

    def _delete_all(self, table: str, projection: str) -> None:
        self._tx.run(f"DELETE FROM {table} WHERE projection = {self._named('name')}", {"name": projection})

    def projections(self, kind: str) -> list[str]:
        if self._tx.projections is None:
            self._tx.projections = self._tx.registered()
        return [projection for projection, marked in self._tx.projections if marked == kind]

    def mark(self, projection: str, kind: str, keys: Sequence[str], moment: datetime) -> None:
        name = self._outbox
        sql = (
            f"INSERT INTO {name} (projection, kind, record_id, marked_at, generation) "
            f"VALUES {self._tx.placeholders(5)} {marked_again(name)}"
        )
        encoded = self._moment(moment)
        # Sorted, so that two batches over the same records take their row locks in the same order.
        self._tx.run_many(sql, [(projection, kind, key, encoded, 1) for key in sorted(keys)])

    def claim(self, projection: str, limit: int, moment: datetime, until: datetime) -> list[Mark]:
        free = f"(leased_until IS NULL OR leased_until <= {self._named('now')})"
        skip = " FOR UPDATE SKIP LOCKED" if self._tx.dialect.name == "postgresql" else ""
        rows = self._tx.rows(
            f"{self._oldest_first(f'{free} AND NOT parked')} LIMIT {self._named('most')}{skip}",
            {"name": projection, "now": self._moment(moment), "most": limit},
        )
        marks = [self._mark_of(row, leased_until=until) for row in rows]
        lease = f"UPDATE {self._outbox} SET leased_until = {self._mark} WHERE {self._same_mark}"
        self._tx.run_many(lease, [(self._moment(until), *self._identity(mark)) for mark in marks])
        return marks

    def acknowledge(self, marks: Sequence[Mark]) -> int:
        cleared = 0
        named = {name: self._named(name) for name in ("projection", "kind", "record_id", "generation")}
        same = " AND ".join(f"{name} = {named[name]}" for name in ("projection", "kind", "record_id"))
        for mark in marks:
            values = {name: getattr(mark, name) for name in ("projection", "kind", "record_id")}
            delete = f"DELETE FROM {self._outbox} WHERE {same} AND generation = {named['generation']}"
            if self._tx.run(delete, {**values, "generation": mark.generation}):
                cleared += 1
            else:
                self._tx.run(f"UPDATE {self._outbox} SET leased_until = NULL WHERE {same}", values)
        return cleared

    def fail(self, mark: Mark, error: str, park_after: int) -> None:
        parked = mark.attempts + 1 >= park_after
        sql = (
            f"UPDATE {self._outbox} SET leased_until = NULL, attempts = attempts + 1, "
            f"error = {self._mark}, parked = {self._mark} WHERE {self._same_mark} AND generation = {self._mark}"
        )
        self._tx.run_many(sql, [(error, parked, *self._identity(mark), mark.generation)])

    def unpark(self, projection: str) -> int:
        freed = "parked = false, attempts = 0, error = NULL"
        sql = f"UPDATE {self._outbox} SET {freed} WHERE projection = {self._named('name')} AND parked"
        return self._tx.run(sql, {"name": projection})

    def pending(self, projection: str) -> list[Mark]:
        return [self._mark_of(row) for row in self._tx.rows(self._oldest_first("true"), {"name": projection})]

    # ------------------------------------------------------------------ spelling

    def _oldest_first(self, condition: str) -> str:
        return (
            f"SELECT {self._columns} FROM {self._outbox} WHERE projection = {self._named('name')} AND {condition} "
            f"ORDER BY marked_at, kind, record_id"
        )

    @staticmethod
    def _identity(mark: Mark) -> tuple[str, str, str]:
        return mark.projection, mark.kind, mark.record_id

    def _moment(self, moment: datetime) -> Any:
        return self._tx.dialect.encode(FieldType.TIMESTAMP, moment)

    def _mark_of(self, row: Sequence[Any], leased_until: datetime | None = None) -> Mark:
        decode = self._tx.dialect.timestamp_decoder
        projection, kind, record_id, generation, marked_at, leased, attempts, error, parked = row
        until = leased_until if leased_until is not None or leased is None else decode(leased)
        return Mark(projection, kind, record_id, generation, decode(marked_at), until, attempts, error, bool(parked))


def marked_again(outbox: str) -> str:
    """What becomes of a mark that is there already when its record changes once more."""
    return (
        f"ON CONFLICT (projection, kind, record_id) DO UPDATE SET generation = {outbox}.generation + 1, "
        "marked_at = excluded.marked_at, attempts = 0, error = NULL, parked = false"
    )

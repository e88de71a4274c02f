"""The outbox and the heads of the audit chains as tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from alma.model.fields import FieldType
from alma.storage.audit import ChainHead, ChainTable
from alma.storage.outbox import Backlog, Mark, MarkTable, by_kind
from alma.storage.sql.clauses import Names

if TYPE_CHECKING:
    from alma.storage.sql.backend import SqlBackend


_HEAD_AND_FOLLOWED = (
    "SELECT chain, length, hash, unchained, (SELECT group_concat(kind) FROM projections) "
    "FROM audit_chains ORDER BY chain LIMIT 1"
)


class SqlMarks(MarkTable):
    """The outbox as an SQL table."""

    _columns = "projection, kind, record_id, generation, marked_at, leased_until, attempts, error, parked"

    def __init__(self, backend: SqlBackend) -> None:
        self._backend = backend
        self._outbox = backend.names.outbox
        self._projections = backend.names.projections
        self._named = backend.names.parameter
        self._placeholder = backend.names.mark

    @property
    def _same_mark(self) -> str:
        return " AND ".join(f"{name} = {self._placeholder}" for name in ("projection", "kind", "record_id"))

    def register(self, name: str, kinds: Sequence[str]) -> None:
        self._delete_all(self._projections, name)
        self._backend.followed_kinds = None
        self._backend.insert_rows(self._projections, ("projection", "kind"), [(name, kind) for kind in kinds])

    def drop(self, name: str) -> None:
        for table in (self._projections, self._outbox):
            self._delete_all(table, name)
        self._backend.followed_kinds = None

    def _delete_all(self, table: str, projection: str) -> None:
        self._backend.run(f"DELETE FROM {table} WHERE projection = {self._named('name')}", {"name": projection})

    def registered(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        rows = self._backend.rows(f"SELECT projection, kind FROM {self._projections} ORDER BY projection, kind", {})
        for projection, kind in rows:
            found[projection] = (*found.get(projection, ()), kind)
        return found

    def mark(self, kind: str, keys: Sequence[str], moment: datetime, only: str | None = None) -> None:
        """In one statement, which does nothing where no projection follows the kind."""
        if self._backend.dialect.name == "sqlite" and kind not in self._followed():
            return
        distinct = self._backend.bound_list(list(dict.fromkeys(keys)))
        values = {"kind": kind, "keys": distinct, "moment": self._moment(moment)}
        if only is not None:
            values["only"] = only
        self._backend.run(_marking(self._backend.names, only is not None), values)

    def _followed(self) -> frozenset[str]:
        """The kinds that projections follow; on SQLite the write lock keeps this list valid during the transaction."""
        known = self._backend.followed_kinds
        if known is None:
            found = self._backend.rows(f"SELECT kind FROM {self._projections}", {})
            known = self._backend.followed_kinds = frozenset(kind for (kind,) in found)
        return known

    def claim(self, projection: str, limit: int, moment: datetime, until: datetime) -> list[Mark]:
        rows = self._backend.rows(
            f"{self._oldest_first(self._claimable)} LIMIT {self._named('most')}{self._locking(' SKIP LOCKED')}",
            {"name": projection, "now": self._moment(moment), "most": limit},
        )
        marks = [self._mark_of(row, leased_until=until) for row in rows]
        lease = f"UPDATE {self._outbox} SET leased_until = {self._named('until')} WHERE {self._same_kind}"
        for group in by_kind(marks):
            self._backend.run(lease, {**self._of_kind(*group), "until": self._moment(until)})
        return marks

    def of_records(self, projection: str, kind: str, keys: Collection[str]) -> list[Mark]:
        lock = self._locking() if self._backend.writable else ""
        sql = f"SELECT {self._columns} FROM {self._outbox} WHERE {self._same_kind} ORDER BY record_id{lock}"
        return [self._mark_of(row) for row in self._backend.rows(sql, self._of_kind(projection, kind, keys))]

    def put(self, marks: Sequence[Mark]) -> None:
        sets = ", ".join(f"{name} = {self._placeholder}" for name in ("leased_until", "attempts", "error", "parked"))
        values = [(self._lease(mark), mark.attempts, mark.error, mark.parked, *mark.key) for mark in marks]
        if values:
            self._backend.run_many(f"UPDATE {self._outbox} SET {sets} WHERE {self._same_mark}", values)

    def remove(self, marks: Sequence[Mark]) -> None:
        for group in by_kind(marks):
            self._backend.run(f"DELETE FROM {self._outbox} WHERE {self._same_kind}", self._of_kind(*group))

    def pending(self, projection: str) -> list[Mark]:
        return [self._mark_of(row) for row in self._backend.rows(self._oldest_first("true"), {"name": projection})]

    def backlog(self, projection: str) -> Backlog:
        waiting = "CASE WHEN parked THEN NULL ELSE marked_at END"
        counted = f"count(*), count(*) - count({waiting}), min({waiting})"
        sql = f"SELECT {counted} FROM {self._outbox} WHERE projection = {self._named('name')}"
        pending, parked, oldest = self._backend.rows(sql, {"name": projection})[0]
        return Backlog(pending, parked, None if oldest is None else self._backend.dialect.timestamp_decoder(oldest))

    def can_claim(self, projection: str, moment: datetime) -> bool:
        sql = f"{self._oldest_first(self._claimable)} LIMIT 1"
        return bool(self._backend.rows(sql, {"name": projection, "now": self._moment(moment)}))

    # ------------------------------------------------------------------ spelling

    def _oldest_first(self, condition: str) -> str:
        return (
            f"SELECT {self._columns} FROM {self._outbox} WHERE projection = {self._named('name')} AND {condition} "
            f"ORDER BY marked_at, kind, record_id"
        )

    @property
    def _claimable(self) -> str:
        return f"(leased_until IS NULL OR leased_until <= {self._named('now')}) AND NOT parked"

    @property
    def _same_kind(self) -> str:
        same = f"projection = {self._named('name')} AND kind = {self._named('kind')}"
        return f"{same} AND record_id {self._backend.in_list('keys')}"

    def _of_kind(self, projection: str, kind: str, keys: Collection[str]) -> dict[str, Any]:
        return {"name": projection, "kind": kind, "keys": self._backend.bound_list(list(keys))}

    def _lease(self, mark: Mark) -> Any:
        return None if mark.leased_until is None else self._moment(mark.leased_until)

    def _locking(self, how: str = "") -> str:
        return f" FOR UPDATE{how}" if self._backend.dialect.name == "postgresql" else ""

    def _moment(self, moment: datetime) -> Any:
        return self._backend.dialect.encode(FieldType.TIMESTAMP, moment)

    def _mark_of(self, row: Sequence[Any], leased_until: datetime | None = None) -> Mark:
        decode = self._backend.dialect.timestamp_decoder
        projection, kind, record_id, generation, marked_at, leased, attempts, error, parked = row
        until = leased_until if leased_until is not None or leased is None else decode(leased)
        return Mark(projection, kind, record_id, generation, decode(marked_at), until, attempts, error, bool(parked))


class SqlChains(ChainTable):
    """The heads of the audit chains as an SQL table."""

    def __init__(self, backend: SqlBackend) -> None:
        self._backend = backend

    def take(self) -> ChainHead:
        # SQLite has a single writer, which reads the followed kinds in the same statement. On a server, chains locked
        # by other writers are skipped, and a new chain is created if all are locked, so that no writer waits.
        if self._backend.dialect.name == "sqlite":
            found = self._backend.rows(_HEAD_AND_FOLLOWED, {})
            if found:
                self._backend.followed_kinds = frozenset((found[0][4] or "").split(","))
                return ChainHead(*found[0][:4])
        else:
            found = self._backend.rows(f"{self._heads()} LIMIT 1 FOR UPDATE SKIP LOCKED", {})
        if not found:
            table = self._backend.names.audit_chains
            begun = f"INSERT INTO {table} (length) VALUES (0) RETURNING chain, length, hash, unchained"
            found = self._backend.rows(begun, {})
        return ChainHead(*found[0])

    def move(self, head: ChainHead) -> None:
        self._backend.run(_moving(self._backend.names), {"length": head.length, "hash": head.hash, "chain": head.chain})

    def heads(self) -> list[ChainHead]:
        return [ChainHead(*row) for row in self._backend.rows(self._heads(), {})]

    def _heads(self) -> str:
        return f"SELECT chain, length, hash, unchained FROM {self._backend.names.audit_chains} ORDER BY chain"


@cache
def _moving(names: Names) -> str:
    """The statement that stores the head of a chain."""
    named = names.parameter
    return (
        f"UPDATE {names.audit_chains} SET length = {named('length')}, hash = {named('hash')} "
        f"WHERE chain = {named('chain')}"
    )


@cache
def _marking(names: Names, only: bool) -> str:
    """Marks records for every projection that follows their kind, or for one of them."""
    on_sqlite, named = names.dialect == "sqlite", names.parameter
    each, key = ("json_each({}) AS key", "key.value") if on_sqlite else ("unnest({}::text[]) AS key", "key")
    chosen = f"AND projection = {named('only')} " if only else ""
    return (
        f"INSERT INTO {names.outbox} (projection, kind, record_id, marked_at, generation) "
        f"SELECT projection, kind, {key}, {named('moment')}, 1 "
        f"FROM {names.projections} CROSS JOIN {each.format(named('keys'))} WHERE kind = {named('kind')} {chosen}"
        # In order, so that two batches over the same records take their row locks in the same order.
        f"ORDER BY 1, 3 ON CONFLICT (projection, kind, record_id) DO UPDATE "
        f"SET generation = {names.outbox}.generation + 1, marked_at = excluded.marked_at, "
        f"attempts = 0, error = NULL, parked = false"
    )

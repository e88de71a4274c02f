"""How many records their owners have on PostgreSQL: counted for several kinds at once, and not again before a write."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from alma.model.kinds import KINDS
from alma.model.memory import Memory, MemoryRelationship
from alma.model.query import And, In, Predicate
from alma.model.record import RecordSpec
from alma.storage import ranking
from alma.storage.ranking import Remembered, minute
from alma.storage.sql.clauses import Values

if TYPE_CHECKING:
    from alma.storage.postgres.backend import PostgresBackend

# Records are not counted further than this; how many more there are the planner tells.
_LARGE = 20_000

Owners = tuple[tuple[str, tuple[str, ...]], ...]
"""The fields that say whose a record is, each with the values that it may have."""
Counted = tuple[str, Hashable]
"""What was counted: the records of a table by whose they are, or of a kind by the predicate that they fulfil."""


class _Owned(NamedTuple):
    """Records of a kind that are counted: whose they are, perhaps only whether there are any."""

    spec: RecordSpec
    owners: Owners
    any_at_all: bool = False

    def statement(self, owned: str) -> str:
        """The records to be counted, by the condition that they are the owner's."""
        some = f"SELECT 1 FROM {self.spec.postgres_table} WHERE {owned}"
        return f"SELECT 1 FROM ({some} LIMIT 1) AS found" if self.any_at_all else some


class OwnedRecords:
    """The records of a kind that some owners have, to be counted."""

    def __init__(self, backend: PostgresBackend, spec: RecordSpec, owners: Owners) -> None:
        self._backend = backend
        self._spec = spec
        self._table = spec.postgres_table
        self._owners = owners
        self._remembered: Remembered[int] = backend.cache.word_counts

    def count(self) -> int:
        """How many records the owners have, beyond a limit as the planner takes it."""
        key = (self._table, self._owners)
        known = self._known(key)
        if known is None:
            self._count()
            known = self._backend.counted_records[key]
        return known

    def count_all(self) -> int:
        """How many records the table has, as of the last minute: it decides on the way to what is found."""
        key = (self._table, "all")
        known = self._remembered.get(key, minute())
        if known is None:
            known = self._remembered.put(key, minute(), OwnedRecords(self._backend, self._spec, ()).count())
        return known

    def _known(self, key: Counted) -> int | None:
        known = self._backend.counted_records.get(key)
        return self._remembered.get(key, minute()) if known is None else known

    def _count(self) -> None:
        """Those of the kinds that are mostly asked for next as well: in one round trip.

        What was counted in the same state of the database, as nobody has written anything since, need not be again.
        """
        # What a transaction writes makes it count anew, and it rarely asks for several kinds.
        alone = self._backend.writable or not self._owners
        own: dict[Counted, _Owned] = {(self._table, self._owners): _Owned(self._spec, self._owners)}
        unknown: dict[Counted, _Owned] = {}
        for key, owned in (own if alone else self._asked_for_next()).items():
            known = self._known(key)
            if known is None and self._backend.state is not None:
                known = self._remembered.get(owned, self._backend.state)
            if known is None:
                unknown[key] = owned
            else:
                self._backend.counted_records[key] = known
        if unknown:
            self._ask_how_many(unknown)

    def _ask_how_many(self, unknown: Mapping[Counted, _Owned]) -> None:
        values: dict[str, Any] = {}
        some: list[str] = []
        for place, owned in enumerate(unknown.values()):
            named = Values(self._backend.dialect.names, f"owner{place}_")
            condition = self._backend.dialect.kind(owned.spec).clauses.condition(owned_by(owned.owners), named)
            some.append(owned.statement(condition))
            values |= named.values
        counting = ", ".join(f"(SELECT count(*) FROM ({sql} LIMIT {_LARGE}) AS s)" for sql in some)
        counts = self._backend.rows(f"SELECT {counting}", values)[0]
        for (key, owned), sql, count in zip(unknown.items(), some, counts, strict=True):
            if count == _LARGE:
                plan = self._backend.rows(f"EXPLAIN (FORMAT JSON) {sql}", values)[0][0]
                count = self._remembered.put(key, minute(), max(count, int(plan[0]["Plan"]["Plan Rows"])))
            elif self._backend.state is not None:
                self._remembered.put(owned, self._backend.state, count)
            self._backend.counted_records[key] = count

    def _asked_for_next(self) -> dict[Counted, _Owned]:
        """The kinds that have the same owners as this one, and the memories of their project."""
        found: dict[Counted, _Owned] = {
            (spec.postgres_table, self._owners): _Owned(spec, self._owners) for spec in _kindred(self._spec)
        }
        project = tuple(owner for owner in self._owners if owner[0] == "project_id")
        if project and "agent" in self._spec.by_name:
            found[Memory.spec.postgres_table, project] = _Owned(Memory.spec, project)
        # Many a store has no relationships, and who asks for them asks more than once.
        found[MemoryRelationship.spec.postgres_table, ()] = _Owned(MemoryRelationship.spec, (), any_at_all=True)
        return found


def owners_of(where: Predicate) -> Owners:
    """Whose records a predicate asks for, always in the same order."""
    return tuple(sorted(ranking.owners(where).items()))


def owned_by(owners: Owners) -> Predicate:
    """That a record is one of these owners'."""
    return And(*(In(*owner) for owner in owners))


@cache
def _kindred(spec: RecordSpec) -> tuple[RecordSpec, ...]:
    """The searchable kinds that have the same columns for their owners as this one."""
    searchable = (cls.spec for cls in KINDS if cls.spec.text)
    return tuple(other for other in searchable if _owner_columns(other) == _owner_columns(spec))


def _owner_columns(spec: RecordSpec) -> set[str]:
    return {name for name in ranking.OWNERS if name in spec.by_name}

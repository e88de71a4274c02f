"""Narrow predicates on SQLite: the one part of a predicate that fewest records fulfil, found by counting.

Without statistics SQLite takes every index for as good as any other, and would rather go through all records of a
project than through the hundred that have a tag.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from alma.model.query import And, Compare, Has, In, Or, Predicate
from alma.model.record import RecordSpec
from alma.storage.sql.clauses import Values
from alma.storage.sql.statements import Dialect

if TYPE_CHECKING:
    from alma.storage.sqlite.backend import SQLiteBackend

# Fields with an index of their own, by which few records may be found.
_LOOKED_UP = ("memory_type", "category", "session_id", "source_agent")
_RANGES = ("created_at",)


class Lead(NamedTuple):
    """A statement that finds records by an index alone, how it is joined with their table, and its values.

    `key` is what it calls their keys, where it knows them.
    """

    sql: str
    join: str
    values: dict[str, Any]
    key: str | None = None


def narrowest(backend: SQLiteBackend, spec: RecordSpec, where: Predicate, most: int) -> Lead | None:
    """The part of a predicate that fewest records fulfil, if these are no more than so many."""
    counted = [(_count(backend, lead, most), lead) for lead in _leads(backend.dialect, spec, where)]
    count, lead = min(counted, key=itemgetter(0), default=(0, None))
    return lead if count <= most else None


def _count(backend: SQLiteBackend, lead: Lead, most: int) -> int:
    return int(backend.rows(f"SELECT count(*) FROM ({lead.sql} LIMIT {most + 1})", lead.values)[0][0])


def _leads(dialect: Dialect, spec: RecordSpec, where: Predicate) -> Iterator[Lead]:
    parts = list(_parts(where))
    table = dialect.names.table(spec)
    for part in parts:
        if tags := _tags(part, spec):
            names = {f"tag{i}": tag for i, tag in enumerate(tags)}
            asked = ", ".join(f":{name}" for name in names)
            sql = f"SELECT DISTINCT memory_id AS key FROM {dialect.names.tags} WHERE tag IN ({asked})"
            yield Lead(sql, f'"{table}"."{spec.key}" = led.key', names, "led.key")
        elif isinstance(part, Compare | In) and part.field in _LOOKED_UP and getattr(part, "op", "eq") == "eq":
            yield _by_index(dialect, spec, (part,))
    for name in _RANGES:
        if bounds := [part for part in parts if isinstance(part, Compare) and part.field == name]:
            yield _by_index(dialect, spec, bounds)


def _by_index(dialect: Dialect, spec: RecordSpec, parts: Iterable[Predicate]) -> Lead:
    statements = dialect.kind(spec)
    values = Values(dialect.names, "lead")
    condition = statements.clauses.condition(And(*parts), values)
    return Lead(
        f'SELECT seq FROM "{statements.table}" WHERE {condition}', f'"{statements.table}".seq = led.seq', values.values
    )


def _parts(where: Predicate) -> Iterator[Predicate]:
    if isinstance(where, And):
        for part in where.parts:
            yield from _parts(part)
    else:
        yield where


def _tags(part: Predicate, spec: RecordSpec) -> list[str]:
    """The tags of which a record must have one, where that is what is asked for."""
    alternatives = part.parts if isinstance(part, Or) else (part,)
    tags = [each.value for each in alternatives if isinstance(each, Has) and each.field == spec.tags_field]
    return tags if len(tags) == len(alternatives) else []

"""Filters: the records that match a selective predicate, found by its most selective part and cached until a write."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from alma.lazy import lazy_module
from alma.model.query import And, At, Compare, Has, In, Missing, Or, Predicate
from alma.model.record import RecordSpec
from alma.storage.ranking import without_expiry
from alma.storage.sql.clauses import Values
from alma.storage.sql.statements import Dialect

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from alma.storage.sqlite.backend import SQLiteBackend
else:
    np = lazy_module("numpy")


# Indexed fields that can be selective.
_LOOKED_UP = ("memory_type", "category", "session_id", "source_agent")
_RANGES = ("created_at",)


class Lead(NamedTuple):
    """A statement that finds records by an index alone, its join with the table of records, and its values.

    `key` is its column of record keys, if it has one.
    """

    sql: str
    join: str
    values: dict[str, Any]
    key: str | None = None


def narrowest(backend: SQLiteBackend, spec: RecordSpec, where: Predicate, most: int) -> Lead | None:
    """The most selective part of a predicate, if at most `most` records match it."""
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
            listed_tags = ", ".join(f":{name}" for name in names)
            sql = f"SELECT DISTINCT memory_id AS key FROM {dialect.names.tags} WHERE tag IN ({listed_tags})"
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
    """The tags of a predicate that requires any of some tags, else none."""
    alternatives = part.parts if isinstance(part, Or) else (part,)
    tags = [each.value for each in alternatives if isinstance(each, Has) and each.field == spec.tags_field]
    return tags if len(tags) == len(alternatives) else []


Numbers: TypeAlias = "NDArray[np.int64]"

_MOST_REMEMBERED = 32
# Fields that change with every read, without a new version.
_RESTLESS = frozenset(("access_count", "last_accessed_at"))


class Listing(NamedTuple):
    """The row numbers of records and of their vectors, both ascending."""

    seqs: Numbers
    positions: Numbers


def remembered(backend: SQLiteBackend, key: Hashable, mark: Hashable) -> tuple[bool, Listing | None]:
    """Whether a listing is cached, and the listing: None if too many records match the predicate."""
    made_at, listing = backend.cache.listings.get(key, (None, None))
    return made_at == mark, listing if made_at == mark else None


def remember(backend: SQLiteBackend, key: Hashable, mark: Hashable, listing: Listing | None) -> Listing | None:
    """Cache a listing until the mark changes."""
    if len(backend.cache.listings) >= _MOST_REMEMBERED:
        backend.cache.listings.clear()
    backend.cache.listings[key] = (mark, listing)
    return listing


def can_be_listed(spec: RecordSpec, where: Predicate) -> bool:
    """Whether the mark changes with every write that could change the listing."""
    return bool(spec.versioned and spec.text) and _RESTLESS.isdisjoint(_fields(where))


def mark_of(backend: SQLiteBackend, spec: RecordSpec) -> Hashable:
    """A cache key that changes with every write to records of the kind, their vectors, or the whole file.

    FTS5 counts writes to an index, every change of a record adds a version, and a restored file has another schema
    version.
    """
    names = backend.dialect.names
    return tuple(
        backend.rows(
            f"SELECT (SELECT block FROM {names.fts_table(spec)}_data WHERE id = 10), "
            f"(SELECT max(id) FROM memory_versions), "
            f"(SELECT seq FROM sqlite_sequence WHERE name = '{names.embeddings}'), "
            f"(SELECT schema_version FROM pragma_schema_version)",
            {},
        )[0]
    )


def listed(backend: SQLiteBackend, spec: RecordSpec, model: str, where: Predicate, most: int) -> Listing | None:
    """The records that match a predicate, expired ones included; None if there are more than `most`."""
    statements = backend.dialect.kind(spec)
    table, vectors = statements.table, backend.dialect.names.embeddings
    lead = narrowest(backend, spec, where, most)
    values = Values(backend.dialect.names)
    # Use no index other than that of the lead.
    condition = statements.clauses.condition(without_expiry(where), values, by=None if lead is None else "")
    source = f'"{table}"' if lead is None else f'({lead.sql}) AS led CROSS JOIN "{table}" ON {lead.join}'
    rows = backend.rows(
        f'SELECT "{table}".seq, {vectors}.id FROM {source} LEFT JOIN {vectors} ON {vectors}.memory_type = :kind '
        f'AND {vectors}.model = :model AND {vectors}.memory_id = "{table}"."{spec.key}" '
        f"WHERE {condition} LIMIT {most + 1}",
        {**values.values, **({} if lead is None else lead.values), "kind": spec.kind, "model": model},
    )
    if len(rows) > most:
        return None
    positions = [position for _, position in rows if position is not None]
    return Listing(np.unique(np.array([seq for seq, _ in rows], np.int64)), np.sort(np.array(positions, np.int64)))


def _fields(where: Predicate) -> Iterator[str]:
    match where:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _fields(part)
        case Compare(name) | In(name) | Missing(name) | Has(name) | At(name):
            yield name

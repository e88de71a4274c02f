"""Time-based partitions on PostgreSQL: `memories` and `audit_log` split by month or quarter of creation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg import sql

from alma import clock
from alma.errors import ConfigurationError, ValidationError
from alma.storage.postgres.sql_writes import keep_sql_writes
from alma.storage.postgres.views import ORCHESTRATOR_VIEWS

PARTITIONED = ("memories", "audit_log")
_MONTHS: dict[str, int] = {"month": 1, "quarter": 3}
_MOST_YEARS = 10


@dataclass(frozen=True, slots=True)
class Partition:
    """One stretch of time of a partitioned table and how many rows lie in it."""

    table: str
    name: str
    bounds: str
    rows: int


def partition(
    connection: psycopg.Connection[Any], table: str, interval: str = "month", ahead: int = 3
) -> list[Partition]:
    """Split the table unless it is split, and make partitions for the next `ahead` intervals; returns all partitions.

    Rows outside every partition go to a default one, so no write ever fails for want of a partition.
    """
    _check(table, interval, ahead)
    with connection.transaction():
        _run(connection, "LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", sql.Identifier(table))
        if not _is_partitioned(connection, table):
            _split(connection, table)
        first = _first_start(connection, table, interval)
        for start, end in _stretches(first, interval, ahead):
            _add(connection, table, start, end)
    return partitions(connection, table)


def partitions(connection: psycopg.Connection[Any], table: str) -> list[Partition]:
    """The partitions of a table, none where it is not partitioned."""
    rows = connection.execute(
        "SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits i "
        "JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = %s::regclass ORDER BY c.relname",
        (table,),
    ).fetchall()
    return [Partition(table, name, bounds, _count(connection, name)) for name, bounds in rows]


def _check(table: str, interval: str, ahead: int) -> None:
    if table not in PARTITIONED:
        raise ConfigurationError(f"only {', '.join(PARTITIONED)} and vectors can be partitioned, not {table!r}")
    if interval not in _MONTHS:
        raise ValidationError("partition", "interval", interval, "must be 'month' or 'quarter'")
    if ahead < 0:
        raise ValidationError("partition", "ahead", ahead, "must be at least 0")


def _split(connection: psycopg.Connection[Any], table: str) -> None:
    """Move the rows into a partitioned table of the same name, columns, checks and indexes."""
    names = {"table": sql.Identifier(table), "old": sql.Identifier(f"{table}_before_partitions")}
    indexes = _index_definitions(connection, table)
    views = _dependent_views(table)
    for view in views:
        _run(connection, "DROP VIEW {}", sql.Identifier(view))
    _run(connection, "ALTER TABLE {table} RENAME TO {old}", **names)
    _run(
        connection,
        "CREATE TABLE {table} (LIKE {old} INCLUDING DEFAULTS INCLUDING CONSTRAINTS) PARTITION BY RANGE (created_at)",
        **names,
    )
    _run(connection, "CREATE TABLE {} PARTITION OF {table} DEFAULT", sql.Identifier(f"{table}_default"), **names)
    _keep_numbering(connection, table)
    _run(connection, "INSERT INTO {table} SELECT * FROM {old}", **names)
    _run(connection, "DROP TABLE {old}", **names)
    _run(connection, "ALTER TABLE {table} ADD PRIMARY KEY (id, created_at)", **names)
    for definition in indexes:
        connection.execute(definition.encode())
    for view in views:
        connection.execute(ORCHESTRATOR_VIEWS[view].encode())
    keep_sql_writes(connection)


def _keep_numbering(connection: psycopg.Connection[Any], table: str) -> None:
    """Numbered rows go on counting where they were: an identity column cannot be copied on every version."""
    old = f"{table}_before_partitions"
    row = connection.execute("SELECT pg_get_serial_sequence(%s, 'id')", (old,)).fetchone()
    if row is None or row[0] is None:
        return
    last = connection.execute(sql.SQL("SELECT coalesce(max(id), 0) FROM {}").format(sql.Identifier(old))).fetchone()
    sequence = sql.Identifier(f"{table}_number")
    start = sql.Literal((last[0] if last else 0) + 1)
    _run(connection, "CREATE SEQUENCE {} START {}", sequence, start)
    _run(
        connection,
        "ALTER TABLE {} ALTER COLUMN id SET DEFAULT nextval({})",
        sql.Identifier(table),
        sql.Literal(f"{table}_number"),
    )
    _run(connection, "ALTER SEQUENCE {} OWNED BY {}.id", sequence, sql.Identifier(table))


def _index_definitions(connection: psycopg.Connection[Any], table: str) -> list[str]:
    """Every index but the primary key, which must contain the partition key."""
    rows = connection.execute(
        "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = %s::regclass AND NOT indisprimary", (table,)
    ).fetchall()
    return [definition for (definition,) in rows]


def _dependent_views(table: str) -> list[str]:
    return {"memories": ["memory_entries"], "audit_log": ["memory_access_logs"]}[table]


def _first_start(connection: psycopg.Connection[Any], table: str, interval: str) -> datetime:
    """Where the partitions begin: at the oldest row that has none, or now."""
    oldest = connection.execute(
        sql.SQL("SELECT min(created_at) FROM {}").format(sql.Identifier(f"{table}_default"))
    ).fetchone()
    now = clock.now()
    moment = now if oldest is None or oldest[0] is None else min(oldest[0], now)
    # A stray date must not make a thousand partitions; what is older stays in the default one.
    moment = max(moment, now.replace(year=now.year - _MOST_YEARS, day=1))
    months = _MONTHS[interval]
    return datetime(moment.year, (moment.month - 1) // months * months + 1, 1, tzinfo=UTC)


def _stretches(first: datetime, interval: str, ahead: int) -> Iterator[tuple[datetime, datetime]]:
    start = first
    left = ahead
    while start <= clock.now() or left > 0:
        if start > clock.now():
            left -= 1
        end = _plus_months(start, _MONTHS[interval])
        yield start, end
        start = end


def _plus_months(moment: datetime, months: int) -> datetime:
    month = moment.month - 1 + months
    return moment.replace(year=moment.year + month // 12, month=month % 12 + 1)


def _add(connection: psycopg.Connection[Any], table: str, start: datetime, end: datetime) -> None:
    """One partition, with the rows that had to wait for it in the default one."""
    if _covered(connection, table, start, end):
        return
    name = f"{table}_{start:%Y_%m}"
    names = {"part": sql.Identifier(name), "table": sql.Identifier(table), "rest": sql.Identifier(f"{table}_default")}
    bounds = {"start": sql.Literal(start), "end": sql.Literal(end)}
    _run(connection, "CREATE TABLE {part} (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)", **names)
    _run(
        connection,
        "WITH moved AS (DELETE FROM {rest} WHERE created_at >= {start} AND created_at < {end} RETURNING *) "
        "INSERT INTO {part} SELECT * FROM moved",
        **names,
        **bounds,
    )
    _run(
        connection,
        "ALTER TABLE {table} ATTACH PARTITION {part} FOR VALUES FROM ({start}) TO ({end})",
        **names,
        **bounds,
    )


def _covered(connection: psycopg.Connection[Any], table: str, start: datetime, end: datetime) -> bool:
    """Whether some partition already takes rows of this stretch, perhaps one of another interval."""
    bounds = (p.bounds for p in partitions(connection, table) if p.bounds != "DEFAULT")
    for text in bounds:
        _, low, _, high, _ = text.split("'")
        if datetime.fromisoformat(low) < end and start < datetime.fromisoformat(high):
            return True
    return False


def _is_partitioned(connection: psycopg.Connection[Any], table: str) -> bool:
    row = connection.execute("SELECT relkind FROM pg_class WHERE oid = %s::regclass", (table,)).fetchone()
    return row is not None and row[0] in ("p", b"p")


def _count(connection: psycopg.Connection[Any], name: str) -> int:
    row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(name))).fetchone()
    return int(row[0]) if row else 0


def _run(connection: psycopg.Connection[Any], command: str, *args: Any, **kwargs: Any) -> None:
    connection.execute(sql.SQL(command).format(*args, **kwargs))

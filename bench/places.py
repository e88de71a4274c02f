"""Where a contender keeps its data: a folder or a PostgreSQL database, and its size."""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import BinaryIO, LiteralString, Protocol

_TABLES = """
SELECT coalesce(sum(pg_total_relation_size(pg_class.oid)), 0)::bigint
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = 'public' AND relkind IN ('r', 'm')
"""
_FLUSHES = 9
_DATABASE = "SELECT pg_database_size(current_database())"

STORES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


def stores_named(text: str) -> list[str]:
    """The stores of a comma-separated option."""
    chosen = text.split(",")
    if unknown := [name for name in chosen if name not in STORES]:
        raise argparse.ArgumentTypeError(f"knows sqlite and postgresql, not {', '.join(unknown)}")
    return chosen


class Place(Protocol):
    """A folder or database; sizes that do not apply are None."""

    @property
    def target(self) -> str:
        """The path of the file, or the connection string."""

    def open_bytes(self) -> int | None:
        """Bytes on disk while a storage has it open."""

    def closed_bytes(self) -> int:
        """Bytes on disk after the storage is closed."""

    def database_bytes(self) -> int | None:
        """The same, including an empty database's own files."""

    def flush_ms(self) -> float | None:
        """The time to flush four kilobytes to the disk."""

    def settle(self) -> None:
        """Run the database's background maintenance now."""


class Folder:
    """A folder for one database file and its companions."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.mkdir(parents=True, exist_ok=True)

    @property
    def target(self) -> str:
        return str(self._path / "alma.db")

    def open_bytes(self) -> int | None:
        return self.closed_bytes()

    def closed_bytes(self) -> int:
        return sum(path.stat().st_size for path in self._path.rglob("*") if path.is_file())

    def database_bytes(self) -> int | None:
        return None

    def flush_ms(self) -> float | None:
        # Beside the folder, so that the file does not count as the contender's.
        with tempfile.TemporaryFile(dir=self._path.parent, buffering=0) as file:
            return statistics.fmean(_flush_seconds(file) for _ in range(_FLUSHES)) * 1000

    def settle(self) -> None:
        pass


class Database:
    """A PostgreSQL database."""

    def __init__(self, dsn: str) -> None:
        self.target = dsn

    def open_bytes(self) -> int | None:
        return None

    def closed_bytes(self) -> int:
        return self._number(_TABLES)

    def database_bytes(self) -> int | None:
        return self._number(_DATABASE)

    def flush_ms(self) -> float | None:
        return None

    def settle(self) -> None:
        import psycopg

        with psycopg.connect(self.target, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
            connection.execute("CHECKPOINT")

    def _number(self, sql: LiteralString) -> int:
        import psycopg

        with psycopg.connect(self.target) as connection:
            row = connection.execute(sql).fetchone()
        return int(row[0]) if row else 0


def place_at(target: str) -> Place:
    """The place of an option: a postgresql:// URL, or else a folder."""
    return Database(target) if target.startswith("postgresql://") else Folder(Path(target))


def _flush_seconds(file: BinaryIO) -> float:
    file.write(b"x" * 4096)
    begin = time.perf_counter()
    os.fsync(file.fileno())
    return time.perf_counter() - begin

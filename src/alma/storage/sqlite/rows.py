"""Writing rows to SQLite: several in a statement, so that a table's indexes are not opened for each of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any

# Older SQLite takes no more parameters in a statement.
_MOST_PARAMETERS = 999
# With more, reading the statement would take as long as is gained, unless there are very many rows.
_MOST_ROWS = 8


def write_rows(
    connection: sqlite3.Connection,
    table: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    replace: bool = False,
) -> None:
    """Write rows of these columns; with `replace`, in place of those that they contradict."""
    left, names = iter(rows), tuple(columns)
    at_once = max(1, min(_MOST_ROWS, _MOST_PARAMETERS // len(names)))
    group = list(islice(left, at_once))

    def whole_groups() -> Iterator[tuple[Any, ...]]:
        """Made when they are asked for: of vectors, all at once would be a copy of the whole batch."""
        nonlocal group
        while len(group) == at_once:
            yield tuple(chain.from_iterable(group))
            group = list(islice(left, at_once))

    if len(group) == at_once:
        connection.executemany(writing(table, names, at_once, replace), whole_groups())
    if group:
        connection.executemany(writing(table, names, 1, replace), group)


@lru_cache(maxsize=1024)
def overwriting(table: str, columns: tuple[str, ...], key: str) -> str:
    """The statement that writes these columns of the row with a key, which comes last."""
    changes = ", ".join(f'"{name}" = ?' for name in columns)
    return f'UPDATE "{table}" SET {changes} WHERE "{key}" = ?'


@lru_cache(maxsize=1024)
def writing(table: str, columns: tuple[str, ...], rows: int = 1, replace: bool = False) -> str:
    """The statement that writes so many rows.

    What fails leaves the rows before it: the transaction is rolled back anyway, and so SQLite need not keep a copy of
    every page that the statement changes.
    """
    names = ", ".join(f'"{name}"' for name in columns)
    row = f"({', '.join('?' * len(columns))})"
    return f'{"REPLACE" if replace else "INSERT OR FAIL"} INTO "{table}" ({names}) VALUES {", ".join([row] * rows)}'

"""Writing rows to SQLite: several in a statement, so that a table's indexes are not opened for each of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

# Older SQLite takes no more parameters in a statement, and more rows would not be faster.
_MOST_PARAMETERS = 999
_MOST_ROWS = 32


def write_rows(
    connection: sqlite3.Connection,
    table: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    replace: bool = False,
) -> None:
    """Write rows of these columns; with `replace`, in place of those that they contradict."""
    every, names = list(rows), tuple(columns)
    at_once = max(1, min(_MOST_ROWS, _MOST_PARAMETERS // len(names)))
    together = len(every) - len(every) % at_once if at_once <= len(every) else 0
    if together:
        groups = (every[start : start + at_once] for start in range(0, together, at_once))
        connection.executemany(writing(table, names, at_once, replace), map(tuple, map(chain.from_iterable, groups)))
    if together < len(every):
        connection.executemany(writing(table, names, 1, replace), every[together:])


@lru_cache(maxsize=1024)
def writing(table: str, columns: tuple[str, ...], rows: int = 1, replace: bool = False) -> str:
    """The statement that writes so many rows.

    What fails leaves the rows before it: the transaction is rolled back anyway, and so SQLite need not keep a copy of
    every page that the statement changes.
    """
    names = ", ".join(f'"{name}"' for name in columns)
    row = f"({', '.join('?' * len(columns))})"
    return f'{"REPLACE" if replace else "INSERT OR FAIL"} INTO "{table}" ({names}) VALUES {", ".join([row] * rows)}'

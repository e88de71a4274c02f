"""What the commands share: options, tables and progress bars."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as ProgressBar
from rich.table import Table

Schema = Annotated[str, typer.Option(help="The PostgreSQL schema that holds ALMA's tables.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def progress_bar() -> ProgressBar:
    """For a person who watches; on stderr, so that what is printed can be piped."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    return ProgressBar(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty())


def show_table(columns: Sequence[str], rows: Sequence[Mapping[str, object]], as_json: bool) -> None:
    """Rows as a table, or as JSON."""
    if as_json:
        show_json(rows)
        return
    table = Table(*columns)
    for row in rows:
        table.add_row(*("pending" if row[name] is None else str(row[name]) for name in columns))
    Console().print(table)


def show_json(value: object) -> None:
    """A value as JSON, as it is piped into other programs."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")

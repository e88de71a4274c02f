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
from rich.text import Text

Schema = Annotated[str, typer.Option(help="The PostgreSQL schema that holds ALMA's tables.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def progress_bar() -> ProgressBar:
    """For a person who watches; on stderr, so that what is printed can be piped."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    return ProgressBar(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty())


def show_table(columns: Sequence[str], rows: Sequence[Mapping[str, object]], as_json: bool, missing: str = "") -> None:
    """Rows as a table, or as JSON; `missing` stands for what has no value."""
    if as_json:
        show_json(rows)
        return
    table = Table(*columns)
    for row in rows:
        # As text: square brackets in what is stored are no markup.
        table.add_row(*(missing if row[name] is None else Text(str(row[name])) for name in columns))
    Console().print(table)


def show_json(value: object) -> None:
    """A value as JSON, as it is piped into other programs."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")

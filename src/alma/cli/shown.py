"""What the commands show: tables, cards and sentences for people, JSON for programs, progress on stderr."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as ProgressBar
from rich.table import Table
from rich.text import Text

from alma.cli.safe import safe, safe_json

Schema = Annotated[
    str | None, typer.Option(metavar="NAME", help="The PostgreSQL schema that holds ALMA's tables; public by default.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text for people.")]
# Nobody watches a pipe, so its lines need not be cut where a screen would end.
_PIPE_WIDTH = 200
_LONGEST_CELL = 400
_NARROW = 70
_MOMENT = re.compile(r"^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|\+00:00)$")


def console() -> Console:
    """Where people read; as wide as the screen."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _PIPE_WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False)


def progress_bar() -> ProgressBar:
    """For a person who watches; on stderr, so that what is printed can be piped."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    return ProgressBar(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True)


@contextmanager
def progress_of(name: str) -> Iterator[Callable[[int, int], None]]:
    """A bar that is told how much is done, and of how much."""
    with progress_bar() as bar:
        task = bar.add_task(name, total=None)

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield tell


def say(sentence: str) -> None:
    """A sentence for people, in which nothing acts on the terminal."""
    typer.echo(safe(sentence))


def warn(sentence: str) -> None:
    """A sentence beside the result."""
    typer.echo(f"alma: {safe(sentence)}", err=True)


def show_table(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, object]],
    as_json: bool,
    missing: str = "",
    title: str | None = None,
) -> None:
    """Rows as a table, or as JSON; `missing` stands for what has no value."""
    if as_json:
        show_json(rows)
        return
    screen = console()
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    for name in columns:
        # What must be copied stays in one piece where the screen lets it.
        whole = screen.width >= _NARROW and (name == "id" or name.endswith("_id"))
        table.add_column(name.replace("_", " "), overflow="fold", no_wrap=whole)
    for row in rows:
        table.add_row(*(Text(cell(row.get(name), missing)) for name in columns))
    _print(screen, table)


def show_card(facts: Mapping[str, object], title: str | None = None) -> None:
    """One thing: a fact on each line."""
    table = Table(box=None, show_header=False, pad_edge=False, title=title, title_justify="left", title_style="bold")
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name.replace("_", " "), Text(cell(value, "", None)))
    _print(console(), table)


def _print(screen: Console, table: Table) -> None:
    """Without the spaces that fill the lines, which would only be copied along."""
    with screen.capture() as captured:
        screen.print(table)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    typer.echo("\n".join(lines).strip("\n"))


def show_json(value: object) -> None:
    """A value as JSON, as it is piped into other programs."""
    document = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    sys.stdout.write(safe_json(document) + "\n")


def cell(value: object, missing: str = "", longest: int | None = _LONGEST_CELL) -> str:
    """A value as people write it."""
    if value is None:
        return missing
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {cell(each)}" for name, each in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(cell(each) for each in value)
    text = _MOMENT.sub(r"\1 \2Z", safe(str(value)))
    return text if longest is None or len(text) <= longest else text[: longest - 1] + "…"

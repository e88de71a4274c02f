"""Output of commands, with control characters escaped: tables, cards and sentences, JSON, progress on stderr."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from alma.lazy import lazy_regex
from alma.text.disguise import visible

if TYPE_CHECKING:
    from rich.progress import Progress as ProgressBar
    from rich.progress import TaskID

Schema = Annotated[
    str | None, typer.Option(metavar="NAME", help="The PostgreSQL schema of ALMA's tables; default: public.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
# The width used for a pipe.
_PIPE_WIDTH = 200
_LONGEST_CELL = 400
_NARROWEST = 16
_BETWEEN = 3
_MOMENT = lazy_regex(r"^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|\+00:00)$")


def console() -> Console:
    """The console for stdout."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _PIPE_WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False)


def progress_bar() -> ProgressBar:
    """A progress bar on stderr, so that stdout can be piped."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    return Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True)


@contextmanager
def progress_of(name: str) -> Iterator[Callable[[int, int], None]]:
    """A progress callback; a bar appears with the first call."""
    with ExitStack() as shown:
        bars: list[tuple[ProgressBar, TaskID]] = []

        def tell(done: int, total: int) -> None:
            if not bars:
                bar = shown.enter_context(progress_bar())
                bars.append((bar, bar.add_task(name, total=None)))
            bar, task = bars[0]
            bar.update(task, completed=done, total=total)

        yield tell


def say(sentence: str) -> None:
    """Print a sentence, with control characters escaped."""
    typer.echo(safe(sentence))


def warn(sentence: str) -> None:
    """Print a warning to stderr."""
    typer.echo(f"alma: {safe(sentence)}", err=True)


def show_table(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, object]],
    as_json: bool,
    missing: str = "",
    title: str | None = None,
) -> None:
    """Print rows as a table or as JSON; `missing` stands for None."""
    if as_json:
        show_json(rows)
        return
    screen = console()
    cells = [[cell(row.get(name), missing) for name in columns] for row in rows]
    if not _fits(columns, cells, screen.width):
        _show_cards(columns, cells, title)
        return
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    for name in columns:
        # Ids are not wrapped, so that they can be copied.
        table.add_column(name.replace("_", " "), overflow="fold", no_wrap=_is_id(name))
    for row in cells:
        table.add_row(*map(Text, row))
    _print(screen, table)


def _fits(columns: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> bool:
    """Whether the columns fit side by side and stay readable."""
    needed = [
        max((len(row[number]) for row in cells), default=0)
        if _is_id(name)
        else min(_NARROWEST, max((len(row[number]) for row in cells), default=0))
        for number, name in enumerate(columns)
    ]
    headed = [max(room, min(len(name), _NARROWEST)) for room, name in zip(needed, columns, strict=True)]
    return sum(headed) + _BETWEEN * len(columns) <= width


def _show_cards(columns: Sequence[str], cells: Sequence[Sequence[str]], title: str | None) -> None:
    """Print rows that do not fit side by side as cards."""
    if title:
        say(title)
    for row in cells:
        say("")
        show_card({name: value for name, value in zip(columns, row, strict=True) if value})


def _is_id(name: str) -> bool:
    return name == "id" or name.endswith("_id")


def show_card(facts: Mapping[str, object], title: str | None = None) -> None:
    """Print one record, a field per line."""
    table = Table(box=None, show_header=False, pad_edge=False, title=title, title_justify="left", title_style="bold")
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name.replace("_", " "), Text(cell(value, "", None)))
    _print(console(), table)


def _print(screen: Console, table: Table) -> None:
    """Print without trailing spaces."""
    with screen.capture() as captured:
        screen.print(table)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    typer.echo("\n".join(lines).strip("\n"))


def show_json(value: object) -> None:
    """Print a value as JSON."""
    document = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    sys.stdout.write(safe_json(document) + "\n")


def cell(value: object, missing: str = "", longest: int | None = _LONGEST_CELL) -> str:
    """A value as text."""
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


# Control characters except newline and tab, and characters that reorder or hide text.
_ACTING = lazy_regex("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")
_SURROGATES = lazy_regex("[\ud800-\udfff]")


def safe(text: str) -> str:
    """The text with control characters written as \\x1b, and without invisible characters."""
    return visible(_SURROGATES.sub(_written, _ACTING.sub(_written, text.replace("\r\n", "\n"))))


def one_line(text: str) -> str:
    """The text on one line."""
    return safe(" ".join(text.split()))


def safe_json(document: str) -> str:
    """A JSON document with the same characters as JSON escapes."""
    return _SURROGATES.sub(_escaped, _ACTING.sub(_escaped, document))


def _written(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"

"""The tables of the latency benchmark, and its targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from latency_steps import Latencies, Spread
from report import Target

RIVAL = "alma-memory"
LARGE, HUGE = 100_000, 1_000_000
MOST_MS = {LARGE: 15.0, HUGE: 40.0}
MOST_EMBEDDED_MS = 35.0
TIMES_FASTER, TIMES_FASTER_AFTER_DELETE = 5, 50
_NOTHING = "-"


@dataclass(frozen=True, slots=True)
class Column:
    """A contender: its displayed name, and the key of ours."""

    name: str
    store: str | None = None
    general: bool = False


# By size, then by contender.
Results = Mapping[int, Mapping[Column, Latencies]]


def _times(spread: Spread) -> str:
    few = "" if spread.calls >= 20 else f" ({spread.calls} calls)"
    return f"{spread.p50_ms:.1f} / {spread.p95_ms:.1f}{few}"


def _seconds(value: float) -> str:
    return f"{value:.2f} s"


def _megabytes(value: float) -> str:
    return f"{value:,.0f} MB"


_LINES: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("rows", "memories loaded", "{:,}".format),
    ("load_seconds", "loading", _seconds),
    ("settle_seconds", "building the index afterwards", _seconds),
    ("big", "retrieve, big owner, ms p50 / p95", _times),
    ("small", "retrieve, owner of 1 %", _times),
    ("big_embedded", "with embedding, big owner", _times),
    ("small_embedded", "with embedding, owner of 1 %", _times),
    ("after_write", "right after one write", _times),
    ("after_delete", "right after one delete", _times),
    ("first_answer_seconds", "new process to first answer", _seconds),
    ("own_mb", "memory after the questions", _megabytes),
    ("own_embedding_mb", "the same with the model", _megabytes),
    ("recall_at_5", "recall@5, owner of 1 %", "{:.3f}".format),
    ("big_meant", "what is meant is among the five, big owner", "{:.3f}".format),
    ("small_meant", "the same, owner of 1 %", "{:.3f}".format),
)


def results_table(size: int, found: Mapping[Column, Latencies]) -> Table:
    """Everything measured at one size, a column for each contender."""
    table = Table("", title=f"{size:,} memories, uncached retrieve of five", title_justify="left")
    for column in found:
        table.add_column(column.name.replace(", ", "\n").replace(" ", "\n", 1), justify="right", no_wrap=True)
    for field, label, show in _LINES:
        values = [getattr(measured, field) for measured in found.values()]
        if any(value is not None for value in values):
            table.add_row(label, *(_NOTHING if value is None else show(value) for value in values))
    return table


def remarks(results: Results) -> Iterator[str]:
    """Notes on the contenders' numbers."""
    for size, found in results.items():
        for column, measured in found.items():
            if measured.rows < size:
                limit = f"loading was stopped by the time limit after {measured.rows:,} of {size:,} memories"
                yield f"{column.name}: {limit}"
            for note in measured.notes:
                yield f"{column.name} at {size:,}: {note}"


# ---------------------------------------------------------------------- targets


def targets(results: Results) -> list[Target]:
    """Every target, with our worst owner and kind of memory."""
    stores = dict.fromkeys(column.store for found in results.values() for column in found if column.store)
    return [
        *(_fast_enough(results, LARGE, store, ("big", "small"), MOST_MS[LARGE]) for store in stores),
        *(_fast_enough(results, LARGE, store, _EMBEDDED, MOST_EMBEDDED_MS) for store in stores),
        _fast_enough(results, HUGE, "SQLite", ("big", "small"), MOST_MS[HUGE]),
        _times_faster(results, ("big", "small"), TIMES_FASTER, "at 100,000"),
        _times_faster(results, ("after_delete",), TIMES_FASTER_AFTER_DELETE, "after a delete, at 100,000"),
    ]


_EMBEDDED = ("big_embedded", "small_embedded")


def _fast_enough(results: Results, size: int, store: str, fields: Sequence[str], most_ms: float) -> Target:
    how = "with" if fields == _EMBEDDED else "without"
    label = f"retrieve p95 ≤ {most_ms:.0f} ms {how} embedding, {size:,} on {store}"
    ours = [(column, found) for column, found in results.get(size, {}).items() if column.store == store]
    times = [
        (spread.p95_ms, f"{column.name}, {_owner(field)}")
        for column, found in ours
        for field, spread in _spreads(found, fields)
    ]
    if not times:
        return Target(label, _NOTHING, None)
    worst, where = max(times)
    return Target(label, f"{worst:.1f} ms at worst ({where})", worst <= most_ms)


def _times_faster(results: Results, fields: Sequence[str], wanted: int, where: str) -> Target:
    """Against the only kind of memory that the rival retrieves, too; both medians, which other work disturbs least."""
    label = f"≥ {wanted} x faster than {RIVAL} {where} (SQLite, heuristics)"
    found = results.get(LARGE, {})
    ours = [measured for column, measured in found.items() if column.store == "SQLite" and not column.general]
    theirs = [measured for column, measured in found.items() if column.name.startswith(RIVAL)]
    if not ours or not theirs:
        return Target(label, _NOTHING, None)
    their_times = dict(_spreads(theirs[0], fields))
    ratios = [
        (their_times[field].p50_ms / spread.p50_ms, _owner(field))
        for field, spread in _spreads(ours[0], fields)
        if field in their_times
    ]
    ratio, owner = min(ratios)
    return Target(label, f"{ratio:.1f} x ({owner})", ratio >= wanted)


def _spreads(found: Latencies, fields: Sequence[str]) -> list[tuple[str, Spread]]:
    return [(field, spread) for field in fields if (spread := getattr(found, field)) is not None]


def _owner(field: str) -> str:
    return "owner of 1 %" if field.startswith("small") else "big owner"

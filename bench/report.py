"""The tables of measurements and targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from measuring import Measurements
from workload import DIMS

BATCH_PER_SECOND = 5_000
BATCH_RATIO = 50
SINGLE_RATIO = 5
OPEN_SECONDS = 0.3
MOST_BYTES = 45_000_000
UNEVEN_FLUSHES = 1.5
_NOTHING = "-"


@dataclass(frozen=True, slots=True)
class Pair:
    """Our best on one database at one size, and the rival's where it was measured."""

    ours: Measurements
    theirs: Measurements | None


# By size, then by database.
Results = Mapping[int, Mapping[str, Pair]]


@dataclass(frozen=True, slots=True)
class Metric:
    """A line of the table: measurement, name, direction, and which round counts."""

    field: str
    label: str
    show: Callable[[float], str]
    higher_is_better: bool = False
    choose: Callable[[list[float]], float] = min
    writing: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """A target and what was measured; None where the run did not measure it."""

    label: str
    measured: str
    reached: bool | None


def _rate(value: float) -> str:
    return f"{value:,.0f}/s"


def _ms(value: float) -> str:
    return f"{value:.2f} ms"


def _seconds(value: float) -> str:
    return f"{value:.3f} s"


def _bytes(value: float) -> str:
    return f"{value:,.0f} B"


def _speed(field: str, label: str) -> Metric:
    return Metric(field, label, _rate, higher_is_better=True, choose=max, writing=True)


METRICS = (
    _speed("batch_per_second", "batch save, heuristics"),
    _speed("memory_batch_per_second", "batch save, general memories"),
    _speed("single_per_second", "single save"),
    _speed("power_single_per_second", "single save, durability=power"),
    Metric("flush_ms", "a flush of the disk meanwhile, mean", _ms, writing=True),
    Metric("get_p50_ms", "get by id, p50", _ms),
    Metric("get_p95_ms", "get by id, p95", _ms),
    Metric("find_p50_ms", "find, p50", _ms),
    Metric("find_p95_ms", "find, p95", _ms),
    Metric("search_p50_ms", "scoped vector search, p50", _ms),
    Metric("search_p95_ms", "scoped vector search, p95", _ms),
    # A promise rather than a speed: here the worst round counts.
    Metric("search_recall", "scoped vector search, recall@5", "{:.3f}".format, higher_is_better=True),
    Metric("open_seconds", "open, in a running process", _seconds),
    Metric("open_process_seconds", "open, in a new process with imports", _seconds),
    Metric("bytes_per_memory", "bytes per heuristic", _bytes),
    Metric("open_bytes_per_memory", "bytes per heuristic, while open", _bytes),
    Metric("database_bytes_per_memory", "bytes per heuristic, whole database", _bytes),
    Metric("memory_bytes_per_memory", "bytes per general memory", _bytes),
)


def best(rounds: Sequence[Measurements]) -> Measurements:
    """The best round of a contender; other load can only slow it down.

    For reading, opening and weighing, rounds in which less was loaded do not count: a small store is easier to read.
    """
    most = max(found.rows for found in rounds)
    loaded = [found for found in rounds if found.rows == most]
    result = Measurements(rows=most, notes=tuple(dict.fromkeys(note for found in rounds for note in found.notes)))
    for metric in METRICS:
        counted = rounds if metric.writing else loaded
        values = [value for found in counted if (value := getattr(found, metric.field)) is not None]
        setattr(result, metric.field, metric.choose(values) if values else None)
    return result


def results_table(size: int, pairs: Mapping[str, Pair], rival: str) -> Table:
    """Everything measured at one size, with the ratio ours ÷ theirs, green where it is in our favour."""
    compared = any(pair.theirs is not None for pair in pairs.values())
    title = f"{size:,} memories of {DIMS} dimensions"
    table = Table(title=f"{title}; theirs is {rival}" if compared else title, title_justify="left")
    table.add_column("", no_wrap=True)
    for database in pairs:
        for heading in (f"{database}\nours", "\ntheirs", "ours ÷\ntheirs")[: 3 if compared else 1]:
            table.add_column(heading, justify="right", no_wrap=True)
    for metric in METRICS:
        cells = [cell for pair in pairs.values() for cell in _cells(metric, pair)[: 3 if compared else 1]]
        if any(cell != _NOTHING for cell in cells):
            table.add_row(metric.label, *cells)
    return table


def _cells(metric: Metric, pair: Pair) -> tuple[str, str, str]:
    ours = getattr(pair.ours, metric.field)
    theirs = None if pair.theirs is None else getattr(pair.theirs, metric.field)
    shown = [_NOTHING if value is None else metric.show(value) for value in (ours, theirs)]
    return shown[0], shown[1], _ratio_cell(ours, theirs, metric.higher_is_better)


def _ratio_cell(ours: float | None, theirs: float | None, higher_is_better: bool) -> str:
    if ours is None or not theirs:
        return _NOTHING
    ratio = ours / theirs
    colour = "green" if (ratio >= 1) == higher_is_better or ratio == 1 else "red"
    return f"[{colour}]{ratio:.3g}x[/]"


def remarks(results: Results, rival: str) -> Iterator[str]:
    """Notes on the rival's numbers."""
    for size, pairs in results.items():
        for database, pair in pairs.items():
            theirs = pair.theirs
            if theirs is not None and theirs.rows < size:
                yield f"{rival} on {database}: loading was stopped after {theirs.rows:,} of {size:,} memories"
            if not _same_disk(pair):
                yield f"{size:,} on {database}: the disk was busier for one than for the other; its ratios do not count"
    notes = ((database, n) for pairs in results.values() for database, p in pairs.items() for n in _notes(p))
    yield from dict.fromkeys(f"{rival} on {database}: {note}" for database, note in notes)


def _same_disk(pair: Pair) -> bool:
    """Whether a flush cost both about the same."""
    costs = [found.flush_ms for found in (pair.ours, pair.theirs) if found is not None and found.flush_ms is not None]
    return len(costs) < 2 or max(costs) <= UNEVEN_FLUSHES * min(costs)


def _notes(pair: Pair) -> tuple[str, ...]:
    return () if pair.theirs is None else pair.theirs.notes


def targets(results: Results) -> list[Target]:
    """Every target against the worst size measured, on SQLite; ratios only where the disk was the same for both."""
    pairs = {size: by_database["SQLite"] for size, by_database in results.items() if "SQLite" in by_database}
    return [
        _fastest_enough("batch_per_second", "heuristics", pairs),
        _fastest_enough("memory_batch_per_second", "general memories", pairs),
        _times_the_rival("batch save", "batch_per_second", BATCH_RATIO, pairs),
        _times_the_rival("single save with vector", "single_per_second", SINGLE_RATIO, pairs),
        _quick_to_open("open_seconds", "in a running process", pairs.get(100_000)),
        _quick_to_open("open_process_seconds", "in a new process with imports", pairs.get(100_000)),
        _small_enough("bytes_per_memory", "heuristics", pairs.get(10_000)),
        _small_enough("memory_bytes_per_memory", "general memories", pairs.get(10_000)),
        _exact(results),
    ]


def targets_table(reached: Sequence[Target]) -> Table:
    """The targets as a table."""
    table = Table("target", "measured", "reached", title="Targets", title_justify="left")
    for target in reached:
        answer = {True: "[green]yes[/]", False: "[red]no[/]", None: "not measured"}[target.reached]
        table.add_row(target.label, target.measured, answer)
    return table


def _worst(values: Mapping[int, float | None]) -> tuple[int, float] | None:
    known = [(size, value) for size, value in values.items() if value is not None]
    return min(known, key=lambda item: item[1]) if known else None


def _fastest_enough(field: str, what: str, pairs: Mapping[int, Pair]) -> Target:
    label = f"batch save of {what} ≥ {BATCH_PER_SECOND:,}/s (SQLite)"
    worst = _worst({size: getattr(pair.ours, field) for size, pair in pairs.items()})
    if worst is None:
        return Target(label, _NOTHING, None)
    return Target(label, f"{worst[1]:,.0f}/s at {worst[0]:,}", worst[1] >= BATCH_PER_SECOND)


def _times_the_rival(what: str, field: str, wanted: int, pairs: Mapping[int, Pair]) -> Target:
    label = f"{what} ≥ {wanted} x alma-memory (SQLite)"
    fair = {size: pair for size, pair in pairs.items() if _same_disk(pair)}
    worst = _worst({size: _ratio(pair, field) for size, pair in fair.items()})
    if worst is None:
        return Target(label, _NOTHING, None)
    size, ratio = worst
    return Target(label, f"{ratio:.1f} x at {size:,}{_flushes(pairs[size])}", ratio >= wanted)


def _flushes(pair: Pair) -> str:
    """The cost of a disk flush for both, on which their ratio depends."""
    if pair.theirs is None or pair.ours.flush_ms is None or pair.theirs.flush_ms is None:
        return ""
    return f", a flush taking {pair.ours.flush_ms:.2f} and {pair.theirs.flush_ms:.2f} ms"


def _ratio(pair: Pair, field: str) -> float | None:
    theirs = None if pair.theirs is None else getattr(pair.theirs, field)
    return getattr(pair.ours, field) / theirs if theirs else None


def _quick_to_open(field: str, how: str, pair: Pair | None) -> Target:
    label = f"opening a store of 100,000 < {OPEN_SECONDS} s, {how} (SQLite)"
    seconds = None if pair is None else getattr(pair.ours, field)
    if seconds is None:
        return Target(label, _NOTHING, None)
    return Target(label, _seconds(seconds), seconds < OPEN_SECONDS)


def _small_enough(field: str, what: str, pair: Pair | None) -> Target:
    label = f"10,000 {what} ≤ {MOST_BYTES / 1e6:.0f} MB in all (SQLite)"
    each = None if pair is None else getattr(pair.ours, field)
    if each is None:
        return Target(label, _NOTHING, None)
    return Target(label, f"{each * 10_000 / 1e6:.1f} MB", each * 10_000 <= MOST_BYTES)


def _exact(results: Results) -> Target:
    recalls = [pair.ours.search_recall for pairs in results.values() for pair in pairs.values()]
    worst = min((recall for recall in recalls if recall is not None), default=None)
    label = "recall@5 of scoped vector search = 1 (every size and database)"
    return Target(label, _NOTHING, None) if worst is None else Target(label, f"{worst:.3f}", worst == 1.0)

"""The measurements for all contenders; runs in each contender's environment."""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from places import Place
from workload import NEIGHBOURS, QUERIES, SINGLES, Fact, Floats, Workload, agent_of, id_of

_OPENINGS = 5
_PROCESSES = 3
_SINGLES_PER_STEP = 50


class Contender(Protocol):
    """A storage under test, through its public calls."""

    place: Place
    batch_rows: int
    notes: list[str]
    gets_by_id: bool

    def open(self) -> None:
        """Open the storage on its place, new or not."""

    def close(self) -> None:
        """Close it."""

    def opening_code(self) -> str:
        """A program that imports the storage and opens it."""

    def record(self, fact: Fact) -> Any:
        """The fact as a record of the contender's own type."""

    def question(self, vector: Floats) -> Any:
        """A vector as `search` takes it."""

    def save_many(self, records: list[Any]) -> object:
        """Save records in a batch."""

    def save(self, record: Any) -> object:
        """Save one record with its vector."""

    def get(self, record_id: str) -> object:
        """The record with this id, with its vector."""

    def find(self, agent: str) -> object:
        """An agent's five records of the highest confidence."""

    def search(self, agent: str, question: Any) -> Sequence[str]:
        """The ids of an agent's five records nearest to a vector."""


@dataclass(slots=True)
class Measurements:
    """The results of a contender; None where it has no such call."""

    rows: int = 0
    batch_per_second: float | None = None
    memory_batch_per_second: float | None = None
    single_per_second: float | None = None
    power_single_per_second: float | None = None
    flush_ms: float | None = None
    get_p50_ms: float | None = None
    get_p95_ms: float | None = None
    find_p50_ms: float | None = None
    find_p95_ms: float | None = None
    search_p50_ms: float | None = None
    search_p95_ms: float | None = None
    search_recall: float | None = None
    open_seconds: float | None = None
    open_process_seconds: float | None = None
    bytes_per_memory: float | None = None
    open_bytes_per_memory: float | None = None
    database_bytes_per_memory: float | None = None
    memory_bytes_per_memory: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Pace:
    """Rows saved, seconds, and the cost of a disk flush meanwhile."""

    rows: int = 0
    seconds: float = 0.0
    flushes_ms: tuple[float, ...] = ()

    @property
    def per_second(self) -> float:
        return self.rows / self.seconds

    def save(self, place: Place, call: Callable[[Any], object], batches: Sequence[Any], rows: int) -> None:
        """Time a call for each of the batches (`rows` in all), and the disk before and after."""
        before = place.flush_ms()
        self.seconds += sum(_seconds(partial(call, batch)) for batch in batches)
        self.rows += rows
        self.flushes_ms += tuple(cost for cost in (before, place.flush_ms()) if cost is not None)


def steps(found: Measurements, contender: Contender, workload: Workload, max_seconds: float) -> Iterator[str]:
    """Load a new store and measure every call on it; names the phase of each step before taking it."""
    contender.open()
    loaded, singles = Pace(), Pace()
    yield from load(loaded, contender, workload, max_seconds)
    found.rows, found.batch_per_second = loaded.rows, loaded.per_second
    yield "settle"
    _weigh(found, contender)
    contender.place.settle()
    yield "open"
    _time_opening(found, contender)
    contender.open()
    yield "read"
    _time_reads(found, contender)
    yield "search"
    _time_search(found, contender, workload)
    yield from save_singly(singles, contender, workload)
    found.single_per_second = singles.per_second
    contender.close()
    # The mean, because what slows a disk down comes in bursts that a median would hide.
    found.flush_ms = statistics.fmean(flushes) if (flushes := loaded.flushes_ms + singles.flushes_ms) else None
    found.notes = tuple(contender.notes)


def load(pace: Pace, contender: Contender, workload: Workload, max_seconds: float = math.inf) -> Iterator[str]:
    """Save the workload, a batch in each step, until it is done or time is up."""
    while pace.rows < workload.count and pace.seconds < max_seconds:
        yield "load"
        numbers = range(pace.rows, min(pace.rows + contender.batch_rows, workload.count))
        records = [contender.record(fact) for fact in workload.facts(numbers)]
        pace.save(contender.place, contender.save_many, [records], len(records))
        # Else the next contender's flushes would wait for the pages that this one left to the system.
        os.sync()


def save_singly(pace: Pace, contender: Contender, workload: Workload) -> Iterator[str]:
    """Save further records with one call each, some in each step."""
    for start in range(workload.count, workload.count + SINGLES, _SINGLES_PER_STEP):
        yield "single"
        facts = workload.facts(range(start, start + _SINGLES_PER_STEP))
        records = [contender.record(fact) for fact in facts]
        pace.save(contender.place, contender.save, records, len(records))


def _weigh(found: Measurements, contender: Contender) -> None:
    """Measure disk use, before and after closing."""
    place = contender.place
    found.open_bytes_per_memory = _each(place.open_bytes(), found.rows)
    contender.close()
    found.bytes_per_memory = _each(place.closed_bytes(), found.rows)
    found.database_bytes_per_memory = _each(place.database_bytes(), found.rows)


def _time_opening(found: Measurements, contender: Contender) -> None:
    found.open_seconds = statistics.median(_opening_seconds(contender) for _ in range(_OPENINGS))
    # Isolated, so that neither this folder nor the environment's variables decide what is imported.
    command = [sys.executable, "-I", "-c", contender.opening_code()]
    found.open_process_seconds = statistics.median(
        _seconds(partial(subprocess.run, command, check=True)) for _ in range(_PROCESSES)
    )


def _opening_seconds(contender: Contender) -> float:
    seconds = _seconds(contender.open)
    contender.close()
    return seconds


def _time_reads(found: Measurements, contender: Contender) -> None:
    if contender.gets_by_id:
        # A prime step, so that one read is not next to the one before.
        ids = [id_of(number * 7919 % found.rows) for number in range(QUERIES)]
        found.get_p50_ms, found.get_p95_ms = _percentiles(lambda i: contender.get(ids[i]))
    found.find_p50_ms, found.find_p95_ms = _percentiles(lambda i: contender.find(agent_of(i)))


def _time_search(found: Measurements, contender: Contender, workload: Workload) -> None:
    questions = [contender.question(vector) for vector in workload.queries]
    found.search_p50_ms, found.search_p95_ms = _percentiles(lambda i: contender.search(agent_of(i), questions[i]))
    right, wanted = 0, 0
    for number, question in enumerate(questions):
        truth = workload.nearest(number, found.rows)
        right += len(truth & set(contender.search(agent_of(number), question)[:NEIGHBOURS]))
        wanted += len(truth)
    found.search_recall = right / wanted


def _percentiles(call: Callable[[int], object]) -> tuple[float, float]:
    """The median and the 95th percentile of calls in milliseconds, after a warm-up call."""
    call(0)
    times = [_seconds(partial(call, number)) * 1000 for number in range(QUERIES)]
    cuts = statistics.quantiles(times, n=20)
    return cuts[9], cuts[18]


def _seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _each(size: int | None, rows: int) -> float | None:
    return None if size is None else size / rows

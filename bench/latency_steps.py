"""The steps of the latency benchmark for all contenders; runs in each contender's environment."""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NoReturn, Protocol

import numpy as np
import psutil

from latency_data import BIG, CHANGES, NEIGHBOURS, OWNERS, SMALL, WARM_UP, Data, Fact, Question, id_of
from turns import driver_arguments, take_turns, write

PHASES = (
    *("load", "settle", "open", "big", "small", "memory", "recall", "change"),
    *("big_embedded", "small_embedded"),
)
_PROCESSES = 3
_QUESTIONS_PER_STEP = 10
_MOST_RECALLED = 50
_ANSWERED = "answered"


class Contender(Protocol):
    """A memory under test, through its public calls."""

    place: str
    batch_rows: int
    notes: list[str]
    reopens: bool

    def open(self) -> None:
        """Open it on its place, new or not."""

    def close(self) -> None:
        """Close it."""

    def load(self, facts: list[Fact]) -> None:
        """Save memories in a batch, with their vectors."""

    def settle(self) -> None:
        """Wait for background work after loading."""

    def expect(self, question: Question) -> None:
        """Set the vector of the next query for the embedder."""

    def retrieve(self, question: Question) -> Sequence[str]:
        """The ids found for a query, uncached, best first."""

    def nearest(self, question: Question) -> Sequence[str]:
        """The ids of the agent's five memories nearest to the question's vector."""

    def write(self, fact: Fact) -> str:
        """Save one more memory; returns its id."""

    def delete(self, record_id: str) -> None:
        """Delete one memory."""

    def embed_for_real(self) -> bool:
        """From now on embed each query with a model, if there is one."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The median and the 95th percentile of calls."""

    p50_ms: float
    p95_ms: float
    calls: int


@dataclass(slots=True)
class Latencies:
    """The results of a contender; None where it was not measured."""

    rows: int = 0
    load_seconds: float = 0.0
    settle_seconds: float = 0.0
    big: Spread | None = None
    small: Spread | None = None
    big_embedded: Spread | None = None
    small_embedded: Spread | None = None
    after_write: Spread | None = None
    after_delete: Spread | None = None
    first_answer_seconds: float | None = None
    own_mb: float | None = None
    own_embedding_mb: float | None = None
    recall_at_5: float | None = None
    big_meant: float | None = None
    small_meant: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """How many seconds loading and each phase of questions may take, and how many questions there are at most."""

    load_seconds: float
    phase_seconds: float
    questions: int


class Stopwatch:
    """Times calls until there are enough or the time is up."""

    def __init__(self, most_seconds: float) -> None:
        self._most_seconds = most_seconds
        self._times_ms: list[float] = []

    @property
    def is_over(self) -> bool:
        return sum(self._times_ms) > 1000 * self._most_seconds

    def time(self, call: Callable[[], Sequence[str]]) -> Sequence[str]:
        begin = time.perf_counter()
        result = call()
        self._times_ms.append((time.perf_counter() - begin) * 1000)
        return result

    def spread(self) -> Spread:
        p50, p95 = np.quantile(self._times_ms, (0.5, 0.95))
        return Spread(float(p50), float(p95), len(self._times_ms))


def steps(found: Latencies, contender: Contender, data: Data, limits: Limits, asking: Sequence[str]) -> Iterator[str]:
    """Load a new store and measure everything on it; names the phase of each step before taking it."""
    contender.open()
    yield from _load(found, contender, data, limits.load_seconds)
    yield "settle"
    found.settle_seconds = _seconds(contender.settle)
    yield "open"
    if contender.reopens:
        contender.close()
        found.first_answer_seconds = statistics.median(_first_answer_seconds(asking) for _ in range(_PROCESSES))
        contender.open()
        contender.settle()
    for owner in OWNERS:
        yield from _ask(found, owner, contender, data.questions(owner)[: WARM_UP + limits.questions], limits)
    yield "memory"
    found.own_mb = _own_megabytes()
    yield "recall"
    found.recall_at_5 = _recall(contender, data, found.rows)
    yield from _change(found, contender, data, limits)
    yield from _ask_embedded(found, contender, data, limits)
    contender.close()
    found.notes = tuple(contender.notes)


def _load(found: Latencies, contender: Contender, data: Data, most_seconds: float) -> Iterator[str]:
    while found.rows < data.count and found.load_seconds < most_seconds:
        yield "load"
        facts = data.facts(range(found.rows, min(found.rows + contender.batch_rows, data.count)))
        found.load_seconds += _seconds(partial(contender.load, facts))
        found.rows += len(facts)


def _ask(
    found: Latencies, field: str, contender: Contender, questions: Sequence[Question], limits: Limits
) -> Iterator[str]:
    """Ask every question once, some in each step, after those to warm up."""
    watch = Stopwatch(limits.phase_seconds)
    meant: list[bool] = []
    for start in range(WARM_UP, len(questions), _QUESTIONS_PER_STEP):
        yield field
        # What was asked last may have left the processor's caches while others had their turns.
        for question in questions[: WARM_UP if start == WARM_UP else 1]:
            contender.expect(question)
            contender.retrieve(question)
        for question in questions[start : start + _QUESTIONS_PER_STEP]:
            contender.expect(question)
            if not watch.is_over:
                five = watch.time(partial(contender.retrieve, question))
                meant.append(id_of(question.about) in five)
    setattr(found, field, watch.spread())
    if field in OWNERS:
        setattr(found, f"{field}_meant", statistics.mean(meant))


def _ask_embedded(found: Latencies, contender: Contender, data: Data, limits: Limits) -> Iterator[str]:
    """The other half of the questions, which no cache has seen, with a model that embeds each."""
    yield "big_embedded"
    if not contender.embed_for_real():
        return
    for owner in OWNERS:
        unseen = data.questions(owner)[limits.questions :]
        yield from _ask(found, f"{owner}_embedded", contender, unseen, limits)
    found.own_embedding_mb = _own_megabytes()


def _recall(contender: Contender, data: Data, stored: int) -> float:
    right = wanted = 0
    for question in data.questions(SMALL)[:_MOST_RECALLED]:
        contender.expect(question)
        truth = data.nearest(question, stored)
        right += len(truth & set(list(contender.nearest(question))[:NEIGHBOURS]))
        wanted += len(truth)
    return right / wanted


def _change(found: Latencies, contender: Contender, data: Data, limits: Limits) -> Iterator[str]:
    """Ask right after one write, and right after that memory was deleted again."""
    questions = data.questions(BIG)[: min(CHANGES, limits.questions)]
    facts = data.facts(range(data.count, data.count + len(questions)))
    after_write, after_delete = Stopwatch(limits.phase_seconds), Stopwatch(limits.phase_seconds)
    unseen = ghosts = 0
    for question, fact in zip(questions, facts, strict=True):
        yield "change"
        if after_write.is_over or after_delete.is_over:
            continue
        contender.expect(question)
        key = contender.write(_answer_to(question, fact))
        found_it = key in after_write.time(partial(contender.retrieve, question))
        # It may have been seen and yet not be among the five: what stands in one conversation speaks for each other.
        unseen += not found_it and key not in contender.nearest(question)
        contender.delete(key)
        ghosts += key in after_delete.time(partial(contender.retrieve, question))
    found.after_write, found.after_delete = after_write.spread(), after_delete.spread()
    if unseen or ghosts:
        calls = found.after_write.calls
        contender.notes.append(f"of {calls} writes {unseen} were not found right after, of the deleted {ghosts} were")


def _answer_to(question: Question, fact: Fact) -> Fact:
    """A memory that must be the first result of a query."""
    return replace(
        fact, agent=question.agent, project=question.project, condition=question.text, vector=question.vector
    )


def _first_answer_seconds(asking: Sequence[str]) -> float:
    """From the start of a new process, which has to import everything, to its first answer."""
    begin = time.perf_counter()
    with subprocess.Popen([sys.executable, *asking], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        answer = process.stdout.readline()
        seconds = time.perf_counter() - begin
    if answer.strip() != _ANSWERED:
        raise SystemExit("the store could not be opened in a new process")
    return seconds


def _own_megabytes() -> float:
    """Private memory of this process, without mapped files."""
    gc.collect()
    information = psutil.Process().memory_info()
    return float(information.rss - information.shared) / 1e6


def _seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


# ---------------------------------------------------------------------- drivers


def arguments(about: str | None) -> argparse.ArgumentParser:
    """The arguments that the drivers of this bench take."""
    parser = driver_arguments(about)
    parser.add_argument("--data", type=Path, required=True, help="the folder with the memories")
    parser.add_argument("--questions", type=int, default=200, help="to each owner, at most")
    parser.add_argument("--load-seconds", type=float, default=3600.0, help="when to stop loading")
    parser.add_argument("--phase-seconds", type=float, default=60.0, help="when to stop asking, in each phase")
    parser.add_argument("--answer-once", action="store_true", help="open what is there and answer one question")
    return parser


def drive(contender: Contender, args: argparse.Namespace, by_project: bool = False) -> None:
    """Measure a contender as the command line says, or answer one question as a new process."""
    data = Data(args.data, args.count, by_project)
    if args.answer_once:
        _answer_once(contender, data.questions(BIG)[0])
    limits = Limits(args.load_seconds, args.phase_seconds, args.questions)
    found = Latencies()
    take_turns(steps(found, contender, data, limits, [*sys.argv, "--answer-once"]))
    write(found, args.json)


def _answer_once(contender: Contender, question: Question) -> NoReturn:
    contender.open()
    contender.expect(question)
    answered = contender.retrieve(question)
    print(_ANSWERED if answered else "nothing", flush=True)
    contender.close()
    os._exit(0)

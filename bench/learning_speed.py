"""Measure outcomes learned per second, in stores of several sizes, with given vectors and the local model."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from alma import ALMA, Outcome

_STRATEGIES = tuple(
    f"{verb} {thing}"
    for verb in ("check", "restart", "rebuild", "roll back", "measure")
    for thing in ("the parser", "the login form", "the queue", "the payment API")
)
_TASKS = ("test", "deploy", "fix", "review", "document")
_THINGS = ("the login form", "the search page", "the billing job", "the mobile app", "the import of orders")


def measured(folder: Path, size: int) -> Iterator[dict[str, Any]]:
    """The speeds in a store with this many outcomes."""
    random.seed(size)
    with ALMA.quickstart(folder / f"{size}.db") as alma:
        _fill(alma, size)
        # Otherwise the system writes what was filled in while learning is timed.
        os.sync()
        for vectors, count in (("given", 1000), ("local model", 200)):
            yield _row(size, "similar to earlier ones", vectors, _speed(alma, count, vectors, _similar))
            yield _row(size, "on ever new tasks", vectors, _speed(alma, count, vectors, _new))
        yield _row(size, "unlike any other", "given", _speed(alma, 1000, "given", _new, topics=10**9))


def _row(size: int, outcomes: str, vectors: str, per_second: float) -> dict[str, Any]:
    return {"memories": size, "outcomes": outcomes, "vectors": vectors, "per_second": per_second}


def _fill(alma: ALMA, size: int) -> None:
    for start in range(0, size, 5000):
        batch = range(start, min(start + 5000, size))
        alma.storage.save_many(
            Outcome(
                agent="agent",
                project_id=alma.project_id,
                task_description=_new(n),
                strategy_used=_STRATEGIES[n % len(_STRATEGIES)],
                success=n % 3 > 0,
                lesson_id=f"lesson {n % 2000}",
                embedding=_vector(n % 500),
            )
            for n in batch
        )


def _speed(alma: ALMA, count: int, vectors: str, task: Callable[[int], str], topics: int = 50) -> float:
    topic = random.randrange(topics)
    told = [(task(n), random.choice(_STRATEGIES), n % 4 > 0, _vector((topic + n) % topics)) for n in range(count)]
    for text, strategy, success, vector in told[:10]:
        alma.learn("agent", text, success, strategy, embedding=vector if vectors == "given" else None)
    started = time.perf_counter()
    for text, strategy, success, vector in told:
        alma.learn("agent", text, success, strategy, embedding=vector if vectors == "given" else None)
    return count / (time.perf_counter() - started)


def _similar(n: int) -> str:
    return f"{_TASKS[n % len(_TASKS)]} {_THINGS[n % 3]}"


def _new(n: int) -> str:
    return f"{random.choice(_TASKS)} {random.choice(_THINGS)} for customer {random.randrange(10**6)} in release {n}"


def _vector(topic: int) -> list[float]:
    """A vector near that of a topic, as embeddings of similar tasks are."""
    centre = np.random.default_rng(topic).normal(size=384)
    near = centre + 0.5 * np.random.default_rng(random.randrange(2**32)).normal(size=384)
    return [float(value) for value in near / np.linalg.norm(near)]

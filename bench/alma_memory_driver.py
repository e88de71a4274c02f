"""Measure alma-memory's SQLite storage; run it with a Python that has alma-memory installed."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from alma.storage.sqlite_local import SQLiteStorage
from alma.types import Heuristic, Outcome

PROJECT = "bench"
AGENTS = 100
CLUSTERS = 64
SPREAD = 0.6
TASK_TYPES = 10
TOP_K = 5
SINGLES = 200
QUERIES = 200
OPENS = 3
CHUNK = 500
START = datetime(2025, 1, 1, tzinfo=timezone.utc)
WORDS = (
    "cache retry index form token query batch parser socket limit schema branch "
    "review deploy metric worker buffer signal header cookie render thread lock"
).split()


@dataclass
class Saved:
    """How many rows a bounded save wrote, and in how many seconds."""

    rows: int
    seconds: float

    @property
    def per_second(self) -> float:
        """Return the rows written per second."""
        return self.rows / self.seconds if self.seconds else 0.0


def unit(rows: np.ndarray) -> np.ndarray:
    """Scale every row to length one."""
    scaled: np.ndarray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled


def make_vectors(rng: np.random.Generator, centers: np.ndarray, count: int) -> np.ndarray:
    """Draw unit vectors scattered around randomly chosen cluster centers."""
    dim = centers.shape[1]
    noise = rng.standard_normal((count, dim)) * (SPREAD / np.sqrt(dim))
    chosen = centers[rng.integers(len(centers), size=count)]
    return unit(chosen + noise).astype(np.float32)


def make_text(rng: np.random.Generator, length: int) -> str:
    """Return a sentence of random words with exactly the given length."""
    picks = rng.integers(len(WORDS), size=length // 4)
    return " ".join(WORDS[i] for i in picks)[:length].ljust(length, ".")


def agent_of(number: int) -> str:
    """Return the agent that owns the row with the given number."""
    return f"agent-{number % AGENTS:03d}"


def make_heuristic(rng: np.random.Generator, number: int, vector: np.ndarray) -> Heuristic:
    """Return the synthetic heuristic with the given number."""
    when = START + timedelta(seconds=number)
    return Heuristic(
        id=f"heur-{number:08d}",
        agent=agent_of(number),
        project_id=PROJECT,
        condition=make_text(rng, 60),
        strategy=make_text(rng, 90),
        confidence=round(float(rng.random()), 3),
        occurrence_count=10,
        success_count=7,
        last_validated=when,
        created_at=when,
        embedding=vector.tolist(),
    )


def make_outcome(rng: np.random.Generator, number: int) -> Outcome:
    """Return the synthetic outcome with the given number, without a vector."""
    return Outcome(
        id=f"out-{number:08d}",
        agent=agent_of(number),
        project_id=PROJECT,
        task_type=task_type_of(number),
        task_description=make_text(rng, 60),
        success=number % 3 != 0,
        strategy_used=make_text(rng, 90),
        duration_ms=number % 1000,
        timestamp=START + timedelta(seconds=number),
    )


def task_type_of(number: int) -> str:
    """Return the task type of the outcome with the given number."""
    return f"type-{number // AGENTS % TASK_TYPES}"


def chunks(count: int) -> Iterator[range]:
    """Split the row numbers below count into consecutive ranges."""
    for start in range(0, count, CHUNK):
        yield range(start, min(start + CHUNK, count))


def bounded_save(
    storage: SQLiteStorage,
    methods: tuple[str, str],
    make: Callable[[int], Any],
    count: int,
    max_seconds: float,
) -> Saved:
    """Save rows by the batch method, or by the single one where it is missing, until time is up."""
    batch: Callable[[list[Any]], object] | None = getattr(storage, methods[0], None)
    single: Callable[[Any], object] = getattr(storage, methods[1])
    done = Saved(0, 0.0)
    for numbers in chunks(count):
        rows = [make(number) for number in numbers]
        begin = time.perf_counter()
        if batch is not None:
            batch(rows)
            done.rows += len(rows)
        else:
            for row in rows:
                single(row)
                done.rows += 1
                if done.seconds + time.perf_counter() - begin > max_seconds:
                    break
        done.seconds += time.perf_counter() - begin
        if done.seconds > max_seconds:
            break
    return done


def method_used(methods: tuple[str, str]) -> str:
    """Name the saving method that bounded_save takes."""
    batch, single = methods
    return batch if hasattr(SQLiteStorage, batch) else f"{single} (loop; no batch method)"


def median_ms(calls: int, call: Callable[[int], object]) -> float:
    """Return the median time of numbered calls in milliseconds, after one warm-up call."""
    call(0)
    times = []
    for number in range(calls):
        begin = time.perf_counter()
        call(number)
        times.append(time.perf_counter() - begin)
    return round(statistics.median(times) * 1000, 4)


def folder_bytes(folder: Path) -> int:
    """Return the size of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def exact_ids(vectors: np.ndarray, query: np.ndarray, first: int) -> set[str]:
    """Return the ids of the rows of one agent that are truly nearest to a query."""
    numbers = np.arange(first, len(vectors), AGENTS)
    order = np.argsort(-(vectors[numbers] @ query))[:TOP_K]
    return {f"heur-{number:08d}" for number in numbers[order]}


def search_quality(
    storage: SQLiteStorage, vectors: np.ndarray, queries: np.ndarray
) -> dict[str, float]:
    """Return how many rows a scoped search finds, and the share of the true nearest among them."""
    returned, right, wanted = 0, 0, 0
    for number, query in enumerate(queries):
        agent = agent_of(number)
        rows = storage.get_heuristics(PROJECT, agent=agent, embedding=query.tolist(), top_k=TOP_K)
        truth = exact_ids(vectors, query, number % AGENTS)
        returned += len(rows)
        right += len(truth & {row.id for row in rows})
        wanted += len(truth)
    return {
        "search_rows_mean": round(returned / len(queries), 3),
        "search_recall_at_5": round(right / wanted, 4) if wanted else 0.0,
    }


def measure_reads(storage: SQLiteStorage, queries: np.ndarray) -> dict[str, float]:
    """Time the reading of heuristics with and without a vector."""
    lists = [query.tolist() for query in queries]
    return {
        "get_p50_ms": median_ms(
            QUERIES, lambda i: storage.get_heuristics(PROJECT, agent=agent_of(i), top_k=TOP_K)
        ),
        "get_project_p50_ms": median_ms(
            QUERIES, lambda i: storage.get_heuristics(PROJECT, top_k=TOP_K)
        ),
        "search_p50_ms": median_ms(
            QUERIES,
            lambda i: storage.get_heuristics(
                PROJECT, agent=agent_of(i), embedding=lists[i], top_k=TOP_K
            ),
        ),
    }


def measure_open(path: Path, query: np.ndarray) -> float:
    """Return the median milliseconds of opening an existing file and searching it once."""
    wanted = query.tolist()
    times = []
    for _ in range(OPENS):
        begin = time.perf_counter()
        storage = SQLiteStorage(path, embedding_dim=len(wanted))
        storage.get_heuristics(PROJECT, agent=agent_of(0), embedding=wanted, top_k=TOP_K)
        times.append(time.perf_counter() - begin)
    return round(statistics.median(times) * 1000, 2)


def measure_singles(storage: SQLiteStorage, rows: list[Heuristic]) -> float:
    """Return how many single saves of new heuristics are made per second."""
    begin = time.perf_counter()
    for row in rows:
        storage.save_heuristic(row)
    return round(len(rows) / (time.perf_counter() - begin), 1)


def measure_find(storage: SQLiteStorage) -> dict[str, float]:
    """Time the reading of outcomes by task type, for one agent and for the project."""

    def find(number: int, agent: str | None) -> object:
        kind = f"type-{number % TASK_TYPES}"
        return storage.get_outcomes(PROJECT, agent=agent, task_type=kind, top_k=TOP_K)

    return {
        "find_p50_ms": median_ms(QUERIES, lambda i: find(i, agent_of(i))),
        "find_project_p50_ms": median_ms(QUERIES, lambda i: find(i, None)),
    }


def run(folder: Path, count: int, dim: int, seed: int, max_seconds: float) -> dict[str, Any]:
    """Fill a new database and return every measurement."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise SystemExit("the folder given by --db must be empty")
    rng = np.random.default_rng(seed)
    centers = unit(rng.standard_normal((CLUSTERS, dim)))
    vectors = make_vectors(rng, centers, count + SINGLES)
    queries = make_vectors(rng, centers, QUERIES)
    path = folder / "alma.db"
    storage = SQLiteStorage(path, embedding_dim=dim)
    empty = folder_bytes(folder)

    heuristic_methods = ("save_heuristics", "save_heuristic")
    outcome_methods = ("save_outcomes", "save_outcome")

    def heuristic(number: int) -> Heuristic:
        return make_heuristic(rng, number, vectors[number])

    saved = bounded_save(storage, heuristic_methods, heuristic, count, max_seconds)
    size = folder_bytes(folder)
    report: dict[str, Any] = {
        "package": "alma-memory",
        "version": version("alma-memory"),
        "count": count,
        "dim": dim,
        "seed": seed,
        "batch_method": method_used(heuristic_methods),
        "batch_saved": saved.rows,
        "batch_complete": saved.rows == count,
        "batch_per_second": round(saved.per_second, 1),
        "empty_bytes": empty,
        "bytes_per_memory": round(size / max(saved.rows, 1), 1),
    }
    report.update(measure_reads(storage, queries))
    report.update(search_quality(storage, vectors[: saved.rows], queries))
    report["open_ms"] = measure_open(path, queries[0])
    fresh = [heuristic(number) for number in range(count, count + SINGLES)]
    report["single_per_second"] = measure_singles(storage, fresh)
    outcomes = bounded_save(
        storage, outcome_methods, lambda i: make_outcome(rng, i), count, max_seconds
    )
    report["outcomes_saved"] = outcomes.rows
    report.update(measure_find(storage))
    return report


def main() -> None:
    """Read the command line, measure, and write the JSON file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", type=Path, required=True, help="empty folder for the database")
    parser.add_argument("--count", type=int, required=True, help="memories to save as a batch")
    parser.add_argument("--dim", type=int, default=384, help="dimension of the vectors")
    parser.add_argument("--seed", type=int, default=0, help="seed of the synthetic data")
    parser.add_argument("--json", type=Path, required=True, help="file for the measurements")
    parser.add_argument("--max-seconds", type=float, default=120.0, help="bound of a batch save")
    args = parser.parse_args()
    report = run(args.db, args.count, args.dim, args.seed, args.max_seconds)
    args.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

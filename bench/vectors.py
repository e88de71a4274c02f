"""Measure speed and recall of vector search: the mapped index on SQLite, HNSW on PostgreSQL, beside numpy.

`python bench/vectors.py` measures 100,000 memories; `--sizes 100000,1000000` a million as well. Vectors lie in
clusters, as embeddings of texts do; every agent owns one in a hundred of them. Prints a table and writes JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from alma.model.learning import Heuristic
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.storage.sqlite_local import SQLiteStorage
from alma.vectors.base import VectorIndex
from alma.vectors.mapped import MappedIndex
from alma.vectors.native import NativeIndex

DIMS = 384
AGENTS = 100
TOPICS = 2_000
QUERIES = 100
_BATCH = 5_000
_BENCH = Path(__file__).parent
_RESULTS = _BENCH / "results"
_EVERYWHERE = Scope.everywhere()
_progress = Console(stderr=True)

Vectors = NDArray[np.float32]


class Took(NamedTuple):
    """CPU time and elapsed time of a call; other load affects mainly the second."""

    cpu_ms: float
    wall_ms: float


@dataclass
class Found:
    """The results of one index at one size."""

    rows: int
    index: str
    build_seconds: float
    open_ms: float | None = None
    all_cpu_ms: float = 0.0
    all_p50_ms: float = 0.0
    all_p95_ms: float = 0.0
    all_recall_at_10: float = 0.0
    agent_cpu_ms: float = 0.0
    agent_p50_ms: float = 0.0
    agent_p95_ms: float = 0.0
    agent_recall_at_5: float = 0.0
    tenth_cpu_ms: float = 0.0
    tenth_p50_ms: float = 0.0
    tenth_recall_at_10: float = 0.0
    after_write_cpu_ms: float | None = None
    after_delete_cpu_ms: float | None = None
    numpy_cpu_ms: float = 0.0
    numpy_p50_ms: float = 0.0
    codes_mb: float | None = None
    disk_mb: float | None = None
    notes: list[str] = field(default_factory=list)


class Data:
    """Clustered unit vectors, their owners, queries near them, and the exact answers."""

    def __init__(self, rows: int, seed: int = 11) -> None:
        source = np.random.default_rng(seed)
        topics = _units(source.standard_normal((TOPICS, DIMS), np.float32))
        self.vectors = np.empty((rows, DIMS), np.float32)
        for start in range(0, rows, 50_000):
            stop = min(rows, start + 50_000)
            noise = source.standard_normal((stop - start, DIMS), np.float32) * np.float32(0.5 / np.sqrt(DIMS))
            self.vectors[start:stop] = _units(topics[source.integers(0, TOPICS, stop - start)] + noise)
        self.agents = source.integers(0, AGENTS, rows)
        near = self.vectors[source.integers(0, rows, QUERIES)]
        self.queries = _units(near + source.standard_normal((QUERIES, DIMS), np.float32) * np.float32(0.4 / DIMS**0.5))

    def exact(self, query: Vectors, agents: Sequence[int], most: int) -> set[str]:
        """The ids of the nearest rows of these agents, or of all agents."""
        rows = np.flatnonzero(np.isin(self.agents, agents)) if agents else None
        cosines = self.vectors @ query if rows is None else self.vectors[rows] @ query
        best = np.argpartition(-cosines, most)[:most]
        return {_key(int(row)) for row in (best if rows is None else rows[best])}

    def records(self, start: int, stop: int) -> list[Heuristic]:
        return [
            Heuristic(
                id=_key(row),
                agent=f"agent{self.agents[row]}",
                project_id="bench",
                condition=f"when number {row} comes up",
                strategy="look it up",
                embedding=self.vectors[row],
            )
            for row in range(start, stop)
        ]


def _key(row: int) -> str:
    return f"{row:08}"


def _units(vectors: Vectors) -> Vectors:
    scaled: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return scaled


def load(store: StorageBackend, data: Data) -> None:
    """Save every vector with a heuristic."""
    rows = len(data.vectors)
    with _progress.status("saving") as status:
        for start in range(0, rows, _BATCH):
            store.save_many(data.records(start, min(rows, start + _BATCH)))
            status.update(f"saving, {start + _BATCH:,} of {rows:,}")


def measure(index: VectorIndex, data: Data, found: Found) -> None:
    """Query everything, one agent, and ten agents."""
    for query in data.queries[:5]:
        index.search(Heuristic, query, _EVERYWHERE)
    times = [_timed(lambda q=query: data.vectors @ q)[0] for query in data.queries[:20]]  # type: ignore[misc]
    found.numpy_cpu_ms, found.numpy_p50_ms, _ = _quantiles(times)
    times, found.all_recall_at_10 = _asked(index, data, lambda _: [], 10)
    found.all_cpu_ms, found.all_p50_ms, found.all_p95_ms = _quantiles(times)
    times, found.agent_recall_at_5 = _asked(index, data, lambda n: [n % AGENTS], 5)
    found.agent_cpu_ms, found.agent_p50_ms, found.agent_p95_ms = _quantiles(times)
    times, found.tenth_recall_at_10 = _asked(index, data, lambda n: list(range(n % 90, n % 90 + 10)), 10)
    found.tenth_cpu_ms, found.tenth_p50_ms, _ = _quantiles(times)


def _asked(
    index: VectorIndex, data: Data, agents_of: Callable[[int], list[int]], most: int
) -> tuple[list[Took], float]:
    times, hits = [], 0
    for number, query in enumerate(data.queries):
        agents = agents_of(number)
        scope = Scope(project_id="bench", agent=[f"agent{n}" for n in agents]) if agents else _EVERYWHERE
        took, found = _timed(lambda q=query, s=scope: index.search(Heuristic, q, s, limit=most))  # type: ignore[misc]
        times.append(took)
        hits += len({each.record_id for each in found} & data.exact(query, agents, most))
    return times, hits / (most * len(data.queries))


def measure_changes(store: StorageBackend, index: VectorIndex, data: Data, found: Found) -> None:
    """Search right after one write, and right after one delete."""
    source = random.Random(3)
    after_write, after_delete = [], []
    for number in range(50):
        query = data.queries[number]
        record = data.records(0, 1)[0].replace(id=f"new {number}", embedding=query)
        store.save(record)
        took, hits = _timed(lambda q=query: index.search(Heuristic, q, _EVERYWHERE))  # type: ignore[misc]
        assert hits[0].record_id == record.id
        after_write.append(took)
        store.delete(Heuristic, [record.id, _key(source.randrange(len(data.vectors)))], _EVERYWHERE)
        took, hits = _timed(lambda q=query: index.search(Heuristic, q, _EVERYWHERE))  # type: ignore[misc]
        assert hits[0].record_id != record.id
        after_delete.append(took)
    found.after_write_cpu_ms, found.after_delete_cpu_ms = _quantiles(after_write)[0], _quantiles(after_delete)[0]


def measure_mapped(rows: int, work: Path) -> Iterator[Found]:
    """The mapped index on SQLite, and the store without it at small sizes."""
    data = Data(rows)
    path = work / f"{rows}.db"
    folder = path.with_name(f"{path.name}.vectors")
    with SQLiteStorage(path, embedding_dim=DIMS) as store:
        load(store, data)
        begin = time.perf_counter()
        with closing(MappedIndex(store, folder)) as index, _progress.status("building the index"):
            index.settle()
        found = Found(rows, "mapped, SQLite", time.perf_counter() - begin)
        found.disk_mb = _megabytes(folder, "*")
        # The codes are what it holds in memory; the rest is mapped, and the system's to keep or drop.
        found.codes_mb = _megabytes(folder, "*.codes")
        begin = time.perf_counter()
        index = MappedIndex(store, folder)
        found.open_ms = (time.perf_counter() - begin) * 1000
        with closing(index):
            index.settle()
            measure(index, data, found)
            measure_changes(store, index, data, found)
        yield found
        if rows <= 100_000:
            exact = Found(rows, "native exact, SQLite", 0.0)
            data.queries = data.queries[:10]
            with closing(NativeIndex(store)) as native:
                measure(native, data, exact)
            yield exact


def measure_postgres(rows: int) -> Iterator[Found]:
    """HNSW in the server."""
    sys.path.insert(0, str(_BENCH.parent))
    from tests.support.postgres import PostgresServer

    from alma.storage.postgresql import PostgreSQLStorage

    data = Data(rows)
    with PostgresServer(settings={"maintenance_work_mem": "1GB", "shared_buffers": "1GB"}) as server:
        dsn = server.create_database("vectors")
        with PostgreSQLStorage.from_dsn(dsn, embedding_dim=DIMS) as store:
            load(store, data)
            begin = time.perf_counter()
            with _progress.status("building HNSW"):
                store.prepare_vector_index(Heuristic)
            found = Found(rows, "native HNSW, PostgreSQL", time.perf_counter() - begin)
            with store.connection() as connection:
                connection.execute("ANALYZE")
            with closing(NativeIndex(store, exact=False)) as index:
                measure(index, data, found)
                measure_changes(store, index, data, found)
        yield found


def _timed(call: Callable[[], Any]) -> tuple[Took, Any]:
    begin, busy = time.perf_counter(), time.process_time()
    result = call()
    return Took((time.process_time() - busy) * 1000, (time.perf_counter() - begin) * 1000), result


def _quantiles(times: Sequence[Took]) -> tuple[float, float, float]:
    """The median CPU time, the median elapsed time, and the 95th percentile."""
    took = [each.wall_ms for each in times]
    return float(np.median([each.cpu_ms for each in times])), float(np.median(took)), float(np.quantile(took, 0.95))


def _megabytes(folder: Path, pattern: str) -> float:
    return sum(file.stat().st_size for file in folder.rglob(pattern) if file.is_file()) / 1e6


def table(results: Sequence[Found]) -> Table:
    """Every number, one column for each index and size."""
    shown = Table("", *(f"{found.rows:,}\n{found.index}" for found in results))
    for name in Found.__dataclass_fields__:
        if name in ("rows", "index", "notes"):
            continue
        values = [getattr(found, name) for found in results]
        shown.add_row(name.replace("_", " "), *("-" if value is None else f"{value:,.3f}" for value in values))
    ratios = (f"{found.numpy_p50_ms / found.all_p50_ms:.1f} ×" for found in results)
    shown.add_row("faster than numpy exact", *ratios)
    return shown


def surroundings() -> dict[str, Any]:
    """The environment of the numbers."""
    packages = {name: version(name) for name in ("numpy", "turbovec")}
    return {"python": platform.python_version(), "cores": os.cpu_count(), "sqlite": sqlite3.sqlite_version, **packages}


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", default="100000", help="memories, by commas")
    parser.add_argument("--stores", default="sqlite", help="sqlite, postgresql or both, by commas")
    parser.add_argument("--json", type=Path, default=_RESULTS / "vectors.json", help="where to write all numbers")
    args = parser.parse_args()
    _RESULTS.mkdir(exist_ok=True)
    results: list[Found] = []
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=_RESULTS, prefix="work-")))
        for rows in map(int, args.sizes.replace("_", "").split(",")):
            if "sqlite" in args.stores:
                results += measure_mapped(rows, work)
            if "postgresql" in args.stores:
                results += measure_postgres(rows)
    console = Console(width=None if sys.stdout.isatty() else 130)
    console.print(", ".join(f"{name} {value}" for name, value in surroundings().items()), highlight=False)
    console.print(table(results))
    document = {"surroundings": surroundings(), "results": [asdict(found) for found in results]}
    args.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

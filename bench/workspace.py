"""Measure the Memory Orchestrator's sizing: ingest, hybrid search, point reads, imports, disk.

    python bench/workspace.py                              # a million entries on SQLite and PostgreSQL; takes its time
    python bench/workspace.py --sizes 20000                # a few minutes
    python bench/workspace.py --sizes 20000,100000 --stores sqlite

Run it from a checkout with the `dev` extra installed. What is measured, on SQLite and on a PostgreSQL server
that is started for the run:

* ingest: general memories, half of them with a 384-dimensional vector, saved in batches of 5,000 with everything that
  belongs to them: tags, words, history, audit;
* hybrid search: `RetrievalEngine.retrieve` without its cache, by words and vectors, half of the questions to a project
  with nearly all of the memories and half to one with one in a hundred; the vector of a question is given, so that the
  time of the embedding model is not part of it;
* filtered search: `Journal.search` of the big project, hybrid as well, through each of several filters: a tag that four
  in five have and one that one in a hundred has, a tenth of the time and the last hundredth of it, types, and all at
  once;
* point read: one memory by its id, with its tags and its vector;
* import: rows of contextual_memory_pc2 in JSON lines, as many as `--rows` says, without embeddings, into a new store;
* disk: 10,000 memories as the Layered Memory document counts them, 2,000 characters each with a vector and a
  relationship, beside its 51 MB; all files of a SQLite store with its vector index, on PostgreSQL tables and indexes.

The targets are those of the two documents: at least 2,000 entries a second, hybrid search within 50 ms and point reads
within 2 ms for 95 in 100, at most 51 MB.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from alma.bootstrap import open_storage, open_vector_index
from alma.importers import import_into
from alma.memory.filters import MemoryFilter
from alma.memory.journal import Journal
from alma.model.memory import Memory, MemoryRelationship
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.writing import MemoryWriter
from alma.storage.base import StorageBackend
from latency import server_for, vocabulary
from latency_alma import GivenVectors
from latency_data import BIG, DIMS, NEIGHBOURS, SMALL, WARM_UP, Data, Fact, Question, id_of, make
from places import STORES, place_at, stores_named
from storage import surroundings

_RESULTS = Path(__file__).resolve().parent / "results"
_BATCH = 5_000
_READS = 1_000
_FILTERED = 30
_WEIGHED = 10_000
_DOCUMENTED_MB = 51.0
_CONTENT_CHARACTERS = 2_000
_EVERYWHERE = Scope.everywhere()

_progress = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Measured:
    """The results of one store."""

    store: str
    size: int
    ingest_per_second: float
    search_p50_ms: float
    search_p95_ms: float
    search_cpu_p95_ms: float
    filtered_p50_ms: float
    filtered_p95_ms: float
    filtered_worst: str
    read_p50_ms: float
    read_p95_ms: float
    import_rows: int
    import_seconds: float
    disk_mb_per_10k: float


class Workspace:
    """One store, filled and queried."""

    def __init__(self, target: str, data: Data) -> None:
        self._target = target
        self._data = data
        self._embedder = GivenVectors()

    def measure(self, rows: int, places: Callable[[], str]) -> dict[str, Any]:
        """Every number of the store; `places` creates a new empty place for each further store."""
        with self._opened(self._target) as storage:
            ingest = self._ingest(storage)
            self._settle(storage)
            search, cpu = self._search(storage)
            filtered, worst = self._search_filtered(storage)
            read = self._read(storage)
        return {
            "ingest_per_second": self._data.count / ingest,
            "search_p50_ms": search[0],
            "search_p95_ms": search[1],
            "search_cpu_p95_ms": cpu[1],
            "filtered_p50_ms": filtered[0],
            "filtered_p95_ms": filtered[1],
            "filtered_worst": worst,
            "read_p50_ms": read[0],
            "read_p95_ms": read[1],
            "import_seconds": self._import(places(), rows),
            "disk_mb_per_10k": self._weigh(places()),
        }

    def _opened(self, target: str) -> StorageBackend:
        return open_storage(place_at(target).target, DIMS)

    def _ingest(self, storage: StorageBackend) -> float:
        seconds = 0.0
        for start in range(0, self._data.count, _BATCH):
            facts = self._data.facts(range(start, min(start + _BATCH, self._data.count)))
            records = [_memory(fact, embedded=fact.number % 2 == 0) for fact in facts]
            begin = time.perf_counter()
            storage.save_many(records)
            seconds += time.perf_counter() - begin
        return seconds

    def _settle(self, storage: StorageBackend) -> None:
        from alma.storage.postgresql import PostgreSQLStorage
        from alma.vectors.mapped import MappedIndex

        if isinstance(storage, PostgreSQLStorage):
            storage.prepare_vector_index(Memory)
            place_at(self._target).settle()
        index = open_vector_index(storage)
        if isinstance(index, MappedIndex):
            index.settle()
        index.close()

    def _search(self, storage: StorageBackend) -> tuple[tuple[float, float], tuple[float, float]]:
        """Elapsed time, and CPU time of this process."""
        engine = RetrievalEngine(storage, self._embedder, enable_cache=False)
        # In turns, so that neither project's questions find everything warm.
        mixed = zip(self._data.questions(BIG), self._data.questions(SMALL), strict=True)
        questions = [question for pair in mixed for question in pair]
        times = [self._ask(engine, question) for question in questions]
        engine.close()
        passed, used = zip(*times[2 * WARM_UP :], strict=True)
        return _percentiles(passed), _percentiles(used)

    def _ask(self, engine: RetrievalEngine, question: Question) -> tuple[float, float]:
        self._embedder.expect(question.text, Vector(question.vector))
        begin, begin_cpu = time.perf_counter(), time.process_time()
        found = engine.retrieve(question.text, question.agent, question.project, top_k=NEIGHBOURS, bypass_cache=True)
        passed, used = time.perf_counter() - begin, time.process_time() - begin_cpu
        if found.degraded:
            raise SystemExit(f"the retrieval was degraded: {found.degraded}")
        return passed, used

    def _search_filtered(self, storage: StorageBackend) -> tuple[tuple[float, float], str]:
        """The times of all filters together, and which of them has the longest."""
        engine = RetrievalEngine(storage, self._embedder, enable_cache=False)
        journal = Journal(storage, MemoryWriter(storage, self._embedder), engine, count_reads=False)
        times: dict[str, list[float]] = {}
        for name, where in _filters(self._data).items():
            for question in self._data.questions(BIG)[: WARM_UP + _FILTERED]:
                self._embedder.expect(question.text, Vector(question.vector))
                scope = Scope(project_id=question.project)
                seconds = _seconds(lambda text=question.text, scope=scope: journal.search(text, scope, where=where))  # type: ignore[misc]  # noqa: B023
                times.setdefault(name, []).append(seconds)
        journal.close()
        engine.close()
        counted = {name: each[WARM_UP:] for name, each in times.items()}
        worst = max(counted, key=lambda name: _percentiles(counted[name])[1])
        return _percentiles([second for each in counted.values() for second in each]), worst

    def _read(self, storage: StorageBackend) -> tuple[float, float]:
        # A prime step, so that one read is not next to the one before.
        keys = [id_of(number * 7919 % self._data.count) for number in range(_READS)]
        return _percentiles([_seconds(lambda key=key: storage.require(Memory, key, _EVERYWHERE)) for key in keys])  # type: ignore[misc]

    def _import(self, target: str, rows: int) -> float:
        with tempfile.TemporaryDirectory() as folder, self._opened(target) as storage:
            path = Path(folder) / "contexts.jsonl"
            _write_contexts(path, self._data, rows)
            begin = time.perf_counter()
            report = import_into(storage, path, "contextual-memory")
            seconds = time.perf_counter() - begin
        if report.new["memory"] != rows or report.rejected:
            raise SystemExit(f"of {rows:,} rows {report.new['memory']:,} came: {report.rejected[:3]}")
        return seconds

    def _weigh(self, target: str) -> float:
        place = place_at(target)
        count = min(_WEIGHED, self._data.count)
        with self._opened(target) as storage:
            empty = place.closed_bytes()
            for start in range(0, count, _BATCH):
                facts = self._data.facts(range(start, min(start + _BATCH, count)))
                records = [_memory(fact, embedded=True, characters=_CONTENT_CHARACTERS) for fact in facts]
                storage.save_many(records)
                pairs = pairwise(records)
                storage.save_many(
                    [
                        MemoryRelationship(from_memory_id=one.id, to_memory_id=other.id, relationship_type="builds_on")
                        for one, other in pairs
                    ]
                )
            index = open_vector_index(storage)
            index.search(Memory, self._data.facts([0])[0].vector, _EVERYWHERE, limit=1)
            index.close()
        place.settle()
        return (place.closed_bytes() - empty) / 1e6 * _WEIGHED / count


def _filters(data: Data) -> dict[str, MemoryFilter]:
    first, last = (fact.moment for fact in data.facts([0, data.count - 1]))
    span = last - first
    types = ("conversation", "note")
    return {
        "common tag": MemoryFilter(any_tags=("big",)),
        "rare tag": MemoryFilter(any_tags=("small-94",)),
        "a tenth of the time": MemoryFilter(created_since=first + 0.4 * span, created_until=first + 0.5 * span),
        "the last hundredth": MemoryFilter(created_since=first + 0.99 * span),
        "types": MemoryFilter(types=types),
        "tag, types and time": MemoryFilter(any_tags=("big",), types=types, created_since=first + 0.3 * span),
    }


def _memory(fact: Fact, *, embedded: bool, characters: int = 0) -> Memory:
    text = fact.strategy
    while len(text) < characters:
        text = f"{text} {fact.condition} {fact.strategy}"
    return Memory(
        id=fact.id,
        user_id="bench",
        project_id=fact.project,
        session_id=fact.session,
        source_agent=fact.agent,
        title=fact.condition,
        content=text[: characters or None],
        memory_type="conversation",
        tags=(fact.agent,),
        layer_project=True,
        event_time=fact.moment,
        created_at=fact.moment,
        updated_at=fact.moment,
        last_accessed_at=fact.moment,
        embedding=Vector(fact.vector) if embedded else None,
    )


def _write_contexts(path: Path, data: Data, rows: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        for number in range(rows):
            fact = data.facts([number % data.count])[0]
            row = {
                "context_id": f"ctx-{number:08d}",
                "session_id": f"session-{number // 20:06d}",
                "context_data": {"text": fact.strategy, "title": fact.condition},
                "created_at": fact.moment.isoformat(),
                "source_agent": fact.agent,
                "tags": [fact.agent, fact.project],
            }
            file.write(json.dumps(row) + "\n")


def _seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _percentiles(seconds: Sequence[float]) -> tuple[float, float]:
    cuts = statistics.quantiles([each * 1000 for each in seconds], n=20)
    return cuts[9], cuts[18]


@contextmanager
def _places(store: str, work: Path, server: object) -> Iterator[Callable[[], str]]:
    """Creates empty folders and databases, and removes them at the end."""
    made: list[str] = []

    def place() -> str:
        made.append(f"workspace_{len(made)}")
        if store == "sqlite":
            return str(work / made[-1])
        return str(server.create_database(made[-1]))  # type: ignore[attr-defined]

    yield place
    if store == "postgresql":
        for name in made:
            server.drop_database(name)  # type: ignore[attr-defined]


def show(console: Console, measured: Sequence[Measured]) -> None:
    """Print the table and the targets."""
    lines: list[tuple[str, Callable[[Measured], float], str, Callable[[float], bool] | None]] = [
        ("ingest, entries a second", lambda m: m.ingest_per_second, "at least 2,000", lambda v: v >= 2000),
        ("hybrid search p50, ms", lambda m: m.search_p50_ms, "", None),
        ("hybrid search p95, ms", lambda m: m.search_p95_ms, "at most 50", lambda v: v <= 50),
        ("of that our CPU time p95, ms", lambda m: m.search_cpu_p95_ms, "", None),
        ("filtered search p50, ms", lambda m: m.filtered_p50_ms, "", None),
        ("filtered search p95, ms", lambda m: m.filtered_p95_ms, "at most 50", lambda v: v <= 50),
        ("point read p95, ms", lambda m: m.read_p95_ms, "at most 2", lambda v: v <= 2),
        (f"import of {measured[0].import_rows:,} rows, s", lambda m: m.import_seconds, "", None),
        ("disk for 10,000 memories, MB", lambda m: m.disk_mb_per_10k, "at most 51", lambda v: v <= _DOCUMENTED_MB),
    ]
    table = Table("", *(STORES[m.store] for m in measured), "target", title=f"{measured[0].size:,} entries")
    for name, value, target, reached in lines:
        cells = [f"{value(m):,.1f}{'' if reached is None or reached(value(m)) else ' ✗'}" for m in measured]
        table.add_row(name, *cells, target)
    console.print(table)


def command_line() -> argparse.Namespace:
    """The command line options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", "--size", type=_sizes, default="1000000", help="how many entries, by commas")
    parser.add_argument("--rows", type=int, default=100_000, help="how many legacy rows to import")
    parser.add_argument("--queries", type=int, default=100, help="how many questions to each project")
    parser.add_argument("--stores", type=stores_named, default="sqlite,postgresql", help="sqlite, postgresql or both")
    parser.add_argument("--json", type=Path, default=_RESULTS / "workspace.json", help="where to write the numbers")
    return parser.parse_args()


def _sizes(text: str) -> list[int]:
    sizes = [int(part) for part in text.replace("_", "").split(",")]
    if min(sizes) < 3_000:
        raise argparse.ArgumentTypeError("must be at least 3,000, so that the small project has memories")
    return sizes


def _measured(size: int, args: argparse.Namespace, server: object) -> list[Measured]:
    """The results of each store at one size."""
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory(dir=_RESULTS, prefix="work-") as folder:
        work = Path(folder)
        with _progress.status("making the data"):
            make(work / "data", size, vocabulary(), args.queries)
        data = Data(work / "data", size, by_project=True)
        for store in args.stores:
            with _progress.status(f"{size:,} entries on {STORES[store]}"), _places(store, work, server) as places:
                numbers = Workspace(places(), data).measure(args.rows, places)
            measured.append(Measured(store=store, size=size, import_rows=args.rows, **numbers))
    return measured


def main() -> None:
    """Measure, print and write."""
    args = command_line()
    _RESULTS.mkdir(exist_ok=True)
    measured: list[Measured] = []
    with server_for(args.stores) as server:
        for size in args.sizes:
            measured += _measured(size, args, server)
    console = Console(width=None if sys.stdout.isatty() else 100)
    for size in args.sizes:
        show(console, [each for each in measured if each.size == size])
    args.json.parent.mkdir(parents=True, exist_ok=True)
    document = {"surroundings": surroundings(), "measured": [asdict(each) for each in measured]}
    args.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Measure the latency of an uncached retrieve, beside published packages on the same vectors, and check the targets.

    python bench/latency.py                                     # 1,000 to 1,000,000 memories, more than an hour
    python bench/latency.py --sizes 1000,10000                  # some minutes
    python bench/latency.py --stores sqlite --no-rivals         # ours alone, on SQLite

Run it from a checkout with the `dev` extra installed. The rivals (alma-memory, mem0ai, chromadb) are installed
by pip into separate environments under bench/results/, once; one that cannot be installed or fails is reported, and
the run continues without it.

What is measured, on SQLite at every size and on PostgreSQL, started for the run, at the largest size up to 100,000:

* retrieve: `RetrievalEngine.retrieve(…, top_k=5, bypass_cache=True)` over all kinds of memory in a store of
  heuristics, and as a second column in a store of general memories, turns of conversations of twenty; for a big owner
  (an agent with four in five of the heuristics, the project with nearly all general memories) and for one of 1 %;
* without embedding, with a provider that knows each question's vector beforehand; and with embedding by the local
  model, of texts never seen before, whose vector is then replaced by the one that was made for it;
* right after one write and right after its deletion, both through another store object, as by another process; a
  write that the next retrieve does not find, or a deletion that it does, is noted;
* from the start of a new process to its first answer; the process's own memory, without mapped files (of PostgreSQL
  the client's alone); how long loading took, making the records included, and building the vector index after it;
* recall@5 of an owner of 1 % against comparing all with numpy, for ours by the vector index alone, since what is
  retrieved is ranked by words, age and success as well; and how often the memory that a question was made of is among
  the five that are retrieved.

The rivals are queried for the same five of the same agent: `RetrievalEngine.retrieve(…, bypass_cache=True)` of
alma-memory, `Memory.search` of mem0ai, `Collection.query` of chromadb, all with given vectors, and write through the
same object. They are measured up to 100,000 memories; loading and querying are stopped when they take too long, and
this is reported.

The data are synthetic and the same for all: words of a language in their uneven frequencies, vectors in clusters. Each
contender has a process of its own, and they take turns: a batch each, or ten questions, never two at once.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from rich.console import Console

from latency_data import make
from latency_report import LARGE, RIVAL, Column, Results, remarks, results_table, targets
from latency_steps import PHASES, Latencies, Spread
from places import STORES, stores_named
from report import Target, targets_table
from rival import Rival, RivalUnavailableError, install, last_line
from turns import Player, play

if TYPE_CHECKING:
    from tests.support.postgres import PostgresServer

_BENCH = Path(__file__).resolve().parent
_RESULTS = _BENCH / "results"
# A quarter of the memory is what PostgreSQL's manual advises to begin with.
_BUFFERS_MB = psutil.virtual_memory().total // 4 // 2**20
_SERVER_SETTINGS = {"maintenance_work_mem": "1GB", "shared_buffers": f"{_BUFFERS_MB}MB"}

_progress = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Package:
    """A rival to install: the requirement, what it needs beyond what it declares, what must be there to import."""

    requirement: str
    besides: tuple[str, ...]
    modules: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.requirement.partition("==")[0]


_PACKAGES = (
    Package(f"{RIVAL}==0.11.0", ("faiss-cpu", "psycopg[binary,pool]"), ("alma.retrieval.engine", "faiss")),
    Package("mem0ai==2.2.1", ("qdrant-client",), ("mem0", "qdrant_client")),
    Package("chromadb==1.5.9", (), ("chromadb",)),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One contender: a store of ours with one kind of memory, or an installed package."""

    column: Column
    store: str = "sqlite"
    package: str = ""
    python: Path = Path(sys.executable)

    @property
    def file_name(self) -> str:
        return "".join(letter if letter.isalnum() else "_" for letter in self.column.name.lower())


class Bench:
    """Runs contenders at one size, on new folders and databases that it removes afterwards."""

    def __init__(self, work: Path, server: PostgresServer | None, questions: int) -> None:
        self._work = work
        self._server = server
        self._questions = questions

    def play(self, size: int, entries: Sequence[Entry]) -> dict[Column, Latencies]:
        """The results of each contender; a failed rival is left out and reported."""
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=self._work)))
            make(folder / "data", size, vocabulary(), self._questions)
            players = {entry: self._player(entry, size, folder, stack) for entry in entries}
            play(list(players.values()), PHASES)
            ended = {entry: player.end() for entry, player in players.items()}
        for entry, outcome in ended.items():
            if isinstance(outcome, str):
                _complain(entry, size, outcome)
        return {entry.column: _latencies(found) for entry, found in ended.items() if not isinstance(found, str)}

    def _player(self, entry: Entry, size: int, folder: Path, stack: ExitStack) -> Player:
        place = stack.enter_context(self._place(entry, folder))
        options = ["--place", place, "--count", str(size), "--data", str(folder / "data")]
        options += ["--questions", str(self._questions)]
        result = folder / f"{entry.file_name}.json"
        player = Player([*self._driver(entry, size), *options], _environment(), result)
        stack.callback(player.stop)
        return player

    def _driver(self, entry: Entry, size: int) -> list[str]:
        if entry.package:
            limits = ["--load-seconds", str(_load_seconds(size)), "--phase-seconds", "30"]
            return [str(entry.python), str(_BENCH / "latency_rivals.py"), "--package", entry.package, *limits]
        ours = [str(entry.python), str(_BENCH / "latency_alma.py")]
        return [*ours, "--general"] if entry.column.general else ours

    @contextmanager
    def _place(self, entry: Entry, folder: Path) -> Iterator[str]:
        if entry.store == "sqlite":
            yield str(folder / entry.file_name)
            return
        assert self._server is not None
        try:
            yield self._server.create_database(entry.file_name)
        finally:
            self._server.drop_database(entry.file_name)


def _complain(entry: Entry, size: int, errors: str) -> None:
    if not entry.package:
        raise SystemExit(errors)
    reason = f"{entry.column.name} failed at {size:,} memories and is left out there: {last_line(errors)}"
    _progress.print(reason, style="red", markup=False)


def _latencies(values: Mapping[str, Any]) -> Latencies:
    spreads = {name: Spread(**value) for name, value in values.items() if isinstance(value, dict)}
    return Latencies(**{**values, **spreads, "notes": tuple(values["notes"])})


def _load_seconds(size: int) -> float:
    """When a rival must stop loading."""
    return 120.0 if size < LARGE else 900.0


def _environment() -> dict[str, str]:
    """Without PYTHONPATH, so that no contender imports another's package, and without telemetry."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**kept, "MEM0_TELEMETRY": "False", "ANONYMIZED_TELEMETRY": "False"}


def vocabulary() -> list[str]:
    """The whole words that the local model's tokenizer knows, which has the commonest first."""
    file = resources.files("alma.embeddings").joinpath("data/all-MiniLM-L6-v2/tokenizer.json")
    numbers: dict[str, int] = json.loads(file.read_text(encoding="utf-8"))["model"]["vocab"]
    first = numbers["the"]
    words = (word for word in numbers if word.isascii() and word.isalpha() and len(word) > 1)
    return sorted((word for word in words if numbers[word] >= first), key=numbers.__getitem__)


def entries_of(size: int, sizes: Sequence[int], stores: Sequence[str], rivals: Mapping[str, Rival]) -> list[Entry]:
    """The contenders at a size."""
    on_server = max((other for other in sizes if other <= LARGE), default=None)
    chosen = [store for store in stores if store == "sqlite" or size == on_server]
    ours = [
        Entry(Column(f"ALMA {STORES[store]}, {kind}", STORES[store], kind == "general"), store)
        for store in chosen
        for kind in ("heuristics", "general")
    ]
    theirs = [Entry(Column(rival.name), package=name, python=rival.python) for name, rival in rivals.items()]
    return [*ours, *theirs] if size <= LARGE else ours


@contextmanager
def server_for(stores: Sequence[str]) -> Iterator[PostgresServer | None]:
    """A PostgreSQL server, if one is needed."""
    if "postgresql" not in stores:
        yield None
        return
    # The server comes from the tests, which are no installed package.
    sys.path.insert(0, str(_BENCH.parent))
    from tests.support.postgres import PostgresServer

    with PostgresServer(settings=_SERVER_SETTINGS) as server:
        yield server


def installed_rivals(packages: Sequence[Package]) -> dict[str, Rival]:
    """The installed rivals, by name; the others are reported."""
    found: dict[str, Rival] = {}
    for package in packages:
        try:
            with _progress.status(f"installing {package.requirement}"):
                environments = _RESULTS / "environments"
                found[package.name] = install(package.requirement, environments, package.besides, package.modules)
        except RivalUnavailableError as exc:
            _progress.print(f"measuring without {package.name}: {exc}", style="red", markup=False)
    return found


def measure(bench: Bench, size: int, entries: Sequence[Entry]) -> dict[Column, Latencies]:
    """Run one size, and report how long it took."""
    label = f"{size:,} memories, contenders: {len(entries)}"
    begin = time.perf_counter()
    with _progress.status(label):
        found = bench.play(size, entries)
    _progress.print(f"{label}: {time.perf_counter() - begin:.0f} s", highlight=False)
    return found


def surroundings() -> dict[str, Any]:
    """The environment of the numbers."""
    packages = {name: version(name) for name in ("numpy", "onnxruntime", "turbovec")}
    known = {"python": platform.python_version(), "cores": os.cpu_count(), "sqlite": sqlite3.sqlite_version}
    return {**known, **packages, "load average": round(os.getloadavg()[0], 1)}


def show(console: Console, results: Results, around: Mapping[str, Any], reached: Sequence[Target]) -> None:
    """Print everything."""
    console.print(", ".join(f"{name} {value}" for name, value in around.items()), highlight=False)
    for size, found in results.items():
        console.print(results_table(size, found))
    for remark in dict.fromkeys(remarks(results)):
        console.print(remark, markup=False, highlight=False)
    console.print(targets_table(reached))


def write(path: Path, results: Results, around: Mapping[str, Any], reached: Sequence[Target]) -> None:
    """Write every number as JSON."""
    document = {
        "surroundings": around,
        "results": {size: {c.name: asdict(found) for c, found in each.items()} for size, each in results.items()},
        "targets": [asdict(target) for target in reached],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def command_line() -> argparse.Namespace:
    """The command line options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    sizes = "1000,10000,100000,1000000"
    parser.add_argument("--sizes", type=_sizes, default=sizes, help=f"memories per store, by commas; {sizes}")
    parser.add_argument("--stores", type=stores_named, default="sqlite,postgresql", help="sqlite, postgresql or both")
    every = ",".join(package.name for package in _PACKAGES)
    parser.add_argument("--rivals", type=_rivals, default=every, help=f"which take part, by commas; {every}")
    parser.add_argument("--no-rivals", dest="rivals", action="store_const", const=(), help="measure only our own")
    parser.add_argument("--queries", type=_questions, default=200, help="questions to each owner; 200 unless told")
    parser.add_argument("--work", type=Path, default=_RESULTS, help="where the stores are made, and removed afterwards")
    parser.add_argument("--out", type=Path, default=_RESULTS / "latency.json", help="where to write all numbers")
    return parser.parse_args()


def _sizes(text: str) -> list[int]:
    sizes = [int(part) for part in text.replace("_", "").split(",")]
    if min(sizes) < 1_000:
        raise argparse.ArgumentTypeError("needs at least 1,000 memories, ten for each agent of 1 %")
    return sizes


def _rivals(text: str) -> tuple[Package, ...]:
    named, known = set(text.split(",")), [package.name for package in _PACKAGES]
    if unknown := named.difference(known):
        raise argparse.ArgumentTypeError(f"knows {', '.join(known)}, not {', '.join(sorted(unknown))}")
    return tuple(package for package in _PACKAGES if package.name in named)


def _questions(text: str) -> int:
    if (count := int(text)) < 10:
        raise argparse.ArgumentTypeError("needs at least ten questions")
    return count


def main() -> None:
    """Measure, print and write."""
    args = command_line()
    _RESULTS.mkdir(exist_ok=True)
    rivals = installed_rivals(args.rivals)
    around = surroundings()
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=args.work, prefix="work-")))
        bench = Bench(work, stack.enter_context(server_for(args.stores)), args.queries)
        plan = {size: entries_of(size, args.sizes, args.stores, rivals) for size in args.sizes}
        results = {size: measure(bench, size, entries) for size, entries in plan.items() if entries}
    reached = targets(results)
    # Tables written to a file may be wide.
    show(Console(width=None if sys.stdout.isatty() else 200), results, around, reached)
    write(args.out, results, around, reached)


if __name__ == "__main__":
    main()

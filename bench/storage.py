"""Measure the storage on disk, beside the published alma-memory package, and say which targets are reached.

    python bench/storage.py                               # 1,000, 10,000 and 100,000 memories, about ten minutes
    python bench/storage.py --sizes 1000,10000            # under three minutes
    python bench/storage.py --stores sqlite --no-rival    # our SQLite store alone

Run it from a checkout whose environment has the `dev` extra. The rival is installed by pip into an environment of its
own under bench/results/, once; where that fails the run says so and goes on without it.

What is measured, on SQLite and on a PostgreSQL server that is started for the run:

* batch save: heuristics with 384-dimensional vectors, and general memories of the same texts as a second line, in
  batches of 10,000 (the rival: of 1,000, so that its time limit can take effect);
* single save: one call and one vector at a time, into the store just loaded;
* get by id; find: one agent's five heuristics of the highest confidence; scoped vector search: the five nearest of an
  agent that owns one in a hundred, and how many of the five are those that numpy finds by comparing all;
* opening the loaded store, in a running process and in a new one that first has to import everything;
* bytes: all files of a SQLite store after closing it and while it is open (with -wal and -shm); on PostgreSQL the
  tables with their indexes, and the whole database.

How it is measured: the data are synthetic and the same for all, drawn from a seed; conditions of 60 and strategies of
90 characters, 100 agents, one project, vectors around 64 centers. Records are constructed before the clock starts, for
every contender: only the storage's calls are timed. Contenders take turns, each round in a new process and a new store,
in reverse order every other round; the tables show medians over the rounds. Sizes above 10,000 get one round. The rival
on PostgreSQL gets one round at any size, because there it can only save row by row. PostgreSQL's tables are vacuumed
and analysed once after loading.

Durability is each one's default, and the defaults differ: ours survives the death of any process, alma-memory flushes
the disk in every transaction and so survives the death of the machine as well, although its row and its vector are two
transactions. How far the two are apart therefore depends on what a flush costs, which is printed; the line
`durability=power` shows our store with a flush for every save.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from measuring import Measurements, read
from report import Pair, Results, Target, medians, remarks, results_table, targets, targets_table
from rival import Rival, RivalUnavailableError, install, last_line

if TYPE_CHECKING:
    from tests.support.postgres import PostgresServer

_BENCH = Path(__file__).resolve().parent
_RESULTS = _BENCH / "results"
_STORES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
_MOST_REPEATED_SIZE = 10_000
_RIVAL = "alma-memory==0.11.0"

_progress = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Turn:
    """One contender's measurement: how many memories, on which database, ours or the rival's, in which round."""

    size: int
    store: str
    rival: bool
    round: int

    @property
    def name(self) -> str:
        return f"{'theirs' if self.rival else 'ours'}_{self.store}_{self.size}_{self.round}"


class Bench:
    """Runs turns, each in a process of its own, on new folders and databases that it removes afterwards."""

    def __init__(self, work: Path, server: PostgresServer | None, rival: Rival | None) -> None:
        self._work = work
        self._server = server
        self._rival = rival

    def run(self, turn: Turn) -> Measurements | None:
        """The measurements of a turn, or None where the rival failed."""
        with self._places(turn) as places:
            result = self._work / f"{turn.name}.json"
            command = [*self._driver(turn, places), "--count", str(turn.size), "--json", str(result)]
            done = subprocess.run(command, env=_environment(), stderr=subprocess.PIPE, text=True, check=False)
            if done.returncode == 0:
                return read(result)
        if not turn.rival:
            raise SystemExit(done.stderr)
        _progress.print(f"the rival failed and is left out here: {last_line(done.stderr)}", style="red", markup=False)
        return None

    def _driver(self, turn: Turn, places: Sequence[str]) -> list[str]:
        if turn.rival and self._rival is not None:
            limit = ["--max-seconds", str(_rival_seconds(turn))]
            return [str(self._rival.python), str(_BENCH / "alma_memory_driver.py"), "--place", places[0], *limit]
        first = [sys.executable, str(_BENCH / "alma_driver.py"), "--place", places[0], "--memory-place", places[1]]
        return [*first, "--power-place", places[2]] if turn.store == "sqlite" else first

    @contextmanager
    def _places(self, turn: Turn) -> Iterator[list[str]]:
        """Three empty places of the kind that a turn needs."""
        if turn.store == "sqlite":
            with tempfile.TemporaryDirectory(dir=self._work) as folder:
                yield [str(Path(folder) / part) for part in "abc"]
            return
        assert self._server is not None
        names = [f"{turn.name}_{part}" for part in "abc"]
        yield [self._server.create_database(name) for name in names]
        for name in names:
            self._server.drop_database(name)


def _rival_seconds(turn: Turn) -> float:
    """When the rival must stop loading: 100,000 memories are to take it three and a half minutes at most."""
    enough = 5 + turn.size * 2 / 1000
    return min(enough, 45.0) if turn.store == "postgresql" else enough


def _environment() -> dict[str, str]:
    """Without PYTHONPATH, which could show one contender the other's package."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def turns(size: int, stores: Sequence[str], rivals: bool, repeat: int) -> Iterator[Turn]:
    """Who is measured when: by turns, and in reverse order every other round."""
    for number in range(repeat if size <= _MOST_REPEATED_SIZE else 1):
        order = [
            Turn(size, store, rival, number)
            for store in stores
            for rival in ((False, True) if rivals else (False,))
            if number == 0 or not rival or store == "sqlite"
        ]
        yield from order if number % 2 == 0 else reversed(order)


def measure_size(bench: Bench, schedule: Sequence[Turn]) -> dict[str, dict[str, list[Measurements]]]:
    """Run all turns of one size; returns the rounds by database and contender."""
    rounds: dict[str, dict[str, list[Measurements]]] = {}
    for number, turn in enumerate(schedule, start=1):
        who = "alma-memory" if turn.rival else "ours"
        label = f"{turn.size:>7,} memories, {number:>2} of {len(schedule)}: {_STORES[turn.store]}, {who}"
        begin = time.perf_counter()
        with _progress.status(label):
            found = bench.run(turn)
        _progress.print(f"{label}: {time.perf_counter() - begin:.1f} s", highlight=False)
        if found is not None:
            contenders = rounds.setdefault(_STORES[turn.store], {"ours": [], "theirs": []})
            contenders["theirs" if turn.rival else "ours"].append(found)
    return rounds


def pair_of(contenders: dict[str, list[Measurements]]) -> Pair:
    """The medians of both contenders."""
    theirs = contenders["theirs"]
    return Pair(medians(contenders["ours"]), medians(theirs) if theirs else None)


@contextmanager
def server_for(stores: Sequence[str]) -> Iterator[PostgresServer | None]:
    """A PostgreSQL server, where one is needed."""
    if "postgresql" not in stores:
        yield None
        return
    # The server comes from the tests, which are no installed package.
    sys.path.insert(0, str(_BENCH.parent))
    from tests.support.postgres import PostgresServer

    with PostgresServer() as server:
        yield server


def rival_for(requirement: str | None) -> Rival | None:
    """The rival, installed, or None where it is not wanted or cannot be had, which is said."""
    if requirement is None:
        return None
    try:
        with _progress.status(f"installing {requirement}"):
            return install(requirement, _RESULTS / "environments")
    except RivalUnavailableError as exc:
        _progress.print(f"measuring without the rival: {exc}", style="red", markup=False)
        return None


def flush_ms(folder: Path) -> float:
    """The median time the disk takes to flush four kilobytes that were appended to a file."""
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(100):
            file.write(b"x" * 4096)
            file.flush()
            begin = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1000


def surroundings(folder: Path) -> dict[str, Any]:
    """What else the numbers depend on."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "numpy": version("numpy"),
        "sqlite": sqlite3.sqlite_version,
        "flush_ms": round(flush_ms(folder), 3),
    }


def show(console: Console, results: Results, rival: str, around: dict[str, Any], reached: Sequence[Target]) -> None:
    """Print everything."""
    console.print(", ".join(f"{name} {value}" for name, value in around.items()), highlight=False)
    for size, pairs in results.items():
        console.print(results_table(size, pairs, rival))
    for remark in remarks(results, rival):
        console.print(remark, markup=False, highlight=False)
    console.print(targets_table(reached))


def command_line() -> argparse.Namespace:
    """What was asked for."""
    summary = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("--sizes", type=_sizes, default="1000,10000,100000", help="memories per store, by commas")
    parser.add_argument("--stores", type=_stores, default="sqlite,postgresql", help="sqlite, postgresql or both")
    parser.add_argument("--rival", default=_RIVAL, help=f"what pip installs to compare with; {_RIVAL} unless told")
    parser.add_argument("--no-rival", dest="rival", action="store_const", const=None, help="measure only our own")
    parser.add_argument("--json", type=Path, default=_RESULTS / "storage.json", help="where to write all numbers")
    parser.add_argument("--repeat", type=int, default=3, help="rounds at sizes up to 10,000")
    return parser.parse_args()


def _sizes(text: str) -> list[int]:
    sizes = [int(part) for part in text.replace("_", "").split(",")]
    if min(sizes) < 500:
        raise argparse.ArgumentTypeError("needs at least 500 memories, five for each agent")
    return sizes


def _stores(text: str) -> list[str]:
    chosen = text.split(",")
    if unknown := [name for name in chosen if name not in _STORES]:
        raise argparse.ArgumentTypeError(f"knows sqlite and postgresql, not {', '.join(unknown)}")
    return chosen


def main() -> None:
    """Measure, print and write."""
    args = command_line()
    _RESULTS.mkdir(exist_ok=True)
    rival = rival_for(args.rival)
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=_RESULTS, prefix="work-")))
        around = surroundings(work)
        bench = Bench(work, stack.enter_context(server_for(args.stores)), rival)
        schedules = {size: list(turns(size, args.stores, rival is not None, args.repeat)) for size in args.sizes}
        rounds = {size: measure_size(bench, schedule) for size, schedule in schedules.items()}
    results = {size: {name: pair_of(both) for name, both in found.items()} for size, found in rounds.items()}
    name = "alma-memory" if rival is None else rival.name
    reached = targets(results)
    # Where nobody watches, the tables may be as wide as they want.
    console = Console(width=None if sys.stdout.isatty() else 130)
    show(console, results, name, around, reached)
    write(args.json, name, around, rounds, results, reached)


def write(
    path: Path,
    rival: str,
    around: dict[str, Any],
    rounds: dict[int, dict[str, dict[str, list[Measurements]]]],
    results: Results,
    reached: Sequence[Target],
) -> None:
    """Write the medians, every round and the targets as JSON."""
    document = {
        "surroundings": around,
        "rival": rival,
        "medians": {size: {name: asdict(pair) for name, pair in found.items()} for size, found in results.items()},
        "rounds": {
            size: {name: {who: [asdict(m) for m in some] for who, some in both.items()} for name, both in found.items()}
            for size, found in rounds.items()
        },
        "targets": [asdict(target) for target in reached],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

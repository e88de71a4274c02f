"""Runs a real server that speaks Bolt and Cypher: of the arcadedb-embedded wheel, or the Neo4j that is named."""

from __future__ import annotations

import os
import secrets
import socket
from pathlib import Path

from tests.support.postgres import free_port
from tests.support.waiting import WaitingProcess

READY_SECONDS = 120.0


class BoltServer:
    """A graph database on 127.0.0.1.

    With NEO4J_JARS set, it is the Neo4j of the jar files in that folder; with NEO4J_URI, NEO4J_USERNAME and
    NEO4J_PASSWORD set, the server there.
    """

    def __init__(self) -> None:
        self._jars = os.environ.get("NEO4J_JARS", "")
        self.uri = os.environ.get("NEO4J_URI", "")
        self.username = os.environ.get("NEO4J_USERNAME", "neo4j")
        self.password = os.environ.get("NEO4J_PASSWORD", "")
        self.database: str | None = os.environ.get("NEO4J_DATABASE")
        script = "neo4j_process.py" if self._jars else "bolt_process.py"
        self._arguments: list[str] = []
        self._process = WaitingProcess("the graph server", script)

    def __enter__(self) -> BoltServer:
        if not self.uri:
            self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.close()

    def kill(self) -> None:
        """Kill the server without warning; its data stays."""
        self._process.kill()

    def restart(self) -> None:
        """Start it again after a kill, at the same address."""
        self._process.start(*self._arguments, ready="ready", seconds=READY_SECONDS)

    def _start(self) -> None:
        port, self.password = _two_free_ports(), secrets.token_urlsafe(12)
        self.uri = f"bolt://127.0.0.1:{port}"
        folder = str(self._process.folder)
        if self._jars:
            self._arguments = [str(Path(self._jars).resolve()), folder, str(port), self.password]
        else:
            self.username, self.database = "root", "alma"
            self._arguments = [folder, str(port), self.password, self.database]
        self.restart()


def _two_free_ports() -> int:
    """A free port whose neighbour is free as well, for the server's other protocol."""
    while True:
        port = free_port("127.0.0.1")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port + 1)) != 0:
                return port

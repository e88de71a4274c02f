"""Runs a real server that speaks Bolt and Cypher, from the arcadedb-embedded wheel; or uses the Neo4j that is named."""

from __future__ import annotations

import os
import secrets
import socket

from tests.support.postgres import free_port
from tests.support.waiting import WaitingProcess

READY_SECONDS = 120.0


class BoltServer:
    """A graph database on 127.0.0.1; with NEO4J_URI, NEO4J_USERNAME and NEO4J_PASSWORD set, that server instead."""

    def __init__(self) -> None:
        self.uri = os.environ.get("NEO4J_URI", "")
        self.username = os.environ.get("NEO4J_USERNAME", "neo4j")
        self.password = os.environ.get("NEO4J_PASSWORD", "")
        self.database: str | None = os.environ.get("NEO4J_DATABASE")
        self._process = WaitingProcess("the graph server", "bolt_process.py")

    def __enter__(self) -> BoltServer:
        if not self.uri:
            self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.close()

    def _start(self) -> None:
        port, self.username, self.password, self.database = _two_free_ports(), "root", secrets.token_urlsafe(12), "alma"
        self.uri = f"bolt://127.0.0.1:{port}"
        arguments = (str(self._process.folder), str(port), self.password, self.database)
        self._process.start(*arguments, ready="ready", seconds=READY_SECONDS)


def _two_free_ports() -> int:
    """A free port whose neighbour is free as well, for the server's other protocol."""
    while True:
        port = free_port("127.0.0.1")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port + 1)) != 0:
                return port

"""A server from npm that keeps documents as Azure Cosmos DB does: single documents, entity tags, simple queries."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.node import NODE, installed
from tests.support.postgres import free_port

KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
_PACKAGES = {"@vercel/cosmosdb-server": "1.0.1"}


@contextmanager
def cosmos_emulator() -> Iterator[str]:
    """The address of the server, whose certificate it has made itself."""
    program = installed(_PACKAGES) / "node_modules" / "@vercel" / "cosmosdb-server" / "lib" / "cli.js"
    port = free_port("127.0.0.1")
    command = [NODE, str(program), "--port", str(port), "--host", "127.0.0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            assert b"Ready" in process.stdout.readline()
            yield f"https://127.0.0.1:{port}/"
        finally:
            process.kill()

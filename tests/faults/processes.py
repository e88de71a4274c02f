"""The parent's side of a process that is told what to do, listened to and killed."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO

ROOT = Path(__file__).parents[2]


class Worker:
    """A process that runs one command of `tests.faults.writer`; leaving its context kills it."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.writer", *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Nothing may be read ahead here, since `communicate` would not get to see it.
            bufsize=0,
        )
        self.said: list[str] = []

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        with suppress(ValueError):  # the pipes are closed already
            self._process.communicate()

    def line(self) -> str:
        """Wait for the next line it says."""
        line = _there(self._process.stdout).readline().decode()
        assert line.endswith("\n"), f"the process ended with code {self._process.wait()} instead of saying something"
        self.said.append(line.rstrip("\n"))
        return self.said[-1]

    def go(self) -> None:
        """Let it do what it waits to do."""
        _there(self._process.stdin).write(b"go\n")

    def kill_after(self, seconds: float) -> list[str]:
        """Kill it with SIGKILL so many seconds from now; returns everything it ever said."""
        with suppress(subprocess.TimeoutExpired):
            self._process.communicate(timeout=seconds)
            raise AssertionError(f"the process ended by itself with code {self._process.returncode}")
        self._process.kill()
        rest, _ = self._process.communicate()
        # A line that was cut off by the kill is none.
        self.said += rest.decode().split("\n")[:-1]
        return self.said

    def finish(self) -> None:
        """Wait until it has done everything, without an error."""
        self._process.communicate()
        assert self._process.returncode == 0


def _there(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe

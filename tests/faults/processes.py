"""The parent's side of processes that are told what to do, listened to and killed."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import IO

from tests.faults.checks import prepare
from tests.faults.records import SHARED, a_heuristic
from tests.faults.stores import opened

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
        return self.kill()

    def kill(self) -> list[str]:
        """Kill it with SIGKILL now; returns everything it ever said."""
        self._process.kill()
        rest, _ = self._process.communicate()
        # A line that was cut off by the kill is none.
        self.said += rest.decode().split("\n")[:-1]
        return self.said

    def finish(self) -> None:
        """Wait until it has done everything, without an error."""
        self._process.communicate()
        assert self._process.returncode == 0


def said_by_killed_writers(
    address: str,
    names: Sequence[str],
    lives_seconds: Callable[[], float],
    meanwhile: Callable[[Sequence[Worker]], None] = lambda _: None,
) -> list[str]:
    """Everything that writers said who wrote at the same time and were killed one after the other, while writing."""
    with ExitStack() as stack:
        writers = [stack.enter_context(Worker("write-forever", address, name)) for name in names]
        tell_to_go_on(writers, when="ready")
        for writer in writers:
            writer.line()
        meanwhile(writers)
        return [line for writer in writers for line in writer.kill_after(lives_seconds())]


def up_to(seconds: float, seed: int) -> Callable[[], float]:
    """What gives a random time after the other, none longer than this."""
    source = random.Random(seed)
    return lambda: source.uniform(0, seconds)


def write_together(address: str, processes: int, writes: int) -> None:
    """Let processes open a new store at the same time, then write to it at the same time, so many times each."""
    with ExitStack() as stack:
        workers = [
            stack.enter_context(Worker("write-a-number", address, f"writer{i}", str(writes))) for i in range(processes)
        ]
        tell_to_go_on(workers, when="ready")
        with opened(address) as store:
            prepare(store, a_heuristic(SHARED))
        tell_to_go_on(workers, when="opened")
        for worker in workers:
            worker.finish()


def tell_to_go_on(workers: Sequence[Worker], when: str) -> None:
    """Wait until all processes say that they got there, then let them go on at the same time."""
    assert [worker.line() for worker in workers] == [when] * len(workers)
    for worker in workers:
        worker.go()


def _there(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe

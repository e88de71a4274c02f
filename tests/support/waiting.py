"""Server processes that live until their standard input is closed."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

_EXIT_SECONDS = 20.0


class WaitingProcess:
    """A Python file that runs in its own folder, says by a file that it is ready, and ends when it is told to."""

    def __init__(self, name: str, script: str) -> None:
        self._name = name
        self._script = Path(__file__).with_name(script)
        self.folder = Path(tempfile.gettempdir()) / f"alma-{secrets.token_hex(8)}"
        self._process: subprocess.Popen[bytes] | None = None

    def kill(self) -> None:
        """Kill the process without warning; its files stay, and it may be started again."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.kill()
        self._process.stdin.close()
        self._process.wait()

    def start(self, *arguments: str, ready: str, seconds: float) -> Path:
        """Start it and return the file that says that it is ready; a process that does not get there is an error."""
        try:
            return self._started(arguments, self.folder / ready, seconds)
        except BaseException:
            self.close()
            raise

    def _started(self, arguments: Sequence[str], ready: Path, seconds: float) -> Path:
        self.folder.mkdir(exist_ok=True)
        ready.unlink(missing_ok=True)
        log = self.folder / "process.log"
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, str(self._script), *arguments],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=self.folder,
            )
        deadline = time.monotonic() + seconds
        while not ready.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self._name} did not start:\n{log.read_text(errors='replace')[-4000:]}")
            time.sleep(0.05)
        return ready

    def close(self) -> None:
        """End the process and delete its files."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                self._process.wait(_EXIT_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

"""Runs the `alma` command: in this process to test what it does, in a new one to test how it starts and ends."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from alma.cli import main


class Ran(NamedTuple):
    """What a command printed and exited with."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """What a program reads."""
        assert self.returncode == 0, self.stderr
        return json.loads(self.stdout)


def run(*arguments: str, stdin: str = "") -> Ran:
    """The command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setattr(sys, "argv", ["alma", *arguments])
        patch.setattr(sys, "stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as ended:
            main()
    return Ran(int(ended.value.code or 0), out.getvalue(), err.getvalue())


def spawn(
    *arguments: str, cwd: Path | None = None, stdin: str = "", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The command in a new process."""
    return subprocess.run(
        [sys.executable, "-m", "alma", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        input=stdin,
        env={**os.environ, **(env or {})},
    )

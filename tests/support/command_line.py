"""Runs the `alma` command: in this process for what it does, in one of its own for how it starts and ends."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from alma.cli import main
from alma.cli.app import ENTRIES


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
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "alma", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        input=stdin,
        env={**os.environ, **(env or {})},
    )


def every_command() -> Iterator[tuple[str, Any]]:
    """Every command that is listed, with the words that lead to it; groups come before what they hold."""
    for entry in ENTRIES:
        yield from _with_those_inside(f"alma {entry.name}", entry.load())


def examples_of(command: Any) -> list[str]:
    """The commands that its help shows."""
    _, _, shown = (command.epilog or "").partition("Examples:\n")
    return [line.strip() for line in shown.splitlines()]


def _with_those_inside(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    if command.hidden:
        return
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _with_those_inside(f"{path} {name}", inner)

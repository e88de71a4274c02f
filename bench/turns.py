"""Contenders run in separate processes and take turns.

A driver prints the phase that its next step belongs to and waits for a line of input. The bench lets all contenders of
a round finish a phase, a step each in turn, before any goes on to the next: so a disturbance affects all of them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

PHASES = ("load", "settle", "open", "read", "search", "single", "extra")


class Player:
    """The process of a driver."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], result: Path) -> None:
        self._result = result
        self._errors = result.with_suffix(".err")
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [*command, "--json", str(result)],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.phase = self._heard()

    def step(self) -> None:
        """Run its next step, and wait for it."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        self.phase = self._heard()

    def end(self) -> dict[str, Any] | str:
        """Wait for the process to end; returns its measurements by name, or its error."""
        self._process.communicate()
        if self._process.returncode == 0:
            values: dict[str, Any] = json.loads(self._result.read_text(encoding="utf-8"))
            return values
        return self._errors.read_text(encoding="utf-8", errors="replace")

    def stop(self) -> None:
        """Kill the process."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _heard(self) -> str:
        """The next phase, or None once the process has ended."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def play(players: Sequence[Player], phases: Sequence[str] = PHASES) -> None:
    """Run all players through all phases."""
    for phase in phases:
        while waiting := [player for player in players if player.phase == phase]:
            for player in waiting:
                player.step()


def take_turns(phases: Iterable[str]) -> None:
    """Take steps as a driver: announce the next one, then wait for the request."""
    for phase in phases:
        print(phase, flush=True)
        if not sys.stdin.isatty():
            sys.stdin.readline()


def driver_arguments(about: str | None) -> argparse.ArgumentParser:
    """The arguments every driver takes."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--place", required=True, help="a new folder, or the postgresql:// URL of an empty database")
    parser.add_argument("--count", type=int, required=True, help="memories to load")
    parser.add_argument("--json", type=Path, required=True, help="the file to write the measurements to")
    return parser


def write(found: DataclassInstance, path: Path) -> None:
    """Write the measurements for the benchmark."""
    path.write_text(json.dumps(asdict(found), indent=2) + "\n", encoding="utf-8")

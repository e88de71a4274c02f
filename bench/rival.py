"""Published packages in separate environments, created once and kept."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# What alma-memory needs for SQLite with FAISS and for PostgreSQL, beyond what it declares itself.
_BESIDES = ("faiss-cpu", "psycopg[binary,pool]")
_MODULES = ("alma.storage.sqlite_local", "faiss", "psycopg_pool")
# What the drivers of the benchmarks need.
_DRIVERS_NEED = ("numpy", "psutil")


class RivalUnavailableError(Exception):
    """The package could not be installed or does not start, and why."""


@dataclass(frozen=True, slots=True)
class Rival:
    """An installed rival: its interpreter, and its version as it is shown."""

    python: Path
    name: str


def install(
    requirement: str, cache: Path, besides: Sequence[str] = _BESIDES, modules: Sequence[str] = _MODULES
) -> Rival:
    """The rival that fulfils a requirement such as alma-memory==0.11.0, installed unless it already is.

    `besides` is what it needs beyond what it declares, `modules` what must be there to import afterwards.
    """
    package = re.split(r"[^\w-]", requirement)[0]
    probe = f"import {', '.join((*modules, *_DRIVERS_NEED))}, importlib.metadata as m; print(m.version({package!r}))"
    folder = cache / re.sub(r"[^\w.]+", "-", requirement)
    python = folder / "bin" / "python"
    if (version := _version(python, probe)) is None:
        _run([sys.executable, "-m", "venv", "--clear", str(folder)], "cannot create an environment")
        wanted = [requirement, *besides, *_DRIVERS_NEED]
        _run([str(python), "-m", "pip", "install", "--quiet", *wanted], f"cannot install {requirement}")
        version = _version(python, probe)
    if version is None:
        raise RivalUnavailableError(f"{requirement} is installed but cannot be imported")
    return Rival(python, f"{package} {version}")


def _version(python: Path, code: str) -> str | None:
    if not python.exists():
        return None
    probe = subprocess.run([str(python), "-I", "-c", code], capture_output=True, text=True, check=False)
    return probe.stdout.strip() if probe.returncode == 0 else None


def _run(command: list[str], failure: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RivalUnavailableError(f"{failure}: {last_line(done.stderr or done.stdout)}")


def last_line(text: str) -> str:
    """The line of an error output with the reason."""
    errors = [line for line in text.splitlines() if line.startswith("ERROR")]
    lines = errors or [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no reason given"

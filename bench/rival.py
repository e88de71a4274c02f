"""The published package in an environment of its own, made once and kept."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# What alma-memory needs for SQLite with FAISS and for PostgreSQL, beyond what it declares itself.
_BESIDES = ("numpy", "faiss-cpu", "psycopg[binary,pool]")
_PROBE = (
    "import alma.storage.sqlite_local, faiss, psycopg_pool, importlib.metadata as m; print(m.version('alma-memory'))"
)


class RivalUnavailableError(Exception):
    """The package could not be installed or does not start; says why."""


@dataclass(frozen=True, slots=True)
class Rival:
    """An installed rival: its interpreter, and its version as it is shown."""

    python: Path
    name: str


def install(requirement: str, cache: Path) -> Rival:
    """The rival that fulfils a requirement such as alma-memory==0.11.0, installed unless it already is."""
    folder = cache / re.sub(r"[^\w.]+", "-", requirement)
    python = folder / "bin" / "python"
    if (version := _version(python)) is None:
        _run([sys.executable, "-m", "venv", "--clear", str(folder)], "cannot create an environment")
        _run([str(python), "-m", "pip", "install", "--quiet", requirement, *_BESIDES], f"cannot install {requirement}")
        version = _version(python)
    if version is None:
        raise RivalUnavailableError(f"{requirement} is installed but cannot be imported")
    return Rival(python, f"alma-memory {version}")


def _version(python: Path) -> str | None:
    if not python.exists():
        return None
    probe = subprocess.run([str(python), "-I", "-c", _PROBE], capture_output=True, text=True, check=False)
    return probe.stdout.strip() if probe.returncode == 0 else None


def _run(command: list[str], failure: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RivalUnavailableError(f"{failure}: {last_line(done.stderr or done.stdout)}")


def last_line(text: str) -> str:
    """The line of an error output that says what went wrong."""
    errors = [line for line in text.splitlines() if line.startswith("ERROR")]
    lines = errors or [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no reason given"

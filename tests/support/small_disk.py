"""Provides a file system that is small enough to fill up, for tests of a full disk."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    """Mount a file system of the given size, which every OS user can enter, and unmount it at the end."""
    if os.geteuid() != 0:
        raise PermissionError("only root can mount a small disk")
    directory = Path(tempfile.mkdtemp(prefix="alma-small-disk-"))
    try:
        run("mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0755", "tmpfs", str(directory))
        try:
            yield directory
        finally:
            unmount(directory)
    finally:
        directory.rmdir()


def unmount(directory: Path) -> None:
    """Unmount a file system, or only detach it while a process still holds one of its files open."""
    try:
        run("umount", str(directory))
    except RuntimeError:
        run("umount", "--lazy", str(directory))


def run(*command: str) -> None:
    """Run a command and raise its error output when it fails."""
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {result.stderr.strip()}")

"""Paths given by users, and directories and files that only their owner can read."""

from __future__ import annotations

import errno
import hashlib
import os
from contextlib import suppress
from pathlib import Path

from alma.errors import ValidationError


def checked_directory(subject: str, field: str, path: str | os.PathLike[str]) -> Path:
    """A valid path of a directory, which need not exist."""
    try:
        if isinstance(path, str | os.PathLike):
            directory = Path(path)
            # Each of these calls rejects other invalid names.
            directory.resolve().is_dir()
            return directory
    except (OSError, ValueError):
        pass
    raise ValidationError(subject, field, path, "must be the path of a directory")


def make_directory(path: Path) -> None:
    """Create a directory and its parents with mode 0700; existing directories keep their mode."""
    missing = [directory for directory in (path, *path.parents) if not directory.exists()]
    for directory in reversed(missing):
        directory.mkdir(mode=0o700, exist_ok=True)
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "it is not a directory", str(path))


def open_private(path: Path, flags: int = os.O_RDWR) -> int:
    """Open a file, created with mode 0600 whatever the umask is; an existing file keeps its mode."""
    return os.open(path, flags | os.O_CREAT, 0o600)


def make_private(path: Path) -> None:
    """Create an empty file with mode 0600; an existing file is not opened.

    Closing a file releases all POSIX locks that the process holds on it, including those of SQLite.
    """
    with suppress(FileExistsError):
        os.close(open_private(path, os.O_RDWR | os.O_EXCL))


def expand_home(path: str | os.PathLike[str]) -> Path:
    """The path with ~ expanded; unchanged if there is no such home directory."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def file_name_of(name: str) -> str:
    """A name that is safe as part of a file's name, and different for different names."""
    plain = "".join(sign if sign.isalnum() or sign in "-_" else "_" for sign in name)[:80]
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"

"""Paths as people write them."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from alma.errors import ValidationError


def checked_directory(subject: str, field: str, path: str | os.PathLike[str]) -> Path:
    """A path that a directory may have, whether or not there is one."""
    try:
        if isinstance(path, str | os.PathLike):
            directory = Path(path)
            # Asked so that a name which no file can have is found out here; each finds out others.
            directory.resolve().is_dir()
            return directory
    except (OSError, ValueError):
        pass
    raise ValidationError(subject, field, path, "must be the path of a directory")


def make_folder(path: Path) -> None:
    """Make a folder and what it lies in, for this user alone; folders that exist stay as they are."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "it is no folder", str(path))


def open_private(path: Path, flags: int = os.O_RDWR) -> int:
    """A handle of a file that only this user can read, whatever the umask says; one that exists keeps its mode."""
    return os.open(path, flags | os.O_CREAT, 0o600)


def make_private(path: Path) -> None:
    """Make an empty file that only this user can read, for others to fill; one that exists is not even opened.

    To close a file lets go of the locks that the process has on it, which would be those of SQLite.
    """
    with suppress(FileExistsError):
        os.close(open_private(path, os.O_RDWR | os.O_EXCL))


def at_home(path: str | os.PathLike[str]) -> Path:
    """A path in which ~ is somebody's home, as everywhere else; of nobody's home it is a name like any other."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)

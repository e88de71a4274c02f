"""Paths as people write them."""

from __future__ import annotations

import os
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


def at_home(path: str | os.PathLike[str]) -> Path:
    """A path in which ~ is somebody's home, as everywhere else; of nobody's home it is a name like any other."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)

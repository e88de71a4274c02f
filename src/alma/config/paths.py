"""Paths as people write them."""

from __future__ import annotations

import os
from pathlib import Path


def at_home(path: str | os.PathLike[str]) -> Path:
    """A path in which ~ is somebody's home, as everywhere else; of nobody's home it is a name like any other."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)

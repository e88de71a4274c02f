"""Directories: what lies in one, by names that can be shown."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

_ENTRIES = 100
_LONGEST_NAME = 200


def listing(root: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The directories and files right under the root, hidden ones left out."""
    try:
        with os.scandir(root) as entries:
            seen = [(_shown(entry.name), entry.is_dir(follow_symlinks=False)) for entry in entries]
    except OSError:
        return (), ()
    visible = sorted((name, is_dir) for name, is_dir in seen if not name.startswith("."))
    return _names(visible, True), _names(visible, False)


def _names(entries: Sequence[tuple[str, bool]], directories: bool) -> tuple[str, ...]:
    return tuple(name for name, is_dir in entries if is_dir is directories)[:_ENTRIES]


def _shown(name: str) -> str:
    """A name that can be printed and stored, whatever bytes the file system has for it."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")[:_LONGEST_NAME]

"""Returning memory: what is no longer used goes back to the system, where a C library would keep it."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

_ARENA_MAX = -8
_ARENAS = 2


def return_unused_memory() -> None:
    """Hand freed memory back: loading a model, for example, frees as much as it keeps."""
    library = _library()
    if library is not None:
        library.malloc_trim(0)


def share_heaps() -> None:
    """Let all threads share a few heaps: with one for each of them, most of what they hold is empty."""
    library = _library()
    if library is not None:
        library.mallopt(_ARENA_MAX, _ARENAS)


@cache
def _library() -> Any:
    """The C library, where it is the one that has these calls."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") and hasattr(library, "mallopt") else None

"""Returning memory: what loading took and no longer needs goes back to the system, where the system can take it."""

from __future__ import annotations

import ctypes


def return_unused_memory() -> None:
    """Hand freed memory back; GNU's allocator keeps it otherwise, and loading a model frees as much as it keeps."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return
    trim(0)

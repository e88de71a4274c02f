"""Upkeep: gives memory that nothing uses any more back to the system, which a C library keeps for itself otherwise."""

from __future__ import annotations

import asyncio
import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import anyio.to_thread

_ARENA_MAX = -8
_ARENAS = 2
_EVERY_SECONDS = 10.0


def save_memory() -> None:
    """Let all threads share a few heaps: with one for each of them, most of what they hold is empty."""
    library = _library()
    if library is not None:
        library.mallopt(_ARENA_MAX, _ARENAS)


async def trim_when_idle(answered: Callable[[], int]) -> None:
    """Give memory back whenever nothing was answered for a while, until this is cancelled."""
    library = _library()
    seen, trimmed = -1, -1
    while library is not None:
        await asyncio.sleep(_EVERY_SECONDS)
        now = answered()
        if now == seen and now != trimmed:
            await anyio.to_thread.run_sync(library.malloc_trim, 0)
            trimmed = now
        seen = now


@cache
def _library() -> Any:
    """The C library, where it is the one that has these calls."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") and hasattr(library, "mallopt") else None

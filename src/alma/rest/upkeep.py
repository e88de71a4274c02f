"""Upkeep: a service that has nothing to do holds no more memory than it needs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import anyio.to_thread

from alma.returning import return_unused_memory

_EVERY_SECONDS = 10.0


async def trim_when_idle(answered: Callable[[], int]) -> None:
    """Give memory back whenever nothing was answered for a while, until this is cancelled."""
    seen, trimmed = -1, -1
    while True:
        await asyncio.sleep(_EVERY_SECONDS)
        now = answered()
        if now == seen and now != trimmed:
            await anyio.to_thread.run_sync(return_unused_memory)
            trimmed = now
        seen = now

"""AsyncALMA: the methods of ALMA for asynchronous programs, each run on a worker thread."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from alma.core import ALMA, DEFAULT_PROJECT


class AsyncALMA:
    """The same memory, awaited: `await memory.retrieve(…)`, `await memory.learn(…)`.

    Every method of ALMA is here under its name and with its arguments; its attributes are here as they are.
    """

    def __init__(self, alma: ALMA) -> None:
        self.alma = alma

    @classmethod
    async def from_config(cls, path: str | Path = ".alma/config.yaml") -> Self:
        """The memory that a configuration file describes."""
        return cls(await asyncio.to_thread(ALMA.from_config, path))

    @classmethod
    async def quickstart(
        cls, path: str | Path | None = None, project_id: str = DEFAULT_PROJECT, **settings: Any
    ) -> Self:
        """A memory without a configuration file."""
        return cls(await asyncio.to_thread(ALMA.quickstart, path, project_id, **settings))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.alma, name)
        return awaited(found) if callable(found) and not isinstance(found, type) else found

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.alma.close)


def awaited(method: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """The method as one that is awaited, on a worker thread."""

    @functools.wraps(method)
    async def call(*args: Any, **options: Any) -> Any:
        return await asyncio.to_thread(method, *args, **options)

    return call

"""AsyncClient: the methods of the client for asynchronous programs, each run on a worker thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Self

from alma.aio import awaited
from alma.client.client import Client
from alma.events.event import MemoryEvent


class AsyncClient:
    """The same client, awaited: `await client.retrieve(…)`; it takes the arguments of `Client`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.client = Client(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return awaited(getattr(self.client, name))

    async def events(self, project_id: str | None = None, since: str | None = None) -> AsyncIterator[MemoryEvent]:
        """What happens to memories from now on, or since the event with this id."""
        told = self.client.events(project_id, since)
        while True:
            event = await asyncio.to_thread(next, told, None)
            if event is None:
                return
            yield event

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.client.close)

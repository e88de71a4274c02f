"""AsyncALMA: the methods of ALMA for asynchronous programs, run on worker threads."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from alma.core import ALMA, DEFAULT_PROJECT, checked_memory
from alma.redaction.redactor import DEFAULT_REDACTOR, Redactor


class AsyncALMA:
    """ALMA with awaitable methods: `await memory.retrieve(…)`, `await memory.learn(…)`.

    Every method has the name and the arguments of ALMA's; attributes are the same objects.
    """

    alma: ALMA

    def __init__(self, alma: ALMA) -> None:
        object.__setattr__(self, "alma", checked_memory("async memory", alma))

    @classmethod
    def from_config(
        cls, path: str | Path = ".alma/config.yaml", *, redactor: Redactor | None = DEFAULT_REDACTOR
    ) -> Opening[Self]:
        """The memory that a configuration file describes; awaited, or entered with `async with`."""
        return Opening(cls._made(ALMA.from_config, path, redactor=redactor))

    @classmethod
    def quickstart(
        cls,
        path: str | Path | None = None,
        project_id: str = DEFAULT_PROJECT,
        *,
        redactor: Redactor | None = DEFAULT_REDACTOR,
        storage: str | None = None,
        storage_dir: str | Path | None = None,
        db_name: str | None = None,
        durability: str | None = None,
        expiry_interval_seconds: float | None = None,
        embedding_provider: str | None = None,
        embedding_dim: int | None = None,
        judge: str | None = None,
        vectors: str | None = None,
        graph: str | None = None,
        agents: Mapping[str, Any] | None = None,
        postgres: Mapping[str, Any] | None = None,
        local: Mapping[str, Any] | None = None,
        azure: Mapping[str, Any] | None = None,
        openai: Mapping[str, Any] | None = None,
        llm: Mapping[str, Any] | None = None,
        redis: Mapping[str, Any] | None = None,
        qdrant: Mapping[str, Any] | None = None,
        neo4j: Mapping[str, Any] | None = None,
        sync: Mapping[str, Any] | None = None,
        retrieval: Mapping[str, Any] | None = None,
        learning: Mapping[str, Any] | None = None,
        redaction: Mapping[str, Any] | None = None,
        audit: Mapping[str, Any] | None = None,
        benefit: Mapping[str, Any] | None = None,
        maintenance: Mapping[str, Any] | None = None,
        webhooks: Sequence[Mapping[str, Any]] | None = None,
    ) -> Opening[Self]:
        """A memory without a configuration file; awaited, or entered with `async with`."""
        opened = cls._made(
            ALMA.quickstart,
            path,
            project_id,
            redactor=redactor,
            storage=storage,
            storage_dir=storage_dir,
            db_name=db_name,
            durability=durability,
            expiry_interval_seconds=expiry_interval_seconds,
            embedding_provider=embedding_provider,
            embedding_dim=embedding_dim,
            judge=judge,
            vectors=vectors,
            graph=graph,
            agents=agents,
            postgres=postgres,
            local=local,
            azure=azure,
            openai=openai,
            llm=llm,
            redis=redis,
            qdrant=qdrant,
            neo4j=neo4j,
            sync=sync,
            retrieval=retrieval,
            learning=learning,
            redaction=redaction,
            audit=audit,
            benefit=benefit,
            maintenance=maintenance,
            webhooks=webhooks,
        )
        return Opening(opened)

    @classmethod
    async def _made(cls, opened: Callable[..., ALMA], *args: Any, **options: Any) -> Self:
        handover = _Handover()
        try:
            return cls(await asyncio.to_thread(lambda: handover.bring(opened(*args, **options))))
        except asyncio.CancelledError:
            handover.give_up()
            raise

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.alma, name)
        return awaited(found) if callable(found) and not isinstance(found, type) else found

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.alma, name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.alma)})

    async def for_project(self, project_id: str) -> Self:
        """The memory of another project in the same store; it is open for as long as this one is."""
        return type(self)(await asyncio.to_thread(self.alma.for_project, project_id))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.alma.close)


class _Handover:
    """Passes an opened memory from its thread to the awaiting task, or closes it if that was cancelled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._brought: ALMA | None = None
        self._is_given_up = False

    def bring(self, memory: ALMA) -> ALMA:
        """Pass the memory."""
        with self._lock:
            self._brought = memory
            if self._is_given_up:
                memory.close()
        return memory

    def give_up(self) -> None:
        """The task was cancelled: close the memory, now or when it is open."""
        with self._lock:
            self._is_given_up = True
            if self._brought is not None:
                self._brought.close()


Opened = TypeVar("Opened", bound=AsyncALMA)


class Opening(Coroutine[Any, Any, Opened]):
    """A memory that is being opened: `await` gives it, `async with` gives it and closes it at the end."""

    def __init__(self, opening: Coroutine[Any, Any, Opened]) -> None:
        self._opening = opening
        self._opened: Opened | None = None

    def __await__(self) -> Generator[Any, Any, Opened]:
        return self._opening.__await__()

    def send(self, value: Any) -> Any:
        return self._opening.send(value)

    def throw(self, *error: Any) -> Any:
        return self._opening.throw(*error)

    def close(self) -> None:
        self._opening.close()

    async def __aenter__(self) -> Opened:
        self._opened = await self._opening
        return self._opened

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened is not None:
            await self._opened.__aexit__(kind, error, trace)


def awaited(method: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """The method as one that is awaited, on a worker thread."""

    @functools.wraps(method)
    async def call(*args: Any, **options: Any) -> Any:
        return await asyncio.to_thread(method, *args, **options)

    return call

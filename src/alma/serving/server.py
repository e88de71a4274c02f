"""The server under both applications: connections inside their limits, and a log that cannot be flooded."""

from __future__ import annotations

from functools import partial
from typing import Any

import uvicorn

from alma.serving.connections import Connection, Connections
from alma.serving.limits import Limits
from alma.serving.repeated import Repeated

try:
    import resource
except ImportError:  # Windows has no such limit.
    resource = None  # type: ignore[assignment]

# So many connections are accepted before the first of them is counted, so it must stay small.
_BACKLOG = 128
_OTHER_FILES = 128
_FEWEST = 16
_TICKS_A_SECOND = 10


def server_config(app: Any, limits: Limits, **settings: Any) -> uvicorn.Config:
    """How uvicorn is to serve an application inside the limits."""
    most, backlog = affordable(limits.max_connections)
    return uvicorn.Config(
        app,
        loop="asyncio",
        http=partial(Connection, Connections(limits, most)),  # type: ignore[arg-type]
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        # A client that says for which other it calls could claim to be any of them.
        proxy_headers=False,
        backlog=backlog,
        timeout_keep_alive=limits.keep_alive_seconds,  # type: ignore[arg-type]
        **settings,
    )


def affordable(connections: int) -> tuple[int, int]:
    """How many connections, and how many not yet accepted, the open files of this process allow.

    The soft limit is raised as far as it is needed and allowed. Running out of files would keep the server from
    accepting anything.
    """
    wanted = connections + 2 * _BACKLOG + _OTHER_FILES
    files = wanted if resource is None else _raised(wanted)
    backlog = max(1, min(_BACKLOG, files // 8))
    return min(connections, max(_FEWEST, files - 2 * backlog - min(_OTHER_FILES, files // 4))), backlog


def _raised(wanted: int) -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    target = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
    except (OSError, ValueError):
        return soft
    return target


class Server(uvicorn.Server):
    """Also tells now and then how often a log line was repeated."""

    repeated: Repeated | None = None

    async def on_tick(self, counter: int) -> bool:
        if self.repeated is not None and counter % _TICKS_A_SECOND == 0:
            self.repeated.tell_counts()
        return await super().on_tick(counter)

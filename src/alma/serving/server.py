"""The uvicorn server under both applications: listening, connection limits, and throttling of repeated log lines."""

from __future__ import annotations

import errno
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import uvicorn

from alma.errors import ConfigurationError
from alma.serving.connections import Connection, Connections
from alma.serving.limits import Limits

try:
    import resource
except ImportError:  # Windows has no such limit.
    resource = None  # type: ignore[assignment]

# The backlog is accepted before connections are counted, so it must stay small.
_BACKLOG = 128
_OTHER_FILES = 128
_FEWEST = 16
_TICKS_A_SECOND = 10


def server_config(app: Any, limits: Limits, **settings: Any) -> uvicorn.Config:
    """The uvicorn configuration of an application with these limits."""
    most, backlog = within_open_files(limits.max_connections)
    return uvicorn.Config(
        app,
        loop="asyncio",
        http=partial(Connection, Connections(limits, most)),  # type: ignore[arg-type]
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        # A client could claim any address in X-Forwarded-For.
        proxy_headers=False,
        backlog=backlog,
        timeout_keep_alive=limits.keep_alive_seconds,  # type: ignore[arg-type]
        **settings,
    )


def within_open_files(connections: int) -> tuple[int, int]:
    """The number of connections, and the backlog, that the open file limit of this process allows.

    The soft limit is raised if needed and allowed. Without open files left the server could not accept anything.
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


class Listening(Protocol):
    """Options with an address to listen on."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...


@contextmanager
def listen(options: Listening) -> Iterator[socket.socket]:
    """A socket that listens on the address of the options, or an error that says how to choose another."""
    try:
        found = socket.getaddrinfo(
            options.host.strip("[]"), options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        # With the protocol number asyncio turns Nagle's algorithm off, which would add 40 ms to every response.
        sock = socket.socket(*found[0][:3])
    except OSError as exc:
        raise ConfigurationError(f"cannot listen on host {options.host!r}: {exc.strerror or exc}") from exc
    with sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(found[0][4])
            sock.listen(1024)
        except OSError as exc:
            raise ConfigurationError(_cannot_bind(options, exc)) from exc
        yield sock


def address_of_socket(sock: socket.socket, host: str | None = None) -> str:
    """The http:// address of a listening socket."""
    bound, port = sock.getsockname()[:2]
    name = (host or bound).strip("[]")
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def _cannot_bind(options: Listening, exc: OSError) -> str:
    if exc.errno == errno.EADDRINUSE:
        other = options.port + 1 if options.port < 65535 else 8081
        return (
            f"port {options.port} on {options.host} is in use: stop the other program, or choose another port, "
            f"for example  --port {other}"
        )
    return f"cannot listen on {options.host} port {options.port}: {exc.strerror or exc}"


class Server(uvicorn.Server):
    """Also reports the number of repeated log lines."""

    repeated: LogThrottle | None = None

    async def on_tick(self, counter: int) -> bool:
        if self.repeated is not None and counter % _TICKS_A_SECOND == 0:
            self.repeated.tell_counts()
        return await super().on_tick(counter)


_SECONDS = 10.0
_MOST_KINDS = 1_000
# More internal errors are logged, because they are looked up by request id.
_INTERNAL_ERRORS = 20
_LOGGERS = ("alma.rest", "alma.mcp", "alma.serving", "uvicorn", "asyncio", "mcp", "sse_starlette")

_Kind = tuple[str, int, str, type[BaseException] | None]


@dataclass(slots=True)
class _Window:
    until: float
    left: int
    first: logging.LogRecord
    held_back: int = 0


class LogThrottle(logging.Filter):
    """Logs the first of equal lines and counts the others for ten seconds, so that a client cannot flood the log."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._windows: dict[_Kind, _Window] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is logged; records of other loggers always are."""
        if not any(record.name == name or record.name.startswith(f"{name}.") for name in _LOGGERS):
            return True
        if getattr(record, "is_count", False):
            return True
        kind = _kind_of(record)
        with self._lock:
            window = self._windows.get(kind)
            if window is None and len(self._windows) < _MOST_KINDS:
                is_internal = record.levelno >= logging.ERROR and record.name.startswith("alma.")
                left = _INTERNAL_ERRORS if is_internal else 1
                window = self._windows[kind] = _Window(self._monotonic() + _SECONDS, left, record)
            if window is None:
                return False
            if window.left:
                window.left -= 1
                return True
            window.held_back += 1
            return False

    def tell_counts(self) -> None:
        """Log how often lines were repeated in windows that have ended."""
        moment = self._monotonic()
        with self._lock:
            over = [kind for kind, window in self._windows.items() if window.until <= moment]
            windows = [self._windows.pop(kind) for kind in over]
        for window in windows:
            if window.held_back:
                first = window.first
                logging.getLogger(first.name).log(
                    first.levelno,
                    "%d more within %d s: %s",
                    window.held_back,
                    _SECONDS,
                    first.getMessage().partition("\n")[0],
                    extra={"is_count": True},
                )


@contextmanager
def throttled_logging() -> Iterator[LogThrottle]:
    """Throttle repeated lines of the servers in all root log handlers while a server runs."""
    repeated = LogThrottle()
    root = logging.getLogger().handlers
    handlers = [*root, *([] if root or logging.lastResort is None else [logging.lastResort])]
    for handler in handlers:
        handler.addFilter(repeated)
    try:
        yield repeated
    finally:
        for handler in handlers:
            handler.removeFilter(repeated)


def _kind_of(record: logging.LogRecord) -> _Kind:
    error = record.exc_info[0] if record.exc_info else None
    # Messages of other libraries may contain request data; ours are constant except for the reason.
    text = record.getMessage() if record.name.startswith("alma.") else str(record.msg)
    return record.name, record.levelno, text, error

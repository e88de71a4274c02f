"""HTTP connections with limits and timeouts, enforced before the application sees a request."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Mapping
from enum import Enum
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from alma.clock import new_id
from alma.serving.limits import Limits

_log = logging.getLogger("alma.serving")

_BODY_CHECKED_EVERY_SECONDS = 1.0
_CODES = {400: "invalid_request", 408: "invalid_request", 431: "invalid_request", 503: "unavailable"}


class Stage(Enum):
    """The state of a connection; during WORK the server is responding."""

    HEAD = "head"
    IDLE = "idle"
    BODY = "body"
    WORK = "work"


_CLOSED_FIRST = (Stage.HEAD, Stage.IDLE, Stage.BODY)


class Connection(HttpToolsProtocol):
    """One connection; request heads and bodies have a maximum size and a timeout."""

    def __init__(self, connections: Connections, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._connections = connections
        self._limits = connections.limits
        self._timer: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._refusal: tuple[int, str] | None = None
        self._head_bytes = 0
        self._parsed_bytes = 0
        self._body_bytes = 0
        self._body_since = 0.0
        self.stage = Stage.HEAD

    # ------------------------------------------------------------------ the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self._connections.enter(self):
            self._wait_for_head()
        else:
            self._refuse(503, "too many connections are open: try again later", {"retry-after": "1"})

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timers()
        self._connections.leave(self)
        super().connection_lost(exc)

    def drop(self) -> None:
        """Close the connection to make room for another client."""
        self._stop_timers()
        self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(self._limits.write_seconds, self.drop)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    # ------------------------------------------------------------------ requests

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self.stage is Stage.IDLE:
            self._wait_for_head()
        if self.stage is Stage.HEAD:
            # Data that arrives with the head may be the start of a body.
            if self._head_bytes > self._limits.max_head_bytes:
                self._refuse(*self._too_long())
                return
            self._head_bytes += len(data)
        super().data_received(data)

    def on_message_begin(self) -> None:
        if self.stage is not Stage.HEAD:
            self._wait_for_head()
        self._parsed_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if sum(name == b"host" for name, _ in self.headers) > 1:
            self._refuse_in_parser(400, "a request must have one Host header, and this one has several")
        self._wait_for_body()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._enter(Stage.IDLE if self.cycle.response_complete else Stage.WORK)
        self._head_bytes = 0

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # With pipelined requests, the cycle is the last one.
        if self.stage is Stage.WORK and self.cycle.response_complete:
            self._enter(Stage.IDLE)

    # ------------------------------------------------------------------ stages

    def _enter(self, stage: Stage) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._connections.move(self, stage)

    def _wait_for_head(self) -> None:
        self._enter(Stage.HEAD)
        self._head_bytes = 0
        self._timer = self.loop.call_later(self._limits.head_seconds, self._head_is_late)

    def _wait_for_body(self) -> None:
        self._enter(Stage.BODY)
        self._body_bytes, self._body_since = 0, self.loop.time()
        self._timer = self.loop.call_later(self._body_interval, self._check_body)

    def _head_is_late(self) -> None:
        if self._head_bytes == 0:
            self.drop()
        else:
            self._refuse(408, f"the head of a request must arrive within {self._limits.head_seconds:g} s")

    def _check_body(self) -> None:
        if self.flow.read_paused:
            # The application has paused reading.
            self._body_since += self._body_interval
        seconds = self.loop.time() - self._body_since
        rate = self._limits.body_bytes_per_second
        if seconds >= self._limits.body_seconds:
            self._refuse(408, f"the body did not arrive in time: it must within {self._limits.body_seconds:g} s")
        elif self._body_bytes < rate * (seconds - self._limits.body_grace_seconds):
            self._refuse(408, f"the body did not arrive in time: it must come at {rate:,} bytes a second at least")
        else:
            self._timer = self.loop.call_later(self._body_interval, self._check_body)

    @property
    def _body_interval(self) -> float:
        return min(_BODY_CHECKED_EVERY_SECONDS, self._limits.body_seconds, self._limits.body_grace_seconds)

    def _stop_timers(self) -> None:
        for timer in (self._timer, self._stalled):
            if timer is not None:
                timer.cancel()
        self._timer = self._stalled = None

    # ------------------------------------------------------------------ refusals

    def _count_head(self, size: int) -> None:
        self._parsed_bytes += size
        if self._parsed_bytes > self._limits.max_head_bytes:
            self._refuse_in_parser(*self._too_long())

    def _too_long(self) -> tuple[int, str]:
        return 431, f"the head of a request must have at most {self._limits.max_head_bytes:,} bytes"

    def _refuse_in_parser(self, status: int, message: str) -> None:
        """Stop parsing; the parser's error leads to `send_400_response`."""
        self._refusal = status, message
        raise ValueError(message)

    def send_400_response(self, msg: str) -> None:
        self._refuse(*(self._refusal or (400, msg)))

    def _refuse(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        """Send an error response and close; if a response has started, only close."""
        self._stop_timers()
        _log.warning("a connection was refused or closed: %s", message, extra={"address": self.client})
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if cycle.response_started:
                self.transport.abort()
                return
            # The application sees a disconnect, and what it sends from now on is dropped.
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.write(_answer(status, message, headers or {}))
        self.transport.close()


class Connections:
    """The open connections of a server, by client address."""

    def __init__(self, limits: Limits, most: int | None = None) -> None:
        self.limits = limits
        self._most = limits.max_connections if most is None else most
        self._held: dict[str, _Held] = {}
        self._owners: dict[Connection, str] = {}

    def __len__(self) -> int:
        return len(self._owners)

    def enter(self, connection: Connection) -> bool:
        """Add a connection, closing another one if there are too many; False if none can be closed."""
        address = address_of(connection.client)
        held = self._held.setdefault(address, _Held())
        if len(held) >= self.limits.max_connections_per_address:
            has_room = self._close_one(held)
        elif len(self._owners) >= self._most:
            has_room = self._close_one(max(self._held.values(), key=len))
        else:
            has_room = True
        if has_room:
            held = self._held.setdefault(address, held)
            held.add(connection)
            self._owners[connection] = address
        elif not len(held):
            del self._held[address]
        return has_room

    def move(self, connection: Connection, stage: Stage) -> None:
        """Record what a connection waits for."""
        address = self._owners.get(connection)
        if address is None:
            connection.stage = stage
            return
        held = self._held[address]
        held.remove(connection)
        connection.stage = stage
        held.add(connection)

    def leave(self, connection: Connection) -> None:
        """Remove a closed connection."""
        address = self._owners.pop(connection, None)
        if address is None:
            return
        held = self._held[address]
        held.remove(connection)
        if not len(held):
            del self._held[address]

    def _close_one(self, held: _Held) -> bool:
        victim = held.longest_waiting()
        if victim is None:
            return False
        _log.warning("a connection was closed for a new one: too many are open", extra={"address": victim.client})
        self.leave(victim)
        victim.drop()
        return True


class _Held:
    """The connections of one address by stage, in order of arrival."""

    def __init__(self) -> None:
        self._stages: dict[Stage, OrderedDict[Connection, None]] = {stage: OrderedDict() for stage in Stage}

    def __len__(self) -> int:
        return sum(map(len, self._stages.values()))

    def add(self, connection: Connection) -> None:
        self._stages[connection.stage][connection] = None

    def remove(self, connection: Connection) -> None:
        del self._stages[connection.stage][connection]

    def longest_waiting(self) -> Connection | None:
        """The connection to close first."""
        return next((connection for stage in _CLOSED_FIRST for connection in self._stages[stage]), None)


def address_of(client: tuple[str, int] | None) -> str:
    """The address that connections are counted by; for IPv6 the /64 network, which belongs to one customer."""
    try:
        address = ip_address(client[0].partition("%")[0] if client else "")
    except ValueError:
        return "unknown"
    if not isinstance(address, IPv6Address):
        return str(address)
    mapped = address.ipv4_mapped
    return str(mapped or ip_network((address, 64), strict=False))


def _answer(status: int, message: str, headers: Mapping[str, str]) -> bytes:
    said = {"code": _CODES[status], "message": message, "request_id": new_id()}
    body = json.dumps({"error": said}).encode()
    lines = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "content-type: application/json",
        "x-content-type-options: nosniff",
        "cache-control: no-store",
        "connection: close",
        f"content-length: {len(body)}",
        *(f"{name}: {value}" for name, value in headers.items()),
    )
    return "\r\n".join((*lines, "", "")).encode() + body

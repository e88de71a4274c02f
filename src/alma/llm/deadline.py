"""One deadline for a whole answer: the time-out that clients know begins anew with every piece that comes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

# What a client tells of a connection that it made, the second where the connection is encrypted.
_CONNECTED = ("connect_tcp.complete", "start_tls.complete")


def timed(client: type) -> dict[str, list[Callable[[Any], None]]]:
    """The event hooks for this class of HTTP client that hold its time-out to read for all of an answer.

    An answer begins with its status and headers, of which a client tells nothing until they are complete; so it is the
    connection that looks at the clock, whenever it is read from. Which release of httpx a client is built on differs
    from SDK to SDK.
    """
    names = (base.__module__.partition(".")[0] for base in client.__mro__ if base.__name__ == "Client")
    httpx: Any = import_module(next(names))
    # A connection serves one request after another, each in the thread that asks.
    asking = threading.local()

    def begin(request: Any) -> None:
        seconds = request.extensions.get("timeout", {}).get("read")
        asking.deadline = None if seconds is None else time.monotonic() + seconds
        request.extensions["trace"] = watch

    def watch(event: str, told: dict[str, Any]) -> None:
        if event.endswith(_CONNECTED):
            hold(told["return_value"])

    def hold(connection: Any) -> None:
        read = connection.read

        def read_in_time(most_bytes: int, timeout: float | None = None) -> bytes:
            deadline: float | None = getattr(asking, "deadline", None)
            left = timeout if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise httpx.ReadTimeout("timed out")
            piece: bytes = read(most_bytes, left)
            return piece

        connection.read = read_in_time

    return {"request": [begin]}

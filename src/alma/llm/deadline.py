"""One deadline for a whole answer: the time-out that clients know begins anew with every piece that comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

_BEGAN = "alma_began"


def timed(client: type) -> dict[str, list[Callable[[Any], None]]]:
    """The event hooks for this class of HTTP client that hold its time-out to read for all of an answer.

    Which release of httpx a client is built on differs from SDK to SDK.
    """
    names = (base.__module__.partition(".")[0] for base in client.__mro__ if base.__name__ == "Client")
    httpx: Any = import_module(next(names))

    class Timed(httpx.SyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Any, deadline: float) -> None:
            self._stream = stream
            self._deadline = deadline

        def __iter__(self) -> Iterator[bytes]:
            for piece in self._stream:
                if time.monotonic() > self._deadline:
                    raise httpx.ReadTimeout("timed out")
                yield piece

        def close(self) -> None:
            self._stream.close()

    def begin(request: Any) -> None:
        request.extensions[_BEGAN] = time.monotonic()

    def limit(response: Any) -> None:
        extensions = response.request.extensions
        seconds = extensions.get("timeout", {}).get("read")
        if seconds is not None:
            response.stream = Timed(response.stream, extensions[_BEGAN] + seconds)

    return {"request": [begin], "response": [limit]}

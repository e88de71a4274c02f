"""Opening an HTTP address: without redirects, and with one deadline for the whole answer."""

from __future__ import annotations

import http.client
import io
import socket
import time
import urllib.request
from functools import partial
from typing import Any


def read_answer(request: urllib.request.Request, timeout_seconds: float) -> bytes:
    """All that is answered; a TimeoutError if that takes longer, however steadily it comes."""
    deadline = time.monotonic() + timeout_seconds
    opener = urllib.request.build_opener(_NoRedirects(), _Http(deadline), _Https(deadline))
    with opener.open(request, timeout=timeout_seconds) as response:
        content: bytes = response.read()
    return content


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirected request would take the key to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _Http(urllib.request.HTTPHandler):
    def __init__(self, deadline: float) -> None:
        super().__init__()
        self._deadline = deadline

    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(_connection, http.client.HTTPConnection, self._deadline), request)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, deadline: float) -> None:
        super().__init__()
        self._deadline = deadline

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(_connection, http.client.HTTPSConnection, self._deadline), request)


def _connection(made: Any, deadline: float, host: str, **options: Any) -> http.client.HTTPConnection:
    connection: http.client.HTTPConnection = made(host, **options)
    connection.response_class = partial(_Response, deadline)  # type: ignore[assignment]
    return connection


class _Response(http.client.HTTPResponse):
    def __init__(self, deadline: float, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp = io.BufferedReader(_Timed(self.fp.detach(), sock, deadline))


class _Timed(io.RawIOBase):
    """What comes over a socket until the deadline: a time-out of the socket's own begins anew with every byte."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, deadline: float) -> None:
        super().__init__()
        self._raw = raw
        self._sock = sock
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._sock.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()

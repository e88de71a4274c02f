"""HTTP client on urllib: no redirects, and one deadline for the whole response."""

from __future__ import annotations

import http.client
import io
import socket
import time
import urllib.request
from collections.abc import Callable
from functools import partial
from typing import Any

Peer = Callable[[str], None]


def open_url(
    request: urllib.request.Request,
    timeout_seconds: float,
    check_peer: Peer | None = None,
    *,
    use_proxies: bool = True,
) -> http.client.HTTPResponse:
    """Open the URL; reading the response raises TimeoutError when all of it takes longer than the timeout.

    `check_peer` is called with the resolved IP address before anything is sent, and may raise. `use_proxies` honours
    the proxy variables of the environment.
    """
    connect = partial(_connection, time.monotonic() + timeout_seconds, check_peer)
    proxies = urllib.request.ProxyHandler(None if use_proxies else {})
    opener = urllib.request.build_opener(proxies, _NoRedirects(), _Http(connect), _Https(connect))
    response: http.client.HTTPResponse = opener.open(request, timeout=timeout_seconds)
    return response


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, which would send API keys or signed bodies to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _Http(urllib.request.HTTPHandler):
    def __init__(self, connect: Callable[..., Any]) -> None:
        super().__init__()
        self._connect = connect

    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(self._connect, http.client.HTTPConnection), request)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, connect: Callable[..., Any]) -> None:
        super().__init__()
        self._connect = connect

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(self._connect, http.client.HTTPSConnection), request)


def _connection(
    deadline: float, check_peer: Peer | None, kind: type[http.client.HTTPConnection], host: str, **options: Any
) -> http.client.HTTPConnection:
    class Connection(kind):  # type: ignore[misc, valid-type]
        response_class = partial(_Response, deadline)

        def connect(self) -> None:
            super().connect()
            if check_peer is not None:
                check_peer(self.sock.getpeername()[0])

    connection: http.client.HTTPConnection = Connection(host, **options)
    return connection


class _Response(http.client.HTTPResponse):
    def __init__(self, deadline: float, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp = io.BufferedReader(_DeadlineReader(self.fp.detach(), sock, deadline))


class _DeadlineReader(io.RawIOBase):
    """Reads from a socket until the deadline; the socket's own timeout restarts with every byte."""

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

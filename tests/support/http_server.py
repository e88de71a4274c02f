"""A small HTTP server that answers as it is told, and misbehaves when told to."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self


@dataclass
class Reply:
    """What the server answers."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    # Which part comes a byte at a time, and never to its end.
    drip: Literal["status", "body", "nothing"] = "nothing"


@dataclass(frozen=True)
class Received:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class LocalServer:
    """Serves on a free port inside of a with statement; its handlers know it as `owner`."""

    def __init__(self, handler: type[SilentHandler]) -> None:
        self.released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (handler,), {"owner": self}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"


class SilentHandler(BaseHTTPRequestHandler):
    """A handler that logs nothing."""

    owner: LocalServer

    def log_message(self, *_: object) -> None:
        """Be silent."""

    def drip(self, first: bytes) -> None:
        """Begin an answer and go on with a byte at a time until the client closes the connection."""
        self.wfile.write(first)
        while not self.owner.released.wait(0.05):
            try:
                self.wfile.write(b" ")
            except OSError:
                return


class ScriptedServer(LocalServer, ABC):
    """Replies in `script` come first, then those of `respond`."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.script: deque[Reply] = deque()
        self.received: list[Received] = []

    @abstractmethod
    def respond(self, request: Received) -> Reply:
        """The proper answer."""

    def answer(self, request: Received) -> Reply:
        return self.script.popleft() if self.script else self.respond(request)


class _Handler(SilentHandler):
    owner: ScriptedServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = Received(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        self.owner.received.append(request)
        reply = self.owner.answer(request)
        if reply.hang:
            self.owner.released.wait(10)
            return
        if reply.drip == "status":
            self.drip(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            return
        self.send_response(reply.status)
        length = len(reply.body) if reply.drip == "nothing" else 1_000_000
        usual = {"Content-Length": str(length), "Content-Type": "application/json"}
        for name, value in {**usual, **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if reply.drip == "body":
            self.drip(b" ")
            return
        self.wfile.write(reply.body)


def error(status: int, message: str, headers: dict[str, str] | None = None, code: str | None = None) -> Reply:
    body = json.dumps({"error": {"message": message, "code": code}}).encode()
    return Reply(status, body, headers or {})

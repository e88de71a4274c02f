"""A small server that receives webhooks, and misbehaves when told to."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Delivery:
    """A request as it came; the names of headers in small letters."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Answer:
    """What the server answers once."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False


class WebhookServer:
    """Accepts whatever comes; answers in `script` come before that."""

    def __init__(self) -> None:
        self.script: deque[Answer] = deque()
        self.received: list[Delivery] = []
        self.released = threading.Event()
        handler = type("Handler", (_Handler,), {"owner": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> WebhookServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/hook"


class _Handler(BaseHTTPRequestHandler):
    owner: WebhookServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.owner.received.append(Delivery(self.path, headers, body))
        answer = self.owner.script.popleft() if self.owner.script else Answer(204)
        if answer.hang:
            self.owner.released.wait(10)
            return
        self.send_response(answer.status)
        for name, value in {"Content-Length": "0", **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Be silent."""

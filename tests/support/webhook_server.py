"""A small server that receives webhooks, and misbehaves when told to."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from tests.support.http_server import LocalServer, SilentHandler


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
    # Whether it comes a byte at a time, and never to its end.
    drip: bool = False


class WebhookServer(LocalServer):
    """Accepts whatever comes; answers in `script` come before that."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.script: deque[Answer] = deque()
        self.received: list[Delivery] = []

    @property
    def url(self) -> str:
        return f"{super().url}/hook"


class _Handler(SilentHandler):
    owner: WebhookServer

    def do_POST(self) -> None:  # noqa: N802 - http.server calls it by this name
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.owner.received.append(Delivery(self.path, headers, body))
        answer = self.owner.script.popleft() if self.owner.script else Answer(204)
        if answer.hang:
            self.owner.released.wait(10)
            return
        if answer.drip:
            self.drip(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            return
        self.send_response(answer.status)
        for name, value in {"Content-Length": "0", **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()

"""A small server that speaks OpenAI's embeddings protocol, and misbehaves when told to."""

from __future__ import annotations

import json
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from alma.embeddings.mock import MockEmbedder

KEY = "sk-the-right-key"


@dataclass
class Reply:
    """What the server does once instead of answering properly."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False


@dataclass(frozen=True)
class Received:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class EmbeddingServer:
    """Answers with vectors made from the texts, last text first; replies in `script` come before that."""

    def __init__(self, dimension: int = 1536) -> None:
        self.dimension = dimension
        self.script: deque[Reply] = deque()
        self.received: list[Received] = []
        self.released = threading.Event()
        handler = type("Handler", (_Handler,), {"owner": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> EmbeddingServer:
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

    def answer(self, request: Received) -> Reply:
        if self.script:
            return self.script.popleft()
        if KEY not in (
            request.headers.get("api-key"),
            request.headers.get("authorization", "").removeprefix("Bearer "),
        ):
            return error(401, "Incorrect API key provided: sk-t***key")
        if "deployments/nobody" in request.path or request.body.get("model") == "nobody":
            return error(404, "The model does not exist")
        texts = request.body["input"]
        if len(texts) > 2_048 or any(not text.strip() or len(text.encode()) > 8_191 for text in texts):
            return error(400, "the input is too long")
        dimension = request.body.get("dimensions", self.dimension)
        vectors = [list(MockEmbedder(dimension).encode(text)) for text in (text[:900] for text in texts)]
        data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
        return Reply(body=json.dumps({"object": "list", "data": data[::-1]}).encode())


class _Handler(BaseHTTPRequestHandler):
    owner: EmbeddingServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = Received(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        self.owner.received.append(request)
        reply = self.owner.answer(request)
        if reply.hang:
            self.owner.released.wait(10)
            return
        self.send_response(reply.status)
        for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, *_: object) -> None:
        """Be silent."""


def error(status: int, message: str, headers: dict[str, str] | None = None, code: str | None = None) -> Reply:
    body = json.dumps({"error": {"message": message, "code": code}}).encode()
    return Reply(status, body, headers or {})

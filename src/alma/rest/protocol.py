"""The protocol: HTTP as it comes over the wire, with limits on what comes before a request can be looked at."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from alma.clock import new_id

_MOST_HEAD_BYTES = 128 * 1024
_HEAD_SECONDS = 30.0


class Protocol(HttpToolsProtocol):
    """Answers what is no HTTP in the shape of every other error; a head that is endless or never ends is cut off."""

    _head_bytes = 0
    _head_is_read = False
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._patience = self.loop.call_later(_HEAD_SECONDS, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._head_is_read:
            self._head_bytes += len(data)
            # What came in one piece with the head may be the beginning of a body.
            if self._head_bytes > _MOST_HEAD_BYTES + len(data):
                self.send_400_response(f"the head of a request must have at most {_MOST_HEAD_BYTES:,} bytes")
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        self._head_bytes, self._head_is_read = 0, False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head_is_read = True
        self._stop_waiting()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        said: Any = {"code": "invalid_request", "message": msg, "request_id": new_id()}
        body = json.dumps({"error": said}).encode()
        head = (
            "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nx-content-type-options: nosniff\r\n"
            f"cache-control: no-store\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _give_up(self) -> None:
        self._patience = None
        if not self.transport.is_closing():
            self.transport.close()

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

"""The stdio transport: one client, served until it closes its end."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from itertools import chain

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter
from pydantic import ValidationError

from alma.mcp.handshake import INVALID_REQUEST, PARSE_ERROR, Handshake, StdioTransport, error_message
from alma.mcp.server import Options
from alma.mcp.service import Service

FINISH_SECONDS = 10.0
"""How long running calls may continue after the client has closed its end."""

# The client, the library or the event loop is gone.
_DISCONNECTED = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, CancelledError, RuntimeError)


def serve(
    options: Options, transport: StdioTransport, first_lines: Sequence[bytes], handshake: Handshake | None
) -> int:
    """Serve the client that sent these first messages and return the exit code."""
    with Service(options) as service:
        anyio.run(Connection(service.server(), transport, handshake).run, first_lines)
    return 0


class Connection:
    """Passes messages between the transport and the MCP library."""

    def __init__(self, server: Server, transport: StdioTransport, handshake: Handshake | None) -> None:
        self._server = server
        self._transport = transport
        # The library responds to this request as well; the client already has the response.
        self._answered = None if handshake is None else handshake.id
        self._unanswered: set[str | int] = set()
        self._all_answered = anyio.Event()
        self._to_library, self._from_client = _stream()
        self._to_client, self._from_library = _stream()

    async def run(self, first_lines: Sequence[bytes]) -> None:
        """Serve until the client disconnects or a signal."""
        loop = asyncio.get_running_loop()
        async with anyio.create_task_group() as tasks:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, tasks.cancel_scope.cancel)
            tasks.start_soon(self._write, tasks.cancel_scope)
            # A thread that reads stdin cannot be interrupted; as a daemon it does not keep the process alive.
            threading.Thread(target=self._read, args=(first_lines, loop), daemon=True).start()
            await self._server.run(self._from_client, self._to_client, self._server.create_initialization_options())
            await self._to_client.aclose()

    # ------------------------------------------------------------------ from the client

    def _read(self, first_lines: Sequence[bytes], loop: asyncio.AbstractEventLoop) -> None:
        def wait_for(step: Callable[..., object], *arguments: object) -> None:
            asyncio.run_coroutine_threadsafe(step(*arguments), loop).result()  # type: ignore[arg-type]

        with suppress(*_DISCONNECTED):
            for line in chain(first_lines, iter(self._transport.next_message, None)):
                message = _parse(line)
                if isinstance(message, bytes):
                    self._transport.write(message)
                else:
                    wait_for(self._take, message)
        with suppress(*_DISCONNECTED):
            wait_for(self._end)

    async def _take(self, message: SessionMessage) -> None:
        match message.message:
            case JSONRPCRequest(id=number):
                self._unanswered.add(number)
            case JSONRPCNotification(method="notifications/cancelled", params={"requestId": str() | int() as number}):
                self._unanswered.discard(number)
        await self._to_library.send(message)

    async def _end(self) -> None:
        with anyio.move_on_after(FINISH_SECONDS):
            while self._unanswered:
                await self._all_answered.wait()
        await self._to_library.aclose()

    # ------------------------------------------------------------------ to the client

    async def _write(self, serving: anyio.CancelScope) -> None:
        async with self._from_library:
            try:
                async for message in self._from_library:
                    await self._send(message)
            except OSError:
                # The client has closed its end.
                serving.cancel()

    async def _send(self, session_message: SessionMessage) -> None:
        message = session_message.message
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            if message.id is not None and message.id == self._answered:
                self._answered = None
            else:
                await self._put(message.model_dump_json(by_alias=True, exclude_unset=True))
            if message.id is not None:
                self._unanswered.discard(message.id)
            if not self._unanswered:
                self._all_answered.set()
                self._all_answered = anyio.Event()
        else:
            await self._put(message.model_dump_json(by_alias=True, exclude_unset=True))

    async def _put(self, text: str) -> None:
        # A client that does not read blocks this thread only.
        await anyio.to_thread.run_sync(self._transport.write, text.encode() + b"\n", abandon_on_cancel=True)


def _stream() -> tuple[MemoryObjectSendStream[SessionMessage], MemoryObjectReceiveStream[SessionMessage]]:
    return anyio.create_memory_object_stream[SessionMessage](0)


def _parse(line: bytes) -> SessionMessage | bytes:
    """A line as a message, or the error response to an invalid line."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError:
        pass
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return error_message(PARSE_ERROR, "this line is not JSON")
    if isinstance(found, list):
        return error_message(INVALID_REQUEST, "JSON-RPC batches are not supported: send messages one by one")
    return error_message(INVALID_REQUEST, "this is not a JSON-RPC 2.0 message")

"""Standard input and output: one client, served until it closes its end."""

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

from alma.mcp.handshake import Greeted
from alma.mcp.server import Options
from alma.mcp.service import Service
from alma.mcp.transport import INVALID_REQUEST, PARSE_ERROR, Wire, refusal

FINISH_SECONDS = 10.0
"""How long calls that are at work may go on after the client has closed its end, to give it their answers."""

# The client is gone, or the library, or the loop that both are served in.
_NOBODY_LISTENS = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, CancelledError, RuntimeError)


def serve(options: Options, wire: Wire, begun: Sequence[bytes], opening: Greeted | None) -> int:
    """Serve the client whose first messages these are; returns the exit code."""
    with Service(options) as service:
        anyio.run(Connection(service.server(), wire, opening).run, begun)
    return 0


class Connection:
    """Carries messages between the wire and the library that understands them."""

    def __init__(self, server: Server, wire: Wire, opening: Greeted | None) -> None:
        self._server = server
        self._wire = wire
        # The library answers this one as well, and the client has its answer.
        self._answered = None if opening is None else opening.id
        self._unanswered: set[str | int] = set()
        self._all_answered = anyio.Event()
        self._to_library, self._from_client = _stream()
        self._to_client, self._from_library = _stream()

    async def run(self, begun: Sequence[bytes]) -> None:
        """Serve until the client is gone or a signal says so."""
        loop = asyncio.get_running_loop()
        async with anyio.create_task_group() as tasks:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, tasks.cancel_scope.cancel)
            tasks.start_soon(self._write, tasks.cancel_scope)
            # Nobody can interrupt a thread that waits for a client: as a daemon it does not hold the process up.
            threading.Thread(target=self._read, args=(begun, loop), daemon=True).start()
            await self._server.run(self._from_client, self._to_client, self._server.create_initialization_options())
            await self._to_client.aclose()

    # ------------------------------------------------------------------ from the client

    def _read(self, begun: Sequence[bytes], loop: asyncio.AbstractEventLoop) -> None:
        def wait_for(step: Callable[..., object], *arguments: object) -> None:
            asyncio.run_coroutine_threadsafe(step(*arguments), loop).result()  # type: ignore[arg-type]

        with suppress(*_NOBODY_LISTENS):
            for line in chain(begun, iter(self._wire.next_message, None)):
                message = _understood(line)
                if isinstance(message, bytes):
                    self._wire.write(message)
                else:
                    wait_for(self._take, message)
        with suppress(*_NOBODY_LISTENS):
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
                # Nobody reads any more.
                serving.cancel()

    async def _send(self, message: SessionMessage) -> None:
        said = message.message
        if isinstance(said, JSONRPCResponse | JSONRPCError):
            if said.id is not None and said.id == self._answered:
                self._answered = None
            else:
                await self._put(said.model_dump_json(by_alias=True, exclude_unset=True))
            if said.id is not None:
                self._unanswered.discard(said.id)
            if not self._unanswered:
                self._all_answered.set()
                self._all_answered = anyio.Event()
        else:
            await self._put(said.model_dump_json(by_alias=True, exclude_unset=True))

    async def _put(self, text: str) -> None:
        # A client that does not read holds up a thread, and not the others' answers to its pings.
        await anyio.to_thread.run_sync(self._wire.write, text.encode() + b"\n", abandon_on_cancel=True)


def _stream() -> tuple[MemoryObjectSendStream[SessionMessage], MemoryObjectReceiveStream[SessionMessage]]:
    return anyio.create_memory_object_stream[SessionMessage](0)


def _understood(line: bytes) -> SessionMessage | bytes:
    """A line as a message, or what to answer when it is none."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError:
        pass
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return refusal(PARSE_ERROR, "this line is no JSON")
    if isinstance(found, list):
        return refusal(INVALID_REQUEST, "several messages at once are not understood: send them one by one")
    return refusal(INVALID_REQUEST, "this is no JSON-RPC 2.0 message")

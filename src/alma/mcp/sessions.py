"""Sessions of the protocol over HTTP: each belongs to the key that opened it, and one key has only so many."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers
from starlette.responses import JSONResponse

from alma.mcp.greeting import HANDSHAKES
from alma.mcp.service import GRANT
from alma.serving.limits import Limits

if TYPE_CHECKING:
    from alma.operations.access import Grant

Asgi = Callable[[Any, Any, Any], Awaitable[None]]

_ID = "mcp-session-id"
_VERSION = "mcp-protocol-version"


class Sessions:
    """Middleware that ends the session of a key that was idle longest when the key has opened one too many.

    The library compares the user of each request with that of the session's first, so a session is of use to its key
    alone. Without keys all clients share one allowance.
    """

    def __init__(self, app: Asgi, limits: Limits, grants_required: bool = False) -> None:
        self._app = app
        self._most = limits.max_sessions_per_key
        self._grants_required = grants_required
        # The requests that each session is busy with, the one used longest ago first.
        self._open: defaultdict[str | None, OrderedDict[str, int]] = defaultdict(OrderedDict)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        grant: Grant | None = scope.get(GRANT)
        if grant is None and self._grants_required:
            await unauthenticated()(scope, receive, send)
            return
        key_id = None if grant is None else grant.key_id
        if key_id is not None:
            scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=key_id, scopes=[]))
        named = Headers(scope=scope).get(_ID)
        if named is None:
            await self._opened(key_id, scope, receive, send)
        else:
            await self._used(key_id, named, scope, receive, send)

    async def _used(self, key_id: str | None, session_id: str, scope: Any, receive: Any, send: Any) -> None:
        """A request in a session that is open; one that is gone, or another key's, is not counted."""
        sessions = self._open[key_id]
        status = 0

        async def sent(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        if session_id in sessions:
            sessions[session_id] += 1
        try:
            await self._app(scope, receive, sent)
        finally:
            if session_id in sessions:
                sessions[session_id] -= 1
                sessions.move_to_end(session_id)
            if status == 404 or (scope["method"] == "DELETE" and status == 200):
                sessions.pop(session_id, None)

    async def _opened(self, key_id: str | None, scope: Any, receive: Any, send: Any) -> None:
        """A request that may open a session."""
        sessions = self._open[key_id]
        version = Headers(scope=scope).get(_VERSION)
        if (version is None or version in HANDSHAKES) and len(sessions) >= self._most and all(sessions.values()):
            await self._too_many()(scope, receive, send)
            return
        opened: list[str] = []

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                session_id = Headers(raw=message["headers"]).get(_ID)
                if session_id is not None:
                    opened.append(session_id)
                    sessions[session_id] = 1
            await send(message)

        try:
            await self._app(scope, receive, sent)
        finally:
            for session_id in opened:
                if session_id in sessions:
                    sessions[session_id] -= 1
        while len(sessions) > self._most:
            oldest = next((each for each, busy in sessions.items() if not busy and each not in opened), None)
            if oldest is None:
                return
            del sessions[oldest]
            await self._end(oldest, scope)

    async def _end(self, session_id: str, scope: Any) -> None:
        """End a session as its client would."""
        kept = [(name, value) for name, value in scope["headers"] if name == b"host"]
        ending = {**scope, "method": "DELETE", "headers": [*kept, (_ID.encode(), session_id.encode())]}

        async def nothing() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def unheard(_: Any) -> None:
            return None

        await self._app(ending, nothing, unheard)

    def _too_many(self) -> JSONResponse:
        said = f"all {self._most} sessions of this key are in use: end one of them first, with DELETE"
        return JSONResponse({"error": "too_many_sessions", "error_description": said}, 429, {"Retry-After": "5"})


def unauthenticated() -> JSONResponse:
    """The answer to a request that needs a key and has none that is good."""
    said = {"error": "invalid_token", "error_description": "this needs a key: Authorization: Bearer alma_…"}
    return JSONResponse(said, 401, {"WWW-Authenticate": 'Bearer error="invalid_token"'})

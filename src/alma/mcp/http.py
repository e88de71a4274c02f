"""Streamable HTTP transport: authentication with API keys, sessions and their limits."""

from __future__ import annotations

import logging
import signal
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from alma.access import ApiKeys
from alma.errors import ALMAError, ConfigurationError
from alma.mcp.handshake import HANDSHAKES, LONGEST_MESSAGE
from alma.mcp.server import DEFAULT_TOKENS, Options
from alma.mcp.service import FAILURE, GRANT, Service
from alma.serving.connections import address_of
from alma.serving.limits import WRONG_KEYS_AT_ONCE, WRONG_KEYS_PER_SECOND, Limits, RateLimit, is_loopback
from alma.serving.server import Server, address_of_socket, listen, server_config, throttled_logging

if TYPE_CHECKING:
    from alma.core import ALMA
if TYPE_CHECKING:
    from alma.operations.access import Grant


PATH = "/mcp"
DEFAULT_LIMITS = Limits()
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_SHUTDOWN_SECONDS = 2
_KEYS_WITH_ALL_SESSIONS = 10

_log = logging.getLogger("alma.mcp")

Asgi = Callable[[Any, Any, Any], Awaitable[None]]


def serve(options: Options) -> int:
    """Serve until a signal and return the exit code."""
    with Service(options) as service:
        server = create_server(service)
        with listen(options) as listener, throttled_logging() as server.repeated:
            sys.stderr.write(f"alma mcp: serving at {address_of_socket(listener)}{PATH}\n")
            sys.stderr.flush()
            for number in (signal.SIGTERM, signal.SIGINT):
                # uvicorn handles these signals and raises them again afterwards.
                signal.signal(number, lambda *_: None)
            server.run(sockets=[listener])
    return 0


def create_server(service: Service) -> Server:
    """An HTTP server with authentication where it is needed; `run(sockets=[…])` serves until `should_exit`."""
    options = service.options
    beyond = not is_loopback(options.host)
    keys = Authentication(service, required=beyond)
    if beyond:
        keys.check_that_there_are_some()
    app = keys.guard(streamable_app(service, options.allowed_hosts, beyond))
    return Server(server_config(app, options, timeout_graceful_shutdown=_SHUTDOWN_SECONDS))


def asgi_app(
    alma: ALMA, toolset: str = "small", max_tokens: int = DEFAULT_TOKENS, limits: Limits = DEFAULT_LIMITS
) -> Starlette:
    """The MCP endpoint on an open memory, for a service that checks hosts, origins and keys itself.

    The service puts the caller's grant into the ASGI scope under `alma.grant`; requests without one are refused. It
    runs the application's lifespan and closes the memory afterwards.
    """
    service = Service(Options(toolset=toolset, max_tokens=max_tokens), alma)
    app = _app(service, TransportSecuritySettings(enable_dns_rebinding_protection=False), limits)
    app.add_middleware(SessionLimit, limits=limits, grants_required=True)
    return app


def streamable_app(service: Service, allowed_hosts: tuple[str, ...] = (), beyond_loopback: bool = False) -> Starlette:
    """The MCP endpoint at /mcp, and /health.

    On loopback, Host and Origin headers are checked against an allow list, which prevents DNS rebinding. On other
    addresses API keys protect the server, and the list is only enforced if it is given.
    """
    names = (*allowed_hosts, *_LOOPBACK_NAMES)
    every_port = [name if name.endswith(":*") else f"{name}:*" for name in names]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=not beyond_loopback or bool(allowed_hosts),
        allowed_hosts=[*names, *every_port],
        allowed_origins=[f"{scheme}://{name}" for scheme in ("http", "https") for name in (*names, *every_port)],
    )
    app = _app(service, security, service.options)
    app.add_middleware(SessionLimit, limits=service.options)
    return app


def _app(service: Service, security: TransportSecuritySettings, limits: Limits) -> Starlette:
    return service.server().streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=LONGEST_MESSAGE,
        transport_security=security,
        session_idle_timeout=limits.session_idle_seconds,
        max_sessions=_KEYS_WITH_ALL_SESSIONS * limits.max_sessions_per_key,
        custom_starlette_routes=[Route("/health", _health)],
    )


class Authentication:
    """Authentication: the grant of a request's API key, and 401 where a key is required."""

    def __init__(self, service: Service, required: bool) -> None:
        self._service = service
        self._required = required
        self._failures = RateLimit(WRONG_KEYS_PER_SECOND, WRONG_KEYS_AT_ONCE)

    def check_that_there_are_some(self) -> None:
        """Refuse to listen on a network address without any API key."""
        if not self._keys.any_exist():
            raise ConfigurationError(
                "an address other than loopback needs an API key, and there is none: "
                "make one with  alma keys create, or listen on 127.0.0.1"
            )

    def guard(self, app: Asgi) -> Asgi:
        """The application behind authentication."""

        async def guarded(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http" or scope["path"] == "/health":
                await app(scope, receive, send)
                return
            try:
                refused = await anyio.to_thread.run_sync(self._admit, scope)
                if refused is not None and _bearer(Request(scope)) is not None:
                    refused = self._throttled(scope) or refused
            except ALMAError as exc:
                refused = JSONResponse({"error": "unavailable", "error_description": str(exc)}, 503)
            await (app if refused is None else refused)(scope, receive, send)

        return guarded

    def _admit(self, scope: Any) -> JSONResponse | None:
        """Store the grant in the ASGI scope, or return the refusal."""
        token = _bearer(Request(scope))
        if token is None and not self._required and self._may_be_anybody(scope):
            return None
        grant = None if token is None else self._keys.verify(token)
        if grant is None:
            return unauthenticated()
        scope[GRANT] = grant
        return None

    def _throttled(self, scope: Any) -> JSONResponse | None:
        """The response to an address that tried too many wrong keys."""
        seconds = self._failures.take(address_of(scope.get("client")))
        if seconds is None:
            return None
        said = f"too many wrong keys: try again in {seconds} s"
        return JSONResponse(
            {"error": "rate_limit_exceeded", "error_description": said}, 429, {"Retry-After": str(seconds)}
        )

    def _may_be_anybody(self, scope: Any) -> bool:
        """Whether the store has no API keys; once it has one, loopback needs a key as well."""
        try:
            return not self._keys.any_exist()
        except ALMAError as exc:
            # The store is unavailable: every call of this request gets its error.
            scope[FAILURE] = exc
            return True

    @cached_property
    def _keys(self) -> ApiKeys:
        return ApiKeys(self._service.opened.alma().storage)


def _bearer(request: Request) -> str | None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


async def _health(_: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})


_ID = "mcp-session-id"
_VERSION = "mcp-protocol-version"


class SessionLimit:
    """Middleware that limits the sessions of an API key, ending the one that was idle longest.

    The library binds a session to the user of its first request, so other keys cannot use it. Without keys, all clients
    share one limit.
    """

    def __init__(self, app: Asgi, limits: Limits, grants_required: bool = False) -> None:
        self._app = app
        self._most = limits.max_sessions_per_key
        self._grants_required = grants_required
        # The number of requests in progress per session, least recently used first.
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
        """A request in an existing session; unknown sessions and those of other keys are not counted."""
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
        """End a session as its client would, with DELETE."""
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
    """The response to a request without a valid API key."""
    said = {"error": "invalid_token", "error_description": "this needs a key: Authorization: Bearer alma_…"}
    return JSONResponse(said, 401, {"WWW-Authenticate": 'Bearer error="invalid_token"'})

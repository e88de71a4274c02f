"""Middleware for every request: ids, host and origin checks, authentication, limits, headers and metrics.

Responses get headers that forbid framing, content sniffing and caching.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from urllib.parse import urlsplit

import anyio.to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from alma.access import ApiKeys
from alma.clock import new_id
from alma.lazy import lazy_regex
from alma.operations.access import OWNER, Grant
from alma.rest.metrics import Metrics
from alma.rest.options import ServiceOptions
from alma.rest.responses import HttpError, error_of, error_response
from alma.serving.connections import address_of
from alma.serving.limits import WRONG_KEYS_AT_ONCE, WRONG_KEYS_PER_SECOND, RateLimit
from alma.web import PREFIX

_log = logging.getLogger("alma.rest")

GRANT = "alma.grant"
"""The key in the ASGI scope of the caller's grant."""
VALID = "alma.still_valid"
"""The key of a function that checks whether the grant is still valid, for long-lived responses."""
REQUEST_ID = "alma.request_id"
ROUTE = "alma.route"
UNKNOWN_ROUTE = "unknown"
# The status counted for a client that disconnected.
_HUNG_UP = 499
_OPEN_PATHS = frozenset({"/health", "/", "/docs"})
_SANE_ID = lazy_regex(r"[A-Za-z0-9._-]{1,64}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_ALWAYS = (
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-store"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
_CLOSED_CONTENT = "default-src 'none'; frame-ancestors 'none'"
_EXPOSED = "ETag, Idempotency-Replayed, Location, Retry-After, X-Request-ID"
_ALLOWED_HEADERS = (
    "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, X-Request-ID, "
    "Mcp-Session-Id, Mcp-Protocol-Version"
)


class Middleware:
    """ASGI middleware that applies the service options to every request."""

    def __init__(self, app: ASGIApp, options: ServiceOptions, keys: ApiKeys, metrics: Metrics) -> None:
        self._app = app
        self._options = options
        self._keys = keys
        self._metrics = metrics
        self._rates = RateLimit(options.requests_per_second, options.burst)
        self._failures = RateLimit(
            min(WRONG_KEYS_PER_SECOND, options.requests_per_second), min(WRONG_KEYS_AT_ONCE, options.burst)
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        await _Passage(self, scope, receive, send).run()

    # ------------------------------------------------------------------ authentication

    async def grant(self, scope: Scope, headers: Headers) -> Grant:
        """The caller's grant, or an HTTP error."""
        address = _address(scope)
        presented = headers.get("authorization")
        if presented is None:
            return await self._without_key()
        scheme, _, token = presented.partition(" ")
        if scheme.lower() != "bearer":
            raise _unauthenticated("send the key as  Authorization: Bearer alma_…")
        token = token.strip()
        found = self._keys.verified_just_now(token) or await anyio.to_thread.run_sync(self._keys.verify, token)
        if found is None:
            self._limit(self._failures, f"failed {address}")
            raise _unauthenticated("this key is unknown, revoked or expired")
        return found

    async def _without_key(self) -> Grant:
        exist = self._options.needs_key or self._keys.existence_just_seen()
        if exist is None:
            exist = await anyio.to_thread.run_sync(self._keys.any_exist)
        if exist:
            raise _unauthenticated(
                "a key is needed: make one with  alma keys create  and send it as  Authorization: Bearer alma_…"
            )
        return OWNER

    def still_valid(self, headers: Headers) -> bool:
        """Whether the caller would still be authenticated; may read the store."""
        token = headers.get("authorization", "").partition(" ")[2].strip()
        return self._keys.verify(token) is not None if token else not self._keys.any_exist()

    def check_host(self, headers: Headers) -> None:
        host = headers.get("host", "")
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            name = ""
        if not self._options.knows_host(name):
            raise HttpError(421, f"this service does not go by the name {name!r}: use 127.0.0.1, or allow the name")

    def check_origin(self, headers: Headers) -> str | None:
        """The Origin that may read the response (CORS), or None if the request has no foreign origin."""
        origin = headers.get("origin")
        if origin is None:
            return None
        allowed = self._options.allowed_origins
        if "*" in allowed or origin in allowed:
            return origin
        if urlsplit(origin).netloc == headers.get("host"):
            return None
        raise HttpError(403, f"pages from {origin} may not call this service", "permission_denied")

    def check_rate(self, scope: Scope, grant: Grant) -> None:
        self._limit(self._rates, grant.key_id or _address(scope))

    def _limit(self, limit: RateLimit, caller: str) -> None:
        seconds = limit.take(caller)
        if seconds is not None:
            raise HttpError(429, f"too many requests: try again in {seconds} s", headers={"Retry-After": str(seconds)})

    # ------------------------------------------------------------------ helpers

    @property
    def options(self) -> ServiceOptions:
        return self._options

    @property
    def app(self) -> ASGIApp:
        return self._app

    @property
    def metrics(self) -> Metrics:
        return self._metrics


class _Passage:
    """One request and its response."""

    def __init__(self, middleware: Middleware, scope: Scope, receive: Receive, send: Send) -> None:
        self._middleware = middleware
        self._scope = scope
        self._receive = receive
        self._send = send
        self._headers = Headers(scope=scope)
        self._begun = time.perf_counter()
        self._status = 0
        self._read = 0
        self._origin: str | None = None
        wanted = self._headers.get("x-request-id", "")
        self._id = wanted if _SANE_ID.fullmatch(wanted) else new_id()
        scope[REQUEST_ID] = self._id

    async def run(self) -> None:
        self._middleware.metrics.running.inc()
        try:
            await self._pass()
        except ClientDisconnect:
            # The client disconnected.
            self._status = self._status or _HUNG_UP
        except Exception as exc:  # noqa: BLE001 - whatever happens, the caller gets an answer
            await self._refuse(exc)
        finally:
            self._middleware.metrics.running.dec()
            self._count()

    async def _pass(self) -> None:
        middleware, scope = self._middleware, self._scope
        middleware.check_host(self._headers)
        self._origin = middleware.check_origin(self._headers)
        if self._is_preflight():
            await self._answer_preflight()
            return
        if not _is_open(scope["path"]):
            grant = await middleware.grant(scope, self._headers)
            middleware.check_rate(scope, grant)
            scope[GRANT] = grant
            scope[VALID] = partial(middleware.still_valid, self._headers)
        self._check_length()
        await middleware.app(scope, self._receive_limited, self._send_guarded)

    async def _refuse(self, exc: Exception) -> None:
        error = error_of(exc)
        if error.status >= 500 and not isinstance(exc, HttpError):
            _log.error("a request failed", exc_info=exc, extra={"request_id": self._id, "code": error.code})
        if self._status:
            # The response has started; raising aborts the connection.
            raise exc
        self._middleware.metrics.failed(error.code)
        await error_response(error, self._id)(self._scope, self._receive, self._send_guarded)

    def _count(self) -> None:
        seconds = time.perf_counter() - self._begun
        method = self._scope["method"] if self._scope["method"] in _METHODS else "other"
        route = self._scope.get(ROUTE, UNKNOWN_ROUTE)
        self._middleware.metrics.answered(method, route, self._status, seconds)
        _log.debug(
            "a request was answered",
            extra={"request_id": self._id, "route": route, "status": self._status, "seconds": round(seconds, 4)},
        )

    # ------------------------------------------------------------------ the body

    def _check_length(self) -> None:
        declared = self._headers.get("content-length")
        if declared is not None and declared.isdigit() and int(declared) > self._middleware.options.max_body_bytes:
            raise self._too_large()

    async def _receive_limited(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._read += len(message.get("body", b""))
            if self._read > self._middleware.options.max_body_bytes:
                raise self._too_large()
        return message

    def _too_large(self) -> HttpError:
        limit = self._middleware.options.max_body_bytes
        return HttpError(413, f"the body is too large: at most {limit:,} bytes", headers={"Connection": "close"})

    # ------------------------------------------------------------------ the response

    async def _send_guarded(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in _ALWAYS:
                headers.setdefault(name, value)
            headers.setdefault("Content-Security-Policy", _CLOSED_CONTENT)
            headers["X-Request-ID"] = self._id
            if self._origin is not None:
                headers["Access-Control-Allow-Origin"] = self._origin
                headers["Access-Control-Expose-Headers"] = _EXPOSED
                headers["Cross-Origin-Resource-Policy"] = "cross-origin"
                headers.append("Vary", "Origin")
        await self._send(message)

    def _is_preflight(self) -> bool:
        return self._scope["method"] == "OPTIONS" and "access-control-request-method" in self._headers

    async def _answer_preflight(self) -> None:
        headers = {}
        if self._origin is not None:
            headers = {
                "Access-Control-Allow-Methods": "GET, POST, PATCH, DELETE",
                "Access-Control-Allow-Headers": _ALLOWED_HEADERS,
                "Access-Control-Max-Age": "600",
            }
        await Response(status_code=204, headers=headers)(self._scope, self._receive, self._send_guarded)


def _is_open(path: str) -> bool:
    """Whether a path needs no key: the files of the dashboard and the API browser hold no data, and ask for it."""
    return path in _OPEN_PATHS or path.startswith(PREFIX)


def _address(scope: Scope) -> str:
    return address_of(scope.get("client"))


def _unauthenticated(message: str) -> HttpError:
    return HttpError(401, message, "unauthenticated", headers={"WWW-Authenticate": 'Bearer realm="alma"'})

"""The service: convert a request into an operation, run it in a worker thread, and respond."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import anyio.to_thread
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import Response

from alma import __version__
from alma.access import ApiKeys
from alma.core import ALMA
from alma.errors import ALMAError, NotFoundError, StoreReplacedError, ValidationError
from alma.model.fields import JsonObject
from alma.model.learning import Heuristic
from alma.model.query import Compare
from alma.model.scope import Scope
from alma.operations.access import Caller, Grant
from alma.operations.base import to_json
from alma.operations.engines import states_of
from alma.rest.event_stream import EventStreams
from alma.rest.idempotency import Idempotency, IdempotentRequest, StoredResponse, request_digest
from alma.rest.metrics import MEDIA_TYPE, Metrics, count
from alma.rest.middleware import GRANT, REQUEST_ID, ROUTE, VALID
from alma.rest.options import ServiceOptions
from alma.rest.responses import (
    ArgumentError,
    HttpError,
    error_of,
    error_response,
    etag_of,
    if_match,
    json_response,
    matches_etag,
)
from alma.rest.routes import Route, check_json, coerce, parse_body
from alma.sync.results import EngineStatus

_log = logging.getLogger("alma.rest")

Endpoint = Callable[[Request], Awaitable[Response]]
_MAX_KEY_LENGTH = 200
_LONG_WORK_AT_ONCE = 2
# Larger bodies of writes are mostly long texts, which take seconds to screen and to embed.
_LARGE_BODY_BYTES = 8_192
_REPLAYED_HEADERS = {"Idempotency-Replayed": "true"}


class Service:
    """One memory, served to any number of callers."""

    def __init__(self, alma: ALMA, options: ServiceOptions) -> None:
        self.alma = alma
        self.options = options
        self.metrics = Metrics()
        self.keys = ApiKeys(alma.storage)
        self.streams = EventStreams(alma.storage, options, self.metrics)
        self._idempotency = Idempotency(alma.storage, timedelta(hours=options.answers_kept_hours))
        self._threads = anyio.CapacityLimiter(options.threads)
        # Operations that take minutes have their own threads, so that they do not block short ones.
        self._long_threads = anyio.CapacityLimiter(_LONG_WORK_AT_ONCE)
        self._large_threads = anyio.CapacityLimiter(max(1, options.threads // 4))

    def close(self) -> None:
        """End event streams; requests in progress are completed."""
        self.streams.close()
        self._idempotency.close()

    # ------------------------------------------------------------------ operations

    def endpoint(self, route: Route) -> Endpoint:
        """The endpoint of a route."""

        async def answer(request: Request) -> Response:
            request.scope[ROUTE] = route.path
            body = b"" if route.query is not None else await request.body()
            arguments = _arguments(route, request, body)
            work = partial(self._perform, route, request, self.caller(request), arguments)
            if not route.operation.read_only and "idempotency-key" in request.headers:
                idempotent = _idempotent(route, request, body)
                work = partial(self._idempotency.execute, idempotent, work)
            result = await anyio.to_thread.run_sync(work, limiter=self._limiter(route, body))
            return _response(route, request, result)

        return answer

    def _limiter(self, route: Route, body: bytes) -> anyio.CapacityLimiter:
        """The thread limit: long operations, large writes, or everything else."""
        if route.operation.takes_long:
            return self._long_threads
        is_large = len(body) > _LARGE_BODY_BYTES and not route.operation.read_only
        return self._large_threads if is_large else self._threads

    def caller(self, request: Request) -> Caller:
        """The caller, limited to the grant of its API key."""
        grant: Grant = request.scope[GRANT]
        address = request.client.host if request.client else "unknown"
        agent = request.headers.get("user-agent", "").replace("\0", "")[:500].strip()
        return Caller(self.alma, grant, ip_address=address, user_agent=agent or None)

    def _perform(self, route: Route, request: Request, caller: Caller, arguments: JsonObject) -> StoredResponse:
        operation = route.operation
        caller.require(operation.right)

        def perform(given: Mapping[str, object]) -> StoredResponse:
            try:
                parsed = operation.parsed(given)
            except ValidationError as exc:
                raise ArgumentError.of(exc) from None
            made = operation.perform(caller, parsed)
            if route.method == "DELETE" and getattr(made, "deleted", None) is False:
                (name,) = route.in_path
                raise NotFoundError(name.removesuffix("_id"), str(given[name]))
            return StoredResponse(route.status, made.model_dump_json(exclude_none=True))

        expected = request.headers.get("if-match") if route.takes_if_match else None
        return perform(arguments) if expected is None else if_match(expected, arguments, perform)

    # ------------------------------------------------------------------ other routes

    async def events(self, request: Request) -> Response:
        """The event stream."""
        request.scope[ROUTE] = "/v1/events"
        return await self.streams.open(request, self.caller(request), request.scope[VALID])

    async def health(self, request: Request) -> Response:
        """Whether the service runs, and its version."""
        request.scope[ROUTE] = "/health"
        return json_response({"status": "ok", "version": __version__})

    async def ready(self, request: Request) -> Response:
        """Whether the store is available, with the state of the engines beside it for callers without limits."""
        request.scope[ROUTE] = "/ready"
        try:
            engines = await asyncio.wait_for(anyio.to_thread.run_sync(self._check_store, abandon_on_cancel=True), 5)
        except (ALMAError, TimeoutError) as exc:
            _log.warning("the store is unavailable", extra={"error": str(exc)})
            # Only this error text is shown: it says what an operator has to do and nothing about the server.
            reason = f": {exc}" if isinstance(exc, StoreReplacedError) else ""
            raise HttpError(
                503, f"the store is unavailable{reason}", "storage_error", headers={"Retry-After": "5"}
            ) from exc
        if self.caller(request).grant.is_limited:
            return json_response({"status": "ready"})
        shown = [to_json(each) for each in states_of(engines)]
        return json_response({"status": "ready", "engines": shown})

    def _check_store(self) -> list[EngineStatus]:
        self.alma.storage.require_in_place()
        here = Scope(project_id=self.alma.project_id)
        self.alma.storage.count(Heuristic, here, Compare("id", "eq", "-"))
        return self.alma.sync.status(ping=False)

    async def show_metrics(self, request: Request) -> Response:
        """The metrics; only for keys without limits."""
        request.scope[ROUTE] = "/metrics"
        self.caller(request).require_unlimited("the metrics")
        with suppress(ALMAError):
            self.metrics.store(await anyio.to_thread.run_sync(count, self.alma.storage))
            self.metrics.engines(await anyio.to_thread.run_sync(lambda: self.alma.sync.status(ping=False)))
        return Response(self.metrics.text(), media_type=MEDIA_TYPE)

    # ------------------------------------------------------------------ errors

    async def failed(self, request: Request, exc: Exception) -> Response:
        """The response to a request that failed."""
        error = error_of(exc)
        request_id = request.scope.get(REQUEST_ID, "")
        if error.status >= 500:
            facts = {"request_id": request_id, "code": error.code}
            if isinstance(exc, HttpError):
                _log.warning("a request was refused: %s", error.message, extra=facts)
            else:
                level = logging.WARNING if isinstance(exc, ALMAError) else logging.ERROR
                _log.log(level, "a request failed", exc_info=exc, extra=facts)
        self.metrics.failed(error.code)
        return error_response(error, request_id)


def _arguments(route: Route, request: Request, body: bytes) -> JsonObject:
    if route.query is not None:
        arguments = route.query.parse(request.query_params.multi_items())
    else:
        arguments = parse_body(body, request.headers.get("content-type", ""))
        _refuse_query(request)
    arguments = coerce(route.operation.input_schema, arguments)
    for name in route.in_path:
        if arguments.setdefault(name, request.path_params[name]) != request.path_params[name]:
            raise HttpError(400, f"{name} in the body differs from the one in the path")
    check_json(dict(request.path_params))
    return arguments


def _refuse_query(request: Request) -> None:
    if request.url.query:
        raise HttpError(400, "this request takes its arguments as a JSON body, not as query parameters")


def _idempotent(route: Route, request: Request, body: bytes) -> IdempotentRequest:
    key = request.headers["idempotency-key"]
    if not 1 <= len(key) <= _MAX_KEY_LENGTH or not key.isascii() or not key.isprintable():
        raise HttpError(400, f"an idempotency key must have 1 to {_MAX_KEY_LENGTH} printable ASCII characters")
    grant: Grant = request.scope[GRANT]
    digest = request_digest(
        route.method, request.url.path, request.url.query, request.headers.get("if-match", ""), body
    )
    return IdempotentRequest(grant.key_id or "owner", key, digest, route.operation.idempotent)


def _response(route: Route, request: Request, result: StoredResponse) -> Response:
    headers: dict[str, str] = dict(_REPLAYED_HEADERS) if result.replayed else {}
    if route.has_etag and route.method != "DELETE":
        _add_etag(route, result, headers)
        unless = request.headers.get("if-none-match")
        if route.method == "GET" and unless is not None and "ETag" in headers:
            version = int(headers["ETag"][2:-1])
            if matches_etag(unless, version):
                return Response(status_code=304, headers=headers)
    return json_response(result.body, result.status, headers)


def _add_etag(route: Route, result: StoredResponse, headers: dict[str, str]) -> None:
    body = _parsed(result.body)
    version = body.get("version")
    if isinstance(version, int):
        headers["ETag"] = etag_of(version)
    if route.status == 201:
        headers["Location"] = f"/v1/memories/{body['memory']['id']}"


def _parsed(body: str) -> dict[str, Any]:
    found: dict[str, Any] = from_json(body)
    return found

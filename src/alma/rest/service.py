"""The service: turns a request into an operation, carries it out in a worker thread, and answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
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
from alma.rest.arguments import as_described, body_of, check_plain
from alma.rest.etags import if_unchanged, is_unchanged, tag_of
from alma.rest.event_stream import Streams
from alma.rest.idempotency import Answered, Asked, Once, digest_of
from alma.rest.metrics import MEDIA_TYPE, Metrics
from alma.rest.middleware import GRANT, REQUEST_ID, ROUTE, VALID
from alma.rest.options import ServiceOptions
from alma.rest.responses import ArgumentError, HttpError, error_of, error_response, json_response
from alma.rest.routes import Route

_log = logging.getLogger("alma.rest")

Endpoint = Callable[[Request], Awaitable[Response]]
_LONGEST_KEY = 200
_LONG_WORK_AT_ONCE = 2
# A write with a longer body is mostly a long text, which takes seconds to screen and to embed.
_LARGE_BODY_BYTES = 8_192
_SERVED_HEADERS = {"Idempotency-Replayed": "true"}


class Service:
    """One memory served to any number of callers."""

    def __init__(self, alma: ALMA, options: ServiceOptions) -> None:
        self.alma = alma
        self.options = options
        self.metrics = Metrics()
        self.keys = ApiKeys(alma.storage)
        self.streams = Streams(alma.storage, options, self.metrics)
        self._once = Once(alma.storage, timedelta(hours=options.answers_kept_hours))
        self._threads = anyio.CapacityLimiter(options.threads)
        # What takes minutes must not keep what takes milliseconds waiting.
        self._long_threads = anyio.CapacityLimiter(_LONG_WORK_AT_ONCE)
        self._large_threads = anyio.CapacityLimiter(max(1, options.threads // 4))

    def close(self) -> None:
        """End what would go on for ever; what is being worked on is finished."""
        self.streams.close()
        self._once.close()

    # ------------------------------------------------------------------ operations

    def endpoint(self, route: Route) -> Endpoint:
        """What answers requests to a route."""

        async def answer(request: Request) -> Response:
            request.scope[ROUTE] = route.path
            body = b"" if route.query is not None else await request.body()
            arguments = _arguments(route, request, body)
            work = partial(self._perform, route, request, self.caller(request), arguments)
            if not route.operation.read_only and "idempotency-key" in request.headers:
                asked = _asked(route, request, body)
                work = partial(self._once.answer, asked, work)
            answered = await anyio.to_thread.run_sync(work, limiter=self._limiter(route, body))
            return _response(route, request, answered)

        return answer

    def _limiter(self, route: Route, body: bytes) -> anyio.CapacityLimiter:
        """Whose threads do the work: those of what takes minutes, those of what takes seconds, or the others."""
        if route.operation.takes_long:
            return self._long_threads
        is_large = len(body) > _LARGE_BODY_BYTES and not route.operation.read_only
        return self._large_threads if is_large else self._threads

    def caller(self, request: Request) -> Caller:
        """Who asks, confined to what their key allows."""
        grant: Grant = request.scope[GRANT]
        address = request.client.host if request.client else "unknown"
        agent = request.headers.get("user-agent", "").replace("\0", "")[:500].strip()
        return Caller(self.alma, grant, ip_address=address, user_agent=agent or None)

    def _perform(self, route: Route, request: Request, caller: Caller, arguments: JsonObject) -> Answered:
        operation = route.operation
        caller.require(operation.right)

        def perform(given: Mapping[str, object]) -> Answered:
            try:
                parsed = operation.parsed(given)
            except ValidationError as exc:
                raise ArgumentError.of(exc) from None
            made = operation.perform(caller, parsed)
            if route.method == "DELETE" and getattr(made, "deleted", None) is False:
                (name,) = route.in_path
                raise NotFoundError(name.removesuffix("_id"), str(given[name]))
            return Answered(route.status, made.model_dump_json(exclude_none=True))

        insisted = request.headers.get("if-match") if route.takes_if_match else None
        return perform(arguments) if insisted is None else if_unchanged(insisted, arguments, perform)

    # ------------------------------------------------------------------ what is no operation

    async def events(self, request: Request) -> Response:
        """A stream of changes."""
        request.scope[ROUTE] = "/v1/events"
        return await self.streams.open(request, self.caller(request), request.scope[VALID])

    async def health(self, request: Request) -> Response:
        """Whether the service runs; it says nothing else."""
        request.scope[ROUTE] = "/health"
        return json_response({"status": "ok", "version": __version__})

    async def ready(self, request: Request) -> Response:
        """Whether the store answers."""
        request.scope[ROUTE] = "/ready"
        try:
            await asyncio.wait_for(anyio.to_thread.run_sync(self._ask_the_store, abandon_on_cancel=True), 5)
        except (ALMAError, TimeoutError) as exc:
            _log.warning("the store does not answer", extra={"error": str(exc)})
            # Only this error says nothing of the server but what an operator has to do.
            said = f": {exc}" if isinstance(exc, StoreReplacedError) else ""
            said = f"the store does not answer{said}"
            raise HttpError(503, said, "storage_error", headers={"Retry-After": "5"}) from exc
        return json_response({"status": "ready"})

    def _ask_the_store(self) -> None:
        self.alma.storage.require_in_place()
        here = Scope(project_id=self.alma.project_id)
        self.alma.storage.count(Heuristic, here, Compare("id", "eq", "-"))

    async def show_metrics(self, request: Request) -> Response:
        """What was counted; for keys that see the whole store."""
        request.scope[ROUTE] = "/metrics"
        self.caller(request).require_unlimited("the metrics")
        return Response(self.metrics.text(), media_type=MEDIA_TYPE)

    # ------------------------------------------------------------------ errors

    async def failed(self, request: Request, exc: Exception) -> Response:
        """The answer to a request that could not be carried out."""
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
        said = route.query.said(request.query_params.multi_items())
    else:
        said = body_of(body, request.headers.get("content-type", ""))
        _refuse_query(request)
    said = as_described(route.operation.input_schema, said)
    for name in route.in_path:
        if said.setdefault(name, request.path_params[name]) != request.path_params[name]:
            raise HttpError(400, f"the body names another {name} than the address")
    check_plain(dict(request.path_params))
    return said


def _refuse_query(request: Request) -> None:
    if request.url.query:
        raise HttpError(400, "this takes its arguments as a JSON body, not in the address")


def _asked(route: Route, request: Request, body: bytes) -> Asked:
    key = request.headers["idempotency-key"]
    if not 1 <= len(key) <= _LONGEST_KEY or not key.isascii() or not key.isprintable():
        raise HttpError(400, f"an idempotency key must have 1 to {_LONGEST_KEY} printable ASCII characters")
    grant: Grant = request.scope[GRANT]
    digest = digest_of(route.method, request.url.path, request.url.query, request.headers.get("if-match", ""), body)
    return Asked(grant.key_id or "owner", key, digest, route.operation.idempotent)


def _response(route: Route, request: Request, answered: Answered) -> Response:
    headers: dict[str, str] = dict(_SERVED_HEADERS) if answered.replayed else {}
    if route.has_etag and route.method != "DELETE":
        _add_tag(route, answered, headers)
        unless = request.headers.get("if-none-match")
        if route.method == "GET" and unless is not None and "ETag" in headers:
            version = int(headers["ETag"][2:-1])
            if is_unchanged(unless, version):
                return Response(status_code=304, headers=headers)
    return json_response(answered.body, answered.status, headers)


def _add_tag(route: Route, answered: Answered, headers: dict[str, str]) -> None:
    said = _parsed(answered.body)
    version = said.get("version")
    if isinstance(version, int):
        headers["ETag"] = tag_of(version)
    if route.status == 201:
        headers["Location"] = f"/v1/memories/{said['memory']['id']}"


def _parsed(body: str) -> dict[str, Any]:
    found: dict[str, Any] = from_json(body)
    return found

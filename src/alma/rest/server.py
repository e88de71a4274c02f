"""Create the ASGI application and run it in an HTTP server."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import anyio.to_thread

from alma import __version__
from alma.config import config_file
from alma.core import ALMA, DEFAULT_PROJECT
from alma.errors import ALMAError, ConfigurationError, MissingDependencyError
from alma.hooks.resident import answering_hooks
from alma.mcp.http import asgi_app
from alma.model.fields import JsonObject
from alma.process import limit_malloc_arenas, trim_malloc
from alma.rest.middleware import ROUTE, Middleware
from alma.rest.openapi import openapi_document
from alma.rest.options import ServiceOptions
from alma.rest.responses import HttpError, json_response
from alma.rest.routes import Route, routes
from alma.rest.service import Service
from alma.serving.server import Server, address_of_socket, listen, server_config, throttled_logging
from alma.web import PREFIX, Asset, asset, docs_page, index_page

try:
    import httptools  # noqa: F401 - a missing package is reported here
    import prometheus_client  # noqa: F401
    import uvicorn
    from fastapi import FastAPI
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Match
    from starlette.types import ASGIApp, Receive, Scope, Send
except ImportError as exc:
    raise MissingDependencyError((exc.name or "fastapi").partition(".")[0], "server") from exc

MCP_PATH = "/mcp"
Announce = Callable[[str, ServiceOptions], None]


def create_app(
    alma: ALMA,
    options: ServiceOptions | None = None,
    *,
    host: str | None = None,
    port: int | None = None,
    require_key: bool | None = None,
    allowed_hosts: Sequence[str] | None = None,
    allowed_origins: Sequence[str] | None = None,
    requests_per_second: float | None = None,
    burst: int | None = None,
    max_body_bytes: int | None = None,
    threads: int | None = None,
    max_streams: int | None = None,
    heartbeat_seconds: float | None = None,
    poll_seconds: float | None = None,
    answers_kept_hours: float | None = None,
    shutdown_seconds: float | None = None,
    mcp: bool | None = None,
) -> FastAPI:
    """The service as an ASGI application; the keywords replace what `options` say, None means not given.

    The caller closes the memory after the application has ended.
    """
    chosen = _with(
        options,
        host=host,
        port=port,
        require_key=require_key,
        allowed_hosts=allowed_hosts,
        allowed_origins=allowed_origins,
        requests_per_second=requests_per_second,
        burst=burst,
        max_body_bytes=max_body_bytes,
        threads=threads,
        max_streams=max_streams,
        heartbeat_seconds=heartbeat_seconds,
        poll_seconds=poll_seconds,
        answers_kept_hours=answers_kept_hours,
        shutdown_seconds=shutdown_seconds,
        mcp=mcp,
    )
    service = Service(alma, chosen)
    mounted = asgi_app(alma, limits=chosen) if chosen.mcp else None
    app = FastAPI(
        title="ALMA",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan(service, mounted),
    )
    known = tuple(routes())
    _add_operations(app, service, known)
    _add_pages(app, known)
    _add_errors(app, service)
    if mounted is not None:
        app.add_middleware(_Fork, mcp=mounted)
    app.add_middleware(Middleware, options=chosen, keys=service.keys, metrics=service.metrics)
    app.state.service = service
    return app


def serve(
    config: str | Path | None = None,
    store: str | None = None,
    project_id: str | None = None,
    *,
    announce: Announce | None = None,
    options: ServiceOptions | None = None,
    host: str | None = None,
    port: int | None = None,
    require_key: bool | None = None,
    allowed_hosts: Sequence[str] | None = None,
    allowed_origins: Sequence[str] | None = None,
    requests_per_second: float | None = None,
    burst: int | None = None,
    max_body_bytes: int | None = None,
    threads: int | None = None,
    max_streams: int | None = None,
    heartbeat_seconds: float | None = None,
    poll_seconds: float | None = None,
    answers_kept_hours: float | None = None,
    shutdown_seconds: float | None = None,
    mcp: bool | None = None,
) -> None:
    """Run the service on a configured memory or a store until SIGINT or SIGTERM.

    Without either, `.alma/config.yaml` is used if it exists, and an SQLite file beside it otherwise. `announce` is
    called with the address once the service accepts connections. The keywords replace what `options` say, None means
    not given.
    """
    chosen = _with(
        options,
        host=host,
        port=port,
        require_key=require_key,
        allowed_hosts=allowed_hosts,
        allowed_origins=allowed_origins,
        requests_per_second=requests_per_second,
        burst=burst,
        max_body_bytes=max_body_bytes,
        threads=threads,
        max_streams=max_streams,
        heartbeat_seconds=heartbeat_seconds,
        poll_seconds=poll_seconds,
        answers_kept_hours=answers_kept_hours,
        shutdown_seconds=shutdown_seconds,
        mcp=mcp,
    )
    limit_malloc_arenas()
    with listen(chosen) as sock, _open_memory(config, store, project_id) as memory:
        alma = memory if project_id is None else memory.for_project(project_id)
        server = create_server(sock, alma, chosen, announce)
        with throttled_logging() as server.repeated, answering_hooks(alma, config, store, project_id):
            server.run(sockets=[sock])


def _with(options: ServiceOptions | None, **given: Any) -> ServiceOptions:
    """The options with the values that were given."""
    return replace(options or ServiceOptions(), **{name: value for name, value in given.items() if value is not None})


def create_server(sock: socket.socket, alma: ALMA, options: ServiceOptions, announce: Announce | None = None) -> Server:
    """A server of an open memory on a listen socket; `run(sockets=[sock])` serves until `should_exit` is set."""
    app = create_app(alma, options)
    config = server_config(app, options, timeout_graceful_shutdown=int(options.shutdown_seconds))
    bound = replace(options, port=sock.getsockname()[1])
    on_start = None if announce is None else lambda: announce(address_of_socket(sock, options.host), bound)
    return _Server(config, app.state.service, on_start)


def _open_memory(config: str | Path | None, store: str | None, project_id: str | None) -> ALMA:
    if config is not None and store is not None:
        raise ConfigurationError("give a configuration or a store, not both")
    file = config_file(config, store)
    return ALMA.quickstart(store, project_id or DEFAULT_PROJECT) if file is None else ALMA.from_config(file)


class _Server(Server):
    """On a signal, ends event streams first, and returns from `run` instead of raising the signal again."""

    def __init__(self, config: uvicorn.Config, service: Service, started: Callable[[], None] | None) -> None:
        super().__init__(config)
        self._service = service
        self._when_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self._when_started is not None:
            self._when_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self.handle_exit) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


# ---------------------------------------------------------------------- parts of the application


def _add_operations(app: FastAPI, service: Service, known: Sequence[Route]) -> None:
    _add_refusals(app, known)
    for route in known:
        app.add_route(route.path, service.endpoint(route), methods=[route.method], include_in_schema=False)
    app.add_route("/v1/events", service.events, methods=["GET"])
    app.add_route("/health", service.health, methods=["GET"])
    app.add_route("/ready", service.ready, methods=["GET"])
    app.add_route("/metrics", service.show_metrics, methods=["GET"])


def _add_refusals(app: FastAPI, known: Sequence[Route]) -> None:
    """Answer 405 for other methods on literal paths, so that /v1/memories/search is not read as a memory id."""
    for path in {route.path for route in known if "/memories/" in route.path and not route.in_path}:
        allowed = sorted(route.method for route in known if route.path == path)

        async def refuse(request: Request, path: str = path, allowed: list[str] = allowed) -> Response:
            raise _not_allowed(path, request.method, allowed)

        app.add_route(path, refuse, methods=sorted({"GET", "PATCH", "DELETE"} - set(allowed)))


def _add_pages(app: FastAPI, known: Sequence[Route]) -> None:
    @cache
    def described() -> JsonObject:
        return openapi_document(known)

    async def openapi(request: Request) -> Response:
        request.scope[ROUTE] = "/openapi.json"
        return json_response(described())

    async def docs(request: Request) -> Response:
        request.scope[ROUTE] = "/docs"
        return _asset_response(request, docs_page(), for_ever=False)

    app.add_route("/", _dashboard, methods=["GET"])
    app.add_route(f"{PREFIX}{{path:path}}", _dashboard_file, methods=["GET"])
    app.add_route("/openapi.json", openapi, methods=["GET"])
    app.add_route("/docs", docs, methods=["GET"])
    app.openapi = described  # type: ignore[method-assign]


async def _dashboard(request: Request) -> Response:
    """The page of the dashboard."""
    request.scope[ROUTE] = "/"
    return _asset_response(request, index_page(), for_ever=False)


async def _dashboard_file(request: Request) -> Response:
    """A file of the dashboard."""
    request.scope[ROUTE] = PREFIX
    found = asset(request.path_params["path"])
    if found is None:
        raise HttpError(404, "the dashboard has no such file: reload the page")
    return _asset_response(request, found[0], for_ever=found[1])


def _asset_response(request: Request, found: Asset, *, for_ever: bool) -> Response:
    status, body, headers = found.response(request.headers, for_ever=for_ever)
    return Response(body, status, headers)


def _add_errors(app: FastAPI, service: Service) -> None:
    async def not_served(request: Request, exc: Exception) -> Response:
        return await service.failed(request, _http_error(app, request, exc))

    app.add_exception_handler(HTTPException, not_served)
    app.add_exception_handler(HttpError, service.failed)
    app.add_exception_handler(ALMAError, service.failed)


def _http_error(app: FastAPI, request: Request, exc: Exception) -> HttpError:
    status = exc.status_code if isinstance(exc, HTTPException) else 500
    path = request.url.path
    if status == 404:
        return HttpError(404, f"there is nothing at {path[:200]}: /docs and /openapi.json say what there is")
    if status == 405:
        return _not_allowed(path[:200], request.method, sorted(_methods_at(app, request)))
    return HttpError(status, str(getattr(exc, "detail", exc)))


def _not_allowed(path: str, method: str, allowed: Sequence[str]) -> HttpError:
    known = ", ".join(allowed)
    return HttpError(405, f"{path} takes {known}, not {method}", headers={"Allow": known})


def _methods_at(app: FastAPI, request: Request) -> set[str]:
    matching = [route for route in app.router.routes if route.matches(request.scope)[0] is not Match.NONE]
    known = [route for route in matching if getattr(route.endpoint, "__name__", "") != "refuse"]  # type: ignore[attr-defined]
    literal = [route for route in known if route.path == request.url.path]  # type: ignore[attr-defined]
    return {method for route in literal or known for method in route.methods or ()}  # type: ignore[attr-defined]


def _lifespan(service: Service, mcp: Starlette | None) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def alive(_: FastAPI) -> AsyncIterator[None]:
        upkeep = asyncio.create_task(trim_when_idle(lambda: service.metrics.count))
        service.alma.start_background()
        try:
            if mcp is None:
                yield
            else:
                async with mcp.router.lifespan_context(mcp):
                    yield
        finally:
            upkeep.cancel()
            service.alma.stop_background()
            service.close()

    return alive


class _Fork:
    """Routes requests for /mcp to the MCP application."""

    def __init__(self, app: ASGIApp, mcp: ASGIApp) -> None:
        self._app = app
        self._mcp = mcp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].rstrip("/") == MCP_PATH:
            scope[ROUTE] = MCP_PATH
            await self._mcp(scope, receive, send)
        else:
            await self._app(scope, receive, send)


_EVERY_SECONDS = 10.0


async def trim_when_idle(answered: Callable[[], int]) -> None:
    """Trim malloc memory whenever the service has been idle for a while, until cancelled."""
    seen, trimmed = -1, -1
    while True:
        await asyncio.sleep(_EVERY_SECONDS)
        now = answered()
        if now == seen and now != trimmed:
            await anyio.to_thread.run_sync(trim_malloc)
            trimmed = now
        seen = now


def startup_message(address: str, options: ServiceOptions, has_mcp: bool = True) -> str:
    """The message at startup: addresses, an example request, and whether a key is needed."""
    header = " -H 'Authorization: Bearer alma_…'" if options.needs_key else ""
    lines = [
        f"ALMA serves at {address}   (stop it with Ctrl-C)",
        "",
        f"  dashboard    {address}/",
        f"  reference    {address}/docs",
        f"  OpenAPI      {address}/openapi.json",
    ]
    if has_mcp and options.mcp:
        lines += [
            f"  MCP          {address}/mcp",
            "               for example  claude mcp add --transport http alma " + f"{address}/mcp",
        ]
    lines += [
        "",
        "Try it:",
        f"  curl {address}/v1/learn{header} -H 'Content-Type: application/json' \\",
        """    -d '{"agent": "helena", "task": "Test the login form", "outcome": "success",""",
        """         "strategy_used": "wait for the network to be idle"}'""",
        "",
        f"  curl {address}/v1/retrieve{header} -H 'Content-Type: application/json' \\",
        """    -d '{"agent": "helena", "task": "Test the sign-up form"}'""",
        "",
        "From Python:",
        "  from alma.client import Client",
        f'  print(Client("{address}").retrieve("Test the sign-up form", agent="helena").prompt)',
        "",
        _who_is_let_in(options),
    ]
    return "\n".join(lines)


def _who_is_let_in(options: ServiceOptions) -> str:
    if options.needs_key:
        return "Every request needs a key: make one with  alma keys create"
    return "Only this machine can connect. Once a key exists (alma keys create), every request needs one."

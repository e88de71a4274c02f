"""The MCP service: run tools, resources and prompts in worker threads, with the grant of the caller."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from alma import __version__
from alma.closeable import Closeable
from alma.config import config_file
from alma.errors import ALMAError, NotFoundError, PermissionDeniedError, ValidationError
from alma.mcp.continuation import CONTINUE, Continuations, Piece, as_text, truncate
from alma.mcp.handshake import HANDSHAKES, INSTRUCTIONS, NAME, TITLE
from alma.mcp.server import KNOWLEDGE, Options
from alma.model.slice import DEFAULT_PROMPT_TOKENS
from alma.text.disguise import visible

if TYPE_CHECKING:
    from alma.core import ALMA
    from alma.mcp.resources import Prompts, Resources
    from alma.mcp.tools import Toolset
    from alma.operations.access import Caller, Grant
_log = logging.getLogger("alma.mcp")

THREADS = 8
# Larger arguments of writes are mostly long texts, which take seconds to screen and to embed.
_LARGE_CALL, _LARGE_CALLS_AT_ONCE = 8_192, 2
GRANT = "alma.grant"
"""The key in the ASGI scope of the caller's grant."""
FAILURE = "alma.error_result"
"""The key of an error that prevented authentication; every call of the request gets it."""

# The error code of an unknown resource in protocol versions with a handshake.
_NOT_FOUND = -32002
_MOST_VALUES = 100

Context = ServerRequestContext[Any, Any]
T = TypeVar("T")


class Service(Closeable):
    """One memory for any number of clients; heavy modules are imported with the first request."""

    def __init__(self, options: Options, alma: ALMA | None = None) -> None:
        self.options = options
        self.opened = LazyMemory(options, alma)
        self.continuations = Continuations()
        self._threads = anyio.CapacityLimiter(THREADS)
        self._large_threads = anyio.CapacityLimiter(_LARGE_CALLS_AT_ONCE)
        self._loading = threading.Lock()

    def server(self) -> Server:
        """The service as a server of the MCP library."""
        if self.options.toolset == KNOWLEDGE:
            from alma.mcp.server_memory import knowledge_server

            return knowledge_server(self.caller, self._in_thread)
        return Server(
            NAME,
            version=__version__,
            title=TITLE,
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_completion=self._complete,
        )

    def close(self) -> None:
        """Close the memory, unless a call is still running."""
        if self._threads.borrowed_tokens == self._large_threads.borrowed_tokens == 0:
            self.opened.close()

    # ------------------------------------------------------------------ tools

    async def _list_tools(self, context: Context, request: object) -> types.ListToolsResult:
        return await self._in_thread(lambda: types.ListToolsResult(tools=self.toolbox.tools))

    async def _call_tool(self, context: Context, request: types.CallToolRequestParams) -> types.CallToolResult:
        work = RunningCall(context)
        arguments = request.arguments or {}
        try:
            limiter = await self._limiter(request.name, arguments)
            answer = await self._in_thread(lambda: self._answer(work, request.name, arguments), limiter)
        except Exception as exc:  # noqa: BLE001 - the client gets every error as a message
            return error_result(exc)
        finally:
            work.abandoned.set()
        return answer

    async def _limiter(self, name: str, arguments: dict[str, Any]) -> anyio.CapacityLimiter:
        """The thread limit: long writes must not block short calls."""
        if len(repr(arguments)) <= _LARGE_CALL:
            return self._threads
        toolbox = await self._in_thread(lambda: self.toolbox)
        return self._large_threads if toolbox.writes(name) else self._threads

    def _answer(self, work: RunningCall, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        from alma.operations.base import to_json

        if name not in self.toolbox:
            raise NotFoundError("tool", name)
        grant = self.grant_of(work.context)
        if name == CONTINUE.name:
            return _result(self._continued(grant, arguments))
        operation, daily = self.toolbox.operation(name), self.toolbox.daily(name)
        detailed, arguments = (True, arguments) if daily is None else daily.without_details(arguments)
        if operation.takes_long:
            work.report(0, 1)
        output = operation.perform(self.caller(work.context, work.report), self._bounded(operation.name, arguments))
        if operation.takes_long:
            work.finish()
        brief = None if daily is None else daily.brief(output)
        if isinstance(brief, str) and not detailed:
            return _result(None, brief)
        fitting = truncate(to_json(output) if detailed else brief, self.options.max_tokens)
        answer = self._with_continuation(grant, fitting.value, fitting.rest)
        return _result(answer, brief if isinstance(brief, str) else None)

    def _bounded(self, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments, with a prompt that is not longer than a result may be."""
        most, given = self.options.max_tokens, arguments.get("max_tokens", DEFAULT_PROMPT_TOKENS)
        if operation != "retrieve" or not isinstance(given, int) or given <= most:
            return arguments
        return {**arguments, "max_tokens": most}

    def _continued(self, grant: Grant, arguments: dict[str, Any]) -> dict[str, Any]:
        cursor = arguments.get("cursor")
        if not isinstance(cursor, str) or len(arguments) != 1:
            raise ValidationError("alma_continue", "cursor", cursor, "must be the cursor of a result, alone")
        pieces, rest = self.continuations.next_pieces(grant.key_id, cursor, self.options.max_tokens)
        return self._with_continuation(grant, {"pieces": [piece.as_json() for piece in pieces]}, rest)

    def _with_continuation(self, grant: Grant, answer: dict[str, Any], rest: tuple[Piece, ...]) -> dict[str, Any]:
        if not rest:
            return answer
        return {
            **answer,
            "continuation": {"cursor": self.continuations.keep(grant.key_id, rest), "pieces": len(rest)},
        }

    # ------------------------------------------------------------------ resources and prompts

    async def _list_resources(self, context: Context, request: object) -> types.ListResourcesResult:
        return await self._in_thread(lambda: types.ListResourcesResult(resources=self.resources.listed()))

    async def _list_templates(self, context: Context, request: object) -> types.ListResourceTemplatesResult:
        return await self._in_thread(
            lambda: types.ListResourceTemplatesResult(resource_templates=self.resources.templates())
        )

    async def _read_resource(
        self, context: Context, request: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await self._or_mcp_error(context, lambda: self.resources.read(self.caller(context), request.uri))

    async def _list_prompts(self, context: Context, request: object) -> types.ListPromptsResult:
        return await self._in_thread(lambda: types.ListPromptsResult(prompts=self.prompts.listed()))

    async def _get_prompt(self, context: Context, request: types.GetPromptRequestParams) -> types.GetPromptResult:
        return await self._or_mcp_error(
            context, lambda: self.prompts.made(lambda: self.caller(context), request.name, request.arguments or {})
        )

    async def _complete(self, context: Context, request: types.CompleteRequestParams) -> types.CompleteResult:
        def names() -> list[str]:
            return self.resources.agents(self.caller(context)) if request.argument.name == "agent" else []

        begun = request.argument.value.casefold()
        values = [name for name in await self._or_mcp_error(context, names) if name.casefold().startswith(begun)]
        completion = types.Completion(
            values=values[:_MOST_VALUES], total=len(values), has_more=len(values) > _MOST_VALUES
        )
        return types.CompleteResult(completion=completion)

    # ------------------------------------------------------------------ callers and threads

    def grant_of(self, context: Context) -> Grant:
        """The caller's grant, limited to the project that is served."""
        from alma.operations.access import ANYONE, OWNER

        scope = {} if context.request is None else context.request.scope
        if FAILURE in scope:
            raise scope[FAILURE]
        held: Grant = scope.get(GRANT, OWNER)
        served = self.options.project
        if served is None or held.project_id == served:
            return held
        if held.project_id is not None:
            raise PermissionDeniedError(f"this server serves the project {served!r}, and this key is for another")
        return replace(held, project_id=served, user_id=held.user_id if held.is_limited else ANYONE)

    def caller(self, context: Context, progress: Callable[[int, int], None] | None = None) -> Caller:
        """The caller, with its grant."""
        from alma.operations.access import Caller

        grant = self.grant_of(context)
        client = context.session.client_params
        address = None if context.request is None or context.request.client is None else context.request.client.host
        return Caller(
            self.opened.alma(),
            grant,
            ip_address=address,
            user_agent=None if client is None else client.client_info.name[:200],
            progress=progress,
        )

    async def _in_thread(self, work: Callable[[], T], limiter: anyio.CapacityLimiter | None = None) -> T:
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=limiter or self._threads)

    async def _or_mcp_error(self, context: Context, work: Callable[[], T]) -> T:
        """The result, or an MCP error."""
        try:
            return await self._in_thread(work)
        except Exception as exc:
            code, sentence = code_and_message(exc)
            number = types.INTERNAL_ERROR if code == "internal_error" else types.INVALID_PARAMS
            if isinstance(exc, NotFoundError) and context.protocol_version in HANDSHAKES:
                number = _NOT_FOUND
            raise MCPError(number, sentence, {"code": code}) from exc

    # ------------------------------------------------------------------ loaded when needed

    @cached_property
    def toolbox(self) -> Toolset:
        """The offered tools."""
        with self._loading:
            from alma.mcp.tools import Toolset

            return Toolset(self.options.toolset, self.options.tools)

    @cached_property
    def resources(self) -> Resources:
        """The resources."""
        from alma.mcp.resources import Resources

        return Resources(self.options)

    @cached_property
    def prompts(self) -> Prompts:
        """The prompts."""
        from alma.mcp.resources import Prompts

        return Prompts(self.toolbox)


def _result(answer: dict[str, Any] | None, text: str | None = None) -> types.CallToolResult:
    """A result: JSON and a text, which is that JSON where nothing else is given."""
    shown = as_text(answer) if text is None else text
    return types.CallToolResult(
        content=[types.TextContent(text=visible(shown))], structured_content=answer, is_error=False
    )


class RunningCall:
    """A running call: reports progress to its client, and stops when the client cancels it."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.abandoned = threading.Event()
        self._reported = -1.0

    def report(self, done: int, total: int) -> None:
        """Report progress, if it has increased."""
        if self.abandoned.is_set():
            raise ALMAError("the client cancelled this call")
        if done <= self._reported:
            return
        self._reported = done
        anyio.from_thread.run(self.context.session.report_progress, float(done), float(total) if total else None)

    def finish(self) -> None:
        """Report completion."""
        if self._reported < 1:
            self.report(1, 1)


def error_result(error: BaseException) -> types.CallToolResult:
    """An error as a tool result: one sentence and a code."""
    code, sentence = code_and_message(error)
    return types.CallToolResult(
        content=[types.TextContent(text=f"{sentence} [{code}]")], is_error=True, _meta={"code": code}
    )


def code_and_message(error: BaseException) -> tuple[str, str]:
    """The code and message of an error; the text of unexpected exceptions is only logged."""
    from alma.operations.base import code_of

    if isinstance(error, ALMAError):
        return code_of(error), str(error)
    _log.error("a request failed", exc_info=error)
    return "internal_error", "internal error: the server's log has the details"


class LazyMemory(Closeable):
    """The memory, opened on first use; after an error the next request tries again.

    A given memory is closed by the caller.
    """

    def __init__(self, options: Options, given: ALMA | None = None) -> None:
        self._options = options
        self._alma = given
        self._is_given = given is not None
        self._lock = threading.Lock()

    def alma(self) -> ALMA:
        """The open memory."""
        with self._lock:
            if self._alma is None:
                self._alma = self._open()
                self._alma.start_background()
            return self._alma

    def close(self) -> None:
        """Close the memory if it was opened; one that is still being opened is left to the end of the process."""
        if self._is_given or not self._lock.acquire(blocking=False):
            return
        try:
            if self._alma is not None:
                self._alma.close()
        finally:
            self._lock.release()

    def _open(self) -> ALMA:
        from alma.core import ALMA, DEFAULT_PROJECT

        config = config_file(self._options.config, self._options.store)
        if config is not None:
            return ALMA.from_config(config)
        return ALMA.quickstart(self._options.store, self._options.project or DEFAULT_PROJECT)

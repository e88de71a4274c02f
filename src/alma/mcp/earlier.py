"""The server object of alma-memory 0.4, which programs ask in the same process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from inspect import Parameter, isawaitable, signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from alma import __version__
from alma.compat import resources, tools
from alma.mcp.server import Options

if TYPE_CHECKING:
    from alma.core import ALMA
    from alma.model.fields import JsonObject

_VERSION = "2024-11-05"
_TOOLS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        each.__name__: each
        for each in (
            tools.alma_retrieve,
            tools.alma_learn,
            tools.alma_add_preference,
            tools.alma_add_knowledge,
            tools.alma_forget,
            tools.alma_stats,
            tools.alma_health,
            tools.alma_consolidate,
        )
    }
)
_RESOURCES: Mapping[str, Callable[[ALMA], JsonObject]] = MappingProxyType(
    {"alma://config": resources.get_config_resource, "alma://agents": resources.get_agents_resource}
)
_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
_NO_METHOD, _NO_PARAMETERS = -32601, -32602


class ALMAMCPServer:
    """Answers MCP requests about a memory with the tools and resources of alma-memory.

    `run_stdio` and `run_http` serve the memory to clients of other processes, as `alma mcp` does.
    """

    def __init__(self, alma: ALMA, server_name: str = "alma-memory", server_version: str = __version__) -> None:
        self.alma = alma
        self.server_name = server_name
        self.server_version = server_version

    async def handle_request(self, request: Mapping[str, Any]) -> JsonObject | None:
        """The response to a request; None for a notification, which has no id."""
        if "id" not in request:
            return None
        method, params = str(request.get("method")), request.get("params") or {}
        try:
            answer = {"result": await self._result(method, params)}
        except LookupError as exc:
            code = _NO_METHOD if method not in self._methods else _NO_PARAMETERS
            answer = {"error": {"code": code, "message": str(exc.args[0])}}
        return {"jsonrpc": "2.0", "id": request["id"], **answer}

    async def run_stdio(self) -> None:
        """Serve the client at standard input and output until it disconnects."""
        from alma.mcp.handshake import StdioTransport
        from alma.mcp.service import Service
        from alma.mcp.stdio import Connection

        with Service(Options(), self.alma) as service:
            await Connection(service.server(), StdioTransport(), None).run([])

    async def run_http(self, host: str = "127.0.0.1", port: int = 8765) -> None:
        """Serve streamable HTTP until a signal; addresses beyond this machine need API keys."""
        from alma.mcp.http import create_server
        from alma.mcp.service import Service
        from alma.serving.server import listen

        options = Options(http=True, host=host, port=port)
        with Service(options, self.alma) as service, listen(options) as listener:
            await create_server(service).serve(sockets=[listener])

    @property
    def _methods(self) -> Mapping[str, Callable[[Mapping[str, Any]], Any]]:
        server = {"name": self.server_name, "version": self.server_version}
        offered: JsonObject = {"tools": {}, "resources": {}}
        return {
            "initialize": lambda _: {"protocolVersion": _VERSION, "serverInfo": server, "capabilities": offered},
            "ping": lambda _: {},
            "tools/list": lambda _: {"tools": [_described(name, tool) for name, tool in _TOOLS.items()]},
            "tools/call": self._called,
            "resources/list": lambda _: {"resources": resources.list_resources()},
            "resources/read": self._read,
        }

    async def _result(self, method: str, params: Mapping[str, Any]) -> Any:
        if method not in self._methods:
            raise LookupError(f"Method not found: {method}")
        result = self._methods[method](params)
        return await result if isawaitable(result) else result

    async def _called(self, params: Mapping[str, Any]) -> JsonObject:
        name, given = params.get("name"), params.get("arguments") or {}
        tool = _TOOLS.get(str(name))
        if tool is None:
            raise LookupError(f"there is no tool {name!r}; there are {', '.join(_TOOLS)}")
        known = signature(tool).parameters
        unknown = next((each for each in given if each not in known or each == "alma"), None)
        if unknown is not None:
            raise LookupError(f"{name} has no argument {unknown!r}; it takes {', '.join([*known][1:])}")
        answer = await asyncio.to_thread(tool, self.alma, **given)
        told = await answer if isawaitable(answer) else answer
        return {"content": [{"type": "text", "text": json.dumps(told, indent=2, ensure_ascii=False, default=str)}]}

    async def _read(self, params: Mapping[str, Any]) -> JsonObject:
        uri = str(params.get("uri"))
        if uri not in _RESOURCES:
            raise LookupError(f"there is no resource {uri!r}; there are {', '.join(_RESOURCES)}")
        resource = await asyncio.to_thread(_RESOURCES[uri], self.alma)
        text = json.dumps(resource["content"], indent=2, ensure_ascii=False, default=str)
        return {"contents": [{"uri": uri, "mimeType": resource["mimeType"], "text": text}]}


def _described(name: str, tool: Callable[..., Any]) -> JsonObject:
    """A tool as clients see it, from the signature of its function."""
    arguments = [*signature(tool).parameters.values()][1:]
    required = [each.name for each in arguments if each.default is Parameter.empty]
    schema = {"type": "object", "properties": {each.name: _argument(each) for each in arguments}, "required": required}
    return {"name": name, "description": tool.__doc__, "inputSchema": schema}


def _argument(argument: Parameter) -> JsonObject:
    of_type: JsonObject = {"type": _TYPES[str(argument.annotation).partition(" ")[0]]}
    has_default = argument.default is not Parameter.empty and argument.default is not None
    return {**of_type, "default": argument.default} if has_default else of_type

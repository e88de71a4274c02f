"""ALMA's MCP server over HTTP with the tools, resources and prompts that the conformance suite asks for by name.

    python -m tests.support.mcp_fixtures CONFIG     prints the address it serves at

Transport, authentication, sessions, errors and everything else are those of `alma mcp --http`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore

from alma.mcp.http import PATH, create_server
from alma.mcp.server import Options
from alma.mcp.service import Context, Service
from alma.serving.server import address_of_socket, listen
from tests.support.mcp_input import INPUT_TOOLS, asked_prompt

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
RESOURCES: dict[str, types.TextResourceContents | types.BlobResourceContents] = {
    "test://static-text": types.TextResourceContents(
        uri="test://static-text", mime_type="text/plain", text="This is the content of the static text resource."
    ),
    "test://static-binary": types.BlobResourceContents(uri="test://static-binary", mime_type="image/png", blob=PIXEL),
    "test://watched-resource": types.TextResourceContents(
        uri="test://watched-resource", mime_type="text/plain", text="Watched resource content"
    ),
}
IMAGE = types.ImageContent(data=PIXEL, mime_type="image/png")
Content = list[Any]


def text(said: str) -> types.TextContent:
    return types.TextContent(text=said)


def embedded(uri: str, said: str, mime_type: str = "text/plain") -> types.EmbeddedResource:
    return types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, mime_type=mime_type, text=said))


async def _logging(context: Context, _: dict[str, Any]) -> Content:
    for step in ("started", "processing data", "completed"):
        await context.session.send_log_message("info", f"Tool execution {step}", related_request_id=context.request_id)
    return [text("Tool with logging executed successfully")]


async def _progress(context: Context, _: dict[str, Any]) -> Content:
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100, f"Completed step {done} of 100")
    return [text("done")]


async def _sampling(context: Context, given: dict[str, Any]) -> Content:
    message = types.SamplingMessage(role="user", content=text(given["prompt"]))
    result = await context.session.create_message([message], max_tokens=100, related_request_id=context.request_id)
    return [text(f"LLM response: {result.content.text}")]  # type: ignore[union-attr]


async def _elicited(context: Context, message: str, properties: dict[str, Any]) -> Content:
    schema = {"type": "object", "properties": properties, "required": []}
    result = await context.session.elicit_form(message, schema, related_request_id=context.request_id)
    return [text(f"User response: action={result.action}, content={json.dumps(result.content)}")]


def _elicitation(context: Context, given: dict[str, Any]) -> Awaitable[Content]:
    return _elicited(context, given["message"], {"response": {"type": "string", "description": "User's response"}})


def _defaults(context: Context, _: dict[str, Any]) -> Awaitable[Content]:
    properties = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return _elicited(context, "Please provide user information", properties)


def _titled(**titles: str) -> list[dict[str, str]]:
    return [{"const": value, "title": title} for value, title in titles.items()]


def _enums(context: Context, _: dict[str, Any]) -> Awaitable[Content]:
    sizes = {"enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]}
    properties = {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": _titled(value1="First", value2="Second", value3="Third")},
        "legacyEnum": {"type": "string", **sizes},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": _titled(value1="First", value2="Second", value3="Third")}},
    }
    return _elicited(context, "Please select options", properties)


async def _reconnection(context: Context, _: dict[str, Any]) -> Content:
    if context.close_sse_stream is not None:
        await context.close_sse_stream()
    await anyio.sleep(0.2)
    return [text("Reconnection test completed")]


async def _failing(_: Context, __: dict[str, Any]) -> Content:
    raise RuntimeError("This tool intentionally returns an error for testing")


def _fixed(*content: Any) -> Callable[[Context, dict[str, Any]], Awaitable[Content]]:
    async def tool(_: Context, __: dict[str, Any]) -> Content:
        return list(content)

    return tool


TOOLS: dict[str, Callable[[Context, dict[str, Any]], Awaitable[Content]]] = {
    "test_simple_text": _fixed(text("This is a simple text response for testing.")),
    "test_image_content": _fixed(IMAGE),
    "test_audio_content": _fixed(types.AudioContent(data=SOUND, mime_type="audio/wav")),
    "test_embedded_resource": _fixed(embedded("test://embedded-resource", "This is an embedded resource content.")),
    "test_multiple_content_types": _fixed(
        text("Multiple content types test:"),
        IMAGE,
        embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
    ),
    "test_tool_with_logging": _logging,
    "test_tool_with_progress": _progress,
    "test_sampling": _sampling,
    "test_elicitation": _elicitation,
    "test_elicitation_sep1034_defaults": _defaults,
    "test_elicitation_sep1330_enums": _enums,
    "test_error_handling": _failing,
    "test_reconnection": _reconnection,
    "json_schema_2020_12_tool": _fixed(text("ok")),
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "json_schema_2020_12_tool": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    }
}
PROMPTS: dict[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}


def prompt_content(name: str, given: dict[str, str]) -> Content:
    """What a prompt of the suite says."""
    if name == "test_prompt_with_arguments":
        return [text(f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'")]
    if name == "test_prompt_with_embedded_resource":
        return [embedded(given["resourceUri"], "Embedded resource content for testing."), text("Please process it.")]
    if name == "test_prompt_with_image":
        return [IMAGE, text("Please analyze the image above.")]
    return [text("This is a simple prompt for testing.")]


class Events(EventStore):
    """The events of all streams, so that a client can resume one."""

    def __init__(self) -> None:
        self._events: list[tuple[str, types.JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: types.JSONRPCMessage | None) -> str:
        self._events.append((stream_id, message))
        return str(len(self._events))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        stream, _ = self._events[int(last_event_id) - 1]
        for number, (each, message) in enumerate(self._events, start=1):
            if each == stream and number > int(last_event_id) and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


class FixtureServer(Server):
    """A server whose streams can be resumed."""

    def streamable_http_app(self, **options: Any) -> Any:
        return super().streamable_http_app(event_store=Events(), retry_interval=100, **options)


class FixtureService(Service):
    """ALMA's service that also answers what the suite names."""

    def server(self) -> Server:
        """The service's server with handlers for subscriptions and log levels."""
        made = super().server()
        return FixtureServer(
            made.name,
            version=made.version or "",
            instructions=made.instructions,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscribe_resource=_acknowledged,
            on_unsubscribe_resource=_acknowledged,
            on_set_logging_level=_acknowledged,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_completion=self._complete,
        )

    async def _list_tools(self, context: Context, request: object) -> types.ListToolsResult:
        ours = await super()._list_tools(context, request)
        plain = {"type": "object", "properties": {}}
        more = [
            types.Tool(name=name, description=f"Fixture {name}.", input_schema=SCHEMAS.get(name, plain))
            for name in (*TOOLS, *INPUT_TOOLS)
        ]
        return types.ListToolsResult(tools=[*ours.tools, *more])

    async def _call_tool(self, context: Context, request: types.CallToolRequestParams) -> Any:
        if request.name in INPUT_TOOLS:
            return await INPUT_TOOLS[request.name](context, request)
        if request.name not in TOOLS:
            return await super()._call_tool(context, request)
        try:
            return types.CallToolResult(content=await TOOLS[request.name](context, request.arguments or {}))
        except RuntimeError as exc:
            return types.CallToolResult(content=[text(str(exc))], is_error=True)

    async def _list_resources(self, context: Context, request: object) -> types.ListResourcesResult:
        ours = await super()._list_resources(context, request)
        more = [types.Resource(uri=uri, name=uri, mime_type=each.mime_type) for uri, each in RESOURCES.items()]
        return types.ListResourcesResult(resources=[*ours.resources, *more])

    async def _list_templates(self, context: Context, request: object) -> types.ListResourceTemplatesResult:
        ours = await super()._list_templates(context, request)
        more = types.ResourceTemplate(uri_template="test://template/{id}/data", name="template")
        return types.ListResourceTemplatesResult(resource_templates=[*ours.resource_templates, more])

    async def _read_resource(
        self, context: Context, request: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(request.uri)
        if uri in RESOURCES:
            return types.ReadResourceResult(contents=[RESOURCES[uri]])
        if uri.startswith("test://template/"):
            number = uri.split("/")[3]
            said = json.dumps({"id": number, "templateTest": True, "data": f"Data for ID: {number}"})
            return types.ReadResourceResult(
                contents=[types.TextResourceContents(uri=uri, mime_type="application/json", text=said)]
            )
        return await super()._read_resource(context, request)

    async def _list_prompts(self, context: Context, request: object) -> types.ListPromptsResult:
        ours = await super()._list_prompts(context, request)
        more = [
            types.Prompt(
                name=name,
                description=f"Fixture {name}.",
                arguments=[types.PromptArgument(name=each, description=each, required=True) for each in arguments],
            )
            for name, arguments in PROMPTS.items()
        ]
        return types.ListPromptsResult(prompts=[*ours.prompts, *more])

    async def _get_prompt(self, context: Context, request: types.GetPromptRequestParams) -> Any:
        if request.name not in PROMPTS:
            return await super()._get_prompt(context, request)
        if (asked := asked_prompt(request)) is not None:
            return asked
        content = prompt_content(request.name, request.arguments or {})
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=each) for each in content])


async def _acknowledged(_: Context, __: Any) -> types.EmptyResult:
    return types.EmptyResult()


def main() -> None:
    """Serve at a free port until the process is ended."""
    options = Options(config=sys.argv[1], http=True, port=0)
    with FixtureService(options) as service:
        server = create_server(service)
        with listen(options) as listener:
            sys.stderr.write(f"serving at {address_of_socket(listener)}{PATH}\n")
            sys.stderr.flush()
            server.run(sockets=[listener])


if __name__ == "__main__":
    main()

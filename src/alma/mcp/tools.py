"""Tools: operations under the tool names that clients know, and their schemas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

from mcp_types import Tool, ToolAnnotations

from alma.errors import NotFoundError
from alma.model.fields import JsonObject
from alma.operations import OPERATIONS
from alma.operations.base import Face, Operation

DOCUMENTED: Mapping[str, str] = MappingProxyType(
    {
        "alma_retrieve": "retrieve",
        "alma_learn": "learn",
        "alma_add_preference": "add_preference",
        "alma_add_knowledge": "add_knowledge",
        "alma_forget": "forget",
        "alma_stats": "stats",
        "alma_health": "health",
    }
)
"""The seven documented tools of ALMA and their operations."""

BESIDES: Mapping[str, str] = MappingProxyType({"alma_remember": "create_memory", "alma_search": "search_memories"})
"""Tools for general memories, which the small toolset also has."""

# Below these keywords, keys are property names and not keywords of JSON Schema.
_NAMED = frozenset({"properties", "$defs"})
_VERBATIM = frozenset({"default", "const", "enum", "examples"})

CONTINUATION: JsonObject = {
    "type": "object",
    "description": "The result is longer than the limit: call alma_continue with the cursor.",
    "properties": {
        "cursor": {"type": "string"},
        "pieces": {"type": "integer", "description": "The number of remaining pieces."},
    },
    "required": ["cursor", "pieces"],
}

CONTINUE = Tool(
    name="alma_continue",
    title="Continue",
    description=(
        "Return the rest of a result that exceeded the token limit.\n\n"
        "Each piece has its place in the result (a JSON pointer) and its value. A text piece continues the text that "
        "is already in its place."
    ),
    input_schema={
        "type": "object",
        "properties": {"cursor": {"type": "string", "description": "The cursor of a result's continuation."}},
        "required": ["cursor"],
        "additionalProperties": False,
    },
    output_schema={
        "type": "object",
        "properties": {
            "pieces": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"at": {"type": "string"}, "value": {}},
                    "required": ["at", "value"],
                },
            },
            "continuation": CONTINUATION,
        },
        "required": ["pieces"],
    },
    annotations=ToolAnnotations(
        title="Continue", read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    ),
)


class Toolset:
    """The tools of a toolset, by name."""

    def __init__(self, toolset: str, operations: Iterable[Operation[Any, Any]] = OPERATIONS) -> None:
        offered = {each.name: each for each in operations if Face.MCP in each.faces}
        named = {**DOCUMENTED, **BESIDES}
        self._operations = {tool: offered[name] for tool, name in named.items() if name in offered}
        if toolset == "full":
            under_other_names = set(DOCUMENTED.values())
            self._operations |= {name: each for name, each in offered.items() if name not in under_other_names}

    def __contains__(self, name: str) -> bool:
        return name == CONTINUE.name or name in self._operations

    def writes(self, name: str) -> bool:
        """Whether a tool changes data."""
        return name in self._operations and not self._operations[name].read_only

    def operation(self, name: str) -> Operation[Any, Any]:
        """The operation of a tool."""
        if name not in self._operations:
            raise NotFoundError("tool", name)
        return self._operations[name]

    @cached_property
    def tools(self) -> list[Tool]:
        """All tools as tool_of to clients; cached, because the library asks for them with every call."""
        return [*(tool_of(name, operation) for name, operation in self._operations.items()), CONTINUE]


def tool_of(name: str, operation: Operation[Any, Any]) -> Tool:
    """The tool of an operation."""
    title = operation.name.replace("_", " ").capitalize()
    return Tool(
        name=name,
        title=title,
        description="\n\n".join(" ".join(part.split()) for part in operation.description.split("\n\n")),
        input_schema=input_schema(operation),
        output_schema=output_schema(operation),
        annotations=ToolAnnotations(
            title=title,
            read_only_hint=operation.read_only,
            destructive_hint=operation.destructive,
            idempotent_hint=operation.idempotent,
            # Operations only read and write the store.
            open_world_hint=False,
        ),
    )


def input_schema(operation: Operation[Any, Any]) -> JsonObject:
    """The input schema of a tool with an example; nullable arguments are tool_of as optional."""
    schema = _short(operation.input_schema, optional=True)
    arguments = schema.get("properties", {})
    # Specific arguments come first, and the rarely given project last.
    schema["properties"] = dict(sorted(arguments.items(), key=lambda named: named[0] == "project_id"))
    return {**schema, "examples": [operation.example]} if operation.example else schema


def output_schema(operation: Operation[Any, Any]) -> JsonObject:
    """The output schema of a tool, with an optional continuation."""
    schema = _short(operation.output_schema, optional=False)
    return {**schema, "properties": {**schema.get("properties", {}), "continuation": CONTINUATION}}


def _short(schema: Mapping[str, Any], optional: bool) -> JsonObject:
    """A schema without titles, which only repeat property names."""
    short: JsonObject = {}
    for word, value in schema.items():
        if word in _NAMED:
            short[word] = {name: _short(inner, optional) for name, inner in value.items()}
        elif word in _VERBATIM:
            short[word] = value
        elif word != "title":
            short[word] = _short_value(value, optional)
    return _without_null(short) if optional else short


def _short_value(value: Any, optional: bool) -> Any:
    if isinstance(value, Mapping):
        return _short(value, optional)
    if isinstance(value, list):
        return [_short_value(item, optional) for item in value]
    return value


def _without_null(schema: JsonObject) -> JsonObject:
    choices = schema.get("anyOf")
    if not choices or "default" not in schema or schema["default"] is not None:
        return schema
    left = [choice for choice in choices if choice != {"type": "null"}]
    rest = {word: value for word, value in schema.items() if word not in ("anyOf", "default")}
    return {**left[0], **rest} if len(left) == 1 else {"anyOf": left, **rest}

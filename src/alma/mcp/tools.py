"""Tools: the operations that this face offers, under the names that clients know."""

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
"""ALMA's seven tools and their operations."""

BESIDES: Mapping[str, str] = MappingProxyType({"alma_remember": "create_memory", "alma_search": "search_memories"})
"""What a small set of tools cannot do without: general memories."""

# Below these a key is a name somebody chose, and no word of JSON Schema.
_NAMED = frozenset({"properties", "$defs"})
_VERBATIM = frozenset({"default", "const", "enum", "examples"})

CONTINUATION: JsonObject = {
    "type": "object",
    "description": "There is more than fits: call alma_continue with the cursor.",
    "properties": {
        "cursor": {"type": "string"},
        "pieces": {"type": "integer", "description": "How many pieces are left."},
    },
    "required": ["cursor", "pieces"],
}

CONTINUE = Tool(
    name="alma_continue",
    title="Continue",
    description=(
        "Give the rest of an answer that was longer than fits.\n\n"
        "Each piece has its place in that answer (a JSON pointer) and its value. A text that belongs where there is "
        "text already is the continuation of it."
    ),
    input_schema={
        "type": "object",
        "properties": {"cursor": {"type": "string", "description": "The cursor of the continuation."}},
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


class Toolbox:
    """The tools of a set, by name."""

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
        """Whether a tool of this name changes what is stored."""
        return name in self._operations and not self._operations[name].read_only

    def operation(self, name: str) -> Operation[Any, Any]:
        """The operation behind a tool."""
        if name not in self._operations:
            raise NotFoundError("tool", name)
        return self._operations[name]

    @cached_property
    def tools(self) -> list[Tool]:
        """Every tool as clients are told of it; the library asks for them with every call."""
        return [*(described(name, operation) for name, operation in self._operations.items()), CONTINUE]


def described(name: str, operation: Operation[Any, Any]) -> Tool:
    """A tool that is an operation."""
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
            # A memory is a closed world: nothing outside of the store is asked.
            open_world_hint=False,
        ),
    )


def input_schema(operation: Operation[Any, Any]) -> JsonObject:
    """What a tool takes, with an example; what may be null may as well be left out, and is described so."""
    schema = _short(operation.input_schema, optional=True)
    arguments = schema.get("properties", {})
    # What is special comes first, and the project, which is hardly ever named, last.
    schema["properties"] = dict(sorted(arguments.items(), key=lambda named: named[0] == "project_id"))
    return {**schema, "examples": [operation.example]} if operation.example else schema


def output_schema(operation: Operation[Any, Any]) -> JsonObject:
    """What a tool gives, which may be less than all there is."""
    schema = _short(operation.output_schema, optional=False)
    return {**schema, "properties": {**schema.get("properties", {}), "continuation": CONTINUATION}}


def _short(schema: Mapping[str, Any], optional: bool) -> JsonObject:
    """A schema without titles, which only repeat names."""
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

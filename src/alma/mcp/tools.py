"""Tools: operations under the names that clients know, in toolsets, with their schemas."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

from mcp_types import Tool, ToolAnnotations

from alma.errors import ConfigurationError, NotFoundError
from alma.lazy import loader
from alma.mcp.continuation import CONTINUATION, CONTINUE
from alma.mcp.daily import DAILY, DailyTool
from alma.model.fields import JsonObject
from alma.operations import OPERATIONS
from alma.operations.base import Face, Operation

PREFIX = "alma_"
SMALL, FULL, NONE = "small", "full", "none"
NAMES: Mapping[str, str] = MappingProxyType({each.operation: each.name for each in DAILY})
"""The tools whose names differ from those of their operations."""

# Below these keywords, keys are property names and not keywords of JSON Schema.
_NAMED = frozenset({"properties", "$defs"})
_VERBATIM = frozenset({"default", "const", "enum", "examples"})


def tool_name(operation: str) -> str:
    """The name of an operation's tool, with the prefix that keeps it apart from those of other servers."""
    return NAMES.get(operation, f"{PREFIX}{operation}")


class Toolset:
    """The tools of a toolset and those named besides; each operation is one tool.

    A tool can also be called by the name of its operation, as the documents of earlier servers do.
    """

    def __init__(
        self, toolset: str, tools: Iterable[str] = (), operations: Iterable[Operation[Any, Any]] = OPERATIONS
    ) -> None:
        known = {tool_name(each.name): each for each in operations if Face.MCP in each.faces}
        daily = {each.name: each for each in DAILY}
        chosen = {SMALL: list(daily), FULL: [*daily, *known], NONE: []}[toolset]
        wanted = dict.fromkeys((*chosen, *(_named(each, known) for each in tools if each != CONTINUE.name)))
        self._operations = {name: known[name] for name in wanted if name in known}
        self._daily = {name: each for name, each in daily.items() if name in self._operations}
        self._names = {CONTINUE.name: CONTINUE.name}
        for name, operation in self._operations.items():
            self._names |= {operation.name: name, f"{PREFIX}{operation.name}": name}
        self._names |= {name: name for name in self._operations}

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def writes(self, name: str) -> bool:
        """Whether a tool changes data."""
        return name in self and name != CONTINUE.name and not self.operation(name).read_only

    def operation(self, name: str) -> Operation[Any, Any]:
        """The operation of a tool."""
        if name not in self._names or name == CONTINUE.name:
            raise NotFoundError("tool", name)
        return self._operations[self._names[name]]

    def daily(self, name: str) -> DailyTool | None:
        """The description of a tool of the default list."""
        return self._daily.get(self._names.get(name, name))

    @cached_property
    def tools(self) -> list[Tool]:
        """All tools as clients see them; cached, because the library asks for them with every call."""
        described = (
            daily_tool(self._daily[name], operation) if name in self._daily else tool_of(name, operation)
            for name, operation in self._operations.items()
        )
        return [*described, CONTINUE]


def _named(name: str, known: Mapping[str, Operation[Any, Any]]) -> str:
    """The tool that a user named, with or without the prefix."""
    for each in (name, tool_name(name), f"{PREFIX}{name}", tool_name(name.removeprefix(PREFIX))):
        if each in known:
            return each
    close = difflib.get_close_matches(f"{PREFIX}{name.removeprefix(PREFIX)}", known, n=2)
    hint = f"did you mean {' or '.join(close)}?" if close else "docs/reference/mcp.md lists them"
    raise ConfigurationError(f"there is no tool {name!r}; {hint}")


def daily_tool(daily: DailyTool, operation: Operation[Any, Any]) -> Tool:
    """A tool of the default list: the arguments that are needed in a day, described for a model.

    Further arguments of the operation are accepted as well.
    """
    whole = input_schema(operation)
    arguments = {name: _argument(name, shown, whole["properties"]) for name, shown in daily.arguments.items()}
    schema: JsonObject = {"type": "object", "properties": arguments, "required": whole["required"]}
    return Tool(
        name=daily.name, description=daily.description, input_schema=schema, annotations=_annotations(operation)
    )


def _argument(name: str, shown: str | JsonObject, known: Mapping[str, JsonObject]) -> JsonObject:
    if not isinstance(shown, str):
        return shown
    kept = {word: value for word, value in known[name].items() if word in ("type", "anyOf", "enum", "items")}
    if "items" in kept:
        kept["items"] = {word: value for word, value in kept["items"].items() if word in ("type", "enum")}
    return {**kept, "description": shown}


def tool_of(name: str, operation: Operation[Any, Any]) -> Tool:
    """The tool of an operation."""
    return Tool(
        name=name,
        title=_title(operation),
        description="\n\n".join(" ".join(part.split()) for part in operation.description.split("\n\n")),
        input_schema=input_schema(operation),
        output_schema=output_schema(operation),
        annotations=_annotations(operation),
    )


def _title(operation: Operation[Any, Any]) -> str:
    return operation.name.replace("_", " ").capitalize()


def _annotations(operation: Operation[Any, Any]) -> ToolAnnotations:
    return ToolAnnotations(
        title=_title(operation),
        read_only_hint=operation.read_only,
        destructive_hint=operation.destructive,
        idempotent_hint=operation.idempotent,
        # Operations only read and write the store.
        open_world_hint=False,
    )


def input_schema(operation: Operation[Any, Any]) -> JsonObject:
    """The input schema of a tool with an example; nullable arguments become optional."""
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


# The tools as functions that take the memory first, as in alma-memory.
_FUNCTIONS = ("retrieve", "learn", "add_preference", "add_knowledge", "forget", "stats", "health", "consolidate")
__getattr__ = loader(__name__, {f"{PREFIX}{name}": "alma.compat.tools" for name in _FUNCTIONS})

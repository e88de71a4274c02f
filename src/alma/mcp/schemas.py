"""Schemas: those of the operations, as short as a client's context deserves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from alma.model.fields import JsonObject
from alma.operations.base import Operation

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

"""Arguments: what a request says, from its body, its path and its query, as an operation takes it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic_core import from_json

from alma.errors import ValidationError
from alma.model.fields import JsonObject
from alma.operations.base import Operation
from alma.rest.responses import ArgumentError, HttpError

DEEPEST = 64
MOST_VALUES = 20
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d")
ParameterType = Literal["string", "integer", "number", "boolean", "array"]
# Where a filter says whose memories are meant, the operation itself says it already.
_SAID_OUTSIDE = frozenset({"project_id", "user_id", "session_id"})


def body_of(content: bytes, content_type: str) -> JsonObject:
    """The JSON object of a request; none at all counts as an empty one."""
    if not content:
        return {}
    media = content_type.partition(";")[0].strip().lower()
    if media != "application/json" and not (media.startswith("application/") and media.endswith("+json")):
        raise HttpError(415, f"the body must be JSON: send it with  Content-Type: application/json  (not {media!r})")
    try:
        said = from_json(content, allow_inf_nan=False)
    except ValueError as exc:
        raise HttpError(400, f"the body is no valid JSON: {exc}") from None
    if not isinstance(said, dict):
        raise HttpError(400, "the body must be a JSON object with the arguments by name")
    check_plain(said)
    return said


def check_plain(value: Any) -> None:
    """Refuse what no store can keep: too deep, no number, or a text with a NUL."""
    rest = [(value, 1)]
    while rest:
        each, depth = rest.pop()
        if depth > DEEPEST:
            raise HttpError(400, f"the JSON is nested too deeply: at most {DEEPEST} levels")
        if isinstance(each, str) and "\0" in each:
            raise ValidationError("request", None, each[:80], "must not contain a NUL character, which no store keeps")
        if isinstance(each, float) and not math.isfinite(each):
            raise ValidationError("request", None, each, "is a number that is too large")
        if isinstance(each, dict):
            rest.extend((part, depth + 1) for part in each.values())
            rest.extend((part, depth) for part in each)
        elif isinstance(each, list):
            rest.extend((part, depth + 1) for part in each)


def as_described(schema: JsonObject, said: JsonObject) -> JsonObject:
    """The arguments as their schema means them, where the operations are more, or less, particular.

    JSON does not tell 5.0 from 5; and a number in quotation marks is no date.
    """
    definitions = schema.get("$defs", {})
    for name, value in said.items():
        described = resolved(schema["properties"].get(name, {}), definitions)
        if isinstance(value, float) and described.get("type") == "integer" and value.is_integer():
            said[name] = int(value)
        elif isinstance(value, str) and described.get("format") == "date-time" and not _MOMENT.match(value):
            raise ArgumentError("request", name, value, "must be a time like 2026-01-31T12:00:00Z")
        elif isinstance(value, dict) and "properties" in described:
            said[name] = as_described({**described, "$defs": definitions}, value)
    return said


def resolved(described: JsonObject, definitions: Mapping[str, Any]) -> JsonObject:
    """What a schema says of a value that is there: without references and without null."""
    if "$ref" in described:
        return resolved(definitions[described["$ref"].rpartition("/")[2]], definitions)
    options = [each for each in described.get("anyOf", ()) if each.get("type") != "null"]
    return resolved(options[0], definitions) if options else described


class Query:
    """The arguments of an operation that a query string can say: plain values, lists of them, and a filter's."""

    def __init__(self, operation: Operation[Any, Any], in_path: Iterable[str] = ()) -> None:
        schema = operation.input_schema
        self._definitions: Mapping[str, Any] = schema.get("$defs", {})
        self.parameters: dict[str, JsonObject] = {}
        self._in_filter: set[str] = set()
        for name, described in schema["properties"].items():
            if name in in_path:
                continue
            if name == "where":
                self._add_filter(described)
            elif _type_of(self._resolved(described)) is not None:
                self.parameters[name] = self._plain(described)
        self._required = set(schema.get("required", ())) - set(in_path)

    def required(self, name: str) -> bool:
        return name in self._required

    def said(self, given: Iterable[tuple[str, str]]) -> JsonObject:
        """The arguments that a query string gives."""
        lists: dict[str, list[str]] = {}
        for name, value in given:
            if name not in self.parameters:
                known = ", ".join(self.parameters)
                raise ArgumentError("request", name, value, f"is no parameter; there are {known}")
            lists.setdefault(name, []).append(value)
        said: JsonObject = {}
        where: JsonObject = {}
        for name, values in lists.items():
            (where if name in self._in_filter else said)[name] = self._value(name, values)
        if where:
            said["where"] = where
        check_plain(said)
        return said

    def _value(self, name: str, values: list[str]) -> Any:
        kind = _type_of(self.parameters[name])
        if kind == "array":
            if len(values) > MOST_VALUES:
                reason = f"must be given at most {MOST_VALUES} times; send longer lists to /v1/operations"
                raise ArgumentError("request", name, values, reason)
            return values
        if len(values) > 1:
            raise ArgumentError("request", name, values, "must be given once")
        return _read(name, kind, values[0])

    def _add_filter(self, described: JsonObject) -> None:
        for name, part in self._resolved(described)["properties"].items():
            if name not in _SAID_OUTSIDE and _type_of(self._resolved(part)) is not None:
                self.parameters[name] = self._plain(part)
                self._in_filter.add(name)

    def _plain(self, described: JsonObject) -> JsonObject:
        """The schema of a parameter: a query string has no null."""
        found = {**self._resolved(described)}
        if isinstance(found.get("items"), Mapping):
            found["items"] = self._resolved(found["items"])
            found["maxItems"] = min(MOST_VALUES, found.get("maxItems", MOST_VALUES))
        if "description" in described:
            found["description"] = described["description"]
        for left_out in ("title", "default"):
            found.pop(left_out, None)
        return found

    def _resolved(self, described: JsonObject) -> JsonObject:
        return resolved(described, self._definitions)


def _type_of(described: JsonObject) -> ParameterType | None:
    kind = described.get("type")
    if kind == "array":
        return "array"
    return kind if kind in ("string", "integer", "number", "boolean") else None


def _read(name: str, kind: ParameterType | None, text: str) -> Any:
    try:
        if kind == "integer":
            return int(text)
        if kind == "number":
            return float(text)
    except ValueError:
        raise ArgumentError("request", name, text, "must be a number") from None
    if kind == "boolean":
        if text not in ("true", "false"):
            raise ArgumentError("request", name, text, "must be true or false")
        return text == "true"
    return text

"""Routes: every operation at /v1/operations/NAME, resource paths for the most common ones, and their arguments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from pydantic_core import from_json

from alma.errors import ValidationError
from alma.lazy import lazy_regex
from alma.model.fields import JsonObject
from alma.operations import OPERATIONS, operation_named
from alma.operations.base import Face, Operation
from alma.rest.responses import ArgumentError, HttpError

MAX_DEPTH = 64
MAX_VALUES = 20
_DATE_TIME = lazy_regex(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d")
ParameterType = Literal["string", "integer", "number", "boolean", "array"]
# Fields of a filter that the operation itself takes.
_OPERATION_FIELDS = frozenset({"project_id", "user_id", "session_id"})


def parse_body(content: bytes, content_type: str) -> JsonObject:
    """The JSON object in a request body; an empty body is an empty object."""
    if not content:
        return {}
    media = content_type.partition(";")[0].strip().lower()
    if media != "application/json" and not (media.startswith("application/") and media.endswith("+json")):
        raise HttpError(415, f"the body must be JSON: send it with  Content-Type: application/json  (not {media!r})")
    try:
        arguments = from_json(content, allow_inf_nan=False)
    except ValueError as exc:
        raise HttpError(400, f"the body is not valid JSON: {exc}") from None
    if not isinstance(arguments, dict):
        raise HttpError(400, "the body must be a JSON object with the arguments by name")
    check_json(arguments)
    return arguments


def check_json(value: Any) -> None:
    """Reject JSON that no store can keep: too deeply nested, an infinite number, or text with a NUL."""
    rest = [(value, 1)]
    while rest:
        each, depth = rest.pop()
        if depth > MAX_DEPTH:
            raise HttpError(400, f"the JSON is nested too deeply: at most {MAX_DEPTH} levels")
        if isinstance(each, str) and "\0" in each:
            raise ValidationError("request", None, each[:80], "must not contain a NUL character, which no store keeps")
        if isinstance(each, float) and not math.isfinite(each):
            raise ValidationError("request", None, each, "is a number that is too large")
        if isinstance(each, dict):
            rest.extend((part, depth + 1) for part in each.values())
            rest.extend((part, depth) for part in each)
        elif isinstance(each, list):
            rest.extend((part, depth + 1) for part in each)


def coerce(schema: JsonObject, arguments: JsonObject) -> JsonObject:
    """Convert arguments as their schema says: JSON does not distinguish 5.0 from 5, and dates must look like dates."""
    definitions = schema.get("$defs", {})
    for name, value in arguments.items():
        schema_part = resolve_schema(schema["properties"].get(name, {}), definitions)
        if isinstance(value, float) and schema_part.get("type") == "integer" and value.is_integer():
            arguments[name] = int(value)
        elif isinstance(value, str) and schema_part.get("format") == "date-time" and not _DATE_TIME.match(value):
            raise ArgumentError("request", name, value, "must be a time like 2026-01-31T12:00:00Z")
        elif isinstance(value, dict) and "properties" in schema_part:
            arguments[name] = coerce({**schema_part, "$defs": definitions}, value)
    return arguments


def resolve_schema(schema_part: JsonObject, definitions: Mapping[str, Any]) -> JsonObject:
    """The schema of a value that is present: references resolved, null removed."""
    if "$ref" in schema_part:
        return resolve_schema(definitions[schema_part["$ref"].rpartition("/")[2]], definitions)
    options = [each for each in schema_part.get("anyOf", ()) if each.get("type") != "null"]
    return resolve_schema(options[0], definitions) if options else schema_part


class QueryString:
    """The parameters of a query string: plain values, lists of them, and the fields of a filter."""

    def __init__(self, operation: Operation[Any, Any], in_path: Iterable[str] = ()) -> None:
        schema = operation.input_schema
        self._definitions: Mapping[str, Any] = schema.get("$defs", {})
        self.parameters: dict[str, JsonObject] = {}
        self._in_filter: set[str] = set()
        for name, schema_part in schema["properties"].items():
            if name in in_path:
                continue
            if name == "where":
                self._add_filter(schema_part)
            elif _parameter_type(self._resolve(schema_part)) is not None:
                self.parameters[name] = self._parameter_schema(schema_part)
        self._required = set(schema.get("required", ())) - set(in_path)

    def required(self, name: str) -> bool:
        return name in self._required

    def parse(self, given: Iterable[tuple[str, str]]) -> JsonObject:
        """The arguments in a query string."""
        lists: dict[str, list[str]] = {}
        for name, value in given:
            if name not in self.parameters:
                known = ", ".join(self.parameters)
                raise ArgumentError("request", name, value, f"is not a known parameter; there are {known}")
            lists.setdefault(name, []).append(value)
        arguments: JsonObject = {}
        where: JsonObject = {}
        for name, values in lists.items():
            (where if name in self._in_filter else arguments)[name] = self._value(name, values)
        if where:
            arguments["where"] = where
        check_json(arguments)
        return arguments

    def _value(self, name: str, values: list[str]) -> Any:
        kind = _parameter_type(self.parameters[name])
        if kind == "array":
            if len(values) > MAX_VALUES:
                reason = f"must be given at most {MAX_VALUES} times; send longer lists to /v1/operations"
                raise ArgumentError("request", name, values, reason)
            return values
        if len(values) > 1:
            raise ArgumentError("request", name, values, "must be given once")
        return _read(name, kind, values[0])

    def _add_filter(self, schema_part: JsonObject) -> None:
        for name, part in self._resolve(schema_part)["properties"].items():
            if name not in _OPERATION_FIELDS and _parameter_type(self._resolve(part)) is not None:
                self.parameters[name] = self._parameter_schema(part)
                self._in_filter.add(name)

    def _parameter_schema(self, schema_part: JsonObject) -> JsonObject:
        """The schema of a query parameter, which is never null."""
        found = {**self._resolve(schema_part)}
        if isinstance(found.get("items"), Mapping):
            found["items"] = self._resolve(found["items"])
            found["maxItems"] = min(MAX_VALUES, found.get("maxItems", MAX_VALUES))
        if "description" in schema_part:
            found["description"] = schema_part["description"]
        for left_out in ("title", "default"):
            found.pop(left_out, None)
        return found

    def _resolve(self, schema_part: JsonObject) -> JsonObject:
        return resolve_schema(schema_part, self._definitions)


def _parameter_type(schema_part: JsonObject) -> ParameterType | None:
    kind = schema_part.get("type")
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


# The operations of the Memory Orchestrator come first, under their known paths.
_RESOURCES: tuple[tuple[str, str, str], ...] = (
    ("POST", "/v1/memories", "create_memory"),
    ("GET", "/v1/memories/{memory_id}", "get_memory"),
    ("PATCH", "/v1/memories/{memory_id}", "update_memory"),
    ("DELETE", "/v1/memories/{memory_id}", "delete_memory"),
    ("GET", "/v1/memories", "list_memories"),
    ("POST", "/v1/memories/search", "search_memories"),
    ("POST", "/v1/memories/bulk-delete", "bulk_delete"),
    ("POST", "/v1/memories/summarize", "summarize"),
    ("POST", "/v1/memories/{memory_id}/restore", "restore_memory"),
    ("POST", "/v1/sessions", "create_session"),
    ("GET", "/v1/sessions", "list_sessions"),
    ("GET", "/v1/sessions/{session_id}", "get_session"),
    ("POST", "/v1/sessions/{session_id}/end", "end_session"),
    ("POST", "/v1/sessions/{session_id}/switch", "switch_session"),
    ("DELETE", "/v1/sessions/{session_id}", "delete_session"),
    ("POST", "/v1/retrieve", "retrieve"),
    ("POST", "/v1/learn", "learn"),
    ("POST", "/v1/recommend", "recommend"),
    ("POST", "/v1/context", "get_context"),
    ("POST", "/v1/preferences", "add_preference"),
    ("GET", "/v1/preferences", "list_preferences"),
    ("POST", "/v1/knowledge", "add_knowledge"),
    ("POST", "/v1/forget", "forget"),
    ("GET", "/v1/stats", "stats"),
    ("GET", "/v1/projects", "list_projects"),
    ("DELETE", "/v1/projects/{project_id}", "delete_project"),
    ("DELETE", "/v1/users/{user_id}", "delete_user"),
)
_CREATING = frozenset({"create_memory", "create_session"})
_WITHOUT_BODY = frozenset({"GET", "DELETE"})
_IN_PATH = lazy_regex(r"\{(\w+)\}")


@dataclass(frozen=True)
class Route:
    """One operation at one method and path."""

    method: str
    path: str
    operation: Operation[Any, Any]

    @property
    def is_generic(self) -> bool:
        return self.path.startswith("/v1/operations/")

    @property
    def status(self) -> int:
        """The status of success: 201 where a resource path creates something."""
        return 201 if not self.is_generic and self.operation.name in _CREATING else 200

    @property
    def id(self) -> str:
        """The operationId in the OpenAPI document."""
        return f"call_{self.operation.name}" if self.is_generic else self.operation.name

    @cached_property
    def in_path(self) -> tuple[str, ...]:
        return tuple(_IN_PATH.findall(self.path))

    @cached_property
    def query(self) -> QueryString | None:
        """The query parameters, if the method has no body."""
        return QueryString(self.operation, self.in_path) if self.method in _WITHOUT_BODY else None

    @property
    def has_etag(self) -> bool:
        """Whether the response has the version of a memory as its ETag."""
        return self.path == "/v1/memories/{memory_id}" or (self.path, self.method) == ("/v1/memories", "POST")

    @property
    def takes_if_match(self) -> bool:
        return self.has_etag and self.method in ("PATCH", "DELETE")


def routes() -> Iterator[Route]:
    """Every route of every operation that REST offers."""
    offered = [each for each in OPERATIONS if Face.REST in each.faces]
    names = {each.name for each in offered}
    for method, path, name in _RESOURCES:
        if name in names:
            yield Route(method, path, operation_named(name))
    for each in offered:
        yield Route("POST", f"/v1/operations/{each.name}", each)

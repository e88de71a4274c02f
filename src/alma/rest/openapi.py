"""The OpenAPI document, generated from the operations and routes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic.json_schema import PydanticJsonSchemaWarning, models_json_schema

from alma import __version__
from alma.model.fields import JsonObject
from alma.rest.responses import CODES
from alma.rest.routes import Route

_JSON = "application/json"
_COMPONENTS = "#/components/schemas/"
_NO_NUL = "^[^\\u0000]*$"
_ERROR_REF = {"$ref": "#/components/schemas/Error"}
_DESCRIPTION = """\
Memory for AI agents over HTTP.

Every operation is at `POST /v1/operations/{name}` with its arguments as a JSON object; the most common ones also have
resource paths. Fields without a value are omitted from responses. All errors have the same shape. A write that is
repeated with the same `Idempotency-Key` is executed once.
"""


def openapi_document(routes: Iterable[Route]) -> JsonObject:
    """The OpenAPI document."""
    known = list(routes)
    inputs, schemas = _schemas(known)
    paths: dict[str, JsonObject] = {}
    for route in known:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, inputs)
    paths.update(_SERVICE_PATHS)
    return {
        "openapi": "3.1.0",
        "info": {"title": "ALMA", "version": __version__, "description": _DESCRIPTION, "license": {"name": "MIT"}},
        "servers": [{"url": "/"}],
        "security": [{"key": []}, {}],
        "tags": [{"name": name} for name in dict.fromkeys(route.operation.group for route in known)],
        "paths": paths,
        "components": {
            "schemas": {**schemas, "Error": _ERROR},
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A key made by `alma keys create`. On the loopback address no key is needed "
                    "until the first one exists.",
                }
            },
        },
    }


def _schemas(routes: list[Route]) -> tuple[Mapping[Any, JsonObject], JsonObject]:
    models: dict[Any, None] = {}
    for route in routes:
        models[route.operation.input] = models[route.operation.output] = None
    with warnings.catch_warnings():
        # pydantic warns about fields that redefine a field without a default.
        warnings.simplefilter("ignore", PydanticJsonSchemaWarning)
        found, definitions = models_json_schema(
            [(model, "validation") for model in models], ref_template=f"{_COMPONENTS}{{model}}"
        )
    schemas: JsonObject = definitions.get("$defs", {})
    _reach(schemas, (found[route.operation.input, "validation"] for route in routes), _as_it_is_read)
    _reach(schemas, (found[route.operation.output, "validation"] for route in routes), _may_be_left_out)
    return {model: reference for (model, _), reference in found.items()}, schemas


def _reach(schemas: JsonObject, starts: Iterable[Any], change: Callable[[JsonObject], None]) -> None:
    """Apply a change to every schema that is reachable from these."""
    seen: set[str] = set()
    rest: list[Any] = list(starts)
    while rest:
        part = rest.pop()
        if isinstance(part, list):
            rest.extend(part)
        elif isinstance(part, dict):
            change(part)
            name = str(part.get("$ref", "")).removeprefix(_COMPONENTS)
            if name and name not in seen:
                seen.add(name)
                rest.append(schemas[name])
            rest.extend(part.values())


def _as_it_is_read(schema: JsonObject) -> None:
    """Describe inputs: no NUL in text, and the allowed names of an enum that is also accepted as text."""
    options = schema.get("anyOf", ())
    if {"type": "string"} in options and any("$ref" in each for each in options):
        schema["anyOf"] = [each for each in options if each != {"type": "string"}]
    if schema.get("type") == "string" and not schema.keys() & {"format", "enum", "pattern", "const"}:
        schema["pattern"] = _NO_NUL


def _may_be_left_out(schema: JsonObject) -> None:
    """Describe outputs: nullable fields are omitted when null, so they are not required."""
    properties = schema.get("properties", {})
    if "required" in schema and isinstance(properties, dict):
        schema["required"] = [name for name in schema["required"] if not _is_nullable(properties.get(name, {}))]


def _is_nullable(schema: JsonObject) -> bool:
    return any(each.get("type") == "null" for each in schema.get("anyOf", ()))


def _operation(route: Route, models: Mapping[Any, JsonObject]) -> JsonObject:
    operation = route.operation
    said: JsonObject = {
        "operationId": route.id,
        "tags": [operation.group],
        "summary": operation.summary,
        "description": _described(route),
        "parameters": [*_path_parameters(route), *_query_parameters(route), *_header_parameters(route)],
        "responses": _responses(route, models[operation.output]),
    }
    if route.query is None:
        said["requestBody"] = {
            "required": bool(operation.input_schema.get("required")),
            "content": {_JSON: {"schema": _body_schema(route, models), "example": _example(route)}},
        }
    return said


def _described(route: Route) -> str:
    said = f"{route.operation.description}\n\nNeeds the right to {route.operation.right}."
    if route.takes_if_match:
        said += " With `If-Match: ETAG` the change is made only if the memory is at that version, else 412."
    return said


def _body_schema(route: Route, models: Mapping[Any, JsonObject]) -> JsonObject:
    """The schema of the request body, without the arguments that are in the path."""
    reference = models[route.operation.input]
    if not route.in_path:
        return reference
    schema = {**route.operation.input_schema}
    schema["properties"] = {name: part for name, part in schema["properties"].items() if name not in route.in_path}
    schema["required"] = [name for name in schema.get("required", ()) if name not in route.in_path]
    definitions = schema.pop("$defs", {})
    rooted: JsonObject = _rooted(schema, definitions)
    _reach({}, [rooted], _as_it_is_read)
    return rooted


def _rooted(value: Any, definitions: Mapping[str, Any]) -> Any:
    """A schema with its references replaced by their definitions."""
    if isinstance(value, Mapping):
        if "$ref" in value:
            return _rooted(definitions[value["$ref"].rpartition("/")[2]], definitions)
        return {name: _rooted(part, definitions) for name, part in value.items()}
    return [_rooted(part, definitions) for part in value] if isinstance(value, list) else value


def _example(route: Route) -> JsonObject:
    return {name: value for name, value in route.operation.example.items() if name not in route.in_path}


def _path_parameters(route: Route) -> list[JsonObject]:
    properties = route.operation.input_schema["properties"]
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            # An id with a slash would be another path; such ids work with /v1/operations.
            "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[^/\\x00]+$"},
            "description": properties[name].get("description", f"The {name.replace('_', ' ')}."),
            "example": route.operation.example.get(name, "01a1e0a2b81e7fc49d0ec9b96de703e8"),
        }
        for name in route.in_path
    ]


def _query_parameters(route: Route) -> list[JsonObject]:
    if route.query is None:
        return []
    made = []
    for name, schema in route.query.parameters.items():
        parameter: JsonObject = {"name": name, "in": "query", "required": route.query.required(name)}
        parameter["schema"] = {part: value for part, value in schema.items() if part != "description"}
        _reach({}, [parameter["schema"]], _as_it_is_read)
        if "description" in schema:
            parameter["description"] = schema["description"]
        if name in route.operation.example:
            parameter["example"] = route.operation.example[name]
        made.append(parameter)
    return made


def _header_parameters(route: Route) -> list[JsonObject]:
    made: list[JsonObject] = []
    if not route.operation.read_only:
        made.append(
            _header(
                "Idempotency-Key",
                "A unique name for this request: if it is sent again, it is executed once and gets the same response.",
                {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[ -~]+$"},
            )
        )
    if route.has_etag and route.method == "GET":
        made.append(_header("If-None-Match", "An ETag; 304 if the memory has not changed.", {"type": "string"}))
    return made


def _header(name: str, description: str, schema: JsonObject) -> JsonObject:
    return {"name": name, "in": "header", "required": False, "description": description, "schema": schema}


def _responses(route: Route, output: JsonObject) -> JsonObject:
    done: JsonObject = {"description": "Done.", "content": {_JSON: {"schema": output}}}
    if route.has_etag and route.method != "DELETE":
        done["headers"] = {"ETag": {"description": "The memory's version.", "schema": {"type": "string"}}}
    answers = {str(route.status): done}
    if route.has_etag and route.method == "GET":
        answers["304"] = {"description": "The memory has not changed."}
    statuses = [400, 401, 403, 404, 408, 409, 413, 415, 421, 422, 429, 500, 501, 503, 507]
    if route.takes_if_match:
        statuses.append(412)
    answers.update({str(status): _error_response(status) for status in sorted(statuses)})
    return answers


_MEANINGS = {
    400: "The request is malformed.",
    401: "An API key is missing or invalid.",
    403: "The API key does not allow this.",
    404: "Not found, or outside of what the API key can see.",
    405: "Method not allowed.",
    408: "The request body did not arrive in time.",
    409: "Conflict with another write, or the same request is in progress.",
    412: "The memory has changed since it was read.",
    413: "The request body is too large.",
    415: "The request body is not JSON.",
    421: "The service does not serve this host name.",
    422: "An argument is invalid, or a rule refuses the content.",
    429: "Too many requests.",
    500: "Internal error.",
    501: "This store does not support the operation.",
    503: "The store or a model is unavailable.",
    507: "The disk is full.",
}


def _error_response(status: int) -> JsonObject:
    said: JsonObject = {"description": _MEANINGS[status], "content": {_JSON: {"schema": _ERROR_REF}}}
    if status in (429, 503):
        said["headers"] = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
    return said


_ERROR: JsonObject = {
    "type": "object",
    "description": "An error: a code for programs and a message for people.",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "request_id"],
            "properties": {
                "code": {"type": "string", "enum": list(CODES)},
                "message": {"type": "string"},
                "details": {"type": "object"},
                "request_id": {"type": "string"},
            },
        }
    },
    "examples": [
        {
            "error": {
                "code": "memory_not_found",
                "message": "there is no memory with id '01a1e0a2'",
                "details": {"kind": "memory", "id": "01a1e0a2"},
                "request_id": "01a1e0a2b81e7fc49d0ec9b96de703e8",
            }
        }
    ],
}


def _plain(operation_id: str, summary: str, media: str, schema: JsonObject, statuses: Iterable[int]) -> JsonObject:
    answers: JsonObject = {"200": {"description": summary, "content": {media: {"schema": schema}}}}
    answers.update({str(status): _error_response(status) for status in statuses})
    return {
        "get": {"operationId": operation_id, "tags": ["service"], "summary": summary, "responses": answers},
    }


_TEXT: JsonObject = {"type": "string"}
_STATUS: JsonObject = {"type": "object", "required": ["status"], "properties": {"status": _TEXT, "version": _TEXT}}
_KEYED = (401, 403, 421, 429, 503)
_SERVICE_PATHS: JsonObject = {
    "/health": _plain("service_health", "Whether the service runs; needs no API key", _JSON, _STATUS, (421,)),
    "/ready": _plain("service_ready", "Whether the store is available", _JSON, _STATUS, _KEYED),
    "/metrics": _plain("service_metrics", "Prometheus metrics", "text/plain", _TEXT, _KEYED),
    "/v1/events": _plain(
        "stream_events", "Changes of memories as server-sent events", "text/event-stream", _TEXT, (*_KEYED, 422)
    ),
}
_SERVICE_PATHS["/v1/events"]["get"]["parameters"] = [
    {"name": "project_id", "in": "query", "schema": {"type": "string", "minLength": 1, "maxLength": 200}},
    {
        "name": "Last-Event-ID",
        "in": "header",
        "description": "The id of the last event received; the stream continues behind it.",
        "schema": {"type": "string", "pattern": r"^\d{1,9}\.\d{1,18}\.\d{1,18}$"},
    },
]

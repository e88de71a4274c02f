"""Writes src/schema.ts, the types of every operation, from the OpenAPI document; a test compares them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from alma.model.fields import JsonObject
from alma.rest.openapi import openapi_document
from alma.rest.routes import routes

TARGET = Path(__file__).parent / "src" / "schema.ts"
_HEAD = "// Made by `python clients/typescript/generate.py` from the OpenAPI document. Do not edit.\n"
_OPERATIONS = "/v1/operations/"
_JSON = "application/json"
_PRIMITIVES = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def module() -> str:
    """The text of src/schema.ts."""
    return "\n".join(_parts(openapi_document(routes())))


def _parts(document: JsonObject) -> Iterator[str]:
    yield _HEAD
    for name, schema in sorted(document["components"]["schemas"].items()):
        yield from _declaration(name, schema)
    operations = [
        (path.removeprefix(_OPERATIONS), methods["post"])
        for path, methods in document["paths"].items()
        if path.startswith(_OPERATIONS)
    ]
    yield "/** The input and output of every operation, by its name. */"
    yield "export interface Operations {"
    for name, operation in operations:
        yield f"  {name}: {{ input: {_input(operation)}; output: {_output(operation)} }};"
    yield "}\n"
    yield "/** A method for each operation, in camel case; arguments and results have the names of the service. */"
    yield "export interface OperationMethods {"
    for name, operation in operations:
        yield from _comment(operation["summary"] + ".", "  ")
        optional = "" if operation["requestBody"]["required"] else "?"
        given = f"input{optional}: Operations[{json.dumps(name)}]['input'], options?: CallOptions"
        yield f"  {_camel(name)}({given}): Promise<Operations[{json.dumps(name)}]['output']>;"
    yield "}\n"
    yield "/** Options of one call. */"
    yield "export interface CallOptions {"
    yield "  /** Cancels the call. */"
    yield "  signal?: AbortSignal;"
    yield "  /** Names this write, which is executed once for each name. Default: a new name for each call. */"
    yield "  idempotencyKey?: string;"
    yield "}\n"
    yield "/** Whether each operation writes; writes are sent with an idempotency key. */"
    yield "export const WRITES: { readonly [name in keyof Operations]: boolean } = {"
    for name, operation in operations:
        yield f"  {name}: {json.dumps(any(each['name'] == 'Idempotency-Key' for each in operation['parameters']))},"
    yield "};\n"


def _declaration(name: str, schema: JsonObject) -> Iterator[str]:
    yield from _comment(schema.get("description", ""), "")
    if schema.get("type") == "object" and "properties" in schema:
        yield f"export interface {name} {_object(schema, '')}\n"
    else:
        yield f"export type {name} = {_type(schema, '')};\n"


def _comment(text: str, indent: str) -> Iterator[str]:
    if text:
        yield f"{indent}/** {' '.join(text.split()).replace('*/', '* /')} */"


def _input(operation: Mapping[str, Any]) -> str:
    return _type(operation["requestBody"]["content"][_JSON]["schema"], "")


def _output(operation: Mapping[str, Any]) -> str:
    done = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
    return _type(done["content"][_JSON]["schema"], "")


def _type(schema: Any, indent: str) -> str:
    match schema:
        case {"$ref": reference}:
            return str(reference).rpartition("/")[2]
        case {"enum": values}:
            return " | ".join(json.dumps(value) for value in values)
        case {"anyOf": options}:
            return " | ".join(dict.fromkeys(_type(option, indent) for option in options))
        case {"type": "array"}:
            return f"Array<{_type(schema.get('items', {}), indent)}>"
        case {"type": "object", "properties": _}:
            return _object(schema, indent)
        case {"type": "object"}:
            values = schema.get("additionalProperties", True)
            return f"Record<string, {_type(values, indent) if isinstance(values, dict) else 'unknown'}>"
        case {"type": kind}:
            return _PRIMITIVES[kind]
        case _:
            return "unknown"


def _object(schema: JsonObject, indent: str) -> str:
    required = schema.get("required", ())
    lines = ["{"]
    for name, part in schema["properties"].items():
        lines += _comment(part.get("description", "") if isinstance(part, dict) else "", f"{indent}  ")
        lines.append(f"{indent}  {name}{'' if name in required else '?'}: {_type(part, f'{indent}  ')};")
    return "\n".join([*lines, f"{indent}}}"])


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)


if __name__ == "__main__":
    TARGET.write_text(module(), encoding="utf-8")

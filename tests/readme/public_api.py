"""Describe the public API as text, one line per item.

It consists of the names in `__all__` of the modules below, with their signatures, of the commands, the MCP tools, the
REST routes and the configuration keys. `make api` writes it to `public_api.txt`.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from alma.cli.app import every_command
from alma.config.settings import Settings
from alma.mcp.resources import Prompts, Resources
from alma.mcp.server import Options
from alma.mcp.tools import Toolset
from alma.model.fields import FieldSpec
from alma.model.record import Record
from alma.rest.openapi import openapi_document
from alma.rest.routes import routes

TARGET = Path(__file__).with_name("public_api.txt")
MODULES = (
    "alma",
    "alma.cache",
    "alma.client",
    "alma.confidence",
    "alma.consolidation",
    "alma.domains",
    "alma.embeddings",
    "alma.events",
    "alma.extraction",
    "alma.graph",
    "alma.harness",
    "alma.importers",
    "alma.ingest",
    "alma.integration",
    "alma.integration.anthropic_memory",
    "alma.integration.claude_agent_sdk",
    "alma.integration.langchain",
    "alma.integration.langgraph_checkpoint",
    "alma.integration.langgraph_store",
    "alma.integration.openai_agents",
    "alma.integration.server_memory",
    "alma.judge",
    "alma.learning",
    "alma.llm",
    "alma.memory",
    "alma.progress",
    "alma.retrieval",
    "alma.session",
    "alma.storage",
    "alma.storage.base",
    "alma.transfer",
    "alma.types",
)
_LIST_ITEM = "[]"


def listing() -> str:
    """The whole file."""
    parts = {
        "Python": _python(),
        "Command line": _commands(),
        "MCP": _mcp(),
        "REST": _rest(),
        "Configuration": _keys(Settings),
    }
    return "\n\n".join("\n".join([f"# {title}", "", *lines]) for title, lines in parts.items()) + "\n"


def _python() -> Iterator[str]:
    """Every name; what several modules offer is described at the first and named at the others."""
    described: dict[int, str] = {}
    for module in MODULES:
        home = import_module(module)
        for name in sorted(home.__all__):
            thing, address = getattr(home, name), f"{module}.{name}"
            known = described.get(id(thing))
            if known is not None:
                yield f"{address} = {known}"
                continue
            if callable(thing):
                described[id(thing)] = address
            yield from _described(address, thing, described)


def _described(address: str, thing: Any, described: dict[int, str]) -> Iterator[str]:
    if not callable(thing):
        yield f"{address}: {type(thing).__name__}"
    elif not isinstance(thing, type):
        yield f"{address}{_signature(thing)}"
    else:
        bases = [described[id(base)] for base in thing.__mro__[1:] if id(base) in described]
        yield f"class {address}{_constructor(thing)}" + (f" is a {bases[0]}" if bases else "")
        yield from sorted(f"  {line}" for line in _members(thing, described))


def _constructor(cls: type) -> str:
    if issubclass(cls, Enum) or issubclass(cls, Record) or getattr(cls, "_is_protocol", False):
        return ""
    try:
        return _signature(cls).removesuffix(" -> None")
    except ValueError:
        return ""


def _members(cls: type, described: dict[int, str]) -> Iterator[str]:
    """What users may call and read, apart from what the constructor or a public base class describes."""
    if issubclass(cls, Enum):
        yield from (f".{member.name} = {member.value!r}" for member in cls)
        return
    known: set[str] = set()
    if dataclasses.is_dataclass(cls):
        known = {field.name for field in dataclasses.fields(cls)}
    if issubclass(cls, Record) and cls is not Record:
        known = {"spec", *(field.name for field in cls.spec.fields)}
        yield f"({', '.join(map(_field, cls.spec.fields))})"
    for name, member in _attributes(cls, described).items():
        if name in known:
            continue
        if isinstance(member, classmethod | staticmethod) or inspect.isfunction(member):
            yield f".{name}{_signature(getattr(cls, name))}".replace("(self, ", "(").replace("(self)", "()")
        elif not isinstance(member, type):
            yield f".{name}"


def _attributes(cls: type, described: dict[int, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base is cls or (base.__module__.startswith("alma.") and id(base) not in described and base is not Record):
            found.update(vars(base))
    return {name: member for name, member in found.items() if not name.startswith("_") and name != "model_config"}


def _field(field: FieldSpec) -> str:
    kind = f"{field.name}: {field.type.value}{' | None' if field.nullable else ''}"
    return kind if field.required else f"{kind} = ..."


class _Text(str):
    """Text that a signature shows without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def _signature(thing: Any) -> str:
    signature = inspect.signature(thing)
    public = [_shown(each) for each in signature.parameters.values() if not each.name.startswith("_")]
    returned = signature.return_annotation
    return str(signature.replace(parameters=public, return_annotation=_plain(returned)))


def _shown(parameter: inspect.Parameter) -> inspect.Parameter:
    """A parameter with readable annotations; a default that is an object is written as `...`."""
    default = parameter.default
    if default is not parameter.empty and not isinstance(default, Enum) and re.search(r"[<(]", repr(default)):
        default = _Text("...")
    elif isinstance(default, Enum):
        default = _Text(f"{type(default).__name__}.{default.name}")
    return parameter.replace(annotation=_plain(parameter.annotation), default=default)


def _plain(annotation: Any) -> Any:
    return _Text(annotation) if isinstance(annotation, str) else annotation


def _commands() -> Iterator[str]:
    for path, command in every_command():
        if hasattr(command, "commands"):
            continue
        params = [each for each in command.params if not getattr(each, "hidden", False)]
        words = [_parameter(each) for each in params]
        yield " ".join([path, *sorted(words, key=lambda word: "--" in word)])


def _parameter(param: Any) -> str:
    if param.param_type_name == "argument":
        word = param.name.upper() + ("..." if param.nargs == -1 else "")
    else:
        word = "/".join([*param.opts, *param.secondary_opts])
    return word if param.required else f"[{word}]"


def _mcp() -> Iterator[str]:
    small = {tool.name for tool in Toolset("small").tools}
    for tool in Toolset("full").tools:
        yield f"{tool.name}({_properties(tool.input_schema)})" + ("" if tool.name in small else " in the full toolset")
    resources = Resources(Options())
    yield from (f"resource {resource.uri}" for resource in resources.listed())
    yield from (f"resource {template.uri_template}" for template in resources.templates())
    for prompt in Prompts(Toolset("small")).listed():
        names = (each.name if each.required else f"{each.name}?" for each in prompt.arguments or ())
        yield f"prompt {prompt.name}({', '.join(names)})"


def _rest() -> Iterator[str]:
    openapi = openapi_document(routes())
    for path, methods in openapi["paths"].items():
        for method, route in methods.items():
            query = [_queried(each) for each in route.get("parameters", ()) if each.get("in") == "query"]
            content = route.get("requestBody", {}).get("content", {}).get("application/json", {})
            body = _properties(_resolved(content.get("schema", {}), openapi))
            yield (
                f"{method.upper()} {path}"
                + (f" ?{', '.join(query)}" if query else "")
                + (f" {{{body}}}" if body else "")
            )


def _queried(parameter: dict[str, Any]) -> str:
    return str(parameter["name"]) + ("" if parameter.get("required") else "?")


def _resolved(schema: dict[str, Any], openapi: dict[str, Any]) -> dict[str, Any]:
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    found: dict[str, Any] = openapi["components"]["schemas"][name] if name else schema
    return found


def _properties(schema: dict[str, Any]) -> str:
    required = schema.get("required", ())
    return ", ".join(name if name in required else f"{name}?" for name in schema.get("properties", {}))


def _keys(section: type[BaseModel], path: str = "") -> Iterator[str]:
    """Every key with the path to it; `*` is a name that users choose, `[]` an item of a list."""
    for name, field in section.model_fields.items():
        here = f"{path}{field.alias or name}"
        inner = dict(_sections(field.annotation))
        if not inner:
            yield here
        for suffix, model in inner.items():
            yield from _keys(model, f"{here}{suffix}.")


def _sections(annotation: Any, suffix: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield suffix, annotation
        return
    origin = getattr(annotation, "__origin__", None)
    within = ".*" if origin is dict else _LIST_ITEM if origin is list else suffix
    for part in get_args(annotation):
        yield from _sections(part, within)


if __name__ == "__main__":
    TARGET.write_text(listing(), encoding="utf-8")

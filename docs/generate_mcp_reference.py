"""Writes docs/reference/mcp.md from the operations; a test checks that it is up to date."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp_types import Tool

from alma.mcp.resources import Prompts, Resources
from alma.mcp.server import Options
from alma.mcp.tools import Toolset

TARGET = Path(__file__).parent / "reference" / "mcp.md"


def reference() -> str:
    """The whole page."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    small, full = Toolset("small"), Toolset("full")
    yield "# MCP server"
    yield ""
    yield "What [the MCP server](../how-to/mcp.md) offers, made by `python docs/generate_mcp_reference.py`."
    yield "Arguments in bold are required. A result that is too long has a `continuation`."
    yield "\n## Tools\n"
    yield "Their results are brief; `details: true` returns all fields."
    yield "The other arguments of the operations are accepted as well.\n"
    for tool in small.tools:
        yield from _tool(tool)
    yield "## With `--toolset full`\n"
    yield "Any of them can be offered by name: `--tools alma_stats,alma_forget`.\n"
    known = {tool.name for tool in small.tools}
    for tool in full.tools:
        if tool.name not in known:
            yield from _tool(tool)
    yield "## Resources\n"
    resources = Resources(Options())
    yield "| Address | What it is |"
    yield "|---|---|"
    for resource in resources.listed():
        yield f"| `{resource.uri}` | {resource.description} |"
    for template in resources.templates():
        yield f"| `{template.uri_template}` | {template.description} |"
    yield "\n## Prompts\n"
    yield "| Prompt | What it is for | Arguments |"
    yield "|---|---|---|"
    for prompt in Prompts(small).listed():
        names = [f"**{each.name}**" if each.required else each.name for each in prompt.arguments or ()]
        yield f"| `{prompt.name}` | {prompt.description} | {', '.join(names)} |"


def _tool(tool: Tool) -> Iterator[str]:
    yield f"### {tool.name}\n"
    yield f"{tool.description}\n"
    traits = [name for name, value in _traits(tool) if value]
    if traits:
        yield f"*{', '.join(traits).capitalize()}.*\n"
    required = tool.input_schema.get("required", [])
    rows = [_row(name, schema, name in required) for name, schema in tool.input_schema.get("properties", {}).items()]
    if rows:
        yield "| Argument | Type | Default | |"
        yield "|---|---|---|---|"
        yield from rows
        yield ""
    if tool.output_schema is None:
        return
    gives = ", ".join(
        f"`{name}`" for name in (tool.output_schema or {}).get("properties", {}) if name != "continuation"
    )
    yield f"Gives {gives}.\n"


def _traits(tool: Tool) -> list[tuple[str, bool | None]]:
    hints = tool.annotations
    assert hints is not None
    again = hints.idempotent_hint and not hints.read_only_hint
    return [("reads only", hints.read_only_hint), ("takes away", hints.destructive_hint), ("may be repeated", again)]


def _row(name: str, schema: dict[str, Any], required: bool) -> str:
    shown = f"**{name}**" if required else name
    default = f"`{schema['default']}`" if schema.get("default") not in (None, "", []) else ""
    return f"| {shown} | {_type(schema)} | {default} | {schema.get('description', '').replace('|', chr(92) + '|')} |"


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(choice) for choice in schema["anyOf"]))
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("type", "any"))


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")

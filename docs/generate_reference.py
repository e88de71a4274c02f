"""Writes docs/reference/records.md and rest.md from the records and routes; a test checks that they are up to date."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from alma.model.fields import FieldSpec, FieldType, MaxLength, NotEmpty
from alma.model.kinds import KINDS
from alma.model.record import Record

TARGET = Path(__file__).parent / "reference" / "records.md"
REST_TARGET = TARGET.with_name("rest.md")


def reference() -> str:
    """The whole page."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield "# Records"
    yield ""
    yield "Every kind of record, made from its description by `python docs/generate_reference.py`."
    for cls in KINDS:
        yield from _kind(cls)


def _kind(cls: type[Record]) -> Iterator[str]:
    spec = cls.spec
    yield f"\n## {cls.__name__}\n"
    yield f"{(cls.__doc__ or '').strip().splitlines()[0]}\n"
    tables = f"`{spec.table}`" + (
        "" if spec.table == spec.postgres_table else f", `{spec.postgres_table}` on PostgreSQL"
    )
    traits = [f"Kind `{spec.kind}`", f"table {tables}"]
    if spec.text:
        traits.append("searched by " + ", ".join(f"`{name}`" for name in spec.text))
    if spec.versioned:
        traits.append("versioned")
    if spec.append_only:
        traits.append("append-only")
    traits.extend("unique by " + ", ".join(f"`{name}`" for name in rule.fields) for rule in spec.unique)
    yield "; ".join(traits) + ".\n"
    yield "| Field | Type | Default | Rules |"
    yield "|---|---|---|---|"
    yield from (_row(field) for field in spec.fields)


def _row(field: FieldSpec) -> str:
    return f"| `{field.name}` | {_type(field)} | {_default(field)} | {'; '.join(_rules(field))} |"


def _type(field: FieldSpec) -> str:
    return field.type.value + (" or none" if field.nullable else "")


def _default(field: FieldSpec) -> str:
    if field.derived is not None:
        return f"from `{field.derived.source}`"
    if field.required:
        return "required"
    if field.default is not None:
        return f"`{str(field.default) if field.type is FieldType.TEXT else field.default!r}`"
    return (
        {FieldType.TIMESTAMP: "now", FieldType.JSON: "`{}`"}.get(field.type, "new")
        if not field.nullable
        else ("now" if field.make_default is not None and field.make_default() is not None else "none")
    )


def _rules(field: FieldSpec) -> Iterator[str]:
    if field.choices is not None:
        yield "one of " + ", ".join(choice.value for choice in field.choices)
    if field.range is not None:
        low, high = field.range.low, field.range.high
        yield f"at least {low:g}" if high == float("inf") else f"{low:g} to {high:g}"
    for rule in field.rules:
        if isinstance(rule, NotEmpty):
            yield "not empty"
        if isinstance(rule, MaxLength):
            yield f"at most {rule.characters:,} characters"


def rest_reference() -> str:
    """The page of the REST service."""
    return "\n".join(_rest_page()) + "\n"


def _rest_page() -> Iterator[str]:
    from alma.rest.routes import routes

    known = list(routes())
    yield "# REST"
    yield ""
    yield "Every route, made by `python docs/generate_reference.py` from the operations; `/openapi.json` says more."
    yield "How to run and use the service: [Serve memories over HTTP](../how-to/rest.md)."
    for heading, generic in (("Addresses of their own", False), ("Every operation", True)):
        yield f"\n## {heading}\n"
        yield "| Route | Needs | What it does | Arguments |"
        yield "|---|---|---|---|"
        yield from (_rest_row(route) for route in known if route.is_generic is generic)
    yield "\n## The service itself\n"
    yield "`GET /health` and `GET /docs` (no key), `GET /ready`, `GET /metrics`, `GET /v1/events`, `GET /openapi.json`;"
    yield "MCP is at `/mcp`."


def _rest_row(route: Any) -> str:
    operation = route.operation
    required = operation.input_schema.get("required", ())
    names = (f"**{name}**" if name in required else name for name in operation.input.model_fields)
    said = ", ".join(names)
    return f"| `{route.method} {route.path}` | {operation.right} | {operation.summary} | {said} |"


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
    REST_TARGET.write_text(rest_reference(), encoding="utf-8")

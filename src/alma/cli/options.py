"""Convert the JSON Schema of an operation into command line arguments and options."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from inspect import Parameter
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any

import typer

from alma.errors import ValidationError
from alma.lazy import lazy_regex

Schema = Mapping[str, Any]

# Shorter names of common fields.
_SHORT_NAMES = {
    "project_id": "project",
    "user_id": "user",
    "session_id": "session",
    "memory_type": "type",
    "strategy_used": "strategy",
}
# Option names that every command has.
_RESERVED = frozenset(("config", "store", "json", "yes", "help"))
_NEVER_FIRST = ("project_id", "user_id", "agent")
_ENVIRONMENT = {"project_id": "ALMA_PROJECT", "user_id": "ALMA_USER"}
# Help for fields without a description in their model.
_FIELD_HELP = {
    "types": "One of these types",
    "categories": "One of these categories",
    "tags": "All of these tags",
    "any_tags": "One of these tags",
    "layers": "One of these layers: session, project, global or temporal",
    "source_agent": "From this agent",
    "event_since": "Events since this time",
    "event_until": "Events before this time",
    "created_since": "Remembered since then",
    "created_until": "Remembered before",
    "min_importance": "Minimum importance, from 0 to 1",
    "min_priority": "Minimum priority, from 1 to 10",
    "content": "Required values in the structured content",
    "private": "Only private ones, or none",
    "include_archived": "Archived ones, too",
    "include_deleted": "Include softly deleted ones",
    "include_expired": "Expired ones, too",
    "limit": "Maximum number of results",
    "offset": "Skip this number of results",
    "cursor": "Continue after the previous page, with its next_cursor",
    "user_id": "The user",
    "session_id": "The session",
    "agent": "The agent",
    "hard": "Delete for good",
    "reason": "Why; kept in the history",
    "query": "The query",
    "id": "Its id",
    "memory_id": "Its id",
    "title": "A title",
    "summary": "A summary",
    "mode": "The search mode",
    "max_tokens": "Maximum number of tokens",
}
# The same for the fields of a filter, and for single items.
_FILTER_HELP = {
    "user_id": "Of this user",
    "project_id": "Of this project",
    "session_id": "Of this session",
}
_ITEM_HELP = {"tags": "A tag"}
_TEXT_SOURCE = "-"
_FILE_MARK = "@"
_ANY_SCALAR = "scalar"


class Form(StrEnum):
    """The type of a value on the command line."""

    TEXT = "text"
    NUMBER = "number"
    WHOLE = "whole"
    FLAG = "flag"
    MOMENT = "moment"
    SCALAR = "scalar"
    JSON = "json"
    EITHER = "text or object"


@dataclass(frozen=True, slots=True)
class Field:
    """A value that an operation takes; `path` is its place in the arguments."""

    path: tuple[str, ...]
    form: Form
    several: bool
    required: bool
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    prefix: str = ""

    @property
    def name(self) -> str:
        """The parameter name."""
        return "__".join(self.path)

    @property
    def word(self) -> str:
        """The option name."""
        last = self.path[-1]
        plain = _singular(last) if self.several else _SHORT_NAMES.get(last, last)
        if plain in _RESERVED:
            plain = f"{plain}-{'json' if self.form is Form.JSON else 'value'}"
        return f"{self.prefix}{plain}".replace("_", "-")

    def written(self, value: Any) -> list[str]:
        """The option with a value, as written on the command line."""
        if self.form is Form.FLAG:
            off = [] if self.default is False else [f"--no-{self.word}"]
            return [f"--{self.word}"] if value else off
        if self.form is Form.JSON:
            return [f"--{self.word} {shlex.quote(json.dumps(value))}"]
        return [f"--{self.word} {quoted(each)}" for each in (value if self.several else [value])]

    def read(self, value: Any) -> Any:
        """The value as JSON."""
        if self.several and isinstance(value, list):
            return [self._read(each) for each in value]
        return self._read(value)

    def _read(self, value: Any) -> Any:
        match self.form:
            case Form.JSON:
                return _json(self.word, value)
            case Form.MOMENT:
                return _moment(self.word, value)
            case Form.SCALAR:
                return _scalar(value)
            case Form.EITHER:
                return _object_or_text(sys.stdin.read() if value == _TEXT_SOURCE else value)
            case Form.TEXT if value == _TEXT_SOURCE and not self.choices:
                return sys.stdin.read()
            case _:
                return value


def quoted(value: Any) -> str:
    """A value quoted for a shell, with double quotes where possible."""
    text = str(value)
    plain = shlex.quote(text)
    return f'"{text}"' if plain != text and not set(text) & set('"$`\\!\n') else plain


def fields_of(schema: Schema) -> list[Field]:
    """All fields of the arguments; nested objects contribute their own fields."""
    found = list(_fields(schema, schema, ()))
    taken = {field.word for field in found if len(field.path) == 1}
    return [
        replace(field, prefix=f"{field.path[0]}-") if len(field.path) > 1 and field.word in taken else field
        for field in found
    ]


def arguments_of(fields: Sequence[Field]) -> list[Field]:
    """The positional arguments: required fields, and one list at the end."""
    plain = [f for f in fields if f.required and f.path[-1] not in _NEVER_FIRST and f.form is not Form.JSON]
    one_each = [field for field in plain if not field.several]
    return [*one_each, *[field for field in plain if field.several][:1]]


def parameters_of(fields: Sequence[Field], positional: Sequence[Field]) -> Iterator[Parameter]:
    """The parameters of the function for Typer."""
    for field in (*positional, *(each for each in fields if each not in positional)):
        info = _argument(field) if field in positional else _option(field)
        needed = field.required
        annotation: Any = Annotated[_annotation(field) if needed else _annotation(field) | None, info]
        default = Parameter.empty if needed else None
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def arguments(fields: Sequence[Field], given: Mapping[str, Any]) -> dict[str, Any]:
    """The given values as arguments of the operation."""
    read: dict[str, Any] = {}
    for field in fields:
        value = given.get(field.name)
        if value is None:
            continue
        inner = read
        for step in field.path[:-1]:
            inner = inner.setdefault(step, {})
        inner[field.path[-1]] = field.read(value)
    return read


# ---------------------------------------------------------------------- reading the schema


def _fields(whole: Schema, schema: Schema, above: tuple[str, ...]) -> Iterator[Field]:
    required = schema.get("required", ())
    for name, described in schema.get("properties", {}).items():
        kind, help_text = _resolved(whole, described), described.get("description", "")
        path = (*above, name)
        if "properties" in kind and not above:
            yield from _fields(whole, kind, path)
            continue
        several = kind.get("type") == "array"
        item = _resolved(whole, kind.get("items", {})) if several else kind
        form = _form(item)
        yield Field(
            path,
            form,
            several and form is not Form.JSON,
            name in required and not above,
            described.get("default"),
            help_text,
            tuple(map(str, item.get("enum", ()))),
        )


def _resolved(whole: Schema, schema: Schema) -> Schema:
    """The schema of a value that is not null; text if text is allowed."""
    if "$ref" in schema:
        return _resolved(whole, whole["$defs"][schema["$ref"].rpartition("/")[2]])
    choices = [_resolved(whole, each) for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if not choices:
        return schema
    if {"number", "string"} <= {each.get("type") for each in choices}:
        return {"type": _ANY_SCALAR}
    if {"object", "string"} <= {each.get("type") for each in choices}:
        return {"type": str(Form.EITHER)}
    return next((each for each in choices if each.get("type") == "string" and "enum" not in each), choices[0])


def _form(schema: Schema) -> Form:
    match schema.get("type"):
        case "string":
            return Form.MOMENT if schema.get("format") == "date-time" else Form.TEXT
        case "integer":
            return Form.WHOLE
        case "number":
            return Form.NUMBER
        case "boolean":
            return Form.FLAG
        case "scalar":
            return Form.SCALAR
        case Form.EITHER:
            return Form.EITHER
        case _:
            return Form.TEXT if "enum" in schema else Form.JSON


# ---------------------------------------------------------------------- parameters for Typer

# mypy accepts the functional form with literals only.
_enumeration: Any = StrEnum
_TYPES: dict[Form, Any] = {Form.NUMBER: float, Form.WHOLE: int, Form.FLAG: bool}


def _annotation(field: Field) -> Any:
    # Typer does not support lists of choices; the operation checks them. An enumeration keeps the order, while Literals
    # with the same choices are equal, so that Python's cache of types may return another order.
    one: Any = _TYPES.get(field.form, str)
    if field.choices and not field.several:
        one = _enumeration(field.word, [(choice, choice) for choice in field.choices])
    return GenericAlias(list, (one,)) if field.several else one


def _argument(field: Field) -> Any:
    return typer.Argument(metavar=field.word.upper().replace("-", "_"), help=_help(field))


def _option(field: Field) -> Any:
    word = f"--{field.word}"
    if field.form is Form.FLAG and field.default is not False:
        word = f"{word}/--no-{field.word}"
    variable = _ENVIRONMENT.get(field.path[-1]) if len(field.path) == 1 else None
    if field.path == ("agent",) and field.required:
        variable = "ALMA_AGENT"
    help_text = f"{_help(field)}{_default(field)}"
    return typer.Option(word, help=help_text, show_default=False, envvar=variable, metavar=_metavar(field))


def _default(field: Field) -> str:
    value = field.default
    if field.form is Form.JSON or value in (None, "", [], False):
        return ""
    if value is True:
        return f"  [default: {field.word}]"
    return f"  [default: {', '.join(map(str, value)) if isinstance(value, list) else value}]"


def _metavar(field: Field) -> str | None:
    if field.form is Form.FLAG or field.choices:
        return None
    names = {Form.WHOLE: "N", Form.NUMBER: "X", Form.MOMENT: "TIME", Form.JSON: "JSON"}
    return names.get(field.form, "NAME" if field.word in _SHORT_NAMES.values() or field.word == "agent" else "TEXT")


_FIELD = lazy_regex(rf"\b({'|'.join((*_SHORT_NAMES, 'ttl_seconds', 'expires_at', 'importance_score'))})\b")


def _help(field: Field) -> str:
    last = field.path[-1]
    nearer = _FILTER_HELP if len(field.path) > 1 else _ITEM_HELP
    text = field.help.strip() or nearer.get(last) or _FIELD_HELP.get(last) or last.replace("_", " ").capitalize()
    # Field names in descriptions become option names.
    text = _FIELD.sub(lambda found: f"--{_SHORT_NAMES.get(found[0], found[0])}".replace("_", "-"), text)
    if field.form is Form.JSON:
        return f"{text.rstrip('.')}; JSON, or @FILE."
    if field.several:
        among = f", one of {', '.join(field.choices)}" if field.choices and field.choices[0] not in text else ""
        return f"{text.rstrip('.')}{among}; may be repeated."
    return text if text.endswith((".", "…")) else f"{text}."


def _singular(name: str) -> str:
    if name.endswith("ies"):
        return f"{name[:-3]}y"
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name


def _json(word: str, text: str) -> Any:
    try:
        if text.startswith(_FILE_MARK):
            text = Path(text[len(_FILE_MARK) :]).read_text(encoding="utf-8")
        return json.loads(sys.stdin.read() if text == _TEXT_SOURCE else text)
    except (OSError, ValueError, RecursionError) as exc:
        raise ValidationError(f"--{word}", None, text, f"must be JSON: {exc}") from None


def _scalar(text: str) -> Any:
    """A number or boolean if it looks like one, otherwise text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, bool | int | float) else text


def _object_or_text(text: str) -> Any:
    """A JSON object if it looks like one, otherwise text."""
    try:
        value = json.loads(text) if text.lstrip().startswith("{") else text
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict) else text


def _moment(word: str, text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        reason = "must be a time like 2026-01-31 or 2026-01-31T12:00:00+01:00"
        raise ValidationError(f"--{word}", None, text, reason) from None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).isoformat()

"""Tools: operations under the names that clients know, their schemas, and the continuation of long results."""

from __future__ import annotations

import json
import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from mcp_types import Tool, ToolAnnotations

from alma.errors import NotFoundError
from alma.model.fields import JsonObject
from alma.operations import OPERATIONS
from alma.operations.base import Face, Operation
from alma.tokens import count_tokens

DOCUMENTED: Mapping[str, str] = MappingProxyType(
    {
        "alma_retrieve": "retrieve",
        "alma_learn": "learn",
        "alma_add_preference": "add_preference",
        "alma_add_knowledge": "add_knowledge",
        "alma_forget": "forget",
        "alma_stats": "stats",
        "alma_health": "health",
    }
)
"""The seven documented tools of ALMA and their operations."""

BESIDES: Mapping[str, str] = MappingProxyType({"alma_remember": "create_memory", "alma_search": "search_memories"})
"""Tools for general memories, which the small toolset also has."""

# Below these keywords, keys are property names and not keywords of JSON Schema.
_NAMED = frozenset({"properties", "$defs"})
_VERBATIM = frozenset({"default", "const", "enum", "examples"})

CONTINUATION: JsonObject = {
    "type": "object",
    "description": "The result is longer than the limit: call alma_continue with the cursor.",
    "properties": {
        "cursor": {"type": "string"},
        "pieces": {"type": "integer", "description": "The number of remaining pieces."},
    },
    "required": ["cursor", "pieces"],
}

CONTINUE = Tool(
    name="alma_continue",
    title="Continue",
    description=(
        "Return the rest of a result that exceeded the token limit.\n\n"
        "Each piece has its place in the result (a JSON pointer) and its value. A text piece continues the text that "
        "is already in its place."
    ),
    input_schema={
        "type": "object",
        "properties": {"cursor": {"type": "string", "description": "The cursor of a result's continuation."}},
        "required": ["cursor"],
        "additionalProperties": False,
    },
    output_schema={
        "type": "object",
        "properties": {
            "pieces": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"at": {"type": "string"}, "value": {}},
                    "required": ["at", "value"],
                },
            },
            "continuation": CONTINUATION,
        },
        "required": ["pieces"],
    },
    annotations=ToolAnnotations(
        title="Continue", read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    ),
)


class Toolset:
    """The tools of a toolset, by name."""

    def __init__(self, toolset: str, operations: Iterable[Operation[Any, Any]] = OPERATIONS) -> None:
        offered = {each.name: each for each in operations if Face.MCP in each.faces}
        named = {**DOCUMENTED, **BESIDES}
        self._operations = {tool: offered[name] for tool, name in named.items() if name in offered}
        if toolset == "full":
            under_other_names = set(DOCUMENTED.values())
            self._operations |= {name: each for name, each in offered.items() if name not in under_other_names}

    def __contains__(self, name: str) -> bool:
        return name == CONTINUE.name or name in self._operations

    def writes(self, name: str) -> bool:
        """Whether a tool changes data."""
        return name in self._operations and not self._operations[name].read_only

    def operation(self, name: str) -> Operation[Any, Any]:
        """The operation of a tool."""
        if name not in self._operations:
            raise NotFoundError("tool", name)
        return self._operations[name]

    @cached_property
    def tools(self) -> list[Tool]:
        """All tools as clients see them; cached, because the library asks for them with every call."""
        return [*(tool_of(name, operation) for name, operation in self._operations.items()), CONTINUE]


def tool_of(name: str, operation: Operation[Any, Any]) -> Tool:
    """The tool of an operation."""
    title = operation.name.replace("_", " ").capitalize()
    return Tool(
        name=name,
        title=title,
        description="\n\n".join(" ".join(part.split()) for part in operation.description.split("\n\n")),
        input_schema=input_schema(operation),
        output_schema=output_schema(operation),
        annotations=ToolAnnotations(
            title=title,
            read_only_hint=operation.read_only,
            destructive_hint=operation.destructive,
            idempotent_hint=operation.idempotent,
            # Operations only read and write the store.
            open_world_hint=False,
        ),
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


Json = Any

_KEPT_ANSWERS = 200
# No field with a name or a date is as long as this.
_SHORTEST_TEXT = 300
_STEP = 500
_COUNTED_AT_ONCE = 4_000
# No record has as many fields as this: a larger object is a mapping with user data.
_MOST_FIELDS = 64
# Tokens for the continuation itself.
_RESERVED = 150


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a result and its JSON pointer."""

    at: str
    value: Json

    def as_json(self) -> Json:
        """The piece as sent to the client."""
        return {"at": self.at, "value": self.value}


@dataclass(frozen=True, slots=True)
class Truncated:
    """The part of a result that fits, and the rest."""

    value: Json
    rest: tuple[Piece, ...] = ()


def truncate(value: Json, tokens: int) -> Truncated:
    """Truncate a JSON value to a number of tokens; the rest is returned as pieces."""
    # A token has at least one byte.
    if len(as_text(value).encode()) <= tokens or token_count(value, tokens) <= tokens:
        return Truncated(value)
    rest: list[Piece] = []
    return Truncated(_fit(value, max(tokens - _RESERVED, 0), "", rest), tuple(rest))


def token_count(value: Json, at_most: int = 1 << 30) -> int:
    """The number of tokens of a JSON value; counting stops above `at_most`."""
    text, counted = as_text(value), 0
    for start in range(0, len(text), _COUNTED_AT_ONCE):
        counted += count_tokens(text[start : start + _COUNTED_AT_ONCE])
        if counted > at_most:
            break
    return counted


def as_text(value: Json) -> str:
    """A JSON value as text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Continuations:
    """The rests of the latest results, by owner and cursor."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str | None, str], tuple[Piece, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, owner: str | None, pieces: tuple[Piece, ...]) -> str:
        """Keep the rest of a result and return its cursor."""
        cursor = secrets.token_urlsafe(12)
        with self._lock:
            self._kept[owner, cursor] = pieces
            while len(self._kept) > _KEPT_ANSWERS:
                self._kept.popitem(last=False)
        return cursor

    def next_pieces(self, owner: str | None, cursor: str, tokens: int) -> tuple[list[Piece], tuple[Piece, ...]]:
        """The pieces that fit, and the rest; the same cursor always gives the same pieces."""
        with self._lock:
            kept = self._kept.get((owner, cursor))
        if kept is None:
            raise NotFoundError("continuation", cursor)
        return _page(kept, tokens - _RESERVED)


def _page(pieces: Sequence[Piece], tokens: int) -> tuple[list[Piece], tuple[Piece, ...]]:
    page: list[Piece] = []
    for number, piece in enumerate(pieces):
        needed = token_count(piece.as_json(), tokens)
        if needed > tokens:
            if page:
                return page, tuple(pieces[number:])
            rest: list[Piece] = []
            page.append(Piece(piece.at, _fit(piece.value, tokens, piece.at, rest)))
            return page, (*rest, *pieces[number + 1 :])
        page.append(piece)
        tokens -= needed
    return page, ()


def _fit(value: Json, tokens: int, at: str, rest: list[Piece]) -> Json:
    """As much of the value as fits; the remainder is appended to `rest`."""
    if token_count(value, tokens) <= tokens:
        return value
    if isinstance(value, str) and len(value) > _SHORTEST_TEXT:
        kept = _prefix(value, tokens)
        rest.append(Piece(at, value[len(kept) :]))
        return kept
    if isinstance(value, list):
        return _items(value, tokens, at, rest)
    if isinstance(value, dict):
        return _entries(value, tokens, at, rest)
    return value


def _items(value: list[Json], tokens: int, at: str, rest: list[Piece]) -> list[Json]:
    kept: list[Json] = []
    for number, item in enumerate(value):
        needed = token_count(item, tokens) + 1
        if needed > tokens:
            rest.extend(Piece(f"{at}/{place}", value[place]) for place in range(number, len(value)))
            break
        kept.append(item)
        tokens -= needed
    return kept


def _entries(value: dict[str, Json], tokens: int, at: str, rest: list[Piece]) -> dict[str, Json]:
    """Short fields come first, and long fields share the remaining tokens."""
    droppable = len(value) > _MOST_FIELDS
    costs = {name: token_count({name: item}, tokens) for name, item in value.items()}
    least = {
        name: 0 if droppable else min(costs[name], token_count({name: _smallest(item)})) for name, item in value.items()
    }
    spare = tokens - sum(least.values())
    kept: dict[str, Json] = {}
    for name, item in value.items():
        place = f"{at}/{name.replace('~', '~0').replace('/', '~1')}"
        if droppable and costs[name] > spare:
            rest.append(Piece(place, item))
            continue
        kept[name] = _fit(item, least[name] + max(spare, 0), place, rest)
        spare -= max(token_count({name: kept[name]}) - least[name], 0)
    return kept


def _smallest(value: Json) -> Json:
    """The smallest form of a value."""
    if isinstance(value, str):
        return value[:_SHORTEST_TEXT]
    if isinstance(value, list):
        return []
    if isinstance(value, dict):
        return {} if len(value) > _MOST_FIELDS else {name: _smallest(item) for name, item in value.items()}
    return value


def _prefix(text: str, tokens: int) -> str:
    """The longest prefix that fits, at least a short one."""
    end = _SHORTEST_TEXT
    tokens -= token_count(text[:end])
    while end < len(text) and (needed := token_count(text[end : end + _STEP])) <= tokens:
        tokens -= needed
        end += _STEP
    return text[:end]

"""Long results: what fits into the token limit, and the continuation with the rest."""

from __future__ import annotations

import json
import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcp_types import Tool, ToolAnnotations

from alma.errors import NotFoundError
from alma.model.fields import JsonObject
from alma.tokens import count_tokens

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
    description=(
        "Read on where a result ended with a continuation. Each piece names its place in that result as a JSON pointer."
    ),
    input_schema={
        "type": "object",
        "properties": {"cursor": {"type": "string", "description": "The cursor of the continuation."}},
        "required": ["cursor"],
    },
    annotations=ToolAnnotations(
        title="Continue", read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    ),
)

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

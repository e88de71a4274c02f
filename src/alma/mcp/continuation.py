"""Continuation: an answer that is longer than its budget is cut where its schema still holds, and the rest is kept.

A cut answer keeps all its fields. Lists lose their last items, long texts their ends and large mappings their last
entries. What was taken away is kept as pieces, in the order of the answer, each with the place (a JSON pointer) where
it belongs; put there, a text behind the text that is there already, they give the whole answer again.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from alma.errors import NotFoundError
from alma.tokens import count_tokens

Json = Any

_KEPT_ANSWERS = 200
# No field of a record that names or dates something is as long as this.
_LEAST_TEXT = 300
_STEP = 500
_COUNTED_AT_ONCE = 4_000
# No record has as many fields as this: what has more is a mapping that somebody filled.
_MOST_FIELDS = 64
# The words around what is left of an answer.
_RESERVED = 150


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an answer and where it belongs."""

    at: str
    value: Json

    def as_json(self) -> Json:
        """The piece as it is sent."""
        return {"at": self.at, "value": self.value}


@dataclass(frozen=True, slots=True)
class Cut:
    """As much of an answer as fits, and the rest."""

    value: Json
    rest: tuple[Piece, ...] = ()


def cut(value: Json, tokens: int) -> Cut:
    """As much of a JSON value as takes so many tokens, and the rest of it in pieces."""
    # No token has less than a byte.
    if len(as_text(value).encode()) <= tokens or cost(value, tokens) <= tokens:
        return Cut(value)
    rest: list[Piece] = []
    return Cut(_fitted(value, max(tokens - _RESERVED, 0), "", rest), tuple(rest))


def cost(value: Json, at_most: int = 1 << 30) -> int:
    """How many tokens a JSON value takes; counting ends where it is more than that."""
    text, counted = as_text(value), 0
    for start in range(0, len(text), _COUNTED_AT_ONCE):
        counted += count_tokens(text[start : start + _COUNTED_AT_ONCE])
        if counted > at_most:
            break
    return counted


def as_text(value: Json) -> str:
    """A JSON value as it is written in an answer."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def assembled(value: Json, pieces: Sequence[Piece]) -> Json:
    """The whole answer: what came first, with every piece at its place."""
    whole = json.loads(as_text(value))
    for piece in pieces:
        *path, last = [part.replace("~1", "/").replace("~0", "~") for part in piece.at.split("/")[1:]]
        parent = whole
        for part in path:
            parent = parent[int(part)] if isinstance(parent, list) else parent[part]
        _put(parent, last, piece.value)
    return whole


class Continuations:
    """The rests of the latest answers, each for whoever got the answer."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str | None, str], tuple[Piece, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, owner: str | None, pieces: tuple[Piece, ...]) -> str:
        """Keep the rest of an answer and return the cursor that continues it."""
        cursor = secrets.token_urlsafe(12)
        with self._lock:
            self._kept[owner, cursor] = pieces
            while len(self._kept) > _KEPT_ANSWERS:
                self._kept.popitem(last=False)
        return cursor

    def next_pieces(self, owner: str | None, cursor: str, tokens: int) -> tuple[list[Piece], tuple[Piece, ...]]:
        """As many pieces as fit, and those behind them; asked again, the same cursor gives the same."""
        with self._lock:
            kept = self._kept.get((owner, cursor))
        if kept is None:
            raise NotFoundError("continuation", cursor)
        return _page(kept, tokens - _RESERVED)


def _page(pieces: Sequence[Piece], tokens: int) -> tuple[list[Piece], tuple[Piece, ...]]:
    page: list[Piece] = []
    for number, piece in enumerate(pieces):
        needed = cost(piece.as_json(), tokens)
        if needed > tokens:
            if page:
                return page, tuple(pieces[number:])
            rest: list[Piece] = []
            page.append(Piece(piece.at, _fitted(piece.value, tokens, piece.at, rest)))
            return page, (*rest, *pieces[number + 1 :])
        page.append(piece)
        tokens -= needed
    return page, ()


def _fitted(value: Json, tokens: int, at: str, rest: list[Piece]) -> Json:
    """The value, or as much of it as fits; what does not is added to the rest."""
    if cost(value, tokens) <= tokens:
        return value
    if isinstance(value, str) and len(value) > _LEAST_TEXT:
        kept = _beginning(value, tokens)
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
        needed = cost(item, tokens) + 1
        if needed > tokens:
            rest.extend(Piece(f"{at}/{place}", value[place]) for place in range(number, len(value)))
            break
        kept.append(item)
        tokens -= needed
    return kept


def _entries(value: dict[str, Json], tokens: int, at: str, rest: list[Piece]) -> dict[str, Json]:
    """What is short comes first, whatever its place: the long fields share what is left."""
    droppable = len(value) > _MOST_FIELDS
    costs = {name: cost({name: item}, tokens) for name, item in value.items()}
    least = {name: 0 if droppable else min(costs[name], cost({name: _least(item)})) for name, item in value.items()}
    spare = tokens - sum(least.values())
    kept: dict[str, Json] = {}
    for name, item in value.items():
        place = f"{at}/{name.replace('~', '~0').replace('/', '~1')}"
        if droppable and costs[name] > spare:
            rest.append(Piece(place, item))
            continue
        kept[name] = _fitted(item, least[name] + max(spare, 0), place, rest)
        spare -= max(cost({name: kept[name]}) - least[name], 0)
    return kept


def _least(value: Json) -> Json:
    """What is left of a value when there is no room for it."""
    if isinstance(value, str):
        return value[:_LEAST_TEXT]
    if isinstance(value, list):
        return []
    if isinstance(value, dict):
        return {} if len(value) > _MOST_FIELDS else {name: _least(item) for name, item in value.items()}
    return value


def _beginning(text: str, tokens: int) -> str:
    """About the longest beginning that fits, and never less than a short text."""
    end = _LEAST_TEXT
    tokens -= cost(text[:end])
    while end < len(text) and (needed := cost(text[end : end + _STEP])) <= tokens:
        tokens -= needed
        end += _STEP
    return text[:end]


def _put(parent: Json, last: str, value: Json) -> None:
    if isinstance(parent, list):
        number = int(last)
        if number == len(parent):
            parent.append(value)
        else:
            parent[number] += value
    elif isinstance(parent.get(last), str):
        parent[last] += value
    else:
        parent[last] = value

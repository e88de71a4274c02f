"""Pages: memories in order, a page at a time, continued by a token that says where the last page ended."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from alma.errors import ValidationError
from alma.model.fields import FieldType
from alma.model.memory import Memory
from alma.model.query import EVERYTHING, And, Compare, Cursor, In, Order, Predicate, sort_key
from alma.model.scope import Scope
from alma.storage.base import StorageBackend

NEWEST_FIRST = ("-created_at",)
MOST_PER_PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Page:
    """Some memories in order; `next_cursor` continues behind them and is None at the end."""

    memories: tuple[Memory, ...]
    next_cursor: str | None = None


def read_page(
    storage: StorageBackend,
    scope: Scope,
    where: Predicate,
    sort: Sequence[str] = NEWEST_FIRST,
    limit: int = 50,
    offset: int = 0,
    cursor: str | None = None,
    types: Sequence[str] = (),
) -> Page:
    """A page of the memories inside the scope, of one of these types, that fulfil the predicate.

    `sort` names fields, with a minus sign for falling order. A cursor finds its place by an index, however far in that
    is; an offset has to walk there.
    """
    order = _order(sort)
    most = _whole("limit", limit, 1, MOST_PER_PAGE)
    skipped = _whole("offset", offset, 0)
    if cursor is not None and skipped:
        raise ValidationError("batch_read", "offset", offset, "cannot be given together with a cursor")
    with storage.snapshot():
        if skipped:
            of_type = And(where, In("memory_type", types)) if types else where
            found = _behind_offset(storage, scope, of_type, order, most, skipped)
        else:
            after = None if cursor is None else _decoded(cursor, order)
            found = _of_each_type(storage, scope, where, order, most + 1, after, types)
    page = found[:most]
    more = len(found) > most
    return Page(tuple(page), _encoded(page[-1], order) if more else None)


def _of_each_type(
    storage: StorageBackend,
    scope: Scope,
    where: Predicate,
    order: Sequence[Order],
    most: int,
    after: Cursor | None,
    types: Sequence[str],
) -> list[Memory]:
    """The first of each type, brought together: an index has each type in order, but not several."""
    kinds: list[Predicate] = [Compare("memory_type", "eq", each) for each in dict.fromkeys(types)]
    kinds = kinds or [EVERYTHING]
    found = [memory for kind in kinds for memory in storage.find(Memory, scope, And(where, kind), order, most, after)]
    return sorted(found, key=sort_key(order))[:most]


def _behind_offset(
    storage: StorageBackend, scope: Scope, where: Predicate, order: Sequence[Order], most: int, skipped: int
) -> list[Memory]:
    keys = [key for (key,) in storage.values(Memory, ("id",), scope, where, order, skipped + most + 1)][skipped:]
    return storage.find(Memory, scope, And(where, In("id", keys)), order)


def _order(sort: Sequence[str]) -> tuple[Order, ...]:
    if not isinstance(sort, Sequence):
        raise ValidationError("batch_read", "sort", sort, "must be a list of fields, as ['-created_at']")
    names = (sort,) if isinstance(sort, str) else tuple(sort)
    terms = []
    for name in names:
        if not isinstance(name, str):
            raise ValidationError("batch_read", "sort", name, "must be the name of a field, as 'created_at'")
        field = name.removeprefix("-")
        # Both say the same, and only one of them is stored.
        field = "importance_score" if field == "priority" else field
        terms.append(Order(field, "desc" if name.startswith("-") else "asc"))
    return tuple(terms)


def _encoded(memory: Memory, order: Sequence[Order]) -> str:
    cursor = Cursor.after(memory, order)
    values = [value.isoformat() if isinstance(value, datetime) else value for value in cursor.values]
    document = [[[term.field, term.direction] for term in order], values, cursor.key]
    return base64.urlsafe_b64encode(json.dumps(document, separators=(",", ":")).encode()).decode()


def _decoded(token: str, order: Sequence[Order]) -> Cursor:
    try:
        terms, values, key = json.loads(base64.urlsafe_b64decode(token.encode()))
        same = [Order(*term) for term in terms] == list(order)
        if same:
            typed = [_typed(term.field, value) for term, value in zip(order, values, strict=True)]
            return Cursor(tuple(typed), key)
    except (ValueError, TypeError, AttributeError, binascii.Error):
        raise ValidationError("batch_read", "cursor", token, "must be the next_cursor of an earlier page") from None
    raise ValidationError("batch_read", "cursor", token, "belongs to another order; ask with the sort it came from")


def _typed(name: str, value: Any) -> Any:
    is_moment = Memory.spec.field(name).type is FieldType.TIMESTAMP and value is not None
    return datetime.fromisoformat(value) if is_moment else value


def _whole(name: str, value: int, least: int, most: int | None = None) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least or (most is not None and value > most):
        limits = f"from {least} to {most:,}" if most is not None else f"of at least {least}"
        raise ValidationError("batch_read", name, value, f"must be a whole number {limits}")
    return value

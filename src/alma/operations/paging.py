"""Paging: records of a kind, the newest first, a page at a time."""

from __future__ import annotations

from typing import TypeVar

from alma.model.query import Cursor, Order, Predicate
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.base import StorageBackend

T = TypeVar("T", bound=Record)

# Ids begin with the time they were made at.
_NEWEST = (Order("id", "desc"),)


def paged(
    storage: StorageBackend, cls: type[T], scope: Scope, where: Predicate, limit: int, cursor: str | None
) -> tuple[list[T], str | None]:
    """A page of records, and the cursor that continues behind it."""
    after = None if cursor is None else Cursor((cursor,), cursor)
    found = storage.find(cls, scope, where, _NEWEST, limit + 1, after)
    page = found[:limit]
    return page, str(page[-1].key) if len(found) > limit else None

"""Search general memories, and read them page by page."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from alma import clock
from alma.cache.base import Searched
from alma.errors import ValidationError
from alma.memory.filters import MemoryFilter, checked_filter, viewer, visible_in_session
from alma.memory.layers import LayerPlan, route_layers
from alma.model.common import checked_whole
from alma.model.fields import FieldType
from alma.model.governance import Attribution, checked_by
from alma.model.memory import Memory
from alma.model.query import EVERYTHING, And, Compare, Cursor, In, Order, Predicate, sort_key
from alma.model.scope import Scope
from alma.model.slice import Dropped, Explanation, MemorySlice
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.simple_search import Mode
from alma.storage.base import StorageBackend

MOST_RESULTS = 100
NEWEST_FIRST = ("-created_at",)
MAX_PAGE_SIZE = 1_000


@dataclass(frozen=True, slots=True)
class Found:
    """A memory that was found, with the explanation of its score."""

    memory: Memory
    explanation: Explanation

    @property
    def score(self) -> float:
        return self.explanation.score

    @property
    def similarity(self) -> float | None:
        """The cosine similarity of memory and query, if it was measured."""
        return self.explanation.similarity

    @property
    def relevance(self) -> float | None:
        """The probability that the memory is relevant to the query, if it was measured."""
        return self.explanation.relevance

    def explain(self) -> str:
        """The terms that add up to the score, and which searches found the memory."""
        return str(self.explanation)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The memories that were found, best first.

    `degraded` is empty, or says which service was down and what was used instead. `plan` holds the layers that were
    searched if the router chose them.
    """

    hits: tuple[Found, ...]
    query: str
    mode: Mode
    degraded: str = ""
    plan: LayerPlan | None = None
    _slice: MemorySlice = dataclasses.field(default_factory=MemorySlice, repr=False, compare=False)

    @property
    def memories(self) -> tuple[Memory, ...]:
        return tuple(hit.memory for hit in self.hits)

    def __iter__(self) -> Iterator[Found]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def explain(self) -> list[Explanation]:
        """The terms of each score, best first."""
        return [hit.explanation for hit in self.hits]

    def why_not(self, memory_id: str) -> Dropped | None:
        """The stage at which a memory was dropped, or None if it was found."""
        if any(hit.memory.id == memory_id for hit in self.hits):
            return None
        return self._slice.why_not(memory_id)


def search(
    retrieval: RetrievalEngine,
    query: str,
    scope: Scope,
    by: Attribution,
    *,
    mode: Mode = "hybrid",
    where: MemoryFilter | None = None,
    min_similarity: float | None = None,
    limit: int = 10,
    routed: bool = False,
    now: datetime | None = None,
) -> SearchResult:
    """The memories that answer the query, out of those that the caller can see and the filter matches.

    In a project these are the memories of the project and the global memories of the user.
    """
    checked_whole("search", "limit", limit, 1, MOST_RESULTS)
    checked_by("search", by)
    wanted, moment = checked_filter("search", where), now or clock.now()
    plan = _plan(query, scope, by, moment) if routed and not wanted.layers else None
    visible_here = visible_in_session(scope, by, wanted)
    if plan is not None:
        wanted = dataclasses.replace(wanted, layers=plan.layers)
    fulfilling = wanted.predicate(moment)
    places = [(scope, And(visible_here, fulfilling)), *_global_of_user(scope, by, fulfilling)]
    found = retrieval.search(
        query,
        places,
        limit,
        mode=mode,
        min_similarity=checked_cosine(min_similarity),
        narrowed=wanted.narrows,
        now=now,
        key=repr((query, scope, viewer(scope, by), by.session_id, wanted, mode, min_similarity, limit)),
    )
    _publish(retrieval, query, found, scope, by, mode, plan)
    hits = tuple(Found(memory, found.explanation_of(memory.id)) for memory in found.memories)
    return SearchResult(hits, query, mode, found.degraded, plan, found)


def _publish(
    retrieval: RetrievalEngine,
    query: str,
    found: MemorySlice,
    scope: Scope,
    by: Attribution,
    mode: Mode,
    plan: LayerPlan | None,
) -> None:
    """Tell other programs of a search."""
    user_id = viewer(scope, by)
    layers = None if plan is None else {layer.value: reason for layer, reason in plan.reasons.items()}
    known = (user_id, scope.project_id, by.session_id or scope.session_id)
    milliseconds = found.retrieval_time_ms or 0.0
    told = Searched(query, f"search {mode}", user_id, found.memories, milliseconds, layers=layers, scope=known)
    retrieval.activity.searched(told)


def _global_of_user(scope: Scope, by: Attribution, fulfilling: Predicate) -> list[tuple[Scope, Predicate]]:
    user_id = viewer(scope, by)
    if user_id is None or scope.project_id is None or scope.session_id is not None or scope.sealed:
        return []
    return [(Scope(user_id=user_id), And(fulfilling, Compare("layer_global", "eq", True)))]


def _plan(query: str, scope: Scope, by: Attribution, now: datetime) -> LayerPlan:
    return route_layers(
        query,
        user_id=viewer(scope, by),
        project_id=scope.project_id,
        session_id=by.session_id or scope.session_id,
        now=now,
    )


def checked_cosine(least: float | None) -> float | None:
    """The least cosine of a search, if one is given."""
    if least is None:
        return None
    if isinstance(least, bool) or not isinstance(least, int | float) or not -1 <= least <= 1:
        raise ValidationError("search", "min_similarity", least, "must be a number from -1 to 1")
    return float(least)


# ---------------------------------------------------------------------- pages


@dataclass(frozen=True, slots=True)
class Page:
    """Memories in order; `next_cursor` continues after them and is None at the end."""

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
    """A page of the memories inside the scope that match the predicate and have one of these types.

    `sort` names fields, with a minus sign for descending order. A cursor continues with an index lookup; an offset has
    to skip rows one by one.
    """
    order = _order(sort)
    most = checked_whole("batch_read", "limit", limit, 1, MAX_PAGE_SIZE)
    skipped = checked_whole("batch_read", "offset", offset, 0)
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
    """Merge the first rows of each type, because an index orders one type but not several."""
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
        # Priority is computed from importance, which is stored.
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
    raise ValidationError(
        "batch_read", "cursor", token, "belongs to another sort order; use the sort that it was created with"
    )


def _typed(name: str, value: Any) -> Any:
    is_moment = Memory.spec.field(name).type is FieldType.TIMESTAMP and value is not None
    return datetime.fromisoformat(value) if is_moment else value

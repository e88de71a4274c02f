"""Times: what happened in the time a question speaks of gains from it, and is found where nothing else is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache

from alma.model.memory import Memory
from alma.model.query import And, Compare, Missing, Or, Order, Predicate
from alma.model.text import words_by_term
from alma.retrieval.candidates import Candidate, Pool
from alma.retrieval.router import Asked, Target
from alma.retrieval.when import TimeWindow, time_window
from alma.storage.base import StorageBackend

TIME = 0.2
"""What it counts to have happened in that time, where a memory's own meaning and words count up to one."""
NOTHING_BUT_TIME = 1.0
"""The same, where the question says nothing else."""

# People speak of a day some days later.
_TOLD_LATER = timedelta(days=7)
_SHORT_SPAN = timedelta(days=40)
_FEWEST = 30
# "How are you today?" asks for nothing.
_ASKS = re.compile(r"\b(?:what|which|anything|everything|tell me|summar\w*|recap)\b", re.IGNORECASE)
# As terms. Whoever asks what happened yesterday names nothing that a memory of yesterday would have to name as well.
_SAYS_NOTHING = """
happen occur go went took taken place done say said tell told talk discuss speak spoke mention see saw seen learn hear
heard work thing anyth someth everyth event news new latest updat summari summar summaris recap show give given rememb
recal remind memori know pleas plan schedul due upcom come expect
"""
_GENERAL = frozenset(_SAYS_NOTHING.split())


def window_of(request: Asked) -> TimeWindow | None:
    """The time a request speaks of."""
    return _window_at(request.query, request.now, request.now.utcoffset())


@lru_cache(maxsize=8)
def _window_at(query: str, now: datetime, offset: timedelta | None) -> TimeWindow | None:
    """The offset is asked for because one instant equals itself in every zone, and days differ."""
    return time_window(query, now)


def asks_for_time_alone(request: Asked) -> bool:
    """Whether a request wants whatever happened in some time: "What did we do last week?" """
    window = window_of(request)
    if window is None or window.anchor is not None or _ASKS.search(request.query) is None:
        return False
    named = words_by_term(window.phrase)
    return all(term in _GENERAL or term in named for term in words_by_term(request.query))


def propose_moments(storage: StorageBackend, pool: Pool, request: Asked, targets: Iterable[Target]) -> None:
    """Where a request asks for a time alone, propose what happened then, the newest first."""
    window = window_of(request)
    if window is None or not asks_for_time_alone(request):
        return
    newest = (Order("event_time", "desc"), Order("created_at", "desc"))
    for target in targets:
        if target.cls is Memory:
            where = And(target.where, _happened_in(window))
            for (key,) in storage.values(Memory, ("id",), target.scope, where, newest, max(_FEWEST, request.top_k)):
                pool.propose(target, key, "time")


def _happened_in(window: TimeWindow) -> Predicate:
    return Or(_between("event_time", window), And(Missing("event_time"), _between("created_at", window)))


def _between(field: str, window: TimeWindow) -> Predicate:
    return Or(*(And(Compare(field, "ge", start), Compare(field, "lt", end)) for start, end in window.spans))


def add_time(
    storage: StorageBackend,
    memories: Sequence[Candidate],
    moments: Mapping[str, datetime | None],
    window: TimeWindow | None,
    *,
    alone: bool,
) -> None:
    """What happened in the time that the question speaks of gains from it; the more if it speaks of it `alone`."""
    if window is not None and window.anchor is not None:
        window = _anchored(storage, window, memories[0].target)
    if window is None:
        return
    worth = NOTHING_BUT_TIME if alone else TIME
    told_later = _TOLD_LATER if window.end - window.start < _SHORT_SPAN and not alone else timedelta(0)
    for candidate in memories:
        moment = moments.get(candidate.id)
        if moment is None:
            continue
        if window.holds(moment):
            candidate.add("time", worth)
        elif any(end <= moment < end + told_later for _, end in window.spans):
            candidate.add("time", worth / 2)


def _anchored(storage: StorageBackend, window: TimeWindow, target: Target) -> TimeWindow | None:
    """The window once memory has told when its event was: the moment of the memory that matches it best."""
    found = storage.matching_ids(Memory, window.anchor or "", target.scope, target.where, 1)
    if not found:
        return None
    names = ("event_time", "created_at")
    [(told, made)] = storage.values(Memory, names, target.scope, Compare("id", "eq", found[0][0]))
    return window.anchored(told or made)

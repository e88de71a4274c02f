"""Bounded reads: the stretch of time that holds about as many records as a request may read."""

from __future__ import annotations

from datetime import datetime, timedelta

from alma.clock import now
from alma.model.query import And, Compare, Order
from alma.operations.places import Place
from alma.storage.base import StorageBackend

_SAMPLE = 500
_TRIES = 4
_SHORTEST = timedelta(milliseconds=1)


def stretch_before(storage: StorageBackend, place: Place, end: datetime | None, most: int) -> datetime | None:
    """The time since which about `most` records were created up to `end`; None if there are hardly more.

    It is estimated from the newest of these records, and corrected by counts, which read an index alone.
    """
    until = Compare(place.created, "le", end or now())
    newest = (Order(place.created, "desc"),)
    sample = storage.values(place.cls, (place.created,), place.scope, until, newest, _SAMPLE)
    if len(sample) < _SAMPLE or sample[-1][0] is None:
        return None
    last: datetime = sample[0][0]
    found: datetime = sample[-1][0]
    reach = max(_SHORTEST, last - found) * (most / _SAMPLE)
    for _ in range(_TRIES):
        try:
            since = last - reach
        except OverflowError:
            return None
        count = storage.count(place.cls, place.scope, And(until, Compare(place.created, "ge", since)))
        if count <= 2 * most:
            found = min(found, since)
            if count >= most / 2:
                break
        reach *= most / max(count, 1)
    return found

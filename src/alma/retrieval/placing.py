"""Placing: what the question names, what is newer and what is of the time that is asked for stands before the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from alma.retrieval import order
from alma.retrieval.change import asks_for_former, asks_what_happened
from alma.retrieval.order import Statement
from alma.retrieval.ranked import Ranked
from alma.retrieval.router import Asked
from alma.retrieval.sequence import asked_end
from alma.retrieval.times import window_of
from alma.retrieval.when import TimeWindow

# By how much the cosine of one version of a fact may be below that of another.
_FARTHER = 0.2
# The same for one of a row of like things that happened: each is told in words of its own.
_MUCH_FARTHER = 0.4


def put_in_place(
    by_key: Mapping[str, Ranked],
    statements: Sequence[Statement],
    weights: Mapping[str, float],
    request: Asked,
    window: TimeWindow | None,
) -> None:
    """Let memories that say something about the same thing exchange their places, in terms of their scores."""

    def behind(having: Statement, lacking: Statement) -> None:
        """The one that has what is named comes before the other."""
        ranked = by_key[having.id]
        ranked.terms["named"] = ranked.terms.get("named", 0.0) + by_key[lacking.id].score - ranked.score + order.AHEAD
        having.score = ranked.score

    def overruled(older: Statement, newer: Statement) -> None:
        """The newer one takes the place of the older one, and the other way around."""
        ahead, behind = by_key[older.id], by_key[newer.id]
        if ahead.terms.get("time", 0.0) > behind.terms.get("time", 0.0):
            # It was asked how things stood then.
            return
        if not _nearer(ahead, behind, _FARTHER):
            _exchange(behind, ahead, "newer", "overruled")
            older.score, newer.score = ahead.score, behind.score

    def before(wanted: Statement, other: Statement) -> None:
        """The one that is of the time that is asked for takes the place of the other."""
        ahead, behind = by_key[wanted.id], by_key[other.id]
        if not _nearer(behind, ahead, _MUCH_FARTHER):
            _exchange(ahead, behind, "asked", "not asked")
            wanted.score, other.score = ahead.score, behind.score

    order.named_first(statements, weights, behind)
    former, over = asks_for_former(request.query), _end_of(window, request.now)
    if not former:
        of_now = not asks_what_happened(request.query)
        order.newest_first(statements, weights, overruled, in_other_words=of_now)
    # Before an event that nobody told of may be any time.
    if over is not None or (former and window_of(request) is None):
        order.as_of(statements, weights, before, over)
    end = asked_end(request.query)
    if end is not None:
        order.in_sequence(statements, weights, before, first=end == "first")


def _end_of(window: TimeWindow | None, now: datetime) -> datetime | None:
    """The end of a time that is over."""
    end = None if window is None else max(end for _, end in window.spans)
    return end if end is not None and end <= now else None


def _exchange(ahead: Ranked, behind: Ranked, gained: str, lost: str) -> None:
    """Give each the place of the other, in terms of these names."""
    gap = behind.score - ahead.score
    ahead.terms[gained] = ahead.terms.get(gained, 0.0) + gap + 1e-6
    behind.terms[lost] = behind.terms.get(lost, 0.0) - gap


def _nearer(one: Ranked, other: Ranked, farther: float) -> bool:
    """Whether one is so much nearer to the question that the other speaks of something else."""
    near, far = one.similarity, other.similarity
    return near is not None and far is not None and near - far > farther

"""Placing: what the question names, what is newer and what is of the time that is asked for stands before the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome
from alma.retrieval import order
from alma.retrieval.change import asks_for_former, asks_what_will_be
from alma.retrieval.ranked import Ranked
from alma.retrieval.router import Asked
from alma.retrieval.sequence import asked_end
from alma.retrieval.standing import new_since
from alma.retrieval.statements import Statement
from alma.retrieval.times import window_of
from alma.text.timeexpr import TimeWindow

# By how much the cosine of one version of a fact may be below that of another.
_FARTHER = 0.2
# The same for one of a row of like things that happened: each is told in words of its own.
_MUCH_FARTHER = 0.4


class _Places:
    """The places of memories that say something about the same thing, which they exchange in terms of their scores."""

    def __init__(self, by_key: Mapping[str, Ranked]) -> None:
        self._by_key = by_key

    def of_facts(self, statements: Iterable[Statement]) -> list[Statement]:
        """Those that tell how things are in a domain."""
        return [each for each in statements if isinstance(self._by_key[each.id].record, DomainKnowledge)]

    def behind(self, having: Statement, lacking: Statement) -> None:
        """The one that has what is named comes before the other."""
        ranked = self._by_key[having.id]
        gap = self._by_key[lacking.id].score - ranked.score
        ranked.terms["named"] = ranked.terms.get("named", 0.0) + gap + order.AHEAD
        having.score = ranked.score

    def only_newer(self, having: Statement, lacking: Statement) -> None:
        """What lacks something that is asked for, and stands before the other for its age alone, comes behind it."""
        asked, other = self._by_key[having.id], self._by_key[lacking.id]
        if _apart_from_age(asked) > _apart_from_age(other) and not _nearer(other, asked, 0.0):
            self.behind(having, lacking)

    def overruled(self, older: Statement, newer: Statement) -> None:
        """The newer one takes the place of the older one, and the other way around."""
        ahead, behind = self._by_key[older.id], self._by_key[newer.id]
        if ahead.terms.get("time", 0.0) > behind.terms.get("time", 0.0):
            # It was asked how things stood then.
            return
        if not _nearer(ahead, behind, _FARTHER):
            _exchange(behind, ahead, "newer", "overruled")
            older.score, newer.score = ahead.score, behind.score

    def before(self, wanted: Statement, other: Statement) -> None:
        """The one that is of the time that is asked for takes the place of the other."""
        ahead, behind = self._by_key[wanted.id], self._by_key[other.id]
        if not _nearer(behind, ahead, _MUCH_FARTHER):
            _exchange(ahead, behind, "asked", "not asked")
            wanted.score, other.score = ahead.score, behind.score


def put_in_place(
    by_key: Mapping[str, Ranked],
    statements: Sequence[Statement],
    weights: Mapping[str, float],
    request: Asked,
    window: TimeWindow | None,
) -> None:
    """Let memories that say something about the same thing exchange their places, in terms of their scores."""
    places = _Places(by_key)
    order.named_first(statements, weights, places.behind)
    if window is None:
        order.asked_first(places.of_facts(statements), places.only_newer)
    if not asks_for_former(request.query):
        order.newest_first(statements, weights, places.overruled)
    _put_in_time(statements, weights, request, window, places.before)


def _put_in_time(
    statements: Sequence[Statement],
    weights: Mapping[str, float],
    request: Asked,
    window: TimeWindow | None,
    before: Callable[[Statement, Statement], None],
) -> None:
    """Put what was so then, the first or the last before the rest, where one of them is asked for."""
    until, end = _end_of(window, request.now), asked_end(request.query)
    # Before an event that nobody told of may be any time.
    if until is not None or (asks_for_former(request.query) and window_of(request) is None):
        order.as_of(statements, weights, before, until)
    if end is not None:
        order.in_sequence(statements, weights, before, first=end == "first")


def _apart_from_age(ranked: Ranked) -> float:
    return ranked.score - ranked.terms.get("recency", 0.0)


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


def statements_of(items: Iterable[Ranked], request: Asked) -> list[Statement]:
    """Memories as they are compared with each other."""
    ahead = asks_what_will_be(request.query)
    return [_statement(ranked, request.now, ahead=ahead) for ranked in items]


def _statement(ranked: Ranked, now: datetime, *, ahead: bool) -> Statement:
    record = ranked.record
    voice = getattr(record, "title", "").partition("(")[0]
    # A lesson stands by its evidence: a newer one for the same task is another choice, and overrules nothing.
    is_lesson = isinstance(record, Heuristic | AntiPattern | Outcome)
    moment = None if is_lesson else new_since(record, now, ahead=ahead)
    return Statement(
        ranked.key,
        getattr(record, "agent", None) or voice,
        record.text(),
        moment,
        ranked.score,
        ranked.said,
        vector=getattr(record, "embedding", None),
        is_remark=ranked.session_id is not None,
        result=("succeeded" if record.success else "failed") if isinstance(record, Outcome) else "",
        voice=voice,
    )

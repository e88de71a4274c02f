"""Time ranges in queries: memories of that time score higher, or are the only results if the query asks for nothing
else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from alma.lazy import lazy_regex
from alma.model.memory import Memory
from alma.model.query import And, Compare, In, Missing, Or, Order, Predicate
from alma.model.record import Record
from alma.retrieval.candidates import Candidate, CandidatePool, by_target
from alma.retrieval.router import SearchRequest, Target
from alma.retrieval.scoring import MOMENTS, moment_of
from alma.retrieval.tuning import SCORE, TUNING
from alma.storage.base import Transaction
from alma.text.timeexpr import TimeWindow, find, resolve
from alma.text.tokens import query_terms, stored_terms, words_by_term

# "How are you today?" does not ask for memories.
_ASKS = lazy_regex(
    r"\b(?:what|which|how (?:was|were|did)|anything|everything|(?:tell|brief|update) me|catch me up|fill me in|"
    r"show|list|notes|summar\w*|recap|"
    r"was (?:ist|war|hab\w*|hat\w*|wurde\w*|gab|geschah|passierte)|wat|qu['’](?:est-ce|a\w+)|qu[eé]|quoi|cosa|che)\b",
    re.IGNORECASE,
)
# Terms without a topic that a memory could match: "What happened yesterday?"
_SAYS_NOTHING = """
happen occur go went took taken place done say said tell told talk discuss speak spoke mention see saw seen learn hear
heard work thing anyth someth everyth event news new latest updat summari summar summaris recap show give given rememb
recal remind memori know pleas plan schedul due upcom come expect fiscal financi current date ytd morn afternoon evening
night noon note record store save wrote write written log entri list overview highlight digest interest notabl
brief catch fill standup toward around
earlier later earli late exact precis rough approxim sometim time first back right short soon immedi direct alreadi far
ist que passiert geschehen geschah gemacht getan entschieden beschlossen los war pass fait paso hizo hicimo
ocurrio cosa e successo fatto aconteceu fez fizemo gebeurd gedaan
"""
_GENERAL = frozenset(_SAYS_NOTHING.split())
# The same for the past only: memories about things to finish today may be old.
_SAYS_DONE = "decid decis progress accomplish achiev finish complet task miss status get got make made"
_DONE = frozenset(_SAYS_DONE.split())


def window_of(request: SearchRequest) -> TimeWindow | None:
    """The time range of a query."""
    return _window_at(request.query, request.now, request.now.utcoffset())


@lru_cache(maxsize=8)
def _window_at(query: str, now: datetime, offset: timedelta | None) -> TimeWindow | None:
    """The offset is part of the key, because one instant equals itself in every zone, and days differ."""
    window = resolve(query, now)
    if window is None:
        hours = resolve(query, now, hours_only=True)
        window = hours if hours is not None and _names_nothing_else(hours) else None
    return window


class TimeFilter(NamedTuple):
    """The time range of a query with its event dated, and whether the query asks for everything in that range
    (`alone`). `named` is the range in the words of the query: before "the release", whenever that was.
    """

    window: TimeWindow | None = None
    alone: bool = False
    named: TimeWindow | None = None

    @property
    def excludes_others(self) -> bool:
        """Whether all other memories are left out; not for "during" an event, whose length is unknown."""
        return self.alone and (self.named is None or self.named.side != "during")

    @property
    def weight(self) -> float:
        return SCORE["time_alone" if self.excludes_others else "time"]


def time_filter(tx: Transaction, request: SearchRequest, targets: Iterable[Target]) -> TimeFilter:
    """The time range of a request; an event in it is dated by a search of these targets."""
    window = window_of(request)
    if window is None:
        return TimeFilter()
    alone = _names_nothing_else(window)
    if window.anchor is None:
        return TimeFilter(window, alone)
    dated = None if window.recurs else _dated(tx, window, targets, request.now)
    if dated is None:
        # The query itself may give an approximate date of the event.
        return TimeFilter(window.unanchored(), named=window)
    # A memory without all words of the event may date another event, so other memories are not left out.
    return TimeFilter(dated.window, alone and dated.alone, window)


def _names_nothing_else(window: TimeWindow) -> bool:
    """Whether a query asks for everything in a time range: "What did we do last week?" """
    if window.is_whole_question:
        return True
    if _ASKS.search(window.question) is None:
        return False
    named = _GENERAL.union(words_by_term(window.phrase), _DONE if window.asks_about_past else ())
    return named.issuperset(query_terms(window.question))


def propose_of_time(
    tx: Transaction, pool: CandidatePool, times: TimeFilter, targets: Iterable[Target], top_k: int
) -> None:
    """Propose the memories of the time range, newest first, if the query asks for nothing else."""
    if times.window is None or not times.alone:
        return
    for target in targets:
        newest = [Order(name, "desc") for name in MOMENTS[target.cls]]
        where = And(target.where, _happened_in(times.window, target.cls))
        most = max(TUNING.memories_of_a_time, top_k)
        found = tx.values(target.cls, (target.cls.spec.key,), target.scope, where, newest, most)
        pool.propose(target, (str(key) for (key,) in found), "time")


def _happened_in(window: TimeWindow, cls: type[Record]) -> Predicate:
    """A memory happened at its event time, or else when it was made; a lesson when it was learned or confirmed."""
    first, *others = MOMENTS[cls]
    if cls is Memory:
        return Or(_between(first, window), *(And(Missing(first), _between(each, window)) for each in others))
    return Or(*(_between(each, window) for each in (first, *others)))


def _between(field: str, window: TimeWindow) -> Predicate:
    return Or(*(And(Compare(field, "ge", start), Compare(field, "lt", end)) for start, end in window.spans))


def add_time(memories: Sequence[Candidate], moments: Mapping[str, datetime | None], times: TimeFilter) -> None:
    """Add the time feature to general memories that happened in the time range."""
    if times.window is None:
        return
    for candidate in memories:
        moment = moments.get(candidate.id)
        if moment is not None and times.window.holds(moment):
            candidate.add("time", times.weight * times.window.share(moment))


def apply_time(tx: Transaction, pool: CandidatePool, request: SearchRequest, times: TimeFilter) -> None:
    """Add the time feature to lessons and to mentions of the time; drop the rest if the query asks only for a time."""
    if times.window is not None:
        for cls in request.kinds:
            if cls is not Memory:
                _add_to_lessons(tx, pool.of(cls), times, times.window)
    if times.alone or times.named is not None:
        _add_to_mentions(tx, pool, times, request.now)
    if times.excludes_others:
        pool.keep_those_of_the_time()


def _add_to_lessons(tx: Transaction, lessons: Iterable[Candidate], times: TimeFilter, window: TimeWindow) -> None:
    known = {(each.target, each.id): each for each in lessons}
    for target, ids in by_target(known.values()).items():
        names = (target.cls.spec.key, *MOMENTS[target.cls])
        for key, *moments in tx.values(target.cls, names, target.scope, In(target.cls.spec.key, ids)):
            shares = [window.share(moment) for moment in moments if moment is not None and window.holds(moment)]
            if shares:
                known[target, str(key)].add("time", times.weight * max(shares))


def _add_to_mentions(tx: Transaction, pool: CandidatePool, times: TimeFilter, now: datetime) -> None:
    """Add the time feature to memories of another day that mention the time range: "we launch on 25 November"."""
    others = [each for each in pool.of(Memory) if "time" not in each.terms][: TUNING.memories_of_a_time]
    known = {each.id: each for each in others}
    for target, ids in by_target(others).items():
        names = ("id", "content", *MOMENTS[Memory])
        for key, content, event_time, created_at in tx.values(Memory, names, target.scope, In("id", ids)):
            if _mentions(content, event_time or created_at, times, now):
                known[key].add("time", SCORE["time"])
                if times.alone:
                    known[key].found_also("time")


def _mentions(content: str, moment: datetime, times: TimeFilter, now: datetime) -> bool:
    """Whether a memory of another day mentions the time range."""
    if times.named is not None and times.named.is_told_by(content):
        return True
    if not times.alone or times.window is None:
        return False
    return any(times.window.covers(each.start, each.end, now) for each in find(content, moment))


def _dated(tx: Transaction, window: TimeWindow, targets: Iterable[Target], now: datetime) -> TimeFilter | None:
    """The range next to an event, or up to a second event, as dated by memories."""
    targets = sorted(targets, key=lambda target: target.cls is not Memory)
    begun = _event(tx, window, targets)
    ended = _event(tx, replace(window, anchor=window.then), targets) if window.then else None
    if begun is None:
        return ended and TimeFilter(TimeWindow(window.start, ended.moment, window.phrase))
    dated = window.anchored(begun.moment, now)
    # "During the party" often names a topic: the day of another party would mislead.
    if dated is None or (window.side == "during" and not begun.is_sure):
        return None
    return TimeFilter(dated.until(ended and ended.moment), begun.is_sure and (ended is None or ended.is_sure))


class _Event(NamedTuple):
    """The time of an event, and whether the memory that dates it has all its words."""

    moment: datetime
    is_sure: bool


def _event(tx: Transaction, window: TimeWindow, targets: Iterable[Target]) -> _Event | None:
    """The event of a time range, dated by the best matching memory; a lesson must have all its words. A memory about
    what to do before the event does not date it.
    """
    words = frozenset(query_terms(window.anchor or ""))
    for target in targets:
        where = target.where
        if window.event_within is not None:
            where = And(where, _happened_in(TimeWindow(*window.event_within, window.phrase), target.cls))
        most = TUNING.event_matches
        best = [key for key, _ in tx.matching_ids(target.cls, window.anchor or "", target.scope, where, most)]
        found = tx.find(target.cls, target.scope, In(target.cls.spec.key, best)) if best else ()
        events = (record for record in found if not window.is_told_by(record.text()))
        record = min(events, key=lambda record: best.index(str(record.key)), default=None)
        if record is None:
            continue
        moment, is_sure = moment_of(record), words <= set(stored_terms(record.text()))
        if moment is not None and (is_sure or target.cls is Memory):
            return _Event(moment, is_sure)
    return None

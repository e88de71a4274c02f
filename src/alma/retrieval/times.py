"""Times: what happened in the time a question speaks of gains from it, and is found where nothing else is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from alma.model.memory import Memory
from alma.model.query import And, Compare, In, Missing, Or, Order, Predicate
from alma.model.record import Record
from alma.retrieval.candidate import Candidate
from alma.retrieval.candidates import Pool, by_target
from alma.retrieval.router import Asked, Target
from alma.retrieval.scoring import MOMENTS, moment_of
from alma.storage.base import StorageBackend
from alma.text.timeexpr import TimeWindow, find, resolve
from alma.text.timeexpr.calendar import EARLIEST, LATEST, Span
from alma.text.timeexpr.normalize import normalized
from alma.text.timeexpr.vocabulary import looks_back
from alma.text.tokens import query_terms, stored_terms, words_by_term

TIME = 0.2
"""What it counts to have happened in that time, where a memory's own meaning and words count up to one."""
NOTHING_BUT_TIME = 1.0
"""The same, where the question says nothing else."""

# People speak of a day some days later.
_TOLD_LATER = timedelta(days=7)
_SHORT_SPAN = timedelta(days=40)
_FEWEST = 30
# The event itself may stand behind what is said of the time before or after it.
_MAY_DATE = 5
# "How are you today?" asks for nothing.
_ASKS = re.compile(
    r"\b(?:what|which|how (?:was|were|did)|anything|everything|(?:tell|brief|update) me|catch me up|fill me in|"
    r"show|list|notes|summar\w*|recap|"
    r"was (?:ist|war|hab\w*|hat\w*|wurde\w*|gab|geschah|passierte)|wat|qu['’](?:est-ce|a\w+)|qu[eé]|quoi|cosa|che)\b",
    re.IGNORECASE,
)
# As terms. Whoever asks what happened yesterday names nothing that a memory of yesterday would have to name as well.
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
# Nor does who asks what was decided or finished then; but what is to be finished today may have been told long ago.
_SAYS_DONE = "decid decis progress accomplish achiev finish complet task miss status get got make made"
_DONE = frozenset(_SAYS_DONE.split())


def window_of(request: Asked) -> TimeWindow | None:
    """The time a request speaks of."""
    return _window_at(request.query, request.now, request.now.utcoffset())


@lru_cache(maxsize=8)
def _window_at(query: str, now: datetime, offset: timedelta | None) -> TimeWindow | None:
    """The offset is asked for because one instant equals itself in every zone, and days differ."""
    window = resolve(query, now)
    if (
        window is None
        and (hours := resolve(query, now, hours_only=True)) is not None
        and _names_nothing_else(query, hours)
    ):
        return hours
    return window


class AskedTime(NamedTuple):
    """The time a request speaks of, once its event is dated, and whether it wants whatever happened then.

    `named` is that time as the request says it: what lies before "the release", whenever that was.
    """

    window: TimeWindow | None = None
    alone: bool = False
    named: TimeWindow | None = None

    @property
    def is_all(self) -> bool:
        """Whether all else is left out: not where it is the day of something that may have taken longer."""
        return self.alone and (self.named is None or self.named.side != "during")


def asked_time(storage: StorageBackend, request: Asked, targets: Iterable[Target]) -> AskedTime:
    """The time a request speaks of, as far as these places can tell when that was."""
    window = window_of(request)
    if window is None:
        return AskedTime()
    alone = _names_nothing_else(request.query, window)
    if window.anchor is None:
        return AskedTime(window, alone)
    dated = None if window.recurs else _dated(storage, window, targets, request.now)
    if dated is None:
        # Nobody tells when it was, or it is any such event; the question may have said roughly when.
        return AskedTime(window.unanchored(), named=window)
    # Without all of its words, what dates the event may be another one: it is no reason to leave out all else.
    return AskedTime(dated.window, alone and dated.alone, window)


def _names_nothing_else(question: str, window: TimeWindow) -> bool:
    """Whether a question wants whatever happened in some time: "What did we do last week?" """
    plain = normalized(question)
    if plain.strip(" ?!.") == window.phrase:
        return True
    if _ASKS.search(plain) is None:
        return False
    named = _GENERAL.union(words_by_term(window.phrase), _DONE if looks_back(plain) else ())
    return named.issuperset(query_terms(plain))


def propose_moments(
    storage: StorageBackend, pool: Pool, asked: AskedTime, targets: Iterable[Target], top_k: int
) -> None:
    """Where a request asks for a time alone, propose what happened then, the newest first."""
    if asked.window is None or not asked.alone:
        return
    for target in targets:
        newest = [Order(name, "desc") for name in MOMENTS[target.cls]]
        where = And(target.where, _happened_in(asked.window, target.cls))
        most = max(_FEWEST, top_k)
        for (key,) in storage.values(target.cls, (target.cls.spec.key,), target.scope, where, newest, most):
            pool.propose(target, str(key), "time")


def _happened_in(window: TimeWindow, cls: type[Record]) -> Predicate:
    """A memory happened when it says so; a lesson is of the time when it was learned and when it was last confirmed."""
    first, *others = MOMENTS[cls]
    if cls is Memory:
        return Or(_between(first, window), *(And(Missing(first), _between(each, window)) for each in others))
    return Or(*(_between(each, window) for each in (first, *others)))


def _between(field: str, window: TimeWindow) -> Predicate:
    return Or(*(And(Compare(field, "ge", start), Compare(field, "lt", end)) for start, end in window.spans))


def add_time(
    memories: Sequence[Candidate], moments: Mapping[str, datetime | None], asked: AskedTime, now: datetime
) -> None:
    """What happened in the time that the question speaks of gains from it; the more if it speaks of it alone."""
    window = asked.window
    if window is None:
        return
    worth = NOTHING_BUT_TIME if asked.is_all else TIME
    is_short = window.end - window.start < _SHORT_SPAN
    # Of what is to come nobody has told afterwards.
    told_later = _TOLD_LATER if is_short and window.end <= now and not asked.is_all else timedelta(0)
    for candidate in memories:
        moment = moments.get(candidate.id)
        if moment is None:
            continue
        if window.holds(moment):
            candidate.add("time", worth * window.share(moment))
        elif any(end <= moment < end + told_later for _, end in window.spans):
            candidate.add("time", worth / 2)


def add_times(storage: StorageBackend, pool: Pool, request: Asked, asked: AskedTime) -> None:
    """Let lessons gain from the time that is asked for, and leave out all else if nothing else is."""
    lessons = [each for cls in request.kinds if cls is not Memory for each in pool.of(cls)] if asked.window else ()
    if asked.window and lessons:
        _add_to_lessons(storage, lessons, asked.window, NOTHING_BUT_TIME if asked.is_all else TIME)
    if asked.alone or asked.named is not None:
        _add_to_those_that_tell(storage, pool, asked, request.now)
    if asked.is_all:
        pool.keep_those_of_the_time()


def _add_to_lessons(storage: StorageBackend, lessons: Iterable[Candidate], window: TimeWindow, worth: float) -> None:
    of_the_time: dict[tuple[Target, str], float] = {}
    for target, ids in by_target(lessons).items():
        names = (target.cls.spec.key, *MOMENTS[target.cls])
        for key, *moments in storage.values(target.cls, names, target.scope, In(target.cls.spec.key, ids)):
            shares = [window.share(moment) for moment in moments if moment is not None and window.holds(moment)]
            if shares:
                of_the_time[target, str(key)] = max(shares)
    for lesson in lessons:
        if (lesson.target, lesson.id) in of_the_time:
            lesson.add("time", worth * of_the_time[lesson.target, lesson.id])


def _add_to_those_that_tell(storage: StorageBackend, pool: Pool, asked: AskedTime, now: datetime) -> None:
    """What was said on another day is of that time if that is what it speaks of: "we launch on 25 November"."""
    others = [each for each in pool.of(Memory) if "time" not in each.relevance][:_FEWEST]
    known = {each.id: each for each in others}
    for target, ids in by_target(others).items():
        names = ("id", "content", *MOMENTS[Memory])
        for key, content, told, made in storage.values(Memory, names, target.scope, In("id", ids)):
            if _tells_of(content, told or made, asked, now):
                known[key].add("time", TIME)
                if asked.alone:
                    known[key].found_also("time")


def _tells_of(content: str, told: datetime, asked: AskedTime, now: datetime) -> bool:
    """Whether a memory of another day speaks of the time that is asked for."""
    if asked.named is not None and asked.named.is_told_by(content):
        return True
    if not asked.alone or asked.window is None:
        return False
    spoken = [(each.start, each.end) for each in find(content, told)]
    return any(_lies_in(each, _until_now(span, now)) for each in spoken for span in asked.window.spans)


def _until_now(span: Span, now: datetime) -> Span:
    """What has been since some day does not speak of what is to come."""
    return (span[0], max(now, span[0])) if span[1].year == LATEST.year else span


def _lies_in(spoken: Span, span: Span) -> bool:
    return span[0] <= spoken[0] and spoken[1] <= span[1]


def _dated(storage: StorageBackend, window: TimeWindow, targets: Iterable[Target], now: datetime) -> AskedTime | None:
    """The window once it is known when its event was, and the one that ends it, if there is one."""
    targets = sorted(targets, key=lambda target: target.cls is not Memory)
    begun = _told(storage, window, targets)
    ended = _told(storage, replace(window, anchor=window.then), targets) if window.then else None
    if begun is None:
        return ended and AskedTime(TimeWindow(EARLIEST, ended.moment, window.phrase))
    dated = window.anchored(begun.moment, now)
    # "During the party" mostly tells what is spoken of: another party's day would mislead.
    if dated is None or (window.side == "during" and not begun.is_sure):
        return None
    return AskedTime(dated.until(ended and ended.moment), begun.is_sure and (ended is None or ended.is_sure))


class _Told(NamedTuple):
    """When an event was, and whether it was surely that one."""

    moment: datetime
    is_sure: bool


def _told(storage: StorageBackend, window: TimeWindow, targets: Iterable[Target]) -> _Told | None:
    """When a general memory tells that the event was, or else a lesson that names it.

    Of general memories the best match tells it, surely or not; a lesson with only some of its words is of another. What
    says what is to be done before the event is not the event itself.
    """
    event = frozenset(query_terms(window.anchor or ""))
    for target in targets:
        for record in _matching(storage, window, target):
            moment, is_sure = moment_of(record), event <= set(stored_terms(record.text()))
            if moment is not None and (is_sure or target.cls is Memory):
                return _Told(moment, is_sure)
    return None


def _matching(storage: StorageBackend, window: TimeWindow, target: Target) -> list[Record]:
    """The record that may be the event: the best by its words, of the time that the question says, if it says one."""
    where = target.where
    if window.event_within is not None:
        where = And(where, _happened_in(TimeWindow(*window.event_within, window.phrase), target.cls))
    best = [key for key, _ in storage.matching_ids(target.cls, window.anchor or "", target.scope, where, _MAY_DATE)]
    found = storage.find(target.cls, target.scope, In(target.cls.spec.key, best)) if best else ()
    events = [record for record in found if not window.is_told_by(record.text())]
    return sorted(events, key=lambda record: best.index(str(record.key)))[:1]

"""Extract time expressions: the time a question asks about ("before the release"), or a statement means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from alma.lazy import lazy_regex
from alma.text.timeexpr.dates import daytime, hours_from_now, hours_named, hours_of, may_speak_of_time, with_day
from alma.text.timeexpr.normalize import MAX_LENGTH, normalized
from alma.text.timeexpr.ranges import read_time
from alma.text.timeexpr.vocabulary import AMOUNT, EARLIEST, LATEST, PAST_VERB, Date, Span, looks_back, query_time

_QUOTED = lazy_regex(r"(?<!\w)[\"\u201c]([^\"\u201c\u201d\n]{1,60})[\"\u201d](?!\w)")


@dataclass(frozen=True, slots=True)
class TimeExpression:
    """Words that name a time, and their span, up to but not including `end`."""

    phrase: str
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """The span of time a question asks about, from `start` up to but not including `end`.

    `others` are further spans, as of May in "March and May". `anchor` is the event that bounds it instead of a date
    ("the release"); the span is then unknown, and `side` says whether it lies before, during or after the event, or
    `beside` how far from it ("the day after"); `then` is a second event that ends it ("between the kickoff and the
    launch"). `event_within` is the date that the question gives for the event ("the release in March"); the time
    `recurs` if any such event is meant ("what runs after the build?"). `at_best` are preferred parts of its days:
    mornings or evenings. `question` is the normalized question.
    """

    start: datetime
    end: datetime
    phrase: str
    anchor: str | None = None
    side: str | None = None
    beside: str = ""
    then: str = ""
    event_within: Span | None = None
    recurs: bool = False
    others: tuple[Span, ...] = ()
    at_best: tuple[Span, ...] = ()
    question: str = field(default="", compare=False)

    @property
    def spans(self) -> tuple[Span, ...]:
        """All spans."""
        return ((self.start, self.end), *self.others)

    def holds(self, moment: datetime) -> bool:
        """Whether the moment lies inside."""
        return any(start <= moment < end for start, end in self.spans)

    def covers(self, start: datetime, end: datetime, now: datetime) -> bool:
        """Whether a whole span lies inside; a range without an end ("since Monday") ends now."""
        return any(
            first <= start and end <= (max(now, first) if last.year == LATEST.year else last)
            for first, last in self.spans
        )

    @property
    def is_whole_question(self) -> bool:
        """Whether the question consists of the time alone: "last week?" """
        return self.question.strip(" ?!.") == self.phrase

    @property
    def asks_about_past(self) -> bool:
        """Whether the question is in the past tense."""
        return looks_back(self.question)

    def share(self, moment: datetime) -> float:
        """The weight of a moment inside: half if the question names another part of the day."""
        is_best = not self.at_best or any(start <= moment < end for start, end in self.at_best)
        # Many memories have a day without a time.
        return 1.0 if is_best else 0.5

    def anchored(self, moment: datetime, now: datetime) -> TimeWindow | None:
        """The span, given the time of the event, or None outside of the calendar."""
        if self.beside or self.side == "during":
            near = _beside(self.beside or "the day of", moment, now)
            return near and replace(near, phrase=self.phrase)
        if self.side == "before":
            return TimeWindow(EARLIEST, moment, self.phrase)
        return TimeWindow(moment, LATEST, self.phrase)

    def until(self, moment: datetime | None) -> TimeWindow:
        """The span cut at a moment, unless that is before its start."""
        return self if moment is None or moment <= self.start else replace(self, end=moment)

    def unanchored(self) -> TimeWindow | None:
        """The span as far as the question dates the event."""
        if self.event_within is None or self.beside:
            return None
        start, end = self.event_within
        return TimeWindow(*((EARLIEST, end) if self.side == "before" else (start, LATEST)), self.phrase)

    def is_told_by(self, text: str) -> bool:
        """Whether a text itself says "before the event" or "after the event", and so is of that time."""
        if self.anchor is None:
            return False
        event = re.escape(_DETERMINER.sub("", self.anchor))
        sides = "|".join({"before": _BEFORE, "during": _DURING}.get(self.side or "", _AFTER))
        return re.search(rf"\b(?:{sides}) (?:{_DETERMINERS} )?{event}(?!\w)", normalized(text)) is not None


def resolve(question: str, now: datetime, locale: str | None = None, *, hours_only: bool = False) -> TimeWindow | None:
    """The time a question asks about, or None where it names no time.

    `now` is when it is asked, and days begin at midnight in its time zone. `locale` is the language of the question;
    None tries all known ones. With `hours_only`, a question about the past that names clock hours without a day
    ("around noon") means those of the last such day.
    """
    unquoted = _unquoted(question)
    text = normalized(unquoted, locale)
    window = _last_hours(text, now) if hours_only else _window(text, now)
    if window is None:
        return None
    return replace(window, question=text if unquoted == question else normalized(question, locale))


def find(text: str, now: datetime, locale: str | None = None) -> list[TimeExpression]:
    """The times that a statement made at `now` may mean: "come back in March" may be in the past or in the future. An
    ambiguous expression has an entry for each reading.
    """
    plain = normalized(text, locale)
    if not may_speak_of_time(plain):
        return []
    past = query_time(plain, now.replace(tzinfo=UTC))
    dates = (read_time(plain, each) for each in (past, past._replace(looks_ahead=True, looks_back=False)))
    return [
        TimeExpression(date.phrase, *_in_zone(span, now)) for date in dates if date is not None for span in date.spans
    ]


def _window(text: str, now: datetime) -> TimeWindow | None:
    if not may_speak_of_time(text):
        return None
    date = read_time(text, query_time(text, now.replace(tzinfo=UTC)))
    event = _anchor(text)
    if date is None:
        return event
    # "During" an event of last week is within last week.
    if event is not None and event.side != "during" and (dated := _with_date(event, date, now)) is not None:
        return dated
    return _with_hours(text, date, now)


def _last_hours(text: str, now: datetime) -> TimeWindow | None:
    if not query_time(text, EARLIEST).looks_back:
        return None
    for day in ("today", "yesterday"):
        dated = with_day(text, day)
        window = dated and _window(dated, now)
        if window and (window.at_best[0][0] if window.at_best else window.start) <= now:
            return window
    return None


def _beside(words: str, moment: datetime, now: datetime) -> TimeWindow | None:
    """ "The day after" a moment, read as if its day itself had been named."""
    words = _PART_OF_DAY.sub("day", words)
    try:
        day = moment.astimezone(now.tzinfo).date().isoformat()
        return _window(f"{words} {day}", now)
    except OverflowError:
        return None


def _with_hours(text: str, date: Date, now: datetime) -> TimeWindow:
    """The days, and their hours: clock times, or a part of the day."""
    part = daytime(text, date.phrase)
    meant = [hours for span in date.spans if part and (hours := hours_of(part, span))]
    named = [by_clock for span in date.spans if (by_clock := hours_named(text, date.phrase, span))]
    phrase = named[0].phrase if named else date.phrase
    if named and named[0].onward:
        return TimeWindow(_in_zone(named[0].spans[0], now)[0], LATEST, phrase)
    from_now = hours_from_now(date.phrase, now.replace(tzinfo=UTC))
    best = [span for each in named for span in each.spans] or meant or ([from_now] if from_now else [])
    (start, end), *others = (_in_zone(_with_night(span, [*meant, *best]), now) for span in date.spans)
    return TimeWindow(start, end, phrase, others=tuple(others), at_best=tuple(_in_zone(span, now) for span in best))


def _unquoted(question: str) -> str:
    """A question without quoted times: the song "Yesterday" is not a day."""
    if not _QUOTED.search(question[:MAX_LENGTH]):
        return question
    rest = _QUOTED.sub(
        lambda quoted: "it" if may_speak_of_time(quoted[0].lower()) else quoted[0][1:-1], question[:MAX_LENGTH]
    )
    # The question itself may be quoted.
    return rest if len(rest.split()) > 1 else question


def _with_night(span: Span, meant: Sequence[Span]) -> Span:
    """A span extended by the part of a night, or of an hour around midnight, on the next day."""
    return span[0], max([span[1], *(end for start, end in meant if span[0] <= start < span[1])])


def _in_zone(span: Span, now: datetime) -> Span:
    """The span of local times as instants."""
    if now.tzinfo is UTC:
        return span
    start, end = (each.replace(tzinfo=now.tzinfo).astimezone(UTC) for each in span)
    return start, end


# ---------------------------------------------------------------------- events

# A question about the time between two events needs both.
_ASKS_SPAN = lazy_regex(r"\bhow (?:long|much time|many (?:minute|hour|day|week|month|year)s)\b")
# A question about habits or duties means any release,
_ASKS_RULE = lazy_regex(r"\b(?:should|must|ought|always|usually|need to|have to|has to|how (?:do|can|to)|can|could)\b")
# and so does one about "the release", unless something else in the question is past or future. Of another person
# ("What does Evan do after the wedding?") one event is meant.
_ASKS_HABIT = lazy_regex(
    r"\b(?:should|must|ought|always|usually|normally|typically|needs? to|have to|has to|"
    r"(?:can|could) (?:we|i|one|go|be|happen)|do (?:we|i|you)(?! (?:know|remember|recall|have))|"
    r"happens?|runs?|comes?|goes|gets?|"
    r"(?:is|are)(?: \w+ly)? (?:to be|\w+ed|done|sent|run|made|shown|given|taken|told|written|kept|put))\b"
)
_PASSIVE = lazy_regex(r"\b(?:be|is|are|gets?)(?: \w+ly)? (?!planned|scheduled|expected|due|booked)\w+")
_EVENT = (
    r"(?:release|launch|deployment|deploy|migration|outage|incident|rollout|roll-out|go-live|upgrade|kick-?off|cutover|"
    r"rewrite|refactoring|merger|acquisition|reorg|onboarding|demo|beta|wedding|graduation|surgery|accident|sprint|"
    r"version|milestone)"
)
_NO_EVENT = (
    r"(?!(?:an?|any|each|every|all|most|some|another|no|which|what|that|this|it|you|and|then|when|those|these|there)\b|"
    r"\w+ing\b|\w+'(?!s)\w)"
)
# Only the day of an event is known.
_PARTS_OF_DAY = "night|morning|afternoon|evening"
_PART_OF_DAY = lazy_regex(rf"\b(?:{_PARTS_OF_DAY})\b")
_AMOUNT = re.sub(r"\?P<\w+>", "?:", AMOUNT)
_WORD = r"[\w'+#/-](?:[\w'+#/-]|\.(?=\w))*"
_ANCHOR = lazy_regex(
    rf"\b(?P<beside>(?:(?P<whole>the (?:very )?(?:day|{_PARTS_OF_DAY}|week|month|year))|{_AMOUNT})"
    r"(?= (?:before|prior to|after|following|(?(whole)of|(?!))) ) )?"
    r"(?P<side>before|prior to|until|till|after|since|following|(?(beside)of|(?!))) (?:"
    rf"(?P<known>(?:the|our|my|your|his|her|their|we|i|they|he|she) {_WORD}(?: {_WORD}){{0,11}})|"
    rf"(?P<bare>{_NO_EVENT}(?:"
    rf"(?:{_WORD} )?{_EVENT}(?: v?\d[\w.]*\w|\ ?\d)?(?![\w-])|"
    rf"{_WORD}(?: {_WORD})? {PAST_VERB}\b(?: {_WORD}){{0,4}}|"
    rf"[\w-]+'s(?: {_WORD}){{1,3}})))"
)
# "Look after" is not a time.
_IDIOMS = ("look ", "looks ", "looking ", "looked ", "named ", "take ", "took ")
_QUESTION = lazy_regex(r" (?:did|does|do|what|who|which|how|why) ")
_BEFORE, _AFTER = ("before", "prior to", "until", "till"), ("after", "since", "following")
_DURING = ("during", "throughout")
_DETERMINERS = "(?:the|our|my|your|his|her|their)"
_DETERMINER = lazy_regex(rf"^{_DETERMINERS} ")
_PREPOSITION = lazy_regex(r"(?: (?:of|in|on|from|at))+$")
_RANGE = lazy_regex(r"\b(?:between|from|to|until|till|through|and|or)\b")


# What is between two things is a time only where they happen.
_HAPPENS = (
    rf"(?:{_EVENT[3:-1]}|audit|hotfix|freeze|review|meeting|call|conference|workshop|hackathon|summit|offsite|interview|"
    r"exam|trip|move|party|holidays?|vacation|inspection|strike|storm|announcement|rollback|start|end|opening|closing)"
)
_ONE = rf"{_DETERMINERS} {_WORD}(?: (?!and\b|to\b|until\b|till\b){_WORD}){{0,4}}"
_BETWEEN = lazy_regex(
    rf"\b(?:between (?P<first>{_ONE}) and|from (?P<start>{_ONE}) (?:to|until|till)) (?P<second>{_ONE})"
)
_HAPPENING = lazy_regex(rf"\b{_HAPPENS}(?![\w-])(?! (?!(?:of|in|to|for|with|at|on|from)\b)\w)")
# "Around the office" is not a time.
_AROUND = rf"around(?= {_DETERMINERS} (?:{_WORD} ){{0,3}}?{_HAPPENING.pattern})"
_MEANWHILE = lazy_regex(rf"\b(?:{'|'.join(_DURING)}|{_AROUND}) (?P<event>{_DETERMINERS} {_WORD}(?: {_WORD}){{0,6}})")


def _between_events(text: str) -> TimeWindow | None:
    """ "between the kickoff and the launch": two events that are dated from memory."""
    match = _BETWEEN.search(text)
    if match is None or not query_time(text, EARLIEST).looks_back:
        return None
    first, second = (_named(each) for each in (match["first"] or match["start"], match["second"]))
    if not all(map(_HAPPENING.search, (first, second))):
        return None
    return TimeWindow(EARLIEST, LATEST, match[0], anchor=first, side="after", then=second)


def _while(text: str) -> TimeWindow | None:
    """ "during the outage" in a question about the past; otherwise any such event is meant."""
    match = _MEANWHILE.search(text)
    if match is None:
        return None
    besides = f"{text[: match.start()]}|{text[match.end() :]}"
    if _asks_habit(besides) or not query_time(besides, EARLIEST).looks_back:
        return None
    event = _named(match["event"])
    return TimeWindow(EARLIEST, LATEST, f"during {event}", anchor=event, side="during")


def _named(event: str) -> str:
    return _QUESTION.split(event.rstrip())[0]


def _anchor(text: str) -> TimeWindow | None:
    """ "before the release", "after launch", "since Anna left": an event that is dated from memory."""
    if _ASKS_SPAN.search(text):
        return None
    return _between_events(text) or _beside_event(text) or _while(text)


def _beside_event(text: str) -> TimeWindow | None:
    match = _ANCHOR.search(text)
    if match is None or text.endswith(_IDIOMS, 0, match.start()):
        return None
    if match["bare"] and _ASKS_RULE.search(text):
        return None
    recurs = match["side"] != "since" and _asks_habit(f"{text[: match.start()]}|{text[match.end() :]}")
    side = "before" if match["side"] in _BEFORE else "after"
    event = _named(match["known"] or match["bare"])
    beside = f"{match['beside']}{match['side']}" if match["beside"] else ""
    phrase = f"{beside or match['side']} {event}"
    return TimeWindow(EARLIEST, LATEST, phrase, anchor=event, side=side, beside=beside, recurs=recurs)


def _asks_habit(besides_event: str) -> bool:
    """Whether a question asks what is done whenever something happens: "What runs after the build?" """
    if _ASKS_HABIT.search(besides_event) is None:
        return False
    at = query_time(_PASSIVE.sub("", besides_event), EARLIEST)
    return not at.looks_back and not at.looks_ahead


def _with_date(event: TimeWindow, date: Date, now: datetime) -> TimeWindow | None:
    """ "since the outage in May": the event, with the date that follows it."""
    anchor = event.anchor or ""
    if not anchor.endswith(date.phrase) or len(date.spans) > 1 or _RANGE.search(date.phrase):
        return None
    anchor = _PREPOSITION.sub("", anchor.removesuffix(date.phrase).rstrip())
    if not _DETERMINER.sub("", f"{anchor} ").strip():
        return None
    return replace(event, anchor=anchor, event_within=_in_zone(date.spans[0], now))

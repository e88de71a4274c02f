"""Read times bounded by dates ("from March to May", "until the end of June", "the week before Christmas")."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from typing import NamedTuple

from alma.lazy import lazy_regex
from alma.text.timeexpr.dates import date_at_start, may_speak_of_time, read_date, whole_date
from alma.text.timeexpr.interpretation import shifted
from alma.text.timeexpr.vocabulary import (
    AMOUNT,
    DAY,
    EARLIEST,
    LATEST,
    MONTH,
    MONTHS,
    SEASONS,
    WEEKDAYS,
    YEAR,
    Date,
    QueryTime,
    Span,
    day_of,
    unit_of,
)

# The most words of a date, and of one that needs a preposition.
_MAX_WORDS, _MAX_BARE_WORDS = 6, 2
_PUNCTUATION = "?!.,;:)"
# The longest date with its suffix, in characters.
_MAX_CHARACTERS = 60
_MAX_LISTED = 6


def read_time(text: str, at: QueryTime) -> Date | None:
    """The time that the dates of a lower-case text state: bounded by them, or one of them."""
    text = _plainly_written(text)
    for read in (_ranged, _listed, _onward, _beside, _day_beside, _bounded, read_date):
        found = read(text, at)
        if found is not None:
            return found
    return None


_A_MONTH = MONTH.replace("?P<month>", "?:")
_STROKES = (
    lazy_regex(rf"\b(?P<before>{_A_MONTH}|\d{{1,4}}(?:st|nd|rd|th)?) ?- ?(?={_A_MONTH}(?: |$|[?,.]))"),
    lazy_regex(r"(?<![\w./-])(?P<before>(?:19|20)\d\d)-(?=(?:19|20)\d\d(?![\w./-]))"),
    lazy_regex(rf"(?<![\w./-])(?P<before>\d\d?)-(?=\d\d?(?:st|nd|rd|th)?(?: of)? {_A_MONTH})"),
    lazy_regex(rf"\b(?P<before>{_A_MONTH} \d\d?)-(?=\d\d?(?![\w/.-]))"),
    lazy_regex(r"(?P<before>\d[-./]\d{1,4}) - (?=\d{1,4}[-./]\d)"),
    lazy_regex(r"\b(?P<before>q[1-4]) ?- ?(?=q[1-4]\b)"),
)
_LISTED = tuple(
    lazy_regex(rf"\b(?P<before>{names})(?:,(?: and)? |/)(?=(?:{names})\b)")
    for names in ("|".join(MONTHS), "|".join(WEEKDAYS))
)


def _plainly_written(text: str) -> str:
    """ "3-5 May" with a word for the dash, "March, April and May" with one for the comma."""
    text = text.replace("\u2013", "-").replace("\u2014", "-")
    if "-" in text:
        for stroke in _STROKES:
            text = stroke.sub(r"\g<before> to ", text)
    if "," in text or "/" in text:
        for listed in _LISTED:
            text = listed.sub(r"\g<before> and ", text)
    return text


# ---------------------------------------------------------------------- dates at a position


class Placed(NamedTuple):
    """Words that are a date, or would be with words of another date; `full` if they are complete."""

    words: str
    date: Date | None
    full: bool = False


def _at_start(text: str, at: QueryTime) -> Placed | None:
    """The date that a text begins with; "May" is one only after words that precede dates."""
    text = text[:_MAX_CHARACTERS]
    for preposition in ("", "in ", "on "):
        for article in _articles(text):
            date = date_at_start(preposition + text.removeprefix(article), at)
            if date is not None:
                words = article + date.phrase.removeprefix(preposition)
                return Placed(words.rstrip(_PUNCTUATION), date, full=not preposition and words not in WEEKDAYS)
    return None


def _articles(text: str) -> tuple[str, ...]:
    article = re.match(r"(?:the |in |on |about |around )+", text)
    return ("",) if article is None else ("", article[0])


def _at_end(text: str, at: QueryTime) -> Placed | None:
    """The longest date that a text ends with."""
    words = text.rsplit(" ", _MAX_WORDS)[-_MAX_WORDS:]
    if not may_speak_of_time(" ".join(words)):
        return None
    for count in range(len(words), 0, -1):
        found = _whole(" ".join(words[-count:]), at, bare=count <= _MAX_BARE_WORDS)
        if found is not None:
            return found
    return None


def _whole(words: str, at: QueryTime, *, bare: bool = True) -> Placed | None:
    """Words that are a date as a whole."""
    said = words.removeprefix("the ")
    for preposition in ("", "in ", "on ") if bare else ("",):
        date = whole_date(preposition + said, at)
        if date is not None:
            return Placed(words, date, full=not preposition and words not in WEEKDAYS)
    return None


# ---------------------------------------------------------------------- from one date to another

_TO = lazy_regex(r" (?P<word>to|until|till|through|thru|up to|and) (?:(?:in|on|the end of|including) )?")
_DAY_ALONE = lazy_regex(rf"(?:on )?(?:the )?{DAY}(?:,? {YEAR})?(?![\w%]|[.:/-]\d)")
_NOW = lazy_regex(r"(?:now|date|the present)\b")
_PREPOSITION = lazy_regex(r"^(?:in|on|from|during|of|since|throughout|around|for) (?:the )?")
_OPENING = lazy_regex(r"\b(?:(?P<between>between)|from) (?:in |on )?$")


def _ranged(text: str, at: QueryTime) -> Date | None:
    """ "between March and May", "3 to 5 May": from the start of the first to the end of the second."""
    for join in _TO.finditer(text):
        second = _second(text[join.end() :], at)
        first = second and _first(text[: join.start()], at)
        if first is None or second is None:
            continue
        words = first.words.removeprefix("from ")
        opening = _OPENING.search(text[: join.start() - len(words)])
        if join["word"] == "and" and (opening is None or not opening["between"]):
            continue
        span = _between(first, second, at)
        if span and (opening or first.full or second.full or _kind(first.words) == _kind(second.words) == "month"):
            return Date((span,), f"{opening[0] if opening else ''}{words}{join[0]}{second.words}")
    return None


def _first(text: str, at: QueryTime) -> Placed | None:
    """The date before a conjunction, or a day alone, whose month the other date names."""
    found = _at_end(text, at)
    if found is not None:
        return found
    words = text.rsplit(" ", 2)[-2:]
    alone = next((each for each in (" ".join(words), words[-1]) if _DAY_ALONE.fullmatch(each)), None)
    return None if alone is None else Placed(alone, None)


def _second(text: str, at: QueryTime) -> Placed | None:
    now = _NOW.match(text)
    if now is not None:
        return Placed(now[0], Date(((at.now, at.now + timedelta(days=1)),), now[0]))
    found = _at_start(text, at)
    if found is not None:
        return found
    alone = _DAY_ALONE.match(text)
    return None if alone is None else Placed(alone[0], None)


def _between(first: Placed, second: Placed, at: QueryTime) -> Span | None:
    """From one date to the other; either may name the month or the year for both."""
    one, other = _completed(first, second.words, at), _completed(second, first.words, at)
    if one is None or other is None:
        return None
    if one.start >= other.end:
        one, other = _in_turn(first, one, second, other, at)
    return (one.start, other.end) if one.start < other.end else None


def _completed(placed: Placed, other: str, at: QueryTime) -> Date | None:
    """ "between March and May 2023" is all in one year, and "from 3 to 5 May" in one month."""
    words = _with_month(placed.words, other)
    year = re.search(rf"\b{YEAR}", other)
    if year is not None and _lacks_year(words):
        words = f"{words} {year[0]}"
    if words == placed.words:
        return placed.date
    found = _whole(_PREPOSITION.sub("", words), at)
    return found and found.date


def _with_month(words: str, other: str) -> str:
    month = re.search(rf"\b{MONTH}", other)
    if month is None or _DAY_ALONE.fullmatch(words) is None:
        return words
    day, _, year = words.removeprefix("on ").removeprefix("the ").partition(" ")
    return f"{day.rstrip(',')} {month[0]} {year}".strip()


def _lacks_year(words: str) -> bool:
    """Whether words name a month, a season or a quarter without its year."""
    if re.search(rf"\b{YEAR}|\b(?:last|this|next|ago)\b", words):
        return False
    return _kind(words) in ("month", "season", "quarter")


def _kind(words: str) -> str:
    """The kind of a date, for a comparison with another date."""
    if re.search(rf"\b{MONTH}", words):
        return "month"
    if words.split(" ")[-1] in WEEKDAYS:
        return "weekday"
    if re.search(rf"\b(?:{'|'.join(SEASONS)})\b", words):
        return "season"
    if re.search(r"\bq[1-4]\b", words):
        return "quarter"
    return "year" if re.fullmatch(rf"(?:\w+ )?{YEAR}", words) else "other"


def _in_turn(first: Placed, one: Date, second: Placed, other: Date, at: QueryTime) -> tuple[Date, Date]:
    """The first one before the second, as from Thursday to Monday, or the second one after the first."""
    if _kind(first.words) == "weekday":
        earlier = ((one.start - timedelta(days=7), one.end - timedelta(days=7)),)
        return Date(earlier, one.phrase), other
    if _lacks_year(_with_month(first.words, second.words)):
        words = _PREPOSITION.sub("", _with_month(first.words, second.words))
        found = _whole(f"{words} {one.start.year - 1}", at)
        return (found.date if found and found.date else one), other
    if _lacks_year(_with_month(second.words, first.words)):
        found = _whole(f"{_with_month(second.words, first.words)} {other.start.year + 1}", at)
        return one, (found.date if found and found.date else other)
    return one, other


# ---------------------------------------------------------------------- one date and another

_AND = lazy_regex(r" (?:and|or|&) (?:(?:in|on) )?")


def _listed(text: str, at: QueryTime) -> Date | None:
    """ "in March and May", "on Monday or Tuesday": each of them."""
    for join in _AND.finditer(text):
        rest = list(islice(_further(text[join.start() :], at), _MAX_LISTED))
        first = _first(text[: join.start()], at) if rest else None
        if first is None:
            continue
        named = [first, *rest]
        if any(each.full for each in named) and _alike(named):
            dates = [_completed(each, rest[-1].words, at) for each in named]
            spans = [span for date in dates if date is not None for span in date.spans]
            return Date(_merged(spans), " and ".join(each.words for each in named))
    return None


def _further(text: str, at: QueryTime) -> Iterator[Placed]:
    """The dates that follow in a text, each after an "and"."""
    while (join := _AND.match(text)) is not None:
        found = _at_start(text[join.end() :], at)
        if found is None:
            return
        yield found
        text = text[join.end() + len(found.words) :]


def _alike(named: list[Placed]) -> bool:
    """Whether the dates are of one kind: not "in May and June said"."""
    kinds = {_kind(each.words) for each in named if not _DAY_ALONE.fullmatch(each.words)}
    return len(kinds) == 1 or all(each.full for each in named)


def _merged(spans: list[Span]) -> tuple[Span, ...]:
    """The spans in order, and those that touch as one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


# ---------------------------------------------------------------------- one side of a date

_ONWARD = lazy_regex(r" (?:onwards?\b|(?P<on>on)(?=\W*$|[,;?!]| (?:what|who|which|how|why|did|do|was|is)\b))")
_BESIDE = lazy_regex(
    rf"\b(?:the (?:very )?(?P<one_unit>day|week|month|year)|{AMOUNT}) "
    r"(?P<side>before|prior to|after|following|(?(one_unit)of|(?!))) "
    r"(?=(?P<rest>.{3,60}))"
)
_DAY_BESIDE = lazy_regex(
    rf"\b(?:the|on) (?P<day>weekend|{'|'.join(WEEKDAYS)}) (?P<side>before|prior to|after|following) "
    r"(?=(?P<rest>.{3,60}))"
)
# "Up to" is mostly used with numbers.
_DATED = rf"(?:{'|'.join((*MONTHS, *WEEKDAYS))}|last|yesterday|today|q[1-4])\b"
_BOUND = lazy_regex(
    r"(?<!day )\b(?P<side>before|prior to|(?<!no )(?<!not )earlier than|"
    rf"up to(?= (?:the end|{_DATED}))|(?:up )?(?:until|till)|by|not? later than|not? earlier than|"
    r"after|(?<!no )(?<!not )later than|following|since|starting(?: in| on| from)?|beginning in) "
    r"(?P<end>(?:the )?(?:very )?end of )?(?=(?P<rest>.{3,60}))"
)
# "What was Ben up to" is not a bound.
_BEING = lazy_regex(r"\b(?:am|is|are|was|were|been)(?: [\w'-]+){0,2} $")
_BEFORE = ("before", "prior to", "earlier than", "up to", "until", "till", "up until", "up till")
_BY, _AFTER = ("by", "no later than", "not later than"), ("after", "later than", "following")


def _onward(text: str, at: QueryTime) -> Date | None:
    """ "from March on", "May 2025 onwards": all from its start."""
    for match in _ONWARD.finditer(text):
        first = _at_end(text[: match.start()], at)
        if first is None or first.date is None:
            continue
        opened = text[: match.start() - len(first.words)].endswith("from ") or first.words.startswith("from ")
        if opened or (first.full and not match["on"]):
            return Date(((first.date.start, LATEST),), f"{first.words}{match[0]}")
    return None


def _beside(text: str, at: QueryTime) -> Date | None:
    """ "the day after Christmas", "two weeks before 3 May", "the week of 3 May": a period next to or around it."""
    for match in _BESIDE.finditer(text):
        found = _at_start(match["rest"], at)
        if found is None or found.date is None:
            continue
        phrase = f"{match[0]}{found.words}"
        try:
            if match["side"] == "of":
                return Date((unit_of(match["one_unit"], found.date.start),), phrase)
            if match["side"] in ("before", "prior to"):
                return Date(((shifted(found.date.start, match, -1), found.date.start),), phrase)
            return Date(((found.date.end, shifted(found.date.end, match, 1)),), phrase)
        except (ValueError, OverflowError):
            continue
    return None


def _day_beside(text: str, at: QueryTime) -> Date | None:
    """ "the weekend before Easter", "the Tuesday after 3 May": the nearest on that side."""
    for match in _DAY_BESIDE.finditer(text):
        found = _at_start(match["rest"], at)
        if found is None or found.date is None:
            continue
        first, length = (5, 2) if match["day"] == "weekend" else (WEEKDAYS.index(match["day"]), 1)
        try:
            if match["side"] in ("before", "prior to"):
                latest = day_of(found.date.start) - timedelta(days=length)
                start = latest - timedelta(days=(latest.weekday() - first) % 7)
            else:
                start = found.date.end + timedelta(days=(first - found.date.end.weekday()) % 7)
            return Date(((start, start + timedelta(days=length)),), f"{match[0]}{found.words}")
        except OverflowError:
            continue
    return None


def _bounded(text: str, at: QueryTime) -> Date | None:
    """ "before May", "since last week": everything on one side of a date."""
    for match in _BOUND.finditer(text):
        # "Since" refers to the last such day.
        seen = at._replace(looks_ahead=False, looks_back=True) if match["side"] == "since" else at
        if match["side"] == "up to" and _BEING.search(text[: match.start()]):
            continue
        found = _at_start(_bound(match), seen)
        span = found and found.date and _side(match, found.date, at)
        if found and span and span[0] < span[1]:
            return Date((span,), f"{match[0]}{found.words}")
    return None


def _bound(match: re.Match[str]) -> str:
    """The date of a bound; "the end of the month" is that of this month."""
    if not match["end"]:
        return match["rest"]
    return re.sub(r"^the (?=(?:week|month|quarter|year)\b)", "this ", match["rest"])


def _side(match: re.Match[str], date: Date, at: QueryTime) -> Span | None:
    side, is_end = match["side"], match["end"] is not None
    if side in _AFTER:
        return date.end, LATEST
    if side not in _BEFORE and side not in _BY:
        return date.end - (date.end - date.start) / 3 if is_end else date.start, LATEST
    if side == "by" and not is_end and not at.looks_ahead:
        # "By May" includes May.
        return None
    # "Until the end of May" includes May, and so does a deadline "by May".
    end = date.end if is_end or side in _BY else date.start
    # A question about the future excludes the days before today.
    return max(EARLIEST, min(at.now, end - timedelta(days=1))) if at.looks_ahead and end > at.now else EARLIEST, end

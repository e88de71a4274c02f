"""Daytimes: the part of a day that a question speaks of ("yesterday evening", "on the morning of 3 May")."""

from __future__ import annotations

import re
from datetime import timedelta

from alma.text.timeexpr.calendar import Span

# From which hour on, and up to which; a night has some of the next day.
_HOURS = {"morning": (4, 12), "noon": (11, 14), "afternoon": (12, 18), "evening": (17, 24), "night": (18, 30)}
_PART = rf"(?P<part>{'|'.join(_HOURS)})"
_INSIDE = re.compile(rf"\b(?:to|over)?{_PART}s?\b")
_DAY = timedelta(days=1)


def daytime(text: str, phrase: str) -> str | None:
    """The part of the day that stands in, behind or before the words for a day; none where those name no part."""
    day = re.escape(phrase)
    for form in (rf"{day},? (?:in the |at )?{_PART}\b", rf"\b{_PART} (?:of |on )?(?:the )?{day}"):
        found = re.search(form, text)
        if found is not None:
            return found["part"]
    inside = _INSIDE.search(phrase)
    return None if inside is None else inside["part"]


def hours_of(part: str, day: Span) -> Span | None:
    """That part of a span, if it is a day."""
    if day[1] - day[0] != _DAY:
        return None
    start, end = (timedelta(hours=hour) for hour in _HOURS[part])
    return day[0] + start, day[0] + end

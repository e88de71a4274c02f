"""Spelling: one way to write what can be written in several, before texts are compared."""

from __future__ import annotations

import re

from alma.model.spelling import ONES, TEENS, TENS, american

_EMPHASIS = re.compile(r"(?<!\w)(\*{1,3}|_{1,3}|`{1,3}+)(?=\S)([^*_`\n]+?)(?<=\S)\1(?!\w)")
_EMPHASIZED = re.compile("[*_`]")
_BULLETS = re.compile(r"^[ \t]*(?:[-*•>–—]+|\d+[.)])[ \t]+(?=[^\W\d_])", re.MULTILINE)
_NUMBERS = {"zero": 0, **ONES, **TEENS, **TENS}
_FACTORS = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
_ANY = "|".join(_NUMBERS)
_NUMBER_WORDS = re.compile(
    rf"""\b(?:
    (?:a|{_ANY})[ -](?:{"|".join(_FACTORS)})\b(?:(?:[ ]and)?[ -](?:{_ANY})\b)*
    | (?:{"|".join(TENS)})[ -](?:{"|".join(ONES)})
    # One alone is mostly no number: this one, one of them, one by one. Few-shot and zero-shot are names.
    | one(?=[ ](?:second|minute|hour|day|week|month|year|percent)) | zero(?![ -]?shot)(?!\w)
    | {"|".join(word for word in _NUMBERS if word not in ("zero", "one"))})\b""",
    re.IGNORECASE | re.VERBOSE,
)
_TIMES = re.compile(r"\b(?:twice|thrice|one time|1 time|(\d+) ?x(?= |$))\b", re.IGNORECASE)
_TIMES_AS_SAID = {"twice": "2 times", "thrice": "3 times", "one time": "once", "1 time": "once"}
# Every third failure is not every failure.
_NTHS = {"third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10}
_EVERY_NTH = re.compile(rf"\bevery (?:({'|'.join(_NTHS)})|(\d+)(?:st|nd|rd|th))\b", re.IGNORECASE)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?:\D|$))")
_UNITS = {
    "ms": "milliseconds", "s": "seconds", "sec": "seconds", "secs": "seconds", "min": "minutes", "mins": "minutes",
    "h": "hours", "hr": "hours", "hrs": "hours", "kb": "kilobytes", "mb": "megabytes", "gb": "gigabytes",
    "tb": "terabytes", "percent": "%", "per cent": "%", "%": "%",
}  # fmt: skip
_SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
# For an hour is for 1 hour, the last day the last 24 hours; twice an hour tells how often.
_ONE_OF_A_UNIT = re.compile(
    rf"\b(?:(for|than|after|within|last) an?|(every|the last|the past)) (?=(?:{'|'.join(_SECONDS)})\b)", re.IGNORECASE
)
_LASTING = re.compile(rf"(?<![\w.])(\d{{1,12}})[ -]({'|'.join(_SECONDS)})s?(?!\w)", re.IGNORECASE)
_MEASURED = re.compile(rf"(?<=\d)[ -]?({'|'.join(sorted(_UNITS, key=len, reverse=True))})(?!\w)", re.IGNORECASE)
# Two or more are at least two.
_OR_MORE = re.compile(r"\b(\d+)(?: or (more|fewer|less)\b|\+(?= ))", re.IGNORECASE)
_BOUNDS = (
    (re.compile(r"\b(?:at least|no (?:less|fewer) than|not (?:less|fewer) than|minimum of)\s+(?=\d)"), ">= "),
    (re.compile(r"\bin (?:less than|under)\s+(?=\d)"), "within "),
    (re.compile(r"\b(?:at most|up to|no more than|not more than|maximum of)\s+(?=\d)"), "<= "),
    (
        re.compile(
            r"\b(?:is |are |)(?:(?:more|greater|larger|longer|higher|bigger|older) than|over|above|exceeds?|exceeding)"
            r"\s+(?=\d)"
        ),
        "> ",
    ),
    (re.compile(r"\b(?:is |are |)(?:(?:less|fewer|smaller|shorter|lower|younger) than|under|below)\s+(?=\d)"), "< "),
)


def spelled(text: str) -> str:
    """The text in American spelling, without bullets and marks of emphasis."""
    plain = _EMPHASIS.sub(r"\2", text) if _EMPHASIZED.search(text) else text
    return american(_BULLETS.sub("", plain))


def counted(text: str) -> str:
    """The text with digits for numbers, a name for each unit, and signs for what bounds a number."""
    found = _NUMBER_WORDS.sub(lambda match: str(_value(match.group().lower())), _TIMES.sub(_times, text))
    found = _EVERY_NTH.sub(lambda match: f"every {_NTHS.get((match.group(1) or '').lower(), match.group(2))}", found)
    found = _ONE_OF_A_UNIT.sub(lambda match: f"{match.group(1) or match.group(2)} 1 ", found)
    if not any(map(str.isdigit, found)):
        return found
    measured = _MEASURED.sub(lambda match: _unit(match.group(1).lower()), _THOUSANDS.sub("", found))
    measured = _OR_MORE.sub(_bound, _LASTING.sub(_seconds, measured))
    for pattern, sign in _BOUNDS:
        measured = pattern.sub(sign, measured)
    return measured


def _seconds(match: re.Match[str]) -> str:
    """A length of time in its smallest unit, so that 24 hours are a day."""
    return f"{int(match.group(1)) * _SECONDS[match.group(2).lower()]} seconds"


def _bound(match: re.Match[str]) -> str:
    is_most = (match.group(2) or "").lower() in ("fewer", "less")
    return f"{'<=' if is_most else '>='} {match.group(1)}"


def _unit(name: str) -> str:
    unit = _UNITS[name]
    return unit if unit == "%" else f" {unit}"


def _times(match: re.Match[str]) -> str:
    return _TIMES_AS_SAID.get(match.group().lower(), f"{match.group(1)} times")


def _value(words: str) -> int:
    total = 0
    for word in re.split(r"[ -]", words):
        if word in _FACTORS:
            total = max(total, 1) * _FACTORS[word]
        else:
            total += _NUMBERS.get(word, 0)
    return total

"""Shorthand: what people write instead of the words that a time is named by ("FY25", "2 wks ago", "last sprint")."""

from __future__ import annotations

import re
from collections.abc import Callable

from alma.text.timeexpr.vocabulary import DAY_WORDS, END, MONTHS, NUMBERS, SEASONS

_UNITS = {"m": "minute", "h": "hour", "d": "day", "w": "week", "mo": "month", "y": "year"}
_TO_DATE = {"m": "month", "q": "quarter", "y": "year"}
_SHORT = r"(?<![\w.,])(\d+) ?(m(?!o)|h|d|w|mo|y)(?:ins?|rs?|ks?|s)?"
_AGO = re.compile(rf"{_SHORT}(?= ago\b)")
_LAST = re.compile(rf"(?<=\b(?:last|past) ){_SHORT}(?!\w)")
_NUMBER = rf"\d{{1,3}}|{'|'.join(NUMBERS)}"
# As somebody says who does not know exactly.
_ABOUT_AGO = re.compile(
    rf"\b(?P<less>{_NUMBER})(?:(?<=\d) ?[-\u2013] ?(?=\d)| or | to )(?P<more>{_NUMBER}) "
    r"(?P<unit>(?:day|week|month|year)s?) ago\b"
)
_MONTHS = "|".join((*MONTHS, *(name[:3] for name in MONTHS), "sept"))
# A year may be short behind these.
_BEFORE_YEARS = ("in", "of", "since", "before", "after", "until", "by")
_YEARS = "|".join((*_BEFORE_YEARS, *SEASONS, _MONTHS, "q[1-4]", "h[12]"))
_OF = "|".join((*_BEFORE_YEARS, "for", "from", "to", "and", "during", "through", "q[1-4]", "h[12]"))
# Who is ahead of others is not before them.
_IS_NOT = "".join(rf"(?<!\b{verb} )" for verb in ("is", "are", "was", "were", "be", "get", "stay", "far", "way"))
_DETERMINED = "(?:the|our|my|your|his|her|their)"
_KNOWN = f"(?={_DETERMINED} )"
_DAYS = {word: number for number, word in enumerate(DAY_WORDS, start=1) if number > 3}
# Without knowing better a sprint is two weeks long, and the last one ended in the last two.
_SPRINTS = rf"(\d{{1,2}}|{'|'.join(NUMBERS)})(?: of)? sprints?"


def _sprints_ago(match: re.Match[str]) -> str:
    weeks = 2 * int(NUMBERS.get(match[1], match[1]))
    return f"from {weeks + 1} weeks ago to {weeks - 1} weeks ago"


def _fiscal_year(match: re.Match[str]) -> str:
    """As the year of the calendar, of which a quarter or a half may be meant."""
    year = f"20{match['year']}"
    return f"{match['of'] or ('' if match['share'] else 'in ')}{year}{match['share'] or ''}"


def _last_sprints(match: re.Match[str]) -> str:
    return f"in the last {2 * int(NUMBERS.get(match[1] or 'a', match[1] or 1)) + 2} weeks"


_FORMS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    # Companies begin their years in different months; without knowing better it is the calendar's.
    (
        re.compile(rf"\b(?P<of>(?:{_OF}) )?[fc]y ?'?(?:20)?(?P<year>\d\d)(?!\w)(?P<share>[ -]?[qh][1-4]\b)?"),
        _fiscal_year,
    ),
    (re.compile(r"\b(?:fiscal|financial|business) (?=(?:week|month|quarter|year|h[12]|q[1-4]|20\d\d)\b)"), ""),
    (re.compile(rf"\b({_YEARS})\.?,? ?'(\d\d)(?!\w)"), r"\1 20\2"),
    (re.compile(rf"\b((?:{_MONTHS})\.? \d\d?(?:st|nd|rd|th)?),? '(\d\d)(?!\w)"), r"\1 20\2"),
    # Only where a day is spoken of, and with two digits each: others are versions.
    (re.compile(r"\bon ([0-3]\d\.[01]\d\.)(\d\d)(?![\w/-]|\.\d)"), r"on \g<1>20\2"),
    (re.compile(r"\b(q[1-4])/(\d\d)(?!\w|/)"), r"\1 20\2"),
    # A winter has two years, and is named by the one that it begins in.
    (re.compile(r"\bwinter (?:of )?((?:19|20)\d\d)[/-](?:\d\d)?\d\d(?![\w/-])"), r"winter \1"),
    (re.compile(rf"(?<![\w./-])({_MONTHS})[-/]((?:19|20)\d\d)(?![\w/-]|\.\d)"), r"\1 \2"),
    (re.compile(r"\b(?:calendar week|cw|kw|wk\.?|iso week) ?(?=\d\d?(?!\w))"), "calendar week "),
    (
        re.compile(r"\b(?:the )?week (?:commencing|beginning|starting)(?: on)? (?=(?:the )?\d|[a-z]+ \d)|\bw/c "),
        "the week of ",
    ),
    (re.compile(r"\bthe turn of the year\b"), "new year"),
    # What is the first, the second or the third need not be a day.
    (
        re.compile(rf"\b((?:on|morning of|afternoon of|evening of|night of) the )({'|'.join(_DAYS)}){END}"),
        lambda match: f"{match[1]}{_DAYS[match[2]]}th",
    ),
    (
        re.compile(
            rf"\bwhile ({_DETERMINED}(?: [\w'-]+){{1,4}}?) (?:was|were) (?:still )?"
            r"(?:running|going on|ongoing|under ?way|in progress|open|down|on)\b"
        ),
        r"during \1",
    ),
    (re.compile(rf"\b(?:in the (?:middle|course) of|amid) {_KNOWN}"), "during "),
    (re.compile(r"\b(?:on )?the eve of\b"), "the day before"),
    (re.compile(rf"\b(?:on )?the same day as {_KNOWN}"), "the day of "),
    (
        re.compile(rf"\b(?:{_IS_NOT}ahead of|(?:in the \w+ )?leading up to|in the (?:run|lead)-?up to) {_KNOWN}"),
        "before ",
    ),
    (re.compile(rf"\bin the (?:wake|aftermath) of {_KNOWN}"), "after "),
    (re.compile(rf"\bbetween {_KNOWN}([^,;?!]{{3,60}}?) and (?:now|today)\b"), r"since \1"),
    (re.compile(r"\b(?:the )?current (?=(?:week|month|quarter|year)\b)"), "this "),
    (re.compile(r"\b(?:(week|month|quarter|year)[ -]to[ -]date)\b"), r"this \1"),
    (re.compile(r"\b([mqy])td\b"), lambda match: f"this {_TO_DATE[match[1]]}"),
    (_AGO, lambda match: f"{match[1]} {_UNITS[match[2]]}s"),
    (_LAST, lambda match: f"{match[1]} {_UNITS[match[2]]}s"),
    (_ABOUT_AGO, r"from \g<more> \g<unit> ago to \g<less> \g<unit> ago"),
    (re.compile(r"(?<=\d\d-\d\d)t(\d\d:\d\d)(?::\d\d(?:[.,]\d+)?)?(?:z|[+-]\d\d:?\d\d)?(?!\w)"), r" at \1"),
    (
        re.compile(
            rf"\b(?:right|shortly|just|soon|immediately|in the (?:hours|days)) (?=(?:before|after) {_DETERMINED} )"
        ),
        "the week ",
    ),
    (re.compile(r"\b(?:an? )?fortnight"), "two weeks"),
    (re.compile(rf"\b{_SPRINTS} ago\b"), _sprints_ago),
    (
        re.compile(rf"\b(?:in |over |during )?(?:the |our )?(?:last|past|previous) (?:{_SPRINTS}|sprint\b)"),
        _last_sprints,
    ),
    (re.compile(r"\b(?:in |during )?this sprint\b"), "in the last two weeks"),
)


# Most texts have none of them, which is seen at once.
_ANY = re.compile(
    rf"\b(?:[fc]y|fiscal|financial|business|calendar|cw|kw|wk|w/c|iso|current|[mqy]td|ago|fortnight|sprint|winter|q[1-4]/|(?:{_MONTHS})[-/]\d)|"
    r"'\d|on \d\d\.|between|to.date|week (?:comm|beg|start)|turn of|eve of|ahead of|up to|wake of|aftermath|"
    r"same day as|\b(?:while|amid)\b|(?:middle|course) of|\b(?:on|of) the (?:\w*th|twenty-|thirty-)|"
    r"\b(?:last|past) \d|\dt\d|\b(?:right|shortly|just|soon|immediately|hours|days) (?:before|after)"
)


def written_out(text: str) -> str:
    """A text in small letters with such forms written out."""
    if _ANY.search(text) is None:
        return text
    for form, words in _FORMS:
        text = form.sub(words, text)
    return text

"""Normalize text for the English rules: times of other locales (`locales.toml`) and shorthand become plain English."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from alma.lazy import lazy_regex
from alma.text.timeexpr.vocabulary import DAY_WORDS, END, MONTHS, NUMBERS, SEASONS, WEEKDAYS, expanded

MAX_LENGTH = 2_000
"""Only the beginning of a longer text is read."""

Replacement = str | Callable[[re.Match[str]], str]
Form = tuple[re.Pattern[str], Replacement]

_UNITS = ("day", "week", "month", "quarter", "year", "weekend", "spring", "summer", "autumn", "winter")
_COUNTS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_TOKEN = lazy_regex("[a-z]+")


def normalized(text: str, locale: str | None = None) -> str:
    """The beginning of a text in lower case and with single spaces, with its times in plain English.

    `locale` is the language of the text, for example "de"; None tries all of `locales.toml`.
    """
    small = " ".join(text[:MAX_LENGTH].lower().replace("’", "'").split())
    return _shorthand_written_out(_translated(_phrases_translated(small, locale), locale))


@cache
def data(name: str) -> Mapping[str, Any]:
    """A data file of this package."""
    return tomllib.loads(files("alma.text.timeexpr").joinpath(name).read_text(encoding="utf-8"))


def _replaced(forms: Sequence[Form], text: str) -> str:
    for pattern, replacement in forms:
        text = pattern.sub(replacement, text)
    return text


# ---------------------------------------------------------------------- languages with a grammar


class _Grammars(NamedTuple):
    forms: tuple[Form, ...]
    # Every time expression has one of these words, which are rare in English texts.
    words: frozenset[str]


def _translated(text: str, locale: str | None) -> str:
    grammars = _grammars(locale)
    plain = text if text.isascii() else _without_accents(text)
    return text if grammars.words.isdisjoint(_TOKEN.findall(plain)) else _replaced(grammars.forms, plain)


def _without_accents(text: str) -> str:
    return "".join(sign for sign in unicodedata.normalize("NFD", text) if not unicodedata.combining(sign))


@lru_cache(maxsize=16)
def _grammars(locale: str | None) -> _Grammars:
    locales = data("locales.toml")
    chosen = [grammar for name, grammar in locales["grammars"].items() if locale in (None, name)]
    spellings = [
        grammar.get(part, "") for grammar in chosen for part in ("units", "months", "weekdays", "before", "after")
    ]
    words = _TOKEN.findall(" ".join((*spellings, *(word for grammar in chosen for word in grammar["words"]))))
    forms = tuple(form for grammar in chosen for form in _forms(grammar))
    return _Grammars(forms, frozenset(words).difference(locales["english_words"].split()))


class _Words:
    """Words of a language with the English ones."""

    def __init__(self, spellings: str, meanings: Sequence[str]) -> None:
        self._meaning_of = {
            each.replace("_", " "): meaning
            for alike, meaning in zip(spellings.split(), meanings, strict=True)
            for each in alike.split("|")
        }
        # Longest first, so that no word hides a longer one that begins with it.
        self.pattern = "|".join(sorted(self._meaning_of, key=len, reverse=True))

    def __getitem__(self, word: str) -> str:
        """The English word; a number in digits is itself."""
        return self._meaning_of.get(word, word)


def _forms(grammar: Mapping[str, Any]) -> Iterator[Form]:
    return ((re.compile(pattern), replacement) for pattern, replacement in _patterns(grammar))


def _patterns(grammar: Mapping[str, Any]) -> Iterator[tuple[str, Replacement]]:
    units, numbers = _Words(grammar["units"], _UNITS), _Words(grammar["numbers"], _COUNTS)
    months, weekdays = _Words(grammar["months"], MONTHS), _Words(grammar["weekdays"], WEEKDAYS)
    of, on, since = grammar.get("of", "de"), grammar["on"], grammar["since"]
    count = rf"(?P<count>\d{{1,3}}|{numbers.pattern}) (?P<unit>{units.pattern})"
    month = rf"(?P<month>{months.pattern})(?: (?:{of} )?(?P<year>(?:19|20)\d\d))?"
    day = rf"(?P<day>{weekdays.pattern})"

    def amount(match: re.Match[str]) -> str:
        return f"{numbers[match['count']]} {units[match['unit']]}s"

    def unit_or_day(match: re.Match[str]) -> str:
        return weekdays[match["day"]] if match["day"] else units[match["unit"]]

    def next_to(word: str) -> Callable[[re.Match[str]], str]:
        return lambda match: f"{word} {unit_or_day(match)}"

    def month_of(match: re.Match[str]) -> str:
        return f"{months[match['month']]} {match['year'] or ''}".strip()

    for words, meaning in grammar["words"].items():
        yield rf"\b(?:{words})\b", meaning
    ago = rf"{grammar['before']} {count}" if "before" in grammar else rf"{count} {grammar['after']}"
    yield rf"\b{ago}\b", lambda match: f"{amount(match)} ago"
    yield rf"\b{grammar['last']} {count}\b", lambda match: f"the last {amount(match)}"
    which = rf"(?:{day}|(?P<unit>{units.pattern}))"
    for form in (rf"{grammar['before_last']} {which}", rf"{which} {grammar['before_last']}"):
        yield rf"\b{form}\b", lambda match: f"the {unit_or_day(match)} before last"
    for name in ("last", "this", "next"):
        for form in (rf"{grammar[name]} {which}", rf"{which} {grammar[name]}"):
            yield rf"\b{form}\b", next_to(name)
    # Some months have the same name in English, where the day after a hyphen is the last one of several.
    yield (
        rf"(?<![-\u2013\u2014])\b(?:(?:{on}) )?(?P<date>\d{{1,2}})\.? (?:{of} )?{month}\b",
        lambda match: f"on {match['date']} {month_of(match)}",
    )
    yield rf"\b(?:{since}) (?:{on} )?{month}\b", lambda match: f"since {month_of(match)}"
    yield rf"\b(?:{grammar['within']}) {month}\b", lambda match: f"in {month_of(match)}"
    yield rf"\b(?:{since}) (?:{on} )?{day}\b", lambda match: f"since {weekdays[match['day']]}"
    yield rf"\b(?:{on}) {day}\b", lambda match: f"on {weekdays[match['day']]}"
    yield rf"\b(?:{since}) (?=(?:last|this|yesterday|the day) )", "since "


# ---------------------------------------------------------------------- languages with a list of phrases


class _Phrases(NamedTuple):
    forms: tuple[Form, ...]
    # A text in plain letters is only searched where it has one of these.
    hint: re.Pattern[str]


def _phrases_translated(text: str, locale: str | None) -> str:
    phrases = _phrases(locale)
    if text.isascii() and phrases.hint.search(text) is None:
        return text
    return " ".join(_replaced(phrases.forms, unicodedata.normalize("NFC", text)).split())


@lru_cache(maxsize=16)
def _phrases(locale: str | None) -> _Phrases:
    locales = data("locales.toml")
    units = locales["units_ago"]
    ago = rf"(\d{{1,3}}) ?({'|'.join(sorted(units, key=len, reverse=True))}) ?(?:以?前|전)"
    patterns: list[tuple[str, Replacement]] = []
    if locale in (None, "zh", "ja", "ko"):
        patterns.append((ago, lambda match: f" {match[1]} {units[match[2]]} ago "))
        patterns += [(words, f" {meaning} ") for words, meaning in locales["unspaced"].items()]
    patterns += [
        (rf"(?<!\w)(?:{words})(?!\w)", meaning)
        for name, phrases in locales["phrases"].items()
        if locale in (None, *name.split("_"))
        for words, meaning in phrases.items()
    ]
    forms = tuple((re.compile(pattern), replacement) for pattern, replacement in patterns)
    return _Phrases(forms, re.compile(rf"\b(?:{locales['plain_words']})\b"))


# ---------------------------------------------------------------------- shorthand

_BEFORE_YEARS = ("in", "of", "since", "before", "after", "until", "by")
_MONTH_NAMES = "|".join((*MONTHS, *(name[:3] for name in MONTHS), "sept"))
_LATER_DAYS = {word: number for number, word in enumerate(DAY_WORDS, start=1) if number > 3}
_SHORT_UNITS = {"m": "minute", "h": "hour", "d": "day", "w": "week", "mo": "month", "y": "year", "q": "quarter"}
_DETERMINED = "(?:the|our|my|your|his|her|their)"
_NAMES = {
    "UNIT": r"(?<![\w.,])(\d+) ?(m(?!o)|h|d|w|mo|y)(?:ins?|rs?|ks?|s)?",
    "NUMBER": rf"\d{{1,3}}|{'|'.join(NUMBERS)}",
    "MONTHS": _MONTH_NAMES,
    "YEARS": "|".join((*_BEFORE_YEARS, *SEASONS, _MONTH_NAMES, "q[1-4]", "h[12]")),
    "OF": "|".join((*_BEFORE_YEARS, "for", "from", "to", "and", "during", "through", "q[1-4]", "h[12]")),
    # "Ahead of" a person is not a time.
    "IS_NOT": "".join(rf"(?<!\b{verb} )" for verb in ("is", "are", "was", "were", "be", "get", "stay", "far", "way")),
    "DETERMINED": _DETERMINED,
    "KNOWN": f"(?={_DETERMINED} )",
    "SPRINTS": rf"(\d{{1,2}}|{'|'.join(NUMBERS)})(?: of)? sprints?",
    "LATER_DAYS": "|".join(_LATER_DAYS),
    "END": END,
}


class _Shorthand(NamedTuple):
    forms: tuple[Form, ...]
    hint: re.Pattern[str]


def _shorthand_written_out(text: str) -> str:
    shorthand = _shorthand()
    return text if shorthand.hint.search(text) is None else _replaced(shorthand.forms, text)


@cache
def _shorthand() -> _Shorthand:
    english = data("english.toml")
    forms = tuple(
        (re.compile(expanded(entry["pattern"], _NAMES)), _FUNCTIONS.get(entry["to"], entry["to"]))
        for entry in english["shorthand"]
    )
    return _Shorthand(forms, re.compile(expanded(english["shorthand_hint"], _NAMES)))


def _fiscal_year(match: re.Match[str]) -> str:
    """The calendar year instead, or a quarter or half of it; the start of the fiscal year is unknown."""
    year = f"20{match['year']}"
    return f"{match['of'] or ('' if match['share'] else 'in ')}{year}{match['share'] or ''}"


def _sprints_ago(match: re.Match[str]) -> str:
    """As weeks: a sprint is assumed to last two weeks."""
    weeks = 2 * int(NUMBERS.get(match[1], match[1]))
    return f"from {weeks + 1} weeks ago to {weeks - 1} weeks ago"


def _last_sprints(match: re.Match[str]) -> str:
    return f"in the last {2 * int(NUMBERS.get(match[1] or 'a', match[1] or 1)) + 2} weeks"


_FUNCTIONS: dict[str, Callable[[re.Match[str]], str]] = {
    "{fiscal_year}": _fiscal_year,
    "{sprints_ago}": _sprints_ago,
    "{last_sprints}": _last_sprints,
    "{ordinal_day}": lambda match: f"{match[1]}{_LATER_DAYS[match[2]]}th",
    "{to_date}": lambda match: f"this {_SHORT_UNITS['mo' if match[1] == 'm' else match[1]]}",
    "{short_units}": lambda match: f"{match[1]} {_SHORT_UNITS[match[2]]}s",
}

"""Reading a sentence: what worked, what did not, what is wanted, what is so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from alma.extraction import wording as say
from alma.extraction.facts import FactType


@dataclass(frozen=True, slots=True)
class Reading:
    """What a pattern read from a sentence, before it is known who said it and about what."""

    fact_type: FactType
    content: str
    confidence: float
    strategy: str | None = None
    task: str | None = None
    reason: str | None = None
    alternative: str | None = None
    category: str | None = None
    success: bool | None = None


_FOR_NOW = re.compile(r"\b(?:this time|for now|today|right now|just once|yet|anymore)\b", re.IGNORECASE)
_FOR_NOW_COSTS = 0.5
_GENERAL = tuple(pattern for pattern, _ in say.RULES)


def worked(text: str) -> Reading | None:
    """A strategy that succeeded."""
    for pattern, confidence in (*say.RULES, *say.SUCCESSES):
        match = pattern.match(text)
        if match and not say.DENIED.search(match.group(0)) and _says_something(match["strategy"]):
            named = match.groupdict()
            sort = FactType.HEURISTIC if pattern in _GENERAL else FactType.OUTCOME
            strategy, task = _strategy(named["strategy"]), _tidied(named.get("task"))
            tried = strategy if _is_strategy(strategy) else None
            return Reading(sort, _tidy(text), confidence, tried, task, success=True)
    if say.IT_WORKED.match(text) and not say.DENIED.search(text):
        return Reading(FactType.OUTCOME, _tidy(text), 0.7, success=True)
    return None


def failed(text: str) -> Reading | None:
    """A strategy that did not succeed, or does harm; a strategy of None is one that was named before."""
    for pattern, confidence in say.FAILURES:
        match = pattern.match(text)
        if match is None:
            continue
        named = match.groupdict()
        strategy = _strategy(named["strategy"])
        before = strategy if _is_strategy(strategy) else None
        sort = FactType.ANTI_PATTERN if say.HARMFUL.search(text) else FactType.OUTCOME
        reason, alternative = _tidied(named.get("reason")), _tidied(named.get("alternative"))
        task = _tidied(named.get("task"))
        return Reading(sort, _tidy(text), confidence, before, task, reason, alternative, success=False)
    return None


def wanted(text: str) -> Reading | None:
    """How the speaker wants things done."""
    for pattern, confidence, form in say.WISHES:
        match = pattern.match(text)
        if match and _says_something(match["wish"]):
            sure = confidence - (_FOR_NOW_COSTS if _FOR_NOW.search(text) else 0.0)
            return Reading(FactType.PREFERENCE, _worded(form, match), sure, category=_profile(form))
    return None


def stated(text: str) -> Reading | None:
    """Something that is so, as opposed to something that is going on."""
    told = _matching(say.FOUND_OUT, text)
    if told is None and (not say.FIRST_PERSON.match(text) or re.match(r"we\b", text, re.IGNORECASE)):
        told = _matching(say.FACTS, text)
    if told is not None:
        return told
    match = say.COPULA.match(text) or say.HAS.match(text)
    if match is None or say.FIRST_PERSON.match(text) or say.SMALL_TALK.match(text):
        return None
    passing = say.PASSING.search(match["what"]) or say.DENIED.search(text)
    if not say.CONCRETE.search(match["what"]) or passing:
        return None
    return Reading(FactType.DOMAIN_KNOWLEDGE, _tidy(match["fact"]), 0.75)


def _matching(table: tuple[tuple[re.Pattern[str], float], ...], text: str) -> Reading | None:
    for pattern, confidence in table:
        match = pattern.match(text)
        if match and not say.DENIED.search(match["fact"]):
            return Reading(FactType.DOMAIN_KNOWLEDGE, _tidy(match["fact"]), confidence)
    return None


def readings(text: str, by_user: bool) -> Iterator[Reading]:
    """What a sentence says; the first sort that fits is what it is."""
    order = (failed, wanted, worked, stated) if by_user else (failed, worked, stated)
    for read in order:
        found = read(text)
        if found is not None:
            yield found
            return


def _worded(form: str, match: re.Match[str]) -> str:
    named = {key: (value or "").lower() for key, value in match.groupdict().items() if key in ("how", "what")}
    verb = re.match(r"i (\w+)(.*?)\s+" + re.escape(match["wish"]), match.group(0), re.IGNORECASE)
    third = "" if verb is None else f"{'is' if verb[1].lower() == 'am' else verb[1].lower() + 's'}{verb[2]}"
    return form.format(_tidy(match["wish"]), verb=third, **named)


def _strategy(text: str) -> str:
    return re.sub(r"^(?:but|however|unfortunately|sadly|using)[, ]+", "", _tidy(text), flags=re.IGNORECASE)


def _is_strategy(text: str) -> bool:
    """Whether it says what was tried, as opposed to "it", or to what came of it: the tests, the build."""
    nameless = text.lower() in say.PRONOUNS or say.UNNAMED.match(text) or say.THINGS.match(text)
    return not nameless and _says_something(text)


def _profile(form: str) -> str | None:
    return "profile" if any(word in form for word in ("called", "what", "verb", "is {}", "uses")) else None


def _says_something(text: str) -> bool:
    return len(re.findall(r"\w", text)) >= 2


def _tidied(text: str | None) -> str | None:
    return _tidy(text) if text and _says_something(text) else None


def _tidy(text: str) -> str:
    """One line, without the marks at its ends."""
    plain = re.sub(r"\s+", " ", text).strip(' \t,;:.!…"*_')
    return re.sub(
        r"(?:\s+(?:pls|please|plz|thanks|thx|ty|lol|haha|ok|btw|:-?[)D]|[^\w\s()\"'`.%/$€-]+))+$", "", plain, flags=re.I
    )

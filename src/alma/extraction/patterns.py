"""Reading a sentence: what worked, what did not, what is wanted, what is so."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from alma.extraction import wording as say
from alma.extraction.facts import FactType
from alma.extraction.wishes import WISHES
from alma.extraction.wishes_abroad import WISHES_ABROAD


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
    # Whether what follows takes back half of it.
    doubted: bool = False


# What is not to be done any more is not to be done from now on.
_FOR_NOW = re.compile(
    r"\b(?:this time|for now|today|right now|just once|yet)\b|"
    r"^(?!(?:please )?(?:do not|don'?t|stop|never)\b).*\bany ?more\b",
    re.IGNORECASE | re.DOTALL,
)
_FOR_NOW_COSTS = 0.5
_MOST_WORDS = 10
_MOST_WORDS_OF_A_PART = 3

Table = tuple[tuple[re.Pattern[str], float], ...]


def worked(text: str, by_user: bool) -> Reading | None:
    """A strategy that succeeded; a strategy of None is one that was named before."""
    if say.DENIED.search(say.WITHOUT.sub(" ", text)) or say.LIMITED.search(text):
        return None
    if _is_advice(text, by_user, _SUCCEEDED):
        return None
    rule = _named(say.RULES, text) if by_user else None
    if rule is not None:
        return None if rule.doubted else replace(rule, fact_type=FactType.HEURISTIC, success=True)
    found = _told(say.SUCCESSES, text) or _named(say.PRAISED, text)
    if found is None and (it := say.IT_WORKED.match(text)):
        found = Reading(FactType.OUTCOME, _tidy(text), 0.7, doubted=_is_doubted(it, text))
    return None if found is None or found.doubted else replace(found, success=True)


def failed(text: str, by_user: bool) -> Reading | None:
    """A strategy that did not succeed, or does harm."""
    found = _told(say.FAILURES, text)
    if found is None and (found := _named(say.BLAMED, text)) is not None and _is_symptom(found, text):
        return None
    if found is None and (it := say.IT_FAILED.match(text)):
        found = Reading(FactType.OUTCOME, _tidy(text), 0.7, reason=_tidied(it["reason"]))
    if found is None or (_is_advice(text, by_user, _EXPERIENCED) and not say.CODE.search(found.strategy or "")):
        return None
    sort = FactType.ANTI_PATTERN if say.HARMFUL.search(text) else FactType.OUTCOME
    return replace(found, fact_type=sort, success=False)


def _is_symptom(found: Reading, text: str) -> bool:
    """Whether something is said to fail that nobody tried: it is what is to be mended."""
    name = found.strategy or ""
    tried = re.match(r"\w+ing\b", name) or say.CODE.search(name) or len(name.split()) > _MOST_WORDS_OF_A_PART
    return bool(name) and not tried and say.SYMPTOM.search(text) is not None


def _is_advice(text: str, by_user: bool, happened: re.Pattern[str]) -> bool:
    """Whether an assistant tells what might work in general, as opposed to what did."""
    if by_user or re.match(r"(?:i|we)\b", text, re.IGNORECASE):
        return False
    return say.ADVICE.search(text) is not None or not happened.search(text)


_EXPERIENCED = re.compile(
    rf"{say.HARMED}|{say.FAILED}|\b(?:tried|used|got|ran|was|were|broke|crashed)\b", re.IGNORECASE
)
_SUCCEEDED = re.compile(
    rf"\b(?:worked|works now|did (?:it|the \w+)|made the difference|{say.ENDED}|helped|succeeded|pass(?:ed|es)?|"
    rf"green|was|were|"
    rf"paid off|went through|{say.LESSENED_PLAINLY})\b",
    re.IGNORECASE,
)


def _told(table: Table, text: str) -> Reading | None:
    """What the speaker says of their own doing: the strategy stands where the sentence has it."""
    for pattern, confidence in table:
        match = pattern.match(text)
        if match and _says_something(match["strategy"]):
            return _reading(match, text, confidence)
    return None


def _named(table: Table, text: str) -> Reading | None:
    """What is said of a strategy that is named, or meant by "it"; a whole clause is no name."""
    for pattern, confidence in table:
        match = pattern.match(text)
        if match is None or say.ONE_OF_SEVERAL.match(_strategy(match["strategy"])):
            continue
        found = _reading(match, text, confidence)
        name = found.strategy
        if name is None or not (_is_clause(name) or len(name.split()) > _MOST_WORDS):
            return found
    return None


def _is_clause(name: str) -> bool:
    """Whether it says too much to be a name; what is done to "it" may be: deleting the profile and adding it again."""
    pointed = re.sub(r"^(?:this|that|these|those)\s+", "", name, flags=re.IGNORECASE)
    named = re.sub(r"\b(?:it|its|that)\b", "", name) if re.match(r"\w+ing\b", name) else pointed
    return say.CLAUSE.search(named) is not None


def _reading(match: re.Match[str], text: str, confidence: float) -> Reading:
    named = match.groupdict()
    strategy = _strategy(named["strategy"])
    return Reading(
        FactType.OUTCOME,
        _tidy(text),
        confidence,
        strategy if _is_strategy(strategy) else None,
        _tidied(named.get("task")),
        _tidied(named.get("reason")),
        _tidied(named.get("alternative")),
        doubted=_is_doubted(match, text),
    )


def _is_doubted(match: re.Match[str], text: str) -> bool:
    """Whether what is said behind "worked" makes it less than that: poorly, only once, in 3 of 10 runs."""
    if match.groupdict().get("behind") is None:
        return False
    behind = say.WITHOUT.sub(" ", text[match.end("behind") :])
    share = say.SHARE.search(behind)
    if share is not None and share[1] != share[2]:
        return True
    return say.SPOILED.search(behind) is not None or say.UNPRAISED.match(behind) is not None


def wanted(text: str) -> Reading | None:
    """How the speaker wants things done."""
    for pattern, confidence, form in (*WISHES, *WISHES_ABROAD):
        match = pattern.match(text)
        if match and _says_something(match["wish"]):
            sure = confidence - (_FOR_NOW_COSTS if _FOR_NOW.search(text) else 0.0)
            return Reading(FactType.PREFERENCE, _worded(form, match), sure, category=_profile(form))
    return None


def stated(text: str, by_user: bool) -> Reading | None:
    """Something that is so, as opposed to something that is going on."""
    family = say.FAMILY.match(text) if by_user else None
    if family is not None and not _is_passing(family["what"]) and not re.match(r"\w+ing\b", family["what"]):
        return Reading(FactType.PREFERENCE, _tidy(family["fact"]), 0.7, category="profile")
    if not by_user and say.ADVICE.search(text):
        return None
    told = _matching(say.FOUND_OUT, text, denials=True)
    if told is not None:
        return told
    if not by_user and not (say.PART.match(text) and say.CHECKABLE.search(text)):
        return None
    if not say.FIRST_PERSON.match(text) or re.match(r"we\b", text, re.IGNORECASE):
        told = _matching(say.FACTS, text)
    told = told or _is_or_has(text)
    if told is not None and say.PERSONAL.match(text):
        # What is true of a user is theirs, and no knowledge that others are told.
        return replace(told, fact_type=FactType.PREFERENCE, category="profile")
    return told


def _is_or_has(text: str) -> Reading | None:
    match = say.COPULA.match(text) or say.HAS.match(text)
    if match is None or say.FIRST_PERSON.match(text) or say.SMALL_TALK.match(text):
        return None
    if not say.CONCRETE.search(match["what"]) or _is_passing(match["what"]) or say.DENIED.search(text):
        return None
    return Reading(FactType.DOMAIN_KNOWLEDGE, _tidy(match["fact"]), 0.75)


def _is_passing(what: str) -> bool:
    return say.PASSING.search(what) is not None or say.FEELING.search(what) is not None


def _matching(table: Table, text: str, denials: bool = False) -> Reading | None:
    """What a sentence says is so; that something is not counts where it was found out, or beside what is instead."""
    for pattern, confidence in table:
        match = pattern.match(text)
        if match and (denials or not say.DENIED.search(say.NOR.sub("", match["fact"]))):
            return Reading(FactType.DOMAIN_KNOWLEDGE, _tidy(match["fact"]), confidence)
    return None


def read(text: str, by_user: bool) -> Reading | None:
    """What a sentence says, if anything; the first sort that fits is what it is."""
    wish = wanted(text) if by_user else None
    return failed(text, by_user) or wish or worked(text, by_user) or stated(text, by_user)


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
    polite = re.sub(
        r"(?:\s+(?:pls|please|plz|thanks|thx|ty|lol|haha|ok|btw|:-?[)D]|[^\w\s()\"'`.%/$€-]+))+$", "", plain, flags=re.I
    )
    return polite.rstrip(" ,;:")

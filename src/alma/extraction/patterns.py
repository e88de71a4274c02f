"""The sentences that say something worth knowing, as patterns: what worked, what did not, what is wanted, what is so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

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


_NOT = r"(?:do not|don'?t|does not|doesn'?t|did not|didn'?t|never|no longer|can ?not|can'?t|won'?t)"
_VERY = r"(?:really|always|usually|generally|strongly|much|definitely|personally|actually|just|also|still|very much)"
_WELL = r"(?:(?:really |very |pretty |quite )?(?:well|great|nicely|perfectly|fine|reliably|flawlessly|like a charm))"
_WORKED = rf"(?:work(?:ed|s)(?: out)?(?: (?:now|again|{_WELL}))*|did the trick|solved (?:it|the (?:problem|issue))|fixed it|was (?:a )?success(?:ful)?|succeeded|passed|paid off|helped(?: a lot)?)"
_BAD = (
    r"(?:flaky|unstable|unreliable|slow|slower|brittle|fail|hang|crash|time ?out|worse|impossible|leak|break|freeze|"
    r"inconsistent|confusing|deadlock)"
)
_HARM = (
    r"\b(?:causes?|caused|breaks?|broke|crashe[sd]|leads? to|led to|results? in|resulted in|triggers?|triggered|"
    rf"(?:makes?|made) (?:the |our |my |it |everything |all )?[\w\s]{{0,40}}?{_BAD}\w*)"
)
_FAILED = r"(?:didn'?t work|did not work|doesn'?t work|does not work|never worked|failed|fails|keeps failing|kept failing|was a (?:mistake|bad idea|disaster)|backfired|made (?:it|things) worse)"
_BECAUSE = r"(?:\s*,?\s*(?:because|since|as|due to|so)\s+(?P<reason>.+?))?"
_END = r"[.!…\s:)]*$"
_WE = r"(?:i|we|i've|we've|i have|we have)"


def _p(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


# ---------------------------------------------------------------------- what worked

_SUCCESSES = (
    # I used X which worked well; I tried X and it worked.
    (_p(rf"^{_WE} (?:used|tried|applied|went with|switched to|chose|did|ran|added|took)\s+(?P<strategy>.+?)[,;]?\s+(?:which|and (?:it|that|this)|and|it|that) (?:has )?{_WORKED}(?P<rest>\b.*)$"), 0.85),
    # I fixed Y by doing X; we solved the problem with X.
    (_p(rf"^{_WE} (?:finally |successfully )?(?:fixed|solved|resolved|got rid of|handled|unblocked|sped up|improved)\s+(?P<task>.+?)\s+(?:by|with|using|through)\s+(?P<strategy>.+?){_END}"), 0.85),
    (_p(rf"^{_WE} (?:was|were) able to\s+(?P<task>.+?)\s+(?:by|with|using)\s+(?P<strategy>.+?){_END}"), 0.8),
    # Switching to X fixed Y.
    (_p(rf"^(?P<strategy>(?:using|switching to|moving to|adding|removing|replacing|increasing|reducing|mocking|caching|waiting for|upgrading|setting|disabling|enabling)\s+.+?)\s+(?:fixed|solved|resolved|eliminated|stopped|cured)\s+(?P<task>.+?){_END}"), 0.85),
    # The fix was to X; what worked was X.
    (_p(rf"^(?:the (?:fix|solution|trick|key|answer) (?:was|is)|what (?:finally )?worked (?:was|is)|it turned out that|turns out)\s+(?:to |that )?(?P<strategy>.+?){_END}"), 0.75),
    # X worked well for Y.
    (_p(rf"^(?P<strategy>(?!it\b|that\b|this\b|everything\b|all\b|they\b|which\b|nothing\b|he\b|she\b|what\b).{{3,120}}?) {_WORKED}(?: (?:for|on|with|when|in)\s+(?P<task>.+?))?(?P<rest>\s*(?:[,.!…].*)?)$"), 0.7),
    (_p(rf"^{_WE} successfully\s+(?P<strategy>.+?){_END}"), 0.6),
)

# It worked, thanks: what did was said before.
_IT_WORKED = _p(rf"^(?:it|that|this)(?: (?:all|really|actually|finally|indeed|totally))* {_WORKED}\b(?! if\b| when\b).{{0,60}}$")
_RULES = (
    # For Y, X works best; X works best for Y.
    (_p(rf"^(?:for|when(?:ever)?|with|on|in)\s+(?P<task>.+?),\s*(?P<strategy>.+?)\s+works? (?:best|better|{_WELL})\b.*?{_END}"), 0.8),
    (_p(rf"^(?P<strategy>(?!it\b|that\b|this\b|what\b).{{3,120}}?)\s+works? (?:best|better|{_WELL}) (?:for|when|with|on|in)\s+(?P<task>.+?){_END}"), 0.8),
)

# ---------------------------------------------------------------------- what did not

_FAILURES = (
    # Don't use X, it causes Y; avoid X because Y; use Z instead.
    (_p(rf"^(?:please )?(?:{_NOT} (?:ever )?(?:use|do|rely on|call|add|put)|avoid(?: using)?|stop using)\s+(?P<strategy>.+?)(?:\s*[,;:–-]+\s*|\s+)(?:because|since|as|it|that|this|they)\s+(?P<reason>(?:it |they )?.*(?:{_HARM}|flaky|slow|fail|break|crash|unreliable|broke|deprecated|insecure|dangerous|wrong|bad).*?)(?:[,;.]?\s*(?:use|prefer|try)\s+(?P<alternative>.+?)(?: instead)?)?{_END}"), 0.85),
    # I tried X but it failed because Y.
    (_p(rf"^{_WE} (?:used|tried|applied|went with|switched to|did|added)\s+(?P<strategy>.+?)[,;]?\s+(?:but|and|however|which)\s+(?:it |that |this |they )?(?P<reason>(?:{_FAILED}|{_HARM}|was (?:too )?(?:slow|flaky|unreliable)|timed out|crashed|broke|got|ran into|caused|hit).*?){_END}"), 0.85),
    # X didn't work because Y.
    (_p(rf"^(?P<strategy>.{{1,140}}?)\s+{_FAILED}(?: (?:for|on|with|in)\s+(?P<task>[^,]+?))?{_BECAUSE}{_END}"), 0.75),
    # X made the tests flaky; X causes Y.
    (_p(rf"^(?P<strategy>(?!it\b|this\b|that\b|which\b|he\b|she\b|they\b|nothing\b|something\b|what\b).{{2,120}}?)\s+(?P<reason>{_HARM}\b.*?)(?:[,;]\s*(?:use|so use|prefer)\s+(?P<alternative>.+?)(?: instead)?)?{_END}"), 0.8),
    (_p(rf"^(?P<strategy>(?!it\b|this\b|that\b).{{2,120}}?)\s+(?P<reason>(?:is|are|was|were) (?:really |very |too |so |extremely )?(?:flaky|unreliable|brittle|error-prone|deprecated|insecure))\b.*?{_END}"), 0.6),
)
_PRONOUNS = frozenset("it that this these those they which he she everything nothing".split())

# ---------------------------------------------------------------------- what is wanted

_NOTHING = r"(?:(?:it|this|that|you|them|him|her)\b|what you|how you|your (?:idea|work|answer))"
# What follows "always" or "never" without telling anybody to do something.
_NO_ORDER = (
    r"(?:mind|happy|glad|a|an|been|said|heard|thought|knew|saw|seen|had|have|has|is|are|was|were|works?|nice|fun|good|great|"
    r"sure|going|gonna|again|ending|understood|ever|in|on|at|the|you're|welcome|\w+ed)\b"
)
_WISHES = (
    (_p(rf"^(?:personally,? )?i(?:'d| would)?(?: {_VERY})* (?:prefer|rather(?: have)?|favou?r)\s+(?P<wish>.+?){_END}"), 0.9, "prefers {}"),
    (_p(rf"^(?:personally,? )?i(?: {_VERY})* (?:like|love|enjoy)(?! to (?:test|check|know|ask|see)\b)\s+(?P<wish>(?!{_NOTHING}).+?){_END}"), 0.7, "likes {}"),
    (_p(rf"^i(?: {_VERY})* (?:hate|dislike|can'?t stand|{_NOT} (?:like|want|enjoy|care for))(?! to (?:test|check|ask|know)\b)\s+(?P<wish>(?!{_NOTHING}).+?){_END}"), 0.85, "dislikes {}"),
    (_p(rf"^i always want\s+(?P<wish>.+?){_END}"), 0.85, "always wants {}"),
    (_p(rf"^(?:(?:from now on|in (?:the )?future|going forward|remember|next time|as a rule)[,:]?\s*)?(?:please[, ]+)?(?:make sure (?:to|you) |be sure to |remember to )?(?P<how>always|never)\s+(?P<wish>(?!{_NO_ORDER})[a-z].+?){_END}"), 0.9, "{how} {}"),
    (_p(rf"^(?:from now on|going forward|in (?:the )?future|next time)[,:]?\s+(?:please\s+)?(?P<wish>.+?){_END}"), 0.85, "{}"),
    (_p(rf"^(?:please[, ]+)?(?:do not|don'?t)(?: ever)?\s+(?P<wish>(?:use|add|write|put|commit|push|touch|change|call|send|include|ask|explain|mention|create|delete|modify|run|give|make|format|deploy|refactor|skip|assume)\b.+?){_END}"), 0.85, "do not {}"),
    (_p(rf"^please (?:stop|avoid)\s+(?P<wish>.+?){_END}"), 0.85, "avoid {}"),
    (_p(rf"^(?:please |you can |just )?call me\s+(?P<wish>(?!back|when|if|later|tomorrow|on\b|at\b).{{1,40}}?){_END}"), 0.9, "wants to be called {}"),
    (_p(rf"^my (?P<what>name|time ?zone|pronouns|native language|preferred language|role|job title|favou?rite \w+) (?:is|are)\s+(?P<wish>.+?){_END}"), 0.85, "{what}: {}"),
    (_p(rf"^i (?:live in|work (?:as|at|for)|am based in|come from|speak)\s+(?P<wish>.+?){_END}"), 0.65, "{verb} {}"),
)

# ---------------------------------------------------------------------- what is so

_STRONG = (
    r"(?:uses?|requires?|expires?|runs? on|lives? (?:in|at|on)|listens? on|depends? on|supports?|returns?|accepts?|expects?|"
    r"defaults? to|stores?|is (?:stored|located|hosted|deployed|written|built|defined|configured|based|called|managed|owned|"
    r"maintained|cached|served|limited|protected|versioned|behind|exposed)|are (?:stored|located|hosted|deployed|written|"
    r"built|defined|configured|called|cached|limited|encrypted|signed)|has a (?:limit|timeout|rate limit)|connects? to|"
    r"belongs? to|contains?|sends?|consists? of|allows?|handles?|validates?|redirects? to|starts? (?:at|on)|closes? (?:at|on))"
)
_SUBJECT = (
    r"(?:(?:our|the|my|this|these|all|each|every)\s+(?:[\w./'-]+\s+){0,5}?[\w./()'-]+|[A-Z][\w.-]*(?:\s+[\w.-]+){0,3}?|"
    r"[a-z]+_[\w]+(?:\(\))?|[\w.]+\(\))"
)
_CONCRETE = re.compile(r"\d|https?://|`|_\w|/\w|\b[A-Z][a-z]+[A-Z]|\b[A-Z]{2,}\b|\b[\w-]+\.(?:com|org|io|dev|py|js|ts|yaml)\b")
_FACTS = (
    (_p(rf"^(?:please )?(?:remember|note|keep in mind|be aware|for the record|important|reminder|heads up)(?: that|[:,])\s*(?P<fact>.+?){_END}"), 0.85),
    (re.compile(rf"^(?P<fact>(?i:we) (?i:use|deploy|host|store|run|keep|release|ship|log|cache|authenticate|test|build|require|support|follow)s?\s+(?!into\b|getting\b|it\b|that\b|this\b)\S.*?){_END}", re.DOTALL), 0.75),
    (re.compile(rf"^(?P<fact>(?i:(?:our|the|my|this|these|all|each|every))\s+(?:[\w./'-]+\s+){{0,5}}?[\w./()'-]+\s+(?:{_STRONG})\b.+?){_END}", re.DOTALL | re.IGNORECASE), 0.8),
    (re.compile(rf"^(?P<fact>{_SUBJECT}\s+(?:{_STRONG})\b.+?){_END}", re.DOTALL), 0.75),
)
_COPULA = re.compile(rf"^(?P<fact>(?:(?:our|the|my|this|these)\s+(?:[\w./'-]+\s+){{0,5}}?[\w./()'-]+|[A-Z][\w.-]*(?:\s+[\w.-]+){{0,3}}?)\s+(?:is|are)\s+(?P<what>.+?)){_END}", re.IGNORECASE | re.DOTALL)
_SMALL_TALK = re.compile(r"^(?:the|my|our|this) (?:\w+ )?(?:meeting|call|lunch|dinner|weather|weekend|time|train|day|problem|question|answer|point|error)\b", re.I)
_PASSING = re.compile(r"\b(?:now|today|currently|right now|at the moment|running|done|ready|failing|passing|broken|down|up|green|red|fine|good|great|nice|welcome|here|working|not)\b", re.I)
_DENIED = re.compile(rf"\b(?:{_NOT}|not|no|neither|nothing|n't)\b|n't\b", re.IGNORECASE)
_FIRST_PERSON = re.compile(r"^(?:i|we|you|he|she|they|it|there|that|this is|these are)\b", re.IGNORECASE)

# ---------------------------------------------------------------------- what was wrong

CORRECTION = _p(
    rf"^(?:no|nope|actually|wrong|not quite|correction|sorry|that'?s (?:wrong|not right|incorrect|not correct))[\s,.:!-]+(?:(?:actually|that'?s wrong)[,\s]+)?(?P<said>.+?){_END}"
)
NOT_BUT = _p(rf"^(?P<subject>.*?)\b(?P<verb>is|are|was|were|'s|'re|uses|use|runs on|expires? (?:in|after))\s+(?P<right>.+?)\s*,?\s*(?:and\s+)?not\s+(?P<wrong>.+?){_END}")
NUMBER_CORRECTION = _p(rf"^(?:it|that|this)(?:'s| is| was| should be)?\s+(?:\w+ ){{0,3}}?(?P<right>v?\d[\w.]*)(?: \w+)?{_END}")
NUMBER = re.compile(r"(?<![\w.])v?\d[\w.]*\w|(?<![\w.])\d(?!\w)")


_FOR_NOW = re.compile(r"\b(?:this time|for now|today|right now|just once|yet|anymore)\b", re.IGNORECASE)
_FOR_NOW_COSTS = 0.5
_GENERAL = tuple(pattern for pattern, _ in _RULES)


def worked(text: str) -> Reading | None:
    """A strategy that succeeded."""
    for pattern, confidence in (*_RULES, *_SUCCESSES):
        match = pattern.match(text)
        if match and not _DENIED.search(match.group(0)) and _says_something(match["strategy"]):
            named = match.groupdict()
            sort = FactType.HEURISTIC if pattern in _GENERAL else FactType.OUTCOME
            strategy, task = _strategy(named["strategy"]), _tidied(named.get("task"))
            return Reading(sort, _tidy(text), confidence, strategy, task, success=True)
    if _IT_WORKED.match(text) and not _DENIED.search(text):
        return Reading(FactType.OUTCOME, _tidy(text), 0.7, success=True)
    return None


def failed(text: str) -> Reading | None:
    """A strategy that did not succeed, or does harm; a strategy of None is one that was named before."""
    for pattern, confidence in _FAILURES:
        match = pattern.match(text)
        if match is None:
            continue
        named = match.groupdict()
        strategy = _strategy(named["strategy"])
        before = None if strategy.lower() in _PRONOUNS or not _says_something(strategy) else strategy
        sort = FactType.ANTI_PATTERN if _HARMFUL.search(text) else FactType.OUTCOME
        reason, alternative = _tidied(named.get("reason")), _tidied(named.get("alternative"))
        task = _tidied(named.get("task"))
        return Reading(sort, _tidy(text), confidence, before, task, reason, alternative, success=False)
    return None


def wanted(text: str) -> Reading | None:
    """How the speaker wants things done."""
    for pattern, confidence, form in _WISHES:
        match = pattern.match(text)
        if match and _says_something(match["wish"]):
            sure = confidence - (_FOR_NOW_COSTS if _FOR_NOW.search(text) else 0.0)
            return Reading(FactType.PREFERENCE, _worded(form, match), sure, category=_profile(form))
    return None


def stated(text: str) -> Reading | None:
    """Something that is so, as opposed to something that is going on."""
    if _FIRST_PERSON.match(text) and not re.match(r"we\b", text, re.IGNORECASE):
        return None
    for pattern, confidence in _FACTS:
        match = pattern.match(text)
        if match and not _DENIED.search(match["fact"]):
            return Reading(FactType.DOMAIN_KNOWLEDGE, _tidy(match["fact"]), confidence)
    match = _COPULA.match(text)
    if match and _CONCRETE.search(match["what"]) and not _SMALL_TALK.match(text) and not (_PASSING.search(match["what"]) or _DENIED.search(text)):
        return Reading(FactType.DOMAIN_KNOWLEDGE, _tidy(match["fact"]), 0.75)
    return None


def readings(text: str, by_user: bool) -> Iterator[Reading]:
    """What a sentence says; the first sort that fits is what it is."""
    order = (failed, wanted, worked, stated) if by_user else (failed, worked, stated)
    for read in order:
        found = read(text)
        if found is not None:
            yield found
            return


_HARMFUL = re.compile(rf"{_HARM}|\b(?:flaky|unreliable|brittle|avoid|don'?t use|do not use|never use|stop using)\b", re.I)


def _worded(form: str, match: re.Match[str]) -> str:
    named = {key: (value or "").lower() for key, value in match.groupdict().items() if key in ("how", "what")}
    verb = re.match(r"i (.+?)\s+" + re.escape(match["wish"]), match.group(0), re.IGNORECASE)
    return form.format(_tidy(match["wish"]), verb=verb[1] if verb else "", **named)


def _strategy(text: str) -> str:
    return re.sub(r"^(?:but|however|unfortunately|sadly|using)[, ]+", "", _tidy(text), flags=re.IGNORECASE)


def _profile(form: str) -> str | None:
    return "profile" if "called" in form or "what" in form or "verb" in form else None


def _says_something(text: str) -> bool:
    return len(re.findall(r"\w", text)) >= 2


def _tidied(text: str | None) -> str | None:
    return _tidy(text) if text and _says_something(text) else None


def _tidy(text: str) -> str:
    """One line, without the marks at its ends."""
    plain = re.sub(r"\s+", " ", text).strip(" \t,;:.!…\"*_")
    return re.sub(r"(?:\s+(?:pls|please|plz|thanks|thx|ty|lol|haha|ok|btw|:-?[)D]|[^\w\s()\"'`.%/$€-]+))+$", "", plain, flags=re.I)

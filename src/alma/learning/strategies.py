"""Strategies: when two texts say to do the same thing, and when one says the opposite of the other."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from alma.learning.vocabulary import FRAMES, INTERCHANGEABLE, NEGATIONS, OPPOSITES, plain_words
from alma.model.text import STOP_WORDS, terms

_OPPOSING_PREFIXES = ("un", "dis", "non", "in", "im", "a", "de", "anti")
_WORDS = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_NUMBERS = re.compile(r"\d+(?:[.:]\d+)*")
# I is who did it, and A at the beginning of a sentence an article.
_ARTICLE = re.compile(r"(?:^|(?<=[.!?] ))A (?=[a-z])")
_SINGLE_LETTERS = re.compile(r"(?<![\w'’])[A-HJ-Z](?![\w'’])")
# One by one and field by field are ways to do each by itself; to start with something is to do it, only first.
_EACH_BY_ITSELF = re.compile(r"\b(?:(\w+)[ -]by[ -]\1|one at a time)\b", re.IGNORECASE)
_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
# What can only be read cannot be written, whatever stands on the other side of the hyphen.
_ONE_WORD = re.compile(r"\b(\w+)-(only|write)\b", re.IGNORECASE)
_BRITISH = re.compile(
    r"\b([a-z]{3,}(?:al|an|ar|as|at|en|er|gn|il|im|in|it|og|ol|on|or|tom|ur))is(e|es|ed|er|ing|ations?)\b",
    re.IGNORECASE,
)
_STARTING = re.compile(r"\b(?:start|begin)(?:ed|s|ing|ning)? (?:with|by|off)\b", re.IGNORECASE)
# What stands on which side of these words is what a strategy says; the second of each pair turns the sides around.
_SIDES = {
    "time": (re.compile(r"\b(before|prior to|then|followed by|after)\b", re.IGNORECASE), ("after",)),
    "choice": (re.compile(r"\b(over|instead of|rather than)\b", re.IGNORECASE), ()),
    "direction": (re.compile(r"\b(into|to|onto)\b|->|→", re.IGNORECASE), ()),
    "purpose": (re.compile(r"\bfor\b", re.IGNORECASE), ()),
}

_SAME_MEANING, _SHARED_BY_MEANING = 0.78, 0.3
_SAME_WORDS = 0.75
_SAME_SPELLING, _SAME_BEGINNING = 0.8, 4
_READINGS_REMEMBERED = 10_000

Sides = tuple[frozenset[str], frozenset[str]]


def strategy_key(text: str) -> str:
    """What two spellings of a strategy have in common: its words, without case, endings and punctuation."""
    return " ".join(terms(text))


def same_strategy(one: str, other: str, cosine: float | None = None) -> bool:
    """Whether both say to do the same: in the same words, or in others that mean as much.

    `cosine` is that of their vectors, where there are any. What negates, orders or numbers differently, and one word
    in the place of another that does not mean as much, is another strategy however alike it looks.
    """
    by_words = same_by_words(one, other)
    return by_words if by_words is not None else cosine is not None and cosine >= _SAME_MEANING


def same_by_words(one: str, other: str) -> bool | None:
    """Whether both say to do the same, as far as words tell; None where it depends on what they mean."""
    ours, yours = _read(one), _read(other)
    if ours.key == yours.key:
        return ours.negations == yours.negations
    if _opposed(ours, yours) or ours.details != yours.details:
        return False
    if min(len(ours.content), len(yours.content)) <= 1:
        return ours.content == yours.content
    mine, theirs = _nearest_spelling(ours, yours)
    if len(mine - theirs) == len(theirs - mine) == 1:
        return _spelled_alike(*(mine - theirs), *(theirs - mine)) or _interchangeable(ours, yours)
    shared = len(mine & theirs)
    if shared / len(mine | theirs) >= _SAME_WORDS:
        return True
    return None if shared / min(len(mine), len(theirs)) >= _SHARED_BY_MEANING else False


def _nearest_spelling(one: _Reading, other: _Reading) -> Sides:
    """What both say, each with its hyphens as spaces or without them, whichever is nearer to the other: back-off."""
    ours, yours = ({plain_words(words) for words in (each.content, each.joined)} for each in (one, other))
    spellings = ((mine, theirs) for mine in ours for theirs in yours)
    return min(spellings, key=lambda pair: len(pair[0] ^ pair[1]))


def _interchangeable(one: _Reading, other: _Reading) -> bool:
    """Whether the words in which both differ may stand for each other."""
    return (one.content ^ other.content) in INTERCHANGEABLE


@lru_cache(maxsize=4096)
def contradicts(one: str, other: str, cosine: float | None = None) -> bool:
    """Whether one says to do what the other says not to do."""
    ours, yours = _read(one), _read(other)
    if not _opposed(ours, yours):
        return False
    shared = len(ours.content & yours.content)
    if not shared:
        return False
    return shared / len(ours.content | yours.content) >= 0.5 or (cosine is not None and cosine >= _SAME_MEANING)


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a text says, as far as its words tell."""

    key: str
    negations: int
    words: frozenset[str]
    content: frozenset[str]
    joined: frozenset[str]
    details: frozenset[str]
    sides: Mapping[str, Sides]


@lru_cache(maxsize=_READINGS_REMEMBERED)
def _read(text: str) -> _Reading:
    spelled = _ONE_WORD.sub(r"\1\2", _BRITISH.sub(r"\1iz\2", text))
    phrased = _STARTING.sub(" ", _EACH_BY_ITSELF.sub("individually", spelled))
    return _Reading(
        key=strategy_key(text),
        negations=_negations(text),
        words=frozenset(terms(spelled)),
        content=_content(phrased),
        joined=_content(_HYPHEN.sub("", phrased)),
        details=_details(text),
        sides={name: sides for name in _SIDES if (sides := _sides(name, text)) is not None},
    )


def _opposed(one: _Reading, other: _Reading) -> bool:
    return (
        one.negations % 2 != other.negations % 2
        or _has_opposites(one.words, other.words)
        or any(_turned(sides, other.sides[name]) for name, sides in one.sides.items() if name in other.sides)
    )


def _negations(text: str) -> int:
    words = (word.replace("'", "").replace("’", "") for word in _WORDS.findall(text.lower()))
    return sum(word in NEGATIONS for word in words)


def _has_opposites(mine: frozenset[str], theirs: frozenset[str]) -> bool:
    only_mine, only_theirs = mine - theirs, theirs - mine
    if any(OPPOSITES[word] & only_theirs for word in only_mine if word in OPPOSITES):
        return True
    return _has_prefixed(only_mine, only_theirs) or _has_prefixed(only_theirs, only_mine)


def _has_prefixed(words: Iterable[str], others: frozenset[str]) -> bool:
    """Whether one of the words is among the others with a prefix that turns it around: synchronous, asynchronous."""
    return any(f"{prefix}{word}" in others for word in words if len(word) > 3 for prefix in _OPPOSING_PREFIXES)


def _turned(mine: Sides, theirs: Sides) -> bool:
    """Whether the sides are exchanged: A before B is B after A, and not B before A."""
    as_they_are = len(mine[0] & theirs[0]) + len(mine[1] & theirs[1])
    return as_they_are < len(mine[0] & theirs[1]) + len(mine[1] & theirs[0])


def _sides(name: str, text: str) -> Sides | None:
    """What stands on either side of the word that parts them, where a text has one: earlier and later, from and to."""
    pattern, turning = _SIDES[name]
    found = pattern.search(text)
    if found is None:
        return None
    before, after = text[: found.start()], text[found.end() :]
    if not before.strip():
        # Before each test, seed the database.
        after, _, before = after.partition(",")
        if not before and len(_content(after)) > 1:
            return None
    left, right = (_content(part) | frozenset(_SINGLE_LETTERS.findall(part)) for part in (before, after))
    return (right, left) if found.group().lower() in turning else (left, right)


def _spelled_alike(one: str, other: str) -> bool:
    """Whether two words are spellings or forms of one: summarise and summarize."""
    if one[:_SAME_BEGINNING] != other[:_SAME_BEGINNING] or not (one.isalpha() and other.isalpha()):
        return False
    # The matcher may see more in one order than in the other.
    first, second = sorted((one, other))
    return difflib.SequenceMatcher(None, first, second, autojunk=False).ratio() >= _SAME_SPELLING


def _details(text: str) -> frozenset[str]:
    """Numbers, versions and single letters: strategies that differ in these differ."""
    return frozenset((*_NUMBERS.findall(text), *_SINGLE_LETTERS.findall(_ARTICLE.sub("", text))))


def _content(text: str) -> frozenset[str]:
    """The words that say what is done, or not done, which the negations tell."""
    words = frozenset(terms(" ".join(word for word in _WORDS.findall(text.lower()) if word not in STOP_WORDS)))
    return (words - FRAMES - _NEGATION_TERMS) or words or frozenset(terms(text))


_NEGATION_TERMS = frozenset(terms(" ".join(NEGATIONS)))

"""Strategies: when two texts say to do the same thing, and when one says the opposite of the other."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from alma.model.text import STOP_WORDS, terms

# Words that say that something is done, and nothing about what.
_FRAMES = frozenset(
    terms("use used using apply applied do did make made try tried always first then strategy approach")
)
_NEGATING_WORDS = """
never not no nor dont didnt doesnt cannot cant wont shouldnt avoid avoided avoiding without stop stopped skip skipped
skipping refrain
"""
_OPPOSITE_PAIRS = """
increase decrease; ascending descending; start stop; open close; first last; minimum maximum; min max; more less;
more fewer; left right; top bottom; include exclude; allow deny; public private; read write; push pull; encode decode;
local remote; parallel sequential; parallel serial; client server; add remove; enable disable; up down; high low;
fast slow; early late; create delete; show hide; strict lenient; manual automatic; single multiple; eager lazy;
static dynamic; warm cold; old new; accept reject
"""
_NEGATIONS = frozenset(_NEGATING_WORDS.split())
_OPPOSITES = tuple(frozenset(terms(pair)) for pair in _OPPOSITE_PAIRS.split(";"))
_OPPOSING_PREFIXES = ("un", "dis", "non", "in", "im", "a", "de", "anti")
_WORDS = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_NUMBERS = re.compile(r"\d+(?:[.:]\d+)*")
_SINGLE_LETTERS = re.compile(r"\b[A-Z]\b")
_ORDER = re.compile(r"\b(before|after)\b", re.IGNORECASE)

_SAME_MEANING, _SHARED_BY_MEANING = 0.78, 0.3
_SAME_WORDS = 0.75


def strategy_key(text: str) -> str:
    """What two spellings of a strategy have in common: its words, without case, endings and punctuation."""
    return " ".join(terms(text))


def same_strategy(one: str, other: str, cosine: float | None = None) -> bool:
    """Whether both say to do the same: in the same words, or in others that mean as much.

    `cosine` is that of their vectors, where there are any. What negates, orders or numbers differently, and a single
    word that is another one, is another strategy however alike it looks.
    """
    if strategy_key(one) == strategy_key(other):
        return _negations(one) == _negations(other)
    if _opposed(one, other) or _details(one) != _details(other):
        return False
    mine, theirs = _content(one), _content(other)
    if min(len(mine), len(theirs)) <= 1:
        return mine == theirs
    shared = len(mine & theirs)
    if shared / len(mine | theirs) >= _SAME_WORDS:
        return True
    alike = shared / min(len(mine), len(theirs)) >= _SHARED_BY_MEANING
    return cosine is not None and cosine >= _SAME_MEANING and alike


@lru_cache(maxsize=4096)
def contradicts(one: str, other: str, cosine: float | None = None) -> bool:
    """Whether one says to do what the other says not to do."""
    if not _opposed(one, other):
        return False
    mine, theirs = _content(one) - _NEGATION_TERMS, _content(other) - _NEGATION_TERMS
    shared = len(mine & theirs)
    if not shared:
        return False
    return shared / len(mine | theirs) >= 0.5 or (cosine is not None and cosine >= _SAME_MEANING)


def _opposed(one: str, other: str) -> bool:
    return (
        _negations(one) % 2 != _negations(other) % 2
        or _has_opposites(set(terms(one)), set(terms(other)))
        or _in_other_order(one, other)
    )


def _negations(text: str) -> int:
    words = (word.replace("'", "").replace("’", "") for word in _WORDS.findall(text.lower()))
    return sum(word in _NEGATIONS for word in words)


def _has_opposites(mine: set[str], theirs: set[str]) -> bool:
    only_mine, only_theirs = mine - theirs, theirs - mine
    for pair in _OPPOSITES:
        if len(pair) == 2 and pair & only_mine and pair & only_theirs and (pair & only_mine) != (pair & only_theirs):
            return True
    return _has_prefixed(only_mine, only_theirs) or _has_prefixed(only_theirs, only_mine)


def _has_prefixed(words: Iterable[str], others: set[str]) -> bool:
    """Whether one of the words is among the others with a prefix that turns it around: synchronous, asynchronous."""
    return any(f"{prefix}{word}" in others for word in words if len(word) > 3 for prefix in _OPPOSING_PREFIXES)


def _in_other_order(one: str, other: str) -> bool:
    """Whether one does first what the other does last: A before B is B after A, and not B before A."""
    mine, theirs = _sequence(one), _sequence(other)
    if mine is None or theirs is None:
        return False
    return len(mine[0] & theirs[0]) + len(mine[1] & theirs[1]) < len(mine[0] & theirs[1]) + len(mine[1] & theirs[0])


def _sequence(text: str) -> tuple[frozenset[str], frozenset[str]] | None:
    """What is done earlier and what later, where a text says so."""
    parts = _ORDER.split(text, maxsplit=1)
    if len(parts) != 3:
        return None
    before, word, after = parts
    earlier, later = _content(before), _content(after)
    return (earlier, later) if word.lower() == "before" else (later, earlier)


def _details(text: str) -> frozenset[str]:
    """Numbers, versions and single letters: strategies that differ in these differ."""
    return frozenset((*_NUMBERS.findall(text), *_SINGLE_LETTERS.findall(text)))


def _content(text: str) -> frozenset[str]:
    """The words that say what is done."""
    words = frozenset(terms(" ".join(word for word in _WORDS.findall(text.lower()) if word not in STOP_WORDS)))
    return (words - _FRAMES) or words or frozenset(terms(text))


_NEGATION_TERMS = frozenset(terms(" ".join(_NEGATIONS)))

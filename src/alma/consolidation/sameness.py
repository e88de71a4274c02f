"""Sameness: whether two texts say the same thing, so surely that one of them can stand for both.

Stricter than what learning compares strategies by: there a mistake costs a count, here it hides a memory. Meaning alone
never decides, since vectors hardly tell Stripe from PayPal; the words must agree as well.
"""

from __future__ import annotations

import re
from functools import lru_cache

from alma.learning.strategies import told_apart
from alma.learning.vocabulary import word_terms
from alma.model.spelling import american
from alma.model.text import STOP_WORDS

_TOKENS = re.compile(r"\d+(?:[.:]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*")
_SENTENCE_ENDS = re.compile(r"(?:^|[.!?:;\n]\s*|[-*•]\s+)$")
_NAMES = re.compile(
    r"""
    "[^"\n]+" | `[^`\n]+` | “[^”“\n]+”                      # what is quoted
    | (?<![\w-])[\w-]+(?:[./\\:@#_]+[\w-]+)+\b              # paths, addresses, identifiers
    | \b[^\W\d_]*[a-z][A-Z]\w*                              # camelCase, GitHub
    | \b[A-Z][A-Z0-9]+\b                                    # HTTP, S3
    | (?<![\w-])[A-Z][\w'’-]+                               # Alice
    """,
    re.VERBOSE,
)
_PLAIN_CAPITAL = re.compile(r"[A-Z][a-z'’-]+$")

# What limits a statement: with it and without it are two statements.
_LIMITING = "only except unless until before after above below if first last"
_LIMITS = frozenset(_LIMITING.split())
_COUNTING = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMBER_WORDS = {word: str(number) for number, word in enumerate(_COUNTING.split())} | {
    "once": "1",
    "twice": "2",
    "thrice": "3",
    "hundred": "100",
    "thousand": "1000",
}
# Words that say how something is said, and nothing about what.
_SAYING = """
use used uses using apply applies applying always please prefer prefers preferably instead rather should need needs
ensure sure make makes making simply properly carefully recommended important good best approach technique strategy way
remember note whenever when while never avoid avoids avoiding avoided
"""
_FILLERS = frozenset(_SAYING.split())
_SYNONYMS = (
    "check verify validate confirm test",
    "each every all",
    "separately individually",
    "fix repair correct",
    "begin start",
    "finish complete end",
    "delete remove drop erase",
    "create build generate add",
    "quick fast rapid",
    "big large long",
    "small little",
    "short concise brief succinct",
    "verbose detailed",
    "bug defect",
    "repository repo",
    "database db",
    "authentication auth",
    "configuration config",
    "documentation docs",
    "parameter param",
    "argument arg",
    "environment env",
    "application app",
    "production prod",
    "development dev",
    "message msg",
    "identifier id",
    "information info",
    "asynchronous async",
    "synchronous sync",
    "email mail",
    "show display render",
    "fetch retrieve load get",
    "send submit post",
    "log record",
    "directory folder",
    "h hr hour",
    "s sec second",
    "m min minute",
    "ms millisecond",
    "d day",
    "error failure exception",
    "function method",
    "want wish",
    "like love enjoy",
    "answer reply response",
    "expire expiry expiration",
    "recover recovery",
    "deliver delivery",
    "discover discovery",
    "analyze analysis",
)
# Words that a text may have more without saying more: explicit waits over sleep, over sleep calls.
_EMPTY = """
call calls value values thing item process method function statement command mechanism technique practice itself
currently actually generally usually basically really still also very quite clearly obviously
"""
_SAYING_NOTHING = frozenset(word_terms(_EMPTY))
_CANONICAL = {term: group.split()[0] for group in _SYNONYMS for term in word_terms(group)}
_LEAST_SHARED = 0.3
_REMEMBERED = 512
# What is longer is the same only in the same words.
_LONGEST_READ = 8_000
_FAR = 100


def sameness(one: str, other: str, cosine: float | None) -> str | None:
    """Why both texts say the same, or None where they do not for sure.

    `cosine` is that of their vectors if it is high enough to count, else None; then only the same words are the same.
    """
    if max(len(one), len(other)) > _LONGEST_READ:
        return "the same words" if word_terms(one) == word_terms(other) else None
    why = _same_content(_content(one), _content(other), cosine)
    if why is None or _limits(one) != _limits(other) or _numbers(one) != _numbers(other):
        return None
    return why if _same_names(one, other) and not told_apart(one, other) else None


def _same_content(mine: frozenset[str], theirs: frozenset[str], cosine: float | None) -> str | None:
    """Why both are the same words, or one is the other and words that say nothing more."""
    if _LEAST_SHARED * max(len(mine), len(theirs)) > len(mine & theirs):
        return None
    only_mine, only_theirs = mine - theirs, theirs - mine
    if not only_mine and not only_theirs:
        return "the same words" if cosine is None else f"the same words, meaning {cosine:.2f}"
    added = only_mine or only_theirs
    # Any other word limits what is said: admin tokens expire, tokens expire after a day of inactivity.
    if cosine is None or (only_mine and only_theirs) or not added <= _SAYING_NOTHING:
        return None
    return f"one adds {', '.join(sorted(added))}, meaning {cosine:.2f}"


@lru_cache(maxsize=_REMEMBERED)
def _content(text: str) -> frozenset[str]:
    """What a text says: its words without those that every text has, synonyms being one word."""
    words = _words(_plain(text))
    return frozenset(word_terms(" ".join([w for w in words if w not in STOP_WORDS and w not in _FILLERS] or words)))


@lru_cache(maxsize=_REMEMBERED)
def _plain(text: str) -> str:
    """The text with digits for numbers, apart from their units, and one word for all its synonyms."""
    return _TOKENS.sub(lambda match: _plain_word(match.group().casefold()), american(text))


def _plain_word(word: str) -> str:
    number = _NUMBER_WORDS.get(word, word)
    if number[0].isdigit():
        return f" {number} "
    term = word_terms(word)
    return _CANONICAL.get(term[0] if term else word, word)


def _words(text: str) -> list[str]:
    return [word.replace("'", "").replace("’", "") for word in _TOKENS.findall(text.casefold())]


def _limits(text: str) -> frozenset[str]:
    return frozenset(_words(text)) & _LIMITS


def _numbers(text: str) -> frozenset[str]:
    return frozenset(word for word in _words(_plain(text)) if word[0].isdigit())


def _same_names(one: str, other: str) -> bool:
    """Whether what looks like a name in one of them stands in the other as well, however it is written there."""
    return _holds(one, _names(other)) and _holds(other, _names(one))


def _holds(text: str, names: frozenset[str]) -> bool:
    folded, said = text.casefold(), _content(text)
    return all(name in folded or (name in _CANONICAL and said.issuperset(word_terms(_plain(name)))) for name in names)


def _names(text: str) -> frozenset[str]:
    found: set[str] = set()
    for match in _NAMES.finditer(text):
        name = match.group()
        before = text[max(0, match.start() - _FAR) : match.start()]
        begins = bool(_SENTENCE_ENDS.search(before.rstrip(" ")) or not before.strip())
        if not (begins and _PLAIN_CAPITAL.fullmatch(name)):
            found.add(name.strip('"`“”').casefold())
    return frozenset(found)

"""Asking: what kind of question a task is, and whether a memory is of the kind that answers it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

# Whoever asks for advice names the topic in words of the moment: what was said of it before is near by meaning.
_ADVICE = re.compile(
    r"\b(?:any (?:\w+ )?(?:tip|advice|suggestion|recommendation|idea|thought)s?"
    r"|(?:can|could|would|will) you (?:please )?(?:recommend|suggest|advise)"
    r"|what (?:do|would) you (?:recommend|suggest|advise)"
    r"|should i|a good idea)\b",
    re.IGNORECASE,
)
# Whoever asks what "you" said, not what you would say now, asks for an answer of the assistant, and those are long.
_ANSWERED = re.compile(
    r"\b(?:remind me|(?:did|had|have) you"
    r"|you(?:'ve| have| had| were)? (?:\w+ed|told|said|gave|given|wrote|written|made|found|taught|showed|shown|sent)"
    r"|your (?:\w+ )?(?:advice|answer|suggestion|recommendation|explanation|list|example|reply|response)s?"
    r"|(?:our(?: \w+)?|previous|earlier|last|past) (?:conversation|chat|discussion|talk)"
    r"|we (?:talked|discussed|spoke|chatted))\b",
    re.IGNORECASE,
)
# "When" is the only thing asked: "when I deploy, what fails?" asks for no time.
_ASKS_WHEN = re.compile(
    r"(?:when\b(?!.*\b(?:what|who|whom|whose|which|where|why|how)\b)"
    r"|(?:(?:on|in|at|since) )?(?:what|which) (?:day|date|week|month|year|time)\b|how long\b)",
    re.IGNORECASE | re.DOTALL,
)
# As terms, so that they are compared with what was cut already.
_WORDS_OF_TIME = """
yesterday today tonight tomorrow ago last next sinc recent week weekend month year
monday tuesday wednesday thursday friday saturday sunday
"""
_TIMES = frozenset(_WORDS_OF_TIME.split())
_SENTENCE = re.compile(r"[^.!?\n]+[.!?\n]*")
# A question about oneself tells something as well: "I have a cough, what can I take?"
_OF_ONESELF = re.compile(r"\b(?:i|me|my|mine|we|us|our)\b", re.IGNORECASE)

# What a mere question loses of what speaks for itself, and what a word of time gains where a time is asked for.
_OWN = ("meaning", "words")
_NO_ANSWER, _TELLS = 0.4, 0.15
# In characters: a text that is longer is no question, and one that is no statement has a word of time by accident.
_READ, _STATEMENT = 2_000, 300


@lru_cache(maxsize=16)
def asks_advice(question: str) -> bool:
    """Whether a recommendation is wanted, rather than what was said or done."""
    return _ADVICE.search(question[:_READ]) is not None


@lru_cache(maxsize=16)
def asks_for_answer(question: str) -> bool:
    """Whether what was answered before is wanted."""
    return _ANSWERED.search(question[:_READ]) is not None


def asks_by_words(question: str) -> bool:
    """Whether a statement is wanted that has words of the question: no advice, and no long answer of before."""
    return not asks_advice(question) and not asks_for_answer(question)


def asks_when(question: str) -> bool:
    """Whether the answer is a time."""
    return _ASKS_WHEN.match(question[:_READ].lstrip()) is not None


def answering(text: str, said: frozenset[str], relevance: Mapping[str, float], *, wants_time: bool) -> dict[str, float]:
    """What speaks for a text because it can be the answer, or against it because it only asks; `said` are its terms."""
    found: dict[str, float] = {}
    if "?" in text and len(text) <= _READ:
        asked = _share_asked(text)
        if asked:
            found["question"] = -_NO_ANSWER * asked * sum(relevance.get(name, 0.0) for name in _OWN)
    if wants_time and len(text) <= _STATEMENT and not _TIMES.isdisjoint(said):
        found["when"] = _TELLS
    return found


def _share_asked(text: str) -> float:
    """How much of a text asks others something and tells nothing of the speaker."""
    asked = sum(
        len(sentence)
        for sentence in _SENTENCE.findall(text)
        if "?" in sentence and _OF_ONESELF.search(sentence) is None
    )
    return asked / len(text)

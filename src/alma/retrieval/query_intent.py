"""Query intent: what kind of answer a query asks for, and whether a text is of that kind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from alma.retrieval.tuning import TUNING

# A request for advice names its topic in other words than what was said before: meaning counts more than words.
_ADVICE = re.compile(
    r"\b(?:any (?:\w+ )?(?:tip|advice|suggestion|recommendation|idea|thought)s?"
    r"|(?:can|could|would|will) you (?:please )?(?:recommend|suggest|advise)"
    r"|what (?:do|would) you (?:recommend|suggest|advise)"
    r"|should i|a good idea)\b",
    re.IGNORECASE,
)
# A query for what the assistant said before is answered by its answers, which are long.
_EARLIER_ANSWER = re.compile(
    r"\b(?:remind me|(?:did|had|have) you"
    r"|you(?:'ve| have| had| were)? (?:\w+ed|told|said|gave|given|wrote|written|made|found|taught|showed|shown|sent)"
    r"|your (?:\w+ )?(?:advice|answer|suggestion|recommendation|explanation|list|example|reply|response)s?"
    r"|(?:our(?: \w+)?|previous|earlier|last|past) (?:conversation|chat|discussion|talk)"
    r"|we (?:talked|discussed|spoke|chatted))\b",
    re.IGNORECASE,
)
# "When I deploy, what fails?" does not ask for a time.
_TIME = re.compile(
    r"(?:when\b(?!.*\b(?:what|who|whom|whose|which|where|why|how)\b)"
    r"|(?:(?:on|in|at|since) )?(?:what|which) (?:day|date|week|month|year|time)\b|how long\b)",
    re.IGNORECASE | re.DOTALL,
)
_TIME_WORDS = """
yesterday today tonight tomorrow ago last next sinc recent week weekend month year
monday tuesday wednesday thursday friday saturday sunday
"""
_TIME_TERMS = frozenset(_TIME_WORDS.split())
_SENTENCE = re.compile(r"[^.!?\n]+[.!?\n]*")
# A question about oneself is a statement as well: "I have a cough, what can I take?"
_FIRST_PERSON = re.compile(r"\b(?:i|me|my|mine|we|us|our)\b", re.IGNORECASE)
_CHARACTERS_READ = 2_000


@lru_cache(maxsize=16)
def asks_advice(query: str) -> bool:
    """Whether a query asks for a recommendation."""
    return _ADVICE.search(query[:_CHARACTERS_READ]) is not None


@lru_cache(maxsize=16)
def asks_for_earlier_answer(query: str) -> bool:
    """Whether a query asks for what was answered before."""
    return _EARLIER_ANSWER.search(query[:_CHARACTERS_READ]) is not None


@lru_cache(maxsize=16)
def asks_when(query: str) -> bool:
    """Whether the answer to a query is a time."""
    return _TIME.match(query[:_CHARACTERS_READ].lstrip()) is not None


def answer_features(
    text: str, terms: frozenset[str], own: Mapping[str, float], *, wants_time: bool
) -> dict[str, float]:
    """The features of a text as an answer: the part of its `own` score that only asks, and whether it tells a time."""
    features: dict[str, float] = {}
    if "?" in text and len(text) <= _CHARACTERS_READ:
        sentences = _SENTENCE.findall(text)
        asking = [each for each in sentences if "?" in each and _FIRST_PERSON.search(each) is None]
        if asking:
            matched = sum(own.get(name, 0.0) for name in ("meaning", "words", "length"))
            features["question"] = matched * sum(map(len, asking)) / len(text)
    if wants_time and len(text) <= TUNING.statement_length and not _TIME_TERMS.isdisjoint(terms):
        features["when"] = 1.0
    return features

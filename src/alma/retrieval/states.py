"""States: where one lives and works, which is asked and told in other words than its change is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from alma.model.text import terms
from alma.retrieval.change import READ

_OF_ONESELF = re.compile(r"\b(?:i|we|my|our|me|us)\b", re.IGNORECASE)
_I = r"(?:(?:^|[.;,!] |\b(?:and|i|we|i['’]ve|we['’]ve) )(?:have |had |just |recently |finally |all )*)"
# What is asked of oneself, what tells that it is another one now, and the terms of what tells how it is.
_STATES = {
    "home": (
        re.compile(r"\b(?:live|living|address|home|reside|based)\b", re.IGNORECASE),
        re.compile(
            rf"{_I}(?:moved|relocated)(?: \w+)? (?:to|into|in with)\b|\bhome is\b|"
            r"\b(?:my|our|the) new (?:address|place|home|flat|apartment|house)\b",
            re.IGNORECASE,
        ),
        frozenset(terms("live address home moved reside relocated flat apartment house")),
    ),
    "work": (
        re.compile(r"\b(?:work|working|job|employer|employed)\b", re.IGNORECASE),
        re.compile(
            rf"{_I}(?:(?:started|began)\b.{{0,40}}\b(?:at|as|with|for) \w|joined\b)|\bnew (?:job|employer|position)\b",
            re.IGNORECASE,
        ),
        frozenset(terms("work job employer employed started joined position")),
    ),
}


def changed_states(text: str) -> Iterator[str]:
    """The states that a text says are others now for the speaker."""
    return (state for state, (_, told, _) in _STATES.items() if told.search(text))


@lru_cache(maxsize=16)
def asked_states(question: str) -> frozenset[str]:
    """What a question asks of the speaker that other words tell a change of."""
    if _OF_ONESELF.search(question[:READ]) is None:
        return frozenset()
    return frozenset(state for state, (asked, _, _) in _STATES.items() if asked.search(question[:READ]))


def tells_state(words: frozenset[str], states: frozenset[str]) -> bool:
    """Whether a text of these terms may tell one of the states."""
    return any(not words.isdisjoint(_STATES[state][2]) for state in states)

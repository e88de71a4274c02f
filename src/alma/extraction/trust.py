"""Whose words a fact is made of: a word is of whoever said it first, whoever repeats it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from alma.extraction.facts import USERS, ExtractedFact, Turn
from alma.text.tokens import query_terms, terms

BY_USER = "user_stated"
BY_AGENT = "inferred"
_TOOLS = ("tool", "function")
_UNKNOWN = "unknown"


def source_of(fact: ExtractedFact, turns: Sequence[Turn]) -> str:
    """Where a fact comes from: its user, the agent, or a stranger, whose words an agent may only have passed on.

    The role of a stranger may be called anything, also what only the trusted are called, so it is not taken over.
    """
    stranger = _stranger(fact, turns)
    if stranger is not None:
        return stranger.role if stranger.role in _TOOLS else _UNKNOWN
    return BY_USER if fact.evidence.role in USERS else BY_AGENT


def own_turns(turns: Iterable[Turn]) -> list[Turn]:
    """What is said by nobody but the user, the agent and who instructs it."""
    return [turn for turn in turns if not turn.by_stranger]


def _stranger(fact: ExtractedFact, turns: Sequence[Turn]) -> Turn | None:
    """The turn of a stranger that says the fact, or had a word of it before everybody else."""
    said = Turn(fact.evidence.role, fact.evidence.text)
    if said.by_stranger:
        return said
    wanted = set(query_terms(" ".join(filter(None, (fact.content, fact.task, fact.strategy, fact.reason)))))
    if fact.evidence.role in USERS:
        # A user may repeat what a tool said, and then says so.
        wanted -= {word for turn in turns if turn.role in USERS for word in terms(turn.content)}
    for turn in turns:
        heard = wanted.intersection(terms(turn.content))
        if heard and turn.by_stranger:
            return turn
        wanted -= heard
    return None

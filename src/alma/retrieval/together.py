"""Together: what the turns of a conversation say of a question between them speaks for the best of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

# What the words of the question count that the best turn has itself, and those that only the others have.
_OWN, _OF_OTHERS = 0.1, 0.25


class Turn(Protocol):
    """A memory that was scored: what speaks for it by name, and the terms of its text."""

    key: str
    terms: dict[str, float]
    said: frozenset[str]

    @property
    def score(self) -> float: ...

    @property
    def session_id(self) -> str | None: ...


def add_together(turns: Iterable[Turn], weight_of: Mapping[str, float], worth: float) -> None:
    """Let the best turn of each conversation gain from how much of the question the turns cover together.

    Only the best: which conversation answers the question is decided by it, and the order of the others stays.
    `weight_of` is what each word of the question weighs.
    """
    full = sum(weight_of.values())
    for said in _conversations(turns) if full else ():
        best = min(said, key=lambda turn: (-turn.score, turn.key))
        own = weight_of.keys() & best.said
        others = {word for word in weight_of if any(word in turn.said for turn in said)} - own
        covered = _OWN * _sum(weight_of, own) + _OF_OTHERS * _sum(weight_of, others)
        if covered:
            best.terms["together"] = worth * covered / full


def _conversations(turns: Iterable[Turn]) -> list[Sequence[Turn]]:
    """The conversations of which several turns are known."""
    found: dict[str, list[Turn]] = defaultdict(list)
    for turn in turns:
        if turn.session_id is not None:
            found[turn.session_id].append(turn)
    return [said for said in found.values() if len(said) > 1]


def _sum(weight_of: Mapping[str, float], words: Iterable[str]) -> float:
    return sum(weight_of[word] for word in sorted(words))

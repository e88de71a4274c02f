"""Grounds: all outcomes that speak for a heuristic and against it, however many they are."""

from __future__ import annotations

from typing import NamedTuple

from alma.model.learning import Heuristic, Outcome
from alma.model.query import Compare, Order
from alma.model.scope import Scope
from alma.storage.base import StorageBackend

_OLDEST_FIRST = (Order("timestamp"), Order("id"))


class Grounds(NamedTuple):
    """The ids of the outcomes that a heuristic rests on, oldest first; forgotten ones are not among them."""

    outcomes_for: tuple[str, ...]
    outcomes_against: tuple[str, ...]


def grounds_of(storage: StorageBackend, heuristic_id: str, scope: Scope) -> Grounds:
    """What speaks for a heuristic of this scope and against it."""
    with storage.snapshot():
        rule = storage.require(Heuristic, heuristic_id, scope)
        its_own = Scope(project_id=rule.project_id, agent=rule.agent)
        lesson = Compare("lesson_id", "eq", rule.id)
        rows = storage.values(Outcome, ("id", "success"), its_own, lesson, _OLDEST_FIRST)
    return Grounds(
        tuple(str(key) for key, success in rows if success), tuple(str(key) for key, success in rows if not success)
    )

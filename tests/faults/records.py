"""Heuristics that carry what must be true of them, even if a process was killed while writing them.

The text and vector of a heuristic follow from its id and its revision, and every write is counted in the record, so a
record tells how many versions, audit events and marks there must be.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from alma.model.fields import JsonObject
from alma.model.learning import Heuristic
from alma.model.scope import Scope
from alma.model.vector import Vector

DIMENSIONS = 16
EVERYWHERE = Scope.everywhere()
PROJECTION = "index"
SHARED = "shared"


def a_heuristic(key: str, agent: str = "nobody", batch: Sequence[str] = ()) -> Heuristic:
    """The first revision of a heuristic, saved together with the others of its batch."""
    return Heuristic(
        id=key,
        agent=agent,
        project_id="faults",
        condition=f"when {key} happens",
        metadata={"batch": list(batch) or [key]},
        **content_of(key, 0),
    )


def content_of(key: str, revision: int) -> JsonObject:
    """The fields in which one revision of a heuristic differs from another."""
    return {
        "strategy": f"do {word_of(key, revision)} at once",
        "confidence": 1 / (1 + revision),
        "embedding": vector_of(key, revision),
    }


def word_of(key: str, revision: int) -> str:
    """A word that occurs in this revision of this heuristic only."""
    return f"{key}r{revision}"


def vector_of(key: str, revision: int) -> Vector:
    """The vector of this revision of this heuristic."""
    source = random.Random(word_of(key, revision))
    return Vector([source.gauss() for _ in range(DIMENSIONS)])


def revision_of(heuristic: Heuristic) -> int:
    """Which revision a stored heuristic is."""
    return round(1 / heuristic.confidence) - 1


def writes_of(heuristic: Heuristic) -> int:
    """How often a stored heuristic was written: saved once, then updated and incremented."""
    return 1 + revision_of(heuristic) + heuristic.occurrence_count

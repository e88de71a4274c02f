"""Ranked: a memory that was read for a task, with the terms of its score."""

from __future__ import annotations

from dataclasses import dataclass, field

from alma.model.memory import Memory
from alma.model.record import Record
from alma.model.slice import Explanation, Strength


@dataclass(slots=True)
class Ranked:
    """A memory that was read and scored; `lost` is what its length took from its score.

    `relevance` is unknown of what comes by rule, which is strong.
    """

    record: Record
    terms: dict[str, float]
    found_by: tuple[str, ...]
    said: frozenset[str] = frozenset()
    similarity: float | None = None
    relevance: float | None = None
    strength: Strength = "strong"
    lost: float = 0.0
    notes: tuple[str, ...] = ()
    key: str = field(init=False)

    def __post_init__(self) -> None:
        self.key = str(self.record.key)

    @property
    def score(self) -> float:
        return sum(self.terms.values())

    def explained(self) -> Explanation:
        """Why it is handed over, and what is to be known of it."""
        return Explanation(
            self.record.spec.kind,
            self.key,
            self.score,
            self.terms,
            self.found_by,
            self.notes,
            self.similarity,
            self.relevance,
            self.strength,
        )

    @property
    def only_by_rule(self) -> bool:
        """Whether it would have been handed over for any other task as well."""
        return self.found_by == ("rule",)

    @property
    def session_id(self) -> str | None:
        """The conversation that a general memory is a turn of."""
        return self.record.session_id if isinstance(self.record, Memory) else None

"""Several turns of one conversation that answer a question between them."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from alma.retrieval.together import add_together

WEIGHTS = {"trip": 1.0, "hotel": 2.0, "price": 1.0}


@dataclass
class Turn:
    key: str
    said: frozenset[str]
    session_id: str | None = "s"
    terms: dict[str, float] = field(default_factory=lambda: {"words": 0.5})

    @property
    def score(self) -> float:
        return sum(self.terms.values())


def test_the_best_turn_gains_from_what_the_others_have() -> None:
    best, other = Turn("a", frozenset(["trip"]), terms={"words": 0.6}), Turn("b", frozenset(["hotel", "else"]))
    add_together([other, best], WEIGHTS, 1.0)
    assert best.terms["together"] == pytest.approx((0.1 * 1 + 0.25 * 2) / 4)
    assert "together" not in other.terms


@pytest.mark.parametrize("session", [None, "another"])
def test_a_turn_alone_gains_nothing(session: str | None) -> None:
    turns = [Turn("a", frozenset(WEIGHTS), session), Turn("b", frozenset(WEIGHTS), "s")]
    add_together(turns, WEIGHTS, 1.0)
    assert all(turn.terms == {"words": 0.5} for turn in turns)


def test_words_that_nobody_has_add_nothing() -> None:
    turns = [Turn("a", frozenset(["else"])), Turn("b", frozenset(["more"]))]
    add_together(turns, WEIGHTS, 1.0)
    add_together(turns, {}, 1.0)
    assert all(turn.terms == {"words": 0.5} for turn in turns)

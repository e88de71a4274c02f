"""Scores are a sum of weighted, inspectable factors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.errors import ValidationError
from alma.model.learning import Belief
from alma.model.record import Record
from alma.retrieval.router import SearchRequest
from alma.retrieval.scoring import (
    MEMORY_WEIGHTS,
    UNKNOWN,
    ScoredRecord,
    Scorer,
    ScoringWeights,
    evidence_factors,
    moment_of,
    recency,
)
from alma.testing import builders as make

NOW = datetime(2026, 5, 14, 12, tzinfo=UTC)
WEEK_AGO, MONTH_AGO = NOW - timedelta(days=7), NOW - timedelta(days=30)


def test_the_documented_weights_are_the_default_and_add_up_to_one() -> None:
    weights = ScoringWeights()
    assert (weights.similarity, weights.recency, weights.success, weights.confidence) == (0.4, 0.3, 0.2, 0.1)
    assert weights.importance == 0


def test_importance_is_a_factor_of_general_memories() -> None:
    assert MEMORY_WEIGHTS.importance > 0
    assert MEMORY_WEIGHTS.similarity > MEMORY_WEIGHTS.recency


@pytest.mark.parametrize("name", ["similarity", "recency", "success", "confidence", "importance"])
@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), True, "0.4", None])
def test_a_weight_is_a_number_of_at_least_zero(name: str, value: Any) -> None:
    with pytest.raises(ValidationError, match=rf"scoring_weights\.{name} must be a number of at least 0"):
        ScoringWeights(**{name: value})


def test_weights_need_not_add_up_to_one() -> None:
    assert ScoringWeights(similarity=3, recency=0, success=0, confidence=0).similarity == 3


@pytest.mark.parametrize(("days", "worth"), [(0, 1.0), (30, 0.5), (60, 0.25), (15, 0.5**0.5), (-3, 1.0)])
def test_recency_halves_with_every_half_life(days: float, worth: float) -> None:
    outcome = make.an_outcome(timestamp=NOW - timedelta(days=days))
    assert recency(outcome, NOW, half_life_days=30) == pytest.approx(worth)


def test_the_half_life_can_be_chosen() -> None:
    assert recency(make.an_outcome(timestamp=WEEK_AGO), NOW, half_life_days=7) == pytest.approx(0.5)


def test_recency_is_unknown_without_a_moment() -> None:
    assert recency(make.a_session(), NOW, half_life_days=30) == UNKNOWN


def test_the_oldest_memory_there_can_be_has_no_recency_left() -> None:
    oldest = make.an_outcome(timestamp=datetime(1, 1, 1, tzinfo=UTC))
    assert recency(oldest, NOW, half_life_days=0.001) == 0


@pytest.mark.parametrize(
    ("record", "moment"),
    [
        (make.a_heuristic(last_validated=WEEK_AGO, created_at=MONTH_AGO), WEEK_AGO),
        (make.a_heuristic(created_at=MONTH_AGO), MONTH_AGO),
        (make.an_outcome(timestamp=WEEK_AGO), WEEK_AGO),
        (make.a_preference(timestamp=WEEK_AGO), WEEK_AGO),
        (make.some_knowledge(last_verified=WEEK_AGO), WEEK_AGO),
        (make.an_anti_pattern(last_seen=WEEK_AGO, created_at=MONTH_AGO), WEEK_AGO),
        (make.an_anti_pattern(last_seen=None, created_at=MONTH_AGO), MONTH_AGO),
        (make.a_memory(event_time=MONTH_AGO, created_at=WEEK_AGO), MONTH_AGO),
        (make.a_memory(created_at=WEEK_AGO), WEEK_AGO),
        (make.a_session(), None),
    ],
    ids=lambda value: value.spec.kind if isinstance(value, Record) else "",
)
def test_a_memory_is_as_old_as_what_it_says_was_last_seen_to_be_true(record: Record, moment: datetime | None) -> None:
    assert moment_of(record) == moment


@pytest.mark.parametrize(
    ("record", "success", "confidence", "importance"),
    [
        (make.a_heuristic(confidence=0.8, occurrence_count=4, success_count=3), 0.75, 0.8, UNKNOWN),
        (make.a_heuristic(confidence=0.8), UNKNOWN, 0.8, UNKNOWN),
        (make.an_outcome(success=True), 1, UNKNOWN, UNKNOWN),
        (make.an_outcome(success=False), 0, UNKNOWN, UNKNOWN),
        (make.an_anti_pattern(occurrence_count=1), UNKNOWN, 0.5, UNKNOWN),
        (make.an_anti_pattern(occurrence_count=9), UNKNOWN, 0.9, UNKNOWN),
        (make.a_preference(confidence=0.7), UNKNOWN, 0.7, UNKNOWN),
        (make.some_knowledge(confidence=0.6), UNKNOWN, 0.6, UNKNOWN),
        (make.a_memory(importance_score=0.9), UNKNOWN, UNKNOWN, 0.9),
        (make.a_session(), UNKNOWN, UNKNOWN, UNKNOWN),
    ],
    ids=lambda value: value.spec.kind if isinstance(value, Record) else "",
)
def test_each_kind_tells_the_factors_it_knows(
    record: Record, success: float, confidence: float, importance: float
) -> None:
    assert evidence_factors(record, NOW, 180) == (success, confidence, importance)


def test_a_heuristic_counts_by_what_its_evidence_is_worth_today() -> None:
    half_a_year, two_years = NOW - timedelta(days=180), NOW - timedelta(days=720)
    rules = [
        make.a_heuristic(confidence=0.9, weight_for=8.0, weight_against=0.0, last_validated=moment)
        for moment in (NOW, half_a_year, two_years)
    ]
    worth = [evidence_factors(rule, NOW, 180)[1] for rule in rules]
    expected = [Belief(8.0).lower_bound, Belief(4.0).lower_bound, Belief(0.5).lower_bound]
    assert worth == pytest.approx(expected)
    assert worth == sorted(worth, reverse=True)


def test_a_heuristic_that_succeeded_more_often_than_it_was_tried_is_not_better_than_perfect() -> None:
    assert evidence_factors(make.a_heuristic(occurrence_count=2, success_count=5), NOW, 180)[0] == 1


def _scored(record: Record, similarity: dict[str, float], weights: ScoringWeights) -> ScoredRecord:
    request = SearchRequest(query="how?", top_k=5, kinds=(), now=NOW)
    return Scorer(request, weights, weights, 30).record(record, similarity, ("words",))


def test_every_term_is_a_factor_by_its_weight() -> None:
    memory = make.a_memory(event_time=NOW, importance_score=0.9)
    terms = _scored(memory, {"meaning": 0.5, "words": 0.25}, ScoringWeights(importance=0.05)).terms
    assert terms == pytest.approx(
        {"meaning": 0.2, "words": 0.1, "recency": 0.3, "success": 0.1, "confidence": 0.05, "importance": 0.045}
    )


def test_what_counts_nothing_is_not_a_term() -> None:
    weights = ScoringWeights(recency=0, success=0, confidence=0)
    assert _scored(make.a_memory(), {"meaning": 0.5, "words": 0.0}, weights).terms == {"meaning": 0.2}


SHARES = st.floats(0, 1)


@given(similarity=SHARES, weights=st.builds(ScoringWeights, SHARES, SHARES, SHARES, SHARES, SHARES))
def test_the_terms_add_up_to_the_weighted_sum(similarity: float, weights: ScoringWeights) -> None:
    scored = _scored(make.an_outcome(success=True, timestamp=MONTH_AGO), {"meaning": similarity}, weights)
    expected = (
        weights.similarity * similarity
        + weights.recency * 0.5
        + weights.success
        + weights.confidence * UNKNOWN
        + weights.importance * UNKNOWN
    )
    assert scored.score == pytest.approx(expected)

"""The one half-life of evidence that is configured counts wherever evidence is weighed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from alma import ALMA, ConfidenceEngine, Heuristic, clock
from alma.learning import HeuristicExtractor, LearningProtocol
from alma.model.learning import Belief
from alma.retrieval.engine import RetrievalEngine

TASK, STRATEGY = "Test the login form", "Test empty fields first"
Configured = Callable[[float], ALMA]


@pytest.fixture
def configured(tmp_path: Path) -> Iterator[Configured]:
    """Opens memories of one store, each with a half-life of its own."""
    opened: list[ALMA] = []

    def make(days: float) -> ALMA:
        file = tmp_path / f"config-{days}.yaml"
        file.write_text(
            f"alma:\n  project_id: shop\n  storage: sqlite\n  storage_dir: {tmp_path}\n"
            f"  learning:\n    evidence_half_life_days: {days}\n"
        )
        opened.append(ALMA.from_config(file))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def with_an_old_rule(alma: ALMA) -> ALMA:
    rule = Heuristic(
        agent="helena",
        project_id="shop",
        condition=TASK,
        strategy=STRATEGY,
        confidence=0.9,
        occurrence_count=8,
        success_count=8,
        weight_for=8.0,
        weight_against=0.0,
        last_validated=clock.now() - timedelta(days=20),
    )
    alma.writer.save(rule)
    return alma


def confidence(alma: ALMA) -> float:
    found = alma.retrieve(TASK, "helena")
    return float(found.explanations[found.heuristics[0].id].terms["confidence"])


def test_ranking_ages_evidence_by_the_configured_half_life(configured: Configured) -> None:
    alma = with_an_old_rule(configured(10))
    assert confidence(alma) == pytest.approx(0.1 * Belief(2.0).lower_bound, abs=1e-3)


def test_an_answer_is_not_cached_for_another_half_life(configured: Configured) -> None:
    slow = with_an_old_rule(configured(1000))
    fast = configured(1)
    fast.retrieval.cache = slow.retrieval.cache
    assert confidence(slow) > confidence(fast)


def test_opportunities_are_as_strong_as_ranking_says(configured: Configured) -> None:
    alma = with_an_old_rule(configured(10))
    chance = ConfidenceEngine(alma).get_opportunities(TASK, "helena")[0]
    assert chance.strength == pytest.approx(Belief(2.0).lower_bound, abs=1e-3)


def test_the_half_life_of_a_protocol_made_by_hand_counts_in_ranking_too(configured: Configured) -> None:
    made = with_an_old_rule(configured(180))
    engine = RetrievalEngine(made.storage, made.retrieval.embedder)
    protocol = LearningProtocol(
        made.storage, made.retrieval.embedder, engine.index, extractor=HeuristicExtractor(half_life_days=10)
    )
    alma = ALMA(made.storage, engine, protocol, project_id="shop")
    assert confidence(alma) == pytest.approx(0.1 * Belief(2.0).lower_bound, abs=1e-3)

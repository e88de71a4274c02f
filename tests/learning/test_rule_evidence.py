"""What rules and warnings know counts in recommendations, also when the outcomes they were made of are forgotten."""

from __future__ import annotations

import pytest

from alma import ALMA, AntiPattern, ConfidenceEngine, Heuristic, Outcome

GOOD, BAD, NEW = "Test empty fields first", "Sleep five seconds", "Ask the oracle"
FORM, DIALOG = "Test the login form", "Wait for the dialog"


def forget_outcomes(alma: ALMA) -> None:
    alma.forget(older_than_days=0, below_confidence=0)
    assert not alma.storage.count(Outcome, alma.scope())


@pytest.mark.parametrize("explore", [True, False])
def test_a_rule_is_recommended_when_its_outcomes_are_forgotten(alma: ALMA, explore: bool) -> None:
    for number, outcome in enumerate((*["success"] * 9, "failure")):
        alma.learn("helena", f"{FORM} {number}", outcome, GOOD)
    forget_outcomes(alma)
    found = alma.recommend(FORM, "helena", [NEW, GOOD], explore=explore)
    assert found.strategy == GOOD
    assert (found.best.tried, found.best.succeeded) == (10, 9)
    assert found.best.expected > 0.8
    assert found.best.lower_bound < found.best.expected < found.best.upper_bound
    assert found.best.heuristic_ids


def test_what_is_warned_of_is_not_recommended_when_its_outcomes_are_forgotten(alma: ALMA) -> None:
    for _ in range(5):
        alma.learn("helena", DIALOG, "failure", BAD, error_message="flaky")
    forget_outcomes(alma)
    found = alma.recommend(DIALOG, "helena", [BAD, NEW])
    assert found.strategy == NEW
    assert (found.ranked[1].tried, found.ranked[1].succeeded) == (5, 0)
    assert found.ranked[1].expected < 0.3


def test_an_outcome_that_is_stored_is_not_remembered_besides(alma: ALMA) -> None:
    for outcome in (*["success"] * 4, *["failure"] * 3):
        alma.learn("helena", FORM, outcome, GOOD)
    before = alma.recommend(FORM, "helena", [GOOD]).best
    forget_outcomes(alma)
    alma.restore([each.id for each in alma.archive.find(alma.scope(), Outcome)])
    again = alma.recommend(FORM, "helena", [GOOD]).best
    assert (before.tried, before.succeeded) == (again.tried, again.succeeded) == (7, 4)
    assert again.expected == pytest.approx(before.expected)


def test_a_rule_that_was_written_by_hand_is_recommended(alma: ALMA) -> None:
    alma.storage.save_heuristic(
        Heuristic(
            agent="helena",
            project_id="shop",
            condition="Test a form",
            strategy=GOOD,
            confidence=0.95,
            occurrence_count=20,
            success_count=19,
        )
    )
    alma.storage.save_anti_pattern(
        AntiPattern(agent="helena", project_id="shop", pattern=BAD, why_bad="flaky", occurrence_count=4)
    )
    assert [each.strategy for each in alma.recommend("Test the form", "helena", [BAD, NEW, GOOD]).ranked] == [
        GOOD,
        NEW,
        BAD,
    ]


def test_what_is_remembered_of_other_tasks_says_less(alma: ALMA) -> None:
    for _ in range(6):
        alma.learn("helena", FORM, "success", GOOD)
    forget_outcomes(alma)
    here, elsewhere = (alma.assess(task, "helena", [GOOD])[0] for task in (FORM, "Bake a birthday cake"))
    assert here.expected > elsewhere.expected > 0.5


def test_the_confidence_engine_knows_what_is_remembered(alma: ALMA) -> None:
    for number in range(9):
        alma.learn("helena", f"{FORM} {number}", "success", GOOD)
    forget_outcomes(alma)
    signal = ConfidenceEngine(alma).assess_strategy(GOOD, FORM, "helena")
    assert signal.recommendation == "strong_yes"
    assert signal.occurrence_count == 9

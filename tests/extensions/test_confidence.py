"""What the confidence engine says of strategies before they are tried."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from alma import ALMA
from alma.confidence import ConfidenceEngine
from alma.errors import ValidationError
from tests.support.judging import ScriptedJudge

CONTEXT = "Parse nested JSON files"
GOOD, BAD, NEW = "use a streaming parser", "use regular expressions", "ask a colleague for help"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[ConfidenceEngine]:
    """An engine that has seen one strategy succeed and another fail."""
    with ALMA.quickstart(tmp_path / "alma.db", project_id="shop") as alma:
        for number in range(6):
            task = f"Parse nested JSON documents of size {number}"
            alma.learn("ada", task, "success", GOOD)
            alma.learn("ada", task, "failure", BAD, error_message="broke at a bracket")
        yield ConfidenceEngine(alma)


def test_what_worked_comes_before_what_is_new_and_what_failed_last(engine: ConfidenceEngine) -> None:
    ranked = engine.rank_strategies([BAD, NEW, GOOD], CONTEXT, "ada")
    assert [signal.strategy for signal in ranked] == [GOOD, NEW, BAD]
    assert [signal.recommendation for signal in ranked] == ["strong_yes", "neutral", "avoid"]


def test_a_strategy_is_judged_the_same_alone_and_among_others(engine: ConfidenceEngine) -> None:
    for ranked in engine.rank_strategies([BAD, NEW, GOOD], CONTEXT, "ada"):
        alone = engine.assess_strategy(ranked.strategy, CONTEXT, "ada")
        assert alone.confidence_score == pytest.approx(ranked.confidence_score)


def test_what_worked_nine_times_of_ten_comes_before_what_worked_once(engine: ConfidenceEngine) -> None:
    for number in range(10):
        engine._memory.learn("bob", f"{CONTEXT} of size {number}", number != 4, GOOD)
    engine._memory.learn("bob", CONTEXT, "success", NEW)
    often, once = engine.rank_strategies([NEW, GOOD], CONTEXT, "bob")
    assert (often.strategy, often.recommendation) == (GOOD, "strong_yes")
    assert (once.strategy, once.recommendation) == (NEW, "yes")
    assert once.reasoning.startswith("Tried once, succeeded once; 67% is expected here")


@pytest.mark.parametrize("times", [1, 2, 5, 20])
@pytest.mark.parametrize("outcome", ["success", "failure"])
def test_no_expectation_is_surer_than_so_many_trials_make_it(
    engine: ConfidenceEngine, times: int, outcome: str
) -> None:
    for _ in range(times):
        engine._memory.learn("bob", CONTEXT, outcome, NEW)
    score = engine.assess_strategy(NEW, CONTEXT, "bob").confidence_score
    assert 1 / (times + 2) <= round(score, 9) + 1e-9
    assert score <= (times + 1) / (times + 2) + 1e-9


def test_ten_successes_at_one_task_in_a_row_are_no_strong_reason(engine: ConfidenceEngine) -> None:
    for _ in range(10):
        engine._memory.learn("bob", CONTEXT, "success", GOOD)
    signal = engine.assess_strategy(GOOD, CONTEXT, "bob")
    assert (signal.recommendation, signal.occurrence_count) == ("yes", 10)


def test_risks_and_chances_name_their_evidence(engine: ConfidenceEngine) -> None:
    bad, good = (engine.assess_strategy(strategy, CONTEXT, "ada") for strategy in (BAD, GOOD))
    assert {risk.risk_type for risk in bad.risks} == {"anti_pattern", "fails_often"}
    assert "broke at a bracket" in bad.risks[0].description
    assert all(risk.evidence_ids for risk in bad.risks)
    assert [chance.opportunity_type for chance in good.opportunities] == ["proven_strategy"]
    assert good.assessed.outcome_ids


def test_a_signal_counts_what_was_tried(engine: ConfidenceEngine) -> None:
    good, new = (engine.assess_strategy(strategy, CONTEXT, "ada") for strategy in (GOOD, NEW))
    assert (good.occurrence_count, good.historical_success_rate) == (6, 1.0)
    assert (new.occurrence_count, new.historical_success_rate) == (0, None)
    assert (good.opportunity_signals, new.risk_signals) == (good.opportunities, new.risks)


def test_what_worked_on_other_tasks_says_little_here(engine: ConfidenceEngine) -> None:
    signal = engine.assess_strategy(GOOD, "Bake a birthday cake", "ada")
    assert signal.recommendation == "neutral"
    assert [risk.risk_type for risk in signal.risks] == ["untested"]
    assert "never tried on a task like this" in signal.reasoning


def test_however_often_it_worked_elsewhere(engine: ConfidenceEngine) -> None:
    for _ in range(40):
        engine._memory.learn("ada", "Parse nested JSON documents", "success", GOOD)
    assert engine.assess_strategy(GOOD, "Bake a birthday cake", "ada").recommendation == "neutral"


def test_one_failure_is_a_reason_for_caution_alone(engine: ConfidenceEngine) -> None:
    engine._memory.learn("ada", CONTEXT, "failure", NEW)
    assert engine.assess_strategy(NEW, CONTEXT, "ada").recommendation == "caution"


def test_what_worked_counts_for_the_same_task_in_other_words(engine: ConfidenceEngine) -> None:
    signal = engine.assess_strategy(GOOD, "Read deeply nested JSON data", "ada")
    assert signal.recommendation in {"yes", "strong_yes"}


def test_the_opposite_of_what_works_is_not_a_good_idea(engine: ConfidenceEngine) -> None:
    engine._memory.learning.strategies.judge = ScriptedJudge(opposite=[(GOOD, f"never {GOOD}")])
    signal = engine.assess_strategy(f"never {GOOD}", CONTEXT, "ada")
    assert signal.recommendation in {"caution", "avoid"}
    assert "opposite_works" in {risk.risk_type for risk in signal.risks}
    assert GOOD in signal.reasoning


def test_what_fails_as_often_as_it_works_is_not_proven(engine: ConfidenceEngine) -> None:
    alma = engine._memory
    for outcome in ("success", "failure") * 3:
        alma.learn("ada", "Parse nested JSON documents", outcome, NEW)
    assert not engine.assess_strategy(NEW, CONTEXT, "ada").opportunities
    assert [GOOD in chance.description for chance in engine.get_opportunities(CONTEXT, "ada")] == [True]


def test_what_is_known_to_go_wrong_is_told_without_asking_for_a_strategy(engine: ConfidenceEngine) -> None:
    (risk,) = engine.get_risks(CONTEXT, "ada")
    assert "broke at a bracket" in risk.description
    assert risk.evidence_ids
    assert engine.get_risks("bake a cake", "ada") == []


@pytest.mark.parametrize("strategies", ["one text", [], ["", "x"], 5, [["x"]]])
def test_an_invalid_list_of_strategies_is_refused(engine: ConfidenceEngine, strategies: list[str]) -> None:
    with pytest.raises(ValidationError, match="must"):
        engine.rank_strategies(strategies, CONTEXT, "ada")

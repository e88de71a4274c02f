"""What counts: reports of several agents, tasks and hours; a burst of one agent counts little, and says who told it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from alma import ALMA, ConfidenceEngine, Outcome, clock
from alma.learning.burst_damping import report_weights
from alma.learning.heuristics import Trial

AGENTS = {
    "helena": {"inherit_from": ["victor", "ada"]},
    "victor": {"share_with": ["helena"]},
    "ada": {"share_with": ["helena"]},
}
TASK = "Push the release branch"
GOOD, FAKE = "run the hooks and push", "push with --no-verify"


@pytest.fixture
def team(tmp_path: Path) -> Iterator[ALMA]:
    with ALMA.quickstart(tmp_path / "alma.db", "shop", agents=AGENTS) as alma:
        yield alma


def tell(alma: ALMA, agent: str, strategy: str, times: int, outcome: str = "success", *, varied: bool = False) -> None:
    for number in range(times):
        alma.learn(agent, f"{TASK} {number}" if varied else TASK, outcome, strategy)


def at_hours(count: int) -> list[Trial]:
    return [Trial("id", True, clock.now() - timedelta(hours=3 * n), TASK, {}) for n in range(count)]


def test_reports_of_one_task_at_other_hours_count_in_full() -> None:
    assert report_weights(at_hours(4)) == [1.0] * 4


def test_reports_of_other_tasks_within_the_hour_count_in_full() -> None:
    assert report_weights([Trial("id", True, clock.now(), f"{TASK} {n}", {}) for n in range(4)]) == [1.0] * 4


def test_reports_of_one_task_within_the_hour_count_less_and_less() -> None:
    now = clock.now()
    assert sum(report_weights([Trial("id", True, now, TASK, {})] * 3)) == pytest.approx(1 + 1 / 2 + 1 / 3)
    assert sum(report_weights([Trial("id", True, now, TASK, {})] * 30)) == pytest.approx(4, abs=0.01)


@pytest.mark.parametrize("varied", [False, True], ids=["identical", "varied"])
@pytest.mark.parametrize("explore", [True, False])
@pytest.mark.parametrize("own", [1, 3, 8])
def test_thirty_fake_successes_of_an_inherited_agent_do_not_turn_a_recommendation(
    team: ALMA, own: int, explore: bool, varied: bool
) -> None:
    tell(team, "helena", GOOD, own, varied=True)
    tell(team, "victor", FAKE, 30, varied=varied)
    found = team.recommend(TASK, "helena", explore=explore)
    assert found.strategy == GOOD
    fake = found.ranked[1]
    assert (fake.tried, fake.succeeded) == (30, 30)
    assert fake.evidence < 1
    assert fake.source == "reported by victor alone, within an hour"
    assert fake.expected < 0.65


@pytest.mark.parametrize("varied", [False, True], ids=["identical", "varied"])
def test_nor_do_they_where_the_own_strategy_fails_now_and_then(team: ALMA, varied: bool) -> None:
    tell(team, "helena", GOOD, 4, varied=True)
    team.learn("helena", f"{TASK} again", "failure", GOOD)
    tell(team, "victor", FAKE, 30, varied=varied)
    assert team.recommend(TASK, "helena").strategy == GOOD


def test_thirty_fake_failures_do_not_talk_an_agent_out_of_what_works_for_it(team: ALMA) -> None:
    tell(team, "helena", GOOD, 5, varied=True)
    tell(team, "victor", GOOD, 30, "failure", varied=True)
    assert team.assess(TASK, "helena", [GOOD])[0].expected > 0.7


def test_a_burst_of_one_agent_outweighs_no_other_agent_that_told_it_on_several_days(team: ALMA) -> None:
    for days in range(1, 4):
        moment = clock.now() - timedelta(days=days)
        team.storage.save_outcome(
            Outcome(
                agent="ada",
                project_id="shop",
                task_description=TASK,
                success=True,
                strategy_used=GOOD,
                timestamp=moment,
            )
        )
    tell(team, "victor", FAKE, 30, varied=True)
    found = team.recommend(TASK, "helena")
    assert found.strategy == GOOD
    assert "reported by ada alone" in str(found)
    assert "within an hour" not in str(found)


def test_what_an_agent_inherits_is_all_it_knows_as_long_as_it_has_tried_nothing(team: ALMA) -> None:
    tell(team, "victor", GOOD, 5, varied=True)
    tell(team, "victor", FAKE, 5, "failure", varied=True)
    found = team.recommend(TASK, "helena", among=[FAKE, GOOD, "never tried by anybody"])
    assert found.strategy == GOOD
    assert str(found).endswith("worked 5 of 5 times, reported by victor alone, within an hour)")


def test_three_identical_reports_make_a_rule_that_is_less_sure_and_says_so(team: ALMA) -> None:
    tell(team, "helena", GOOD, 3)
    (rule,) = team.retrieve(TASK, "helena").heuristics
    assert rule.confidence == pytest.approx(0.739, abs=0.001)
    assert "(confidence: 74%, worked 3 of 3 times within an hour)" in team.retrieve(TASK, "helena").to_prompt()


def test_distinct_tasks_are_more_evidence_than_repetitions_of_one(team: ALMA) -> None:
    tell(team, "helena", GOOD, 6, varied=True)
    tell(team, "ada", GOOD, 6)
    own, others = (team.retrieve(TASK, agent).heuristics[0] for agent in ("helena", "ada"))
    assert own.occurrence_count == others.occurrence_count == 6
    assert own.confidence > others.confidence + 0.05


def test_a_rule_is_worth_the_same_whether_made_at_once_or_strengthened(team: ALMA) -> None:
    tell(team, "helena", GOOD, 9)
    team.learn("helena", TASK, "failure", GOOD)
    rule = team.retrieve(TASK, "helena").heuristics[0]
    assert rule.confidence == pytest.approx((0.9 * 2.929 + 1) / (2.929 + 2), abs=0.001)


def test_a_rule_that_another_agent_alone_reports_says_so(team: ALMA) -> None:
    tell(team, "victor", FAKE, 3, varied=True)
    found = team.retrieve(TASK, "helena")
    (rule,) = found.heuristics
    assert "Note: reported by victor alone" in found.to_prompt()
    assert "reported by victor alone" in found.explanation_of(rule.id).notes
    assert "reported by" not in team.retrieve(TASK, "victor").to_prompt()


def test_what_was_seen_on_several_days_does_not_say_that_it_was_within_an_hour(
    team: ALMA, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(team, "helena", GOOD, 2)
    later = clock.now() + timedelta(days=1)
    monkeypatch.setattr("time.time_ns", lambda: int(later.timestamp() * 1e9))
    tell(team, "helena", GOOD, 1)
    assert "worked 3 of 3 times)" in team.retrieve(TASK, "helena").to_prompt()


def test_the_confidence_engine_says_yes_only_to_what_was_not_told_in_one_burst(team: ALMA) -> None:
    tell(team, "helena", GOOD, 6, varied=True)
    tell(team, "victor", FAKE, 30, varied=True)
    engine = ConfidenceEngine(team)
    good, fake = engine.rank_strategies([FAKE, GOOD], TASK, "helena")
    assert (good.strategy, good.recommendation) == (GOOD, "strong_yes")
    assert fake.recommendation in ("neutral", "caution")
    assert "one_source" in {risk.risk_type for risk in fake.risks}
    assert "Reported by victor alone, within an hour" in fake.reasoning


def test_the_opposite_that_an_inherited_agent_told_in_a_burst_does_not_forbid_what_works(team: ALMA) -> None:
    tell(team, "helena", "always run the hooks", 3, varied=True)
    before = ConfidenceEngine(team).assess_strategy("always run the hooks", TASK, "helena")
    tell(team, "victor", "never run the hooks", 30, varied=True)
    after = ConfidenceEngine(team).assess_strategy("always run the hooks", TASK, "helena")
    assert before.recommendation == "yes"
    assert after.recommendation not in ("caution", "avoid")


def test_a_rule_that_another_agent_claims_counts_like_one_report(team: ALMA) -> None:
    tell(team, "helena", GOOD, 3, varied=True)
    tell(team, "victor", FAKE, 30, varied=True)
    team.forget(agent="victor", older_than_days=0, below_confidence=0)
    assert team.recommend(TASK, "helena").strategy == GOOD

"""Withholding and crediting in a real store, through the facade and the operations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from alma import ALMA, DomainKnowledge, Heuristic, Scope
from alma.benefit.trials import estimated
from alma.model.governance import BenefitTrial
from alma.model.learning import AntiPattern
from alma.model.record import Record

EVERYTHING = Scope.everywhere()
TASK = "Deploy the billing service to the cluster"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[ALMA]:
    """A memory that withholds half of what may be withheld, with one lesson of each sort."""
    with ALMA.quickstart(tmp_path / "a.db", "shop", embedding_provider="mock", benefit={"withhold": 0.5}) as alma:
        fill(alma)
        yield alma


def fill(alma: ALMA) -> None:
    made: tuple[Record, ...] = (
        a_rule("free", "drain the queue first"),
        a_rule("pinned", "ask for a review").replace(metadata={"pinned": True}),
        a_fact("fact", "billing", "The billing service deploys to the cluster"),
        a_fact("safe", "Security", "Never deploy the billing service with a root key"),
        AntiPattern(id="warning", agent="victor", project_id="shop", pattern="deploy the billing service on Friday"),
    )
    alma.storage.save_many(made)


def a_rule(key: str, strategy: str) -> Heuristic:
    return Heuristic(id=key, agent="victor", project_id="shop", condition=TASK, strategy=strategy, confidence=0.9)


def a_fact(key: str, domain: str, fact: str) -> DomainKnowledge:
    return DomainKnowledge(id=key, agent="victor", project_id="shop", domain=domain, fact=fact)


def tried(alma: ALMA, times: int) -> list[set[str]]:
    """What each of so many tasks was shown, after its outcome was reported."""
    shown = []
    for _ in range(times):
        found = alma.retrieve(TASK, "victor")
        shown.append({str(each.key) for each in found})
        alma.learn("victor", TASK, True, f"strategy of {len(shown)}", retrieval_id=found.retrieval_id)
    return shown


def test_withholds_eligible_lessons_alone_and_logs_the_propensities(memory: ALMA) -> None:
    shown = tried(memory, 12)
    assert any("free" not in each for each in shown)
    assert any("free" in each for each in shown)
    assert all({"pinned", "safe", "warning"} <= each for each in shown)
    for trial in memory.storage.find(BenefitTrial, EVERYTHING):
        assert set(trial.arms) <= {"free", "fact"} | {key for key in trial.arms if len(key) == 32}
        assert trial.arms["free"]["propensity"] == 0.5
    assert any(trial.arms["free"]["shown"] for trial in memory.storage.find(BenefitTrial, EVERYTHING))


def test_nothing_is_withheld_or_logged_by_default(tmp_path: Path) -> None:
    with ALMA.quickstart(tmp_path / "a.db", "shop", embedding_provider="mock") as alma:
        fill(alma)
        assert all({"free", "fact"} <= each for each in tried(alma, 5))
        assert alma.retrieve(TASK, "victor").retrieval_id is None
        assert alma.storage.count(BenefitTrial, EVERYTHING) == 0


def test_an_agent_has_its_own_share(tmp_path: Path) -> None:
    with ALMA.quickstart(
        tmp_path / "a.db", "shop", embedding_provider="mock", agents={"victor": {"benefit": {"withhold": 0.3}}}
    ) as alma:
        assert (alma.benefit.share("Victor"), alma.benefit.share("helena")) == (0.3, 0.0)


def test_outcomes_are_credited_by_id_or_by_agent_task_and_time(memory: ALMA) -> None:
    named = memory.retrieve(TASK, "victor").retrieval_id
    assert named is not None
    memory.learn("victor", "Something else entirely", False, "guess", retrieval_id=named, verified_by="tests")
    (trial,) = memory.storage.find(BenefitTrial, EVERYTHING)
    assert (trial.id, trial.success, trial.verified_by) == (named, False, "tests")
    unnamed = memory.retrieve(TASK, "victor").retrieval_id
    memory.learn("helena", TASK, True, "another agent")
    memory.learn("victor", "Write the release notes", True, "another task")
    memory.learn("victor", "deploy billing service to the cluster", True, "by similar words")
    found = {each.id: each.success for each in memory.storage.find(BenefitTrial, EVERYTHING)}
    assert found == {named: False, unnamed: True}
    assert len(memory.benefit.trials(EVERYTHING)) == 2


def test_a_retry_of_a_task_is_shown_the_same(memory: ALMA) -> None:
    first, second = (memory.retrieve(TASK, "victor") for _ in range(2))
    assert first.retrieval_id == second.retrieval_id
    assert [each.key for each in first] == [each.key for each in second]


def test_a_withheld_memory_says_so(memory: ALMA) -> None:
    for _ in range(20):
        found = memory.retrieve(TASK, "victor")
        if "free" not in {str(each.key) for each in found}:
            reason = found.why_not("free")
            assert reason is not None
            assert reason.stage == "benefit"
            return
        memory.learn("victor", TASK, True, "go on", retrieval_id=found.retrieval_id)
    pytest.fail("nothing was withheld in twenty tasks")


def test_signals_are_kept_apart_from_what_was_reported(memory: ALMA) -> None:
    found = memory.retrieve(TASK, "victor")
    memory.benefit.observe("thanks", success=True, agent="victor", project_id="shop", task=TASK)
    assert memory.benefit.trials(EVERYTHING) == []
    (observed,) = memory.benefit.trials(EVERYTHING, signals=True)
    assert (observed.success, observed.weight) == (1.0, 0.25)
    memory.learn("victor", TASK, False, "broke it", retrieval_id=found.retrieval_id, verified_by="tests")
    (reported,) = memory.benefit.trials(EVERYTHING, signals=True)
    assert (reported.success, reported.weight) == (0.0, 1.5)
    assert estimated([reported]).trials == 1


def test_an_unknown_retrieval_loses_no_outcome(memory: ALMA) -> None:
    learned = memory.learn("victor", TASK, True, "go on", retrieval_id="nowhere")
    assert "no retrieval 'nowhere'" in " ".join(learned.notes)


def test_verified_outcomes_count_more(tmp_path: Path) -> None:
    beliefs = {}
    for verified_by in ("tests", "self-report"):
        with ALMA.quickstart(tmp_path / f"{verified_by}.db", "shop", embedding_provider="mock") as alma:
            for _ in range(4):
                learned = alma.learn("victor", TASK, True, "drain the queue", verified_by=verified_by)
            assert learned.outcome.metadata["verified_by"] == verified_by
            assert learned.heuristic is not None
            beliefs[verified_by] = learned.heuristic.confidence
    assert beliefs["tests"] > beliefs["self-report"]


def test_an_unknown_verifier_is_refused(memory: ALMA) -> None:
    with pytest.raises(ValueError, match="must be one of tests, human, tool, self-report"):
        memory.learn("victor", TASK, True, "go on", verified_by="vibes")

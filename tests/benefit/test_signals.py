"""Outcomes that hosts deliver anyway: kept apart from reported ones, each with its own weight and provenance."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from alma import ALMA, Scope
from alma.benefit.signals import reaction_to, signal_of
from alma.extraction import AutoLearner, create_extractor
from alma.harness import Agent, Context, Harness, Setting
from alma.hooks.files import HookFiles
from alma.hooks.hosts import HOSTS, PROMPT, Event, event_of
from alma.hooks.learning import HookService
from alma.model.governance import BenefitTrial
from alma.model.learning import Outcome
from alma.operations.access import Caller
from alma.operations.benefit import benefit_report, observe_outcome
from alma.session import SessionManager
from tests.benefit.test_log import TASK, a_fact, a_rule

SHOP = Scope(project_id="shop")


@pytest.fixture
def alma(tmp_path: Path) -> Iterator[ALMA]:
    with ALMA.quickstart(tmp_path / "a.db", "shop", embedding_provider="mock", benefit={"withhold": 1e-9}) as made:
        made.storage.save_many([a_rule("free", "drain the queue first")])
        made.storage.save(a_fact("fact", "billing", "The billing service deploys to the cluster"))
        yield made


@pytest.fixture
def hooks(alma: ALMA, tmp_path: Path) -> HookService:
    return HookService(alma, HookFiles(tmp_path / "hooks"))


def prompted(hooks: HookService, prompt: str = TASK, shown: dict[str, str] | None = None) -> dict[str, str]:
    event = Event(PROMPT, "UserPromptSubmit", "s", prompt=prompt)
    return dict(hooks.found(event, "victor", None, shown or {}).shown)


def happened(hooks: HookService, name: str, **payload: Any) -> None:
    """A hook's event, as it waits in the spool with the prompt of its session."""
    event = event_of(HOSTS["claude-code"], name, {"session_id": "s", **payload})
    assert event is not None
    hooks.learn({"event": event._replace(prompt=event.prompt or TASK).as_json(), "agent": "victor", "user": None})


def signals(alma: ALMA) -> dict[str, bool]:
    """The signals of the only trial, which has no reported outcome."""
    (row,) = alma.storage.find(BenefitTrial, SHOP)
    assert row.success is None
    return {name: each["success"] for name, each in row.signals.items()}


def test_the_exit_status_of_commands_is_a_signal_and_the_last_one_counts(alma: ALMA, hooks: HookService) -> None:
    prompted(hooks)
    ran: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": "cd app && pytest -q"}}
    happened(hooks, "PostToolUseFailure", error="2 failed", **ran)
    assert signals(alma) == {"test-results": False}
    (learned,) = alma.storage.find(Outcome, SHOP)
    assert (learned.success, learned.metadata["verified_by"]) == (False, "tests")
    happened(hooks, "PostToolUse", tool_response={"stdout": "2 passed"}, **ran)
    happened(hooks, "PostToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_response={"stdout": ""})
    happened(hooks, "PostToolUseFailure", error="not found", tool_name="Edit", tool_input={"file_path": "a.py"})
    assert signals(alma) == {"test-results": True, "exit-status": True}
    assert alma.benefit.trials(SHOP) == []
    (seen,) = alma.benefit.trials(SHOP, signals=True)
    assert (seen.success, seen.weight) == (1.0, 0.75)
    assert alma.benefit.counts(SHOP) == {"observed only": 1}


def test_other_tools_than_commands_are_not_observed() -> None:
    read = {"session_id": "s", "tool_name": "Read", "tool_input": {"file_path": "a"}, "tool_response": {"text": "b"}}
    assert event_of(HOSTS["claude-code"], "PostToolUse", read) is None
    listed = {"session_id": "s", "tool_input": {"command": ["bash", "-lc", "npm test"]}, "tool_response": "ok"}
    event = event_of(HOSTS["codex"], "PostToolUse", listed)
    assert event is not None
    assert event.command == "bash -lc npm test"


@pytest.mark.parametrize(
    ("said", "signal"),
    [
        ("Thanks, works!", "thanks"),
        ("merci, ça marche", "thanks"),
        ("Thanks, but it still fails", "correction"),
        ("No, use the other cluster", "correction"),
        ("Das ist falsch, nimm den anderen Cluster", "correction"),
        ("please deploy the billing service to the cluster", "retry"),
        ("No need for tests. Write the release notes", None),
        ("Add a column to the orders table", None),
    ],
)
def test_the_next_prompt_may_say_how_the_task_went(
    alma: ALMA, hooks: HookService, said: str, signal: str | None
) -> None:
    found = reaction_to(TASK, said)
    assert (found and found.name) == signal
    prompted(hooks)
    event = Event(PROMPT, "UserPromptSubmit", "s", prompt=said, before=TASK)
    hooks.learn({"event": event.as_json(), "agent": "victor", "user": None})
    assert list(signals(alma)) == ([] if signal is None else [signal])


@pytest.mark.parametrize(
    ("command", "signal"),
    [
        ("uv run pytest -q", "test-results"),
        ("npm run test:unit", "test-results"),
        ("cd a && cargo test", "test-results"),
        ("pytest | tail -3", "exit-status"),
        ("pytest; echo done", "exit-status"),
        ("pip install pytest", "exit-status"),
        ("git add tests", "exit-status"),
    ],
)
def test_test_commands_are_told_from_others(command: str, signal: str) -> None:
    assert signal_of(command) == signal


def test_a_retrieval_for_the_same_task_some_minutes_later_is_a_retry(alma: ALMA) -> None:
    alma.retrieve(TASK, "victor")
    alma.retrieve(TASK, "victor")
    assert signals(alma) == {}
    (row,) = alma.storage.find(BenefitTrial, SHOP)
    alma.storage.save(row.replace(created_at=row.created_at - timedelta(minutes=10)))
    alma.retrieve(TASK, "victor")
    assert signals(alma) == {"retry": False}


def test_a_handoff_tells_how_the_last_task_of_its_session_went(alma: ALMA) -> None:
    manager = SessionManager("shop", alma.storage)
    session = manager.start_session("Victor", goal="deploy").session_id
    alma.retrieve("Deploy the billing service", "victor")
    alma.retrieve("Restart the billing cluster", "victor")
    alma.retrieve("Restart the billing cluster", "helena")
    manager.create_handoff("Victor", session, "restarted", "failure")
    (seen,) = alma.benefit.trials(SHOP, signals=True)
    assert (seen.success, seen.weight) == (0.0, 0.5)
    assert alma.benefit.counts(SHOP)["observed only"] == 1


def test_what_was_said_in_a_conversation_is_a_signal_and_no_report(alma: ALMA) -> None:
    alma.retrieve("Fix the flaky test of the billing service cluster", "victor")
    said = "I fixed the flaky test of the billing service cluster by waiting for the network to be idle."
    learner = AutoLearner(alma, create_extractor("rules", judge=alma.judge))
    assert learner.learn_from_conversation([{"role": "assistant", "content": said}], "victor")["committed_count"] == 1
    assert set(signals(alma)) <= {"conversation"}
    assert alma.benefit.trials(SHOP) == []


def test_the_harness_credits_the_retrieval_of_its_run(alma: ALMA) -> None:
    harness = Harness(Setting("shell"), Agent("victor"), alma)
    harness.run(Context(TASK), lambda _: {"success": False, "strategy_used": "restart twice"})
    harness.run(Context("Restart the billing cluster"), lambda _: True)
    found = alma.storage.find(BenefitTrial, SHOP)
    assert sorted(str(each.success) for each in found) == ["False", "True"]


def test_what_a_session_has_is_neither_withheld_nor_measured_again(alma: ALMA, hooks: HookService) -> None:
    shown = prompted(hooks)
    assert shown.keys() == {"free", "fact"}
    alma.benefit = type(alma.benefit)(alma.storage, 0.5)
    for number in range(8):
        prompted(hooks, f"{TASK} {number}", shown)
    (row,) = alma.storage.find(BenefitTrial, SHOP)
    assert row.arms.keys() == {"free", "fact"}
    named = [alma.retrieve(f"{TASK} {number}", "victor", already_shown="monday") for number in range(12)]
    told = [str(each.key) for found in named for each in found]
    assert sorted(told) == ["fact", "free"]
    arms = [row.arms["free"] for row in alma.storage.find(BenefitTrial, SHOP) if "free" in row.arms]
    assert len([arm for arm in arms if arm["shown"]]) == 2


def test_any_host_may_observe_and_sees_it_in_the_report(alma: ALMA) -> None:
    caller = Caller(alma)
    given = {"signal": "exit-status", "success": False, "agent": "victor", "task": TASK}
    assert observe_outcome.perform(caller, given).retrieval_id is None
    retrieval = alma.retrieve(TASK, "victor").retrieval_id
    assert observe_outcome.perform(caller, given).retrieval_id == retrieval
    assert benefit_report.perform(caller, {}).trials == 0
    reported = benefit_report.perform(caller, {"signals": True})
    assert (reported.trials, reported.outcomes) == (1, {"observed only": 1})
    assert {each.state for each in reported.memories} == {"not enough data"}

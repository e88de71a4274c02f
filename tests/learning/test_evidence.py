"""What an agent went through is read once, and again as soon as anybody wrote something."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from alma import ALMA, Heuristic, clock
from alma.model.scope import Scope
from tests.learning.conftest import Open

TASK, GOOD, NEW = "Test the login form", "Test empty fields first", "Ask the oracle"


def a_rule(**changes: object) -> Heuristic:
    values = {
        "id": "rule",
        "agent": "helena",
        "project_id": "shop",
        "condition": TASK,
        "strategy": GOOD,
        "confidence": 0.95,
        "occurrence_count": 20,
        "success_count": 19,
    }
    return Heuristic(**{**values, **changes})  # type: ignore[arg-type]


def expected(alma: ALMA) -> float:
    return alma.assess(TASK, "helena", [GOOD])[0].expected


def test_nothing_is_read_again_while_nothing_is_written(alma: ALMA, monkeypatch: pytest.MonkeyPatch) -> None:
    alma.storage.save_heuristic(a_rule())
    first = expected(alma)
    reads: list[object] = []
    values = alma.storage.values

    def counted(*args: Any, **named: Any) -> Any:
        reads.append(args)
        return values(*args, **named)

    def reads_of_a_question() -> int:
        reads.clear()
        assert expected(alma) == first
        return len(reads)

    monkeypatch.setattr(alma.storage, "values", counted)
    # Now and then a server does something of its own in between.
    assert 0 in {reads_of_a_question() for _ in range(5)}


def test_a_rule_that_another_process_writes_changes_or_deletes_counts_at_once(open_alma: Open) -> None:
    here, there = open_alma(), open_alma()
    assert expected(here) == 0.5
    there.storage.save_heuristic(a_rule())
    good = expected(here)
    there.storage.save_heuristic(a_rule(success_count=1))
    bad = expected(here)
    there.storage.delete_heuristic("rule")
    assert good > 0.8 > 0.2 > bad
    assert expected(here) == 0.5


def test_a_rule_of_an_agent_says_nothing_to_another_one(alma: ALMA) -> None:
    alma.storage.save_heuristic(a_rule())
    expected(alma)
    assert alma.assess(TASK, "victor", [GOOD])[0].expected == 0.5
    assert alma.learning.recommender.assess(TASK, Scope(project_id="other", agent="helena"), [GOOD])[0][0].tried == 0


def test_what_is_held_grows_older(alma: ALMA, monkeypatch: pytest.MonkeyPatch) -> None:
    alma.storage.save_heuristic(a_rule(last_validated=clock.now()))
    today, later = expected(alma), clock.now() + timedelta(days=3650)
    monkeypatch.setattr(clock, "now", lambda: later)
    assert 0.5 < expected(alma) < today


def test_what_was_seen_in_an_older_snapshot_is_not_held_for_the_newest(open_alma: Open) -> None:
    here, there = open_alma(), open_alma()
    with here.storage.snapshot() as tx:
        assert tx.count(Heuristic, here.scope()) == 0
        there.storage.save_heuristic(a_rule())
        there.learn("helena", TASK, "success", NEW)
        assert expected(here) == 0.5
    assert expected(here) > 0.8
    assert here.assess(TASK, "helena", [NEW])[0].tried == 1


def test_an_outcome_that_was_corrected_counts_as_it_is_now(open_alma: Open) -> None:
    here, there = open_alma(), open_alma()
    learned = [here.learn("helena", TASK, "success", GOOD).outcome for _ in range(2)]
    assert here.assess(TASK, "helena", [GOOD])[0].succeeded == 2
    there.storage.save_outcome(learned[0].replace(success=False))
    assert here.assess(TASK, "helena", [GOOD])[0].succeeded == 1
    there.storage.save_outcome(learned[1].replace(strategy_used=NEW))
    assert [each.tried for each in here.assess(TASK, "helena", [GOOD, NEW])] == [1, 1]

"""How far a lesson is confirmed: by distinct tasks, sessions and verifiers, with hysteresis."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma import ALMA
from alma.learning.maturity import Maturity, Observation, confirmation
from tests.skills.conftest import confirm

GOOD = [Observation(True, f"task {number}", f"session {number}", "tests") for number in range(3)]
BAD = Observation(False, "task", "session", "tests")


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        ([], Maturity.PROVISIONAL),
        (GOOD[:1], Maturity.PROVISIONAL),
        (GOOD[:1] * 20, Maturity.PROVISIONAL),
        (GOOD[:2], Maturity.CORROBORATED),
        (GOOD, Maturity.ESTABLISHED),
        ([each._replace(verifier="self-report of x") for each in GOOD], Maturity.CORROBORATED),
        ([*(each._replace(verifier="self-report of x") for each in GOOD[:2]), GOOD[2]], Maturity.ESTABLISHED),
        ([BAD] * 2, Maturity.CONTESTED),
    ],
)
def test_distinct_tasks_sessions_and_verifiers_confirm_a_lesson(seen: list[Observation], state: Maturity) -> None:
    assert confirmation(seen).state is state


def test_an_established_lesson_survives_a_failure_and_is_contested_and_retired_by_many() -> None:
    failures = [BAD._replace(session=f"later {number}") for number in range(12)]
    after = [str(confirmation([*GOOD, *failures[:number]]).state) for number in range(13)]
    assert after[:2] == ["established", "established"]
    assert list(dict.fromkeys(after)) == ["established", "contested", "retired"]
    # It comes back through the contested state, and not at the first success.
    again = [Observation(True, f"new {number}", f"much later {number}", "tests") for number in range(30)]
    back = [str(confirmation([*GOOD, *failures, *again[:number]]).state) for number in range(31)]
    assert back[1] == "retired"
    assert list(dict.fromkeys(back)) == ["retired", "contested", "corroborated", "established"]


@given(st.lists(st.booleans(), max_size=20))
def test_one_more_success_after_one_more_failure_never_lowers_an_established_lesson(results: list[bool]) -> None:
    seen = [*GOOD, *(Observation(good, f"t{number}", f"s{number}") for number, good in enumerate(results))]
    if confirmation(seen).state is Maturity.ESTABLISHED and confirmation(seen).rate > 0.75:
        assert confirmation([*seen, BAD]).state is Maturity.ESTABLISHED


def test_evidence_and_results_say_how_far_a_lesson_is_confirmed(alma: ALMA) -> None:
    lesson = confirm(alma, sessions=1)
    known = alma.evidence(lesson, "helena")
    assert (known.maturity, len(known.confirmation.tasks)) == (Maturity.CORROBORATED, 4)
    confirm(alma)
    known = alma.evidence(lesson, "helena")
    assert known.maturity is Maturity.ESTABLISHED
    assert str(known.confirmation) == "established: 24 of 24 succeeded, in 4 tasks, 4 sessions, 1 verifier"
    found = alma.retrieve("Test the login form", "helena")
    assert found.maturity == {lesson: "established"}
    assert "Note: established" in found.to_prompt()

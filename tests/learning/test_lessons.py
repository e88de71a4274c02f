"""What is learned counts what other processes stored, changed or deleted in between."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from alma import ALMA, AntiPattern, Heuristic
from alma.learning.protocols import Learned
from alma.model.scope import Scope
from tests.learning.conftest import Open
from tests.learning.test_lesson_index import STRATEGIES, learn, learned_by, near, opened

SHOP = Scope(project_id="shop", agent="helena")


@pytest.fixture
def pair(open_alma: Open) -> tuple[ALMA, ALMA]:
    return open_alma(embedding_provider="mock"), open_alma(embedding_provider="mock")


def outcomes(seed: int) -> list[tuple[int, int, str, bool]]:
    chance = random.Random(seed)
    return [(n, chance.randrange(3), chance.choice(STRATEGIES), chance.random() < 0.5) for n in range(60)]


def test_two_processes_that_take_turns_count_every_outcome_of_a_lesson(pair: tuple[ALMA, ALMA]) -> None:
    chance = random.Random(3)
    for each in outcomes(3):
        learn(pair[chance.random() < 0.4], *each)
    tried, rules, _ = learned_by(pair[0])
    assert isinstance(tried, dict)
    assert isinstance(rules, dict)
    lessons = list(tried.values())
    assert rules
    assert {key: rules[key][2] for key in rules} == {key: lessons.count(key) for key in rules}


@pytest.mark.parametrize("success", [True, False])
def test_an_outcome_stored_while_another_process_makes_the_rule_is_counted(
    pair: tuple[ALMA, ALMA], success: bool
) -> None:
    learn(pair[0], 0, 1, STRATEGIES[0], True)
    learn(pair[0], 1, 1, STRATEGIES[0], True)
    meanwhile = threading.Thread(target=learn, args=(pair[1], 3, 1, STRATEGIES[0], success))
    with pair[0].storage.transaction():
        learn(pair[0], 2, 1, STRATEGIES[0], True)
        meanwhile.start()
        meanwhile.join(timeout=1)
    meanwhile.join()
    (rule,) = pair[0].storage.find(Heuristic, SHOP)
    assert (rule.occurrence_count, rule.success_count) == (4, 3 + success)


def test_a_rule_that_was_deleted_in_between_is_learned_anew(pair: tuple[ALMA, ALMA]) -> None:
    for n in range(12):
        learn(pair[0], n, 1, STRATEGIES[0], True)
    (rule,) = pair[0].storage.find(Heuristic, SHOP)
    assert rule.occurrence_count == 12
    pair[1].storage.delete(Heuristic, [rule.id], SHOP)
    learn(pair[0], 12, 1, STRATEGIES[0], True)
    (anew,) = pair[0].storage.find(Heuristic, SHOP)
    assert (anew.id, anew.occurrence_count) == (rule.id, 13)


def test_a_rule_that_was_changed_in_between_is_strengthened_as_it_is_now(pair: tuple[ALMA, ALMA]) -> None:
    for n in range(12):
        learn(pair[0], n, 1, STRATEGIES[0], True)
    (rule,) = pair[0].storage.find(Heuristic, SHOP)
    pair[1].storage.update(Heuristic, rule.id, {"condition": "another one"}, SHOP)
    learn(pair[0], 12, 1, STRATEGIES[0], True)
    (changed,) = pair[0].storage.find(Heuristic, SHOP)
    assert (changed.condition, changed.occurrence_count) == ("another one", 13)


def test_a_warning_that_someone_completed_in_between_is_left_alone(pair: tuple[ALMA, ALMA]) -> None:
    for n in range(12):
        learn(pair[0], n, 1, STRATEGIES[0], False)
    (warning,) = pair[0].storage.find(AntiPattern, SHOP)
    assert warning.better_alternative is None
    pair[1].storage.update(AntiPattern, warning.id, {"better_alternative": "ask first"}, SHOP)
    learn(pair[0], 12, 1, STRATEGIES[1], True)
    (left,) = pair[0].storage.find(AntiPattern, SHOP)
    assert left.better_alternative == "ask first"


def test_what_a_caller_does_to_an_answer_changes_nothing_that_is_stored(tmp_path: Path) -> None:
    with opened(tmp_path / "alma.db") as alma:
        for n in range(12):
            learned = alma.learn("helena", f"task {n}", True, "measure first", "testing", embedding=near(1, n))
            if learned.heuristic is not None:
                learned.heuristic.metadata["mine"] = n
        (rule,) = alma.storage.find(Heuristic, SHOP)
        history = alma.storage.history(Heuristic, rule.id, SHOP)
    assert rule.metadata == {"task_type": "testing"}
    assert len(history) > 1
    assert all("mine" not in (version.record_json or {}).get("metadata", {}) for version in history)


def _parsed(alma: ALMA, number: int, success: bool) -> Learned:
    """What is learned from one of many tasks that are all alike."""
    task, error = f"parse the feed {number}", None if success else "not well-formed"
    strategy, vector = "read it with a regex", [1.0, *[0.0] * 383]
    return alma.learn("helena", task, success, strategy, error_message=error, embedding=vector)


def test_what_a_long_lesson_becomes_counts_all_of_its_outcomes(tmp_path: Path) -> None:
    with ALMA.quickstart(tmp_path / "alma.db", "shop", embedding_provider="mock") as alma:
        texts_of = [_parsed(alma, n, n >= 110) for n in range(230)]
        (rule,) = alma.storage.find(Heuristic, SHOP)
        (warned,) = (each.anti_pattern for each in texts_of[109:110])
    assert (rule.occurrence_count, rule.success_count) == (230, 120)
    assert rule.confidence == pytest.approx(121 / 232, abs=0.001)
    assert list(rule.outcomes_for) == [each.id for each in texts_of[-100:]]
    assert list(rule.outcomes_against) == [each.id for each in texts_of[10:110]]
    assert warned is not None
    assert warned.occurrence_count == 110


def test_a_warning_of_a_long_lesson_counts_all_of_its_failures(tmp_path: Path) -> None:
    with ALMA.quickstart(tmp_path / "alma.db", "shop", embedding_provider="mock") as alma:
        for n in range(120):
            _parsed(alma, n, n % 2 == 0)
        failed = [_parsed(alma, n, False) for n in (120, 121)]
    assert failed[0].anti_pattern is not None
    assert failed[0].anti_pattern.occurrence_count == 61
    assert str(failed[0].anti_pattern.why_bad).startswith("failed 61 times")

"""What is learned from outcomes, on every store."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from itertools import cycle
from typing import Any

import pytest

from alma import (
    ALMA,
    AntiPattern,
    AuditEvent,
    Heuristic,
    MemoryScope,
    NotFoundError,
    Outcome,
    Scope,
    ScopeViolationError,
    ValidationError,
    clock,
)
from alma.learning.heuristics import HeuristicExtractor, Trial
from alma.learning.protocols import LearningProtocol
from alma.learning.tuning import LessonTuning
from alma.vectors.base import VectorIndex
from tests.learning.conftest import Open
from tests.support.judging import ScriptedJudge

SHOP = Scope(project_id="shop")
FORM = "Test the login form"
AGENTS = {
    "helena": {"can_learn": ["testing_strategies"], "cannot_learn": ["backend_logic", "database_queries"]},
    "victor": {"can_learn": ["database_queries"]},
}
FORMS = (
    "login",
    "sign-up",
    "checkout",
    "contact",
    "search",
    "profile",
    "password reset",
    "newsletter",
    "address",
    "card",
)
FIELD_BY_FIELD = (
    "Test each field on its own, then submit",
    "Test every field on its own and then submit",
    "Test each field individually, then submit",
)
BACKOFF = (
    "retry with exponential backoff",
    "exponential back-off when retrying",
    "Retried with an exponential backoff",
)
STEPS = "Tested empty fields, invalid email, valid submission"


class Interrupted:
    """An index behind whose first search something happens."""

    def __init__(self, index: VectorIndex, meanwhile: Callable[[], object]) -> None:
        self._index = index
        self._meanwhile = [meanwhile]

    def search(self, *args: Any, **options: Any) -> Any:
        found = self._index.search(*args, **options)
        if self._meanwhile:
            self._meanwhile.pop()()
        return found

    def close(self) -> None:
        self._index.close()


def learn(
    alma: ALMA, outcome: Any = "success", strategy: str = STEPS, task: str = FORM, times: int = 1, **more: Any
) -> Any:
    for _ in range(times):
        learned = alma.learn(agent="helena", task=task, outcome=outcome, strategy_used=strategy, **more)
    return learned


def _at(*coordinates: float) -> list[float]:
    """A vector in the plane of the first two dimensions."""
    return [*coordinates, *[0.0] * (384 - len(coordinates))]


def heuristics(alma: ALMA) -> list[Heuristic]:
    return alma.storage.find(Heuristic, SHOP)


def anti_patterns(alma: ALMA) -> list[AntiPattern]:
    return alma.storage.find(AntiPattern, SHOP)


class TestHeuristics:
    def test_what_was_learned_is_found_again(self, alma: ALMA) -> None:
        learn(alma, times=3)
        found = alma.retrieve(task="Test the login form validation", agent="helena")
        assert [each.strategy for each in found.heuristics] == [STEPS]
        assert "invalid email" in found.to_prompt()

    @pytest.mark.parametrize("first", [0, 6, 7])
    def test_tasks_that_differ_in_what_is_tested_make_one_heuristic(self, alma: ALMA, first: int) -> None:
        alma.learning.strategies.judge = ScriptedJudge(same=[FIELD_BY_FIELD], probability=0.9)
        tasks = [f"Test the {form} form" for form in (*FORMS[first:], *FORMS[:first])]
        for task, strategy in zip(tasks, cycle(FIELD_BY_FIELD), strict=False):
            learn(alma, task=task, strategy=strategy)
        (rule,) = heuristics(alma)
        assert (rule.success_count, rule.occurrence_count) == (10, 10)
        before = rule.confidence
        learn(alma, "failure", FIELD_BY_FIELD[0], "Test the booking form")
        (rule,) = heuristics(alma)
        assert (rule.success_count, rule.occurrence_count) == (10, 11)
        assert rule.confidence < before

    def test_failures_at_such_tasks_make_one_warning_that_knows_what_did_better(self, alma: ALMA) -> None:
        for form in FORMS[:4]:
            learn(alma, "success", "Fill it in with a recorded session", f"Test the {form} form")
        for form in FORMS[4:]:
            learn(alma, "failure", FIELD_BY_FIELD[0], f"Test the {form} form")
        (warning,) = anti_patterns(alma)
        assert warning.occurrence_count == 6
        assert warning.better_alternative == "Fill it in with a recorded session"

    def test_a_task_belongs_to_the_lesson_that_has_more_tasks_like_it(self, alma: ALMA) -> None:
        strategy = "Restart everything at once"
        learn(alma, "failure", strategy, "Deploy the cart service")
        learn(alma, "failure", strategy, "Roll back the billing service")
        for service in ("orders", "search", "login", "billing"):
            learn(alma, "failure", strategy, f"Deploy the {service} service")
        (warning,) = anti_patterns(alma)
        assert warning.occurrence_count == 5

    @pytest.mark.parametrize(
        "tasks",
        [
            ("Deploy the API", "Deploy the worker", "Deploy the web app"),
            ("Restart nginx", "Restart postgres", "Restart redis"),
            ("Form validation", "Form testing", "Form submission"),
        ],
    )
    def test_tasks_of_two_words_that_share_one_make_one_heuristic(self, alma: ALMA, tasks: tuple[str, ...]) -> None:
        for task in tasks:
            learn(alma, task=task, strategy="Take small steps")
        (rule,) = heuristics(alma)
        assert rule.success_count == 3

    def test_one_strategy_in_three_wordings_on_reworded_tasks_makes_one_heuristic(self, alma: ALMA) -> None:
        for task, strategy in (
            ("Schedule a meeting with the Tokyo team", "propose two slots in their morning"),
            ("Set up a call with colleagues in Japan", "offer two time slots in the morning of their time zone"),
            ("Arrange a sync with the Osaka office", "suggest a pair of times that are morning for them"),
        ):
            learn(alma, task=task, strategy=strategy)
        learn(alma, task="Plan a call with the Kyoto office", strategy="propose slots late in their evening")
        (rule,) = heuristics(alma)
        assert rule.success_count == 3

    def test_unrelated_tasks_that_share_a_word_are_other_lessons(self, alma: ALMA) -> None:
        for task in ("Fix dinner", "Fix the login", "Clean data", "Open a bank account", "Open file"):
            learn(alma, task=task, strategy="Take small steps", times=2)
        assert heuristics(alma) == []

    def test_one_strategy_at_tasks_of_other_kinds_is_another_lesson(self, alma: ALMA) -> None:
        for task in ("Test the login form", "Deploy the database", "Write a poem about the sea"):
            learn(alma, task=task, strategy="Take small steps", times=2)
        assert heuristics(alma) == []

    def test_a_task_between_a_rule_and_what_is_none_yet_counts_for_the_rule(self, alma: ALMA) -> None:
        vectors = [_at(1, 0)] * 3 + [_at(0, 1)] * 2 + [_at(0.68, 0.73)]
        for word, vector in zip(["one", "other", "third", "fourth", "fifth", "sixth"], vectors, strict=True):
            learned = learn(alma, task=f"Look after the {word}", embedding=vector)
        (rule,) = heuristics(alma)
        assert learned.lesson_id == rule.id
        assert rule.occurrence_count == 4

    def test_a_heuristic_carries_the_outcomes_for_and_against_it(self, alma: ALMA) -> None:
        texts_of = [learn(alma, n % 5 > 0, embedding=_at(1, 0)) for n in range(130)]
        won, lost = ([each.outcome.id for each in texts_of if each.outcome.success is good] for good in (True, False))
        (rule,) = heuristics(alma)
        assert set(rule.outcomes_for) == set(won[-100:])
        assert set(rule.outcomes_against) == set(lost)
        evidence = alma.evidence(rule.id, "helena")
        assert (set(evidence.outcomes_for), set(evidence.outcomes_against)) == (set(won), set(lost))
        assert (len(won), len(texts_of)) == (rule.success_count, rule.occurrence_count)

    def test_the_evidence_of_others_is_not_told(self, alma: ALMA) -> None:
        rule = learn(alma, times=3).heuristic
        with pytest.raises(NotFoundError):
            alma.evidence(rule.id, "victor")

    def test_a_prompt_warns_of_a_rule_that_fails_by_now_and_does_not_say_to_follow_it(self, alma: ALMA) -> None:
        learn(alma, times=3)
        learn(alma, "failure", times=7)
        found = alma.retrieve(FORM, "helena")
        assert [each.strategy for each in found.heuristics] == [STEPS]
        assert found.heuristics[0].confidence < 0.5
        prompt = found.to_prompt()
        assert f"Don't: {STEPS}" in prompt
        assert f"Do: {STEPS}" not in prompt
        assert "warns about it instead" in str(found.why_not(found.heuristics[0].id))

    def test_two_successes_are_not_yet_a_rule(self, alma: ALMA) -> None:
        assert learn(alma, times=2).heuristic is None
        assert heuristics(alma) == []

    def test_ten_equal_successes_make_one_heuristic(self, alma: ALMA) -> None:
        learn(alma, times=10)
        (made,) = heuristics(alma)
        assert (made.occurrence_count, made.success_count) == (10, 10)
        assert made.confidence == pytest.approx(3.929 / 4.929, abs=1e-3)

    def test_ten_successes_at_ten_tasks_count_in_full(self, alma: ALMA) -> None:
        for number in range(10):
            learn(alma, task=f"{FORM} {number}")
        (made,) = heuristics(alma)
        assert made.confidence == pytest.approx(11 / 12, abs=1e-3)

    def test_a_rule_that_was_deleted_comes_back_with_its_history(self, alma: ALMA) -> None:
        made = learn(alma, times=3).heuristic
        for joined in (False, True):
            alma.storage.delete(Heuristic, [made.id], SHOP)
            if joined:
                with alma.storage.transaction():
                    learn(alma)
            else:
                learn(alma)
            assert [each.id for each in heuristics(alma)] == [made.id]
        changes = [str(each.change_type) for each in alma.storage.history(Heuristic, made.id, SHOP)]
        assert changes == ["created", "deleted", "restored", "deleted", "restored"]

    def test_paraphrases_count_together_by_how_likely_they_are_the_same(self, alma: ALMA) -> None:
        alma.learning.strategies.judge = ScriptedJudge(same=[BACKOFF], probability=0.8)
        for strategy in BACKOFF:
            texts_of = learn(alma, strategy=strategy, task="Call the payment API")
        assert texts_of.outcome.metadata == {"same_strategy": 0.8}
        (made,) = heuristics(alma)
        assert (made.occurrence_count, made.success_count) == (3, 3)
        assert made.weight_for == pytest.approx((1 + 0.8 + 0.8) * (1 + 1 / 2 + 1 / 3) / 3, abs=1e-3)

    def test_what_says_more_is_named_by_the_rule_and_not_counted(self, alma: ALMA) -> None:
        alma.learning.strategies.judge = ScriptedJudge(more=[("retry twice with a pause", "retry with a pause")])
        broad = learn(alma, strategy="retry with a pause", times=3).heuristic
        narrow = learn(alma, strategy="retry twice with a pause", times=3).heuristic
        assert narrow.id != broad.id
        assert narrow.metadata["related"][broad.id] == {"is": "more", "probability": 0.95}
        assert alma.storage.require(Heuristic, broad.id, SHOP).occurrence_count == 3

    def test_a_success_of_the_opposite_weakens_a_rule_and_leaves_its_counts(self, alma: ALMA) -> None:
        alma.learning.strategies.judge = ScriptedJudge(opposite=[("cache the answers", "ask anew each time")])
        rule = learn(alma, strategy="cache the answers", times=3).heuristic
        learn(alma, "failure", strategy="ask anew each time")
        assert alma.storage.require(Heuristic, rule.id, SHOP).weight_against == 0
        learn(alma, strategy="ask anew each time", task=f"{FORM}.")
        weaker = alma.storage.require(Heuristic, rule.id, SHOP)
        assert weaker.weight_against == pytest.approx(0.95, abs=1e-3)
        assert weaker.confidence < rule.confidence
        assert (weaker.occurrence_count, weaker.success_count) == (3, 3)

    def test_a_strategy_joins_no_lesson_that_holds_its_opposite(self, alma: ALMA) -> None:
        alma.learning.strategies.judge = ScriptedJudge(
            same=[("log all errors", "write errors to the log"), ("write errors to the log", "keep errors out of it")],
            opposite=[("log all errors", "keep errors out of it")],
        )
        lessons = [
            learn(alma, strategy=each).lesson_id
            for each in ("log all errors", "write errors to the log", "keep errors out of it")
        ]
        assert lessons[0] == lessons[1] != lessons[2]

    def test_what_someone_said_is_not_the_same_is_taken_out_and_stays_out(self, alma: ALMA) -> None:
        alma.learning.strategies.judge = ScriptedJudge(same=[BACKOFF])
        for strategy in (BACKOFF[0], BACKOFF[1], BACKOFF[0], BACKOFF[0]):
            rule = learn(alma, strategy=strategy).heuristic
        moved = alma.learning.separate(rule.id, BACKOFF[1], "helena", "shop")
        (left,) = heuristics(alma)
        assert (left.occurrence_count, left.success_count, len(left.outcomes_for)) == (3, 3, 3)
        texts_of = learn(alma, strategy=BACKOFF[1])
        assert texts_of.lesson_id == alma.storage.require(Outcome, moved[0], SHOP).lesson_id != rule.id
        assert learn(alma, strategy=BACKOFF[1], task="Test the form for login").lesson_id != rule.id
        with pytest.raises(ValidationError, match="is the only strategy"):
            alma.learning.separate(rule.id, BACKOFF[0], "helena", "shop")

    def test_code_is_the_same_strategy_only_in_the_same_words(self, alma: ALMA) -> None:
        commands = ("find . -type f | xargs ls -l", "find . -exec ls -l {} +")
        judge = alma.learning.strategies.judge = ScriptedJudge(same=[commands])
        lessons = [learn(alma, strategy=each).lesson_id for each in (*commands, commands[0])]
        assert lessons[0] == lessons[2] != lessons[1]
        assert judge.asked == []

    def test_what_is_near_is_judged_sixteen_at_a_time_and_only_once(self, alma: ALMA) -> None:
        judge = alma.learning.strategies.judge = ScriptedJudge()
        for n in range(30):
            learn(alma, strategy=f"take way {n}")
        assert max(map(len, judge.asked)) <= 16
        asked = len(judge.asked)
        learn(alma, strategy="take way 3")
        assert len(judge.asked) == asked
        pairs = [pair for call in judge.asked for pair in call]
        assert len(pairs) == len(set(pairs))

    def test_similar_tasks_count_together_and_others_do_not(self, alma: ALMA) -> None:
        learn(alma, task="Test the login form")
        learn(alma, task="Test the login form validation")
        learn(alma, task="Deploy the API to staging")
        assert heuristics(alma) == []
        learn(alma, task="Test the form for login")
        (made,) = heuristics(alma)
        assert "login" in made.condition

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("always retry the request", "never retry the request"),
            ("caching", "batching"),
            ("use a timeout of 30 seconds", "use a timeout of 60 seconds"),
            ("run migrations before the deployment", "run migrations after the deployment"),
            ("enable the feature flag", "disable the feature flag"),
        ],
    )
    def test_different_strategies_do_not_count_together(self, alma: ALMA, one: str, other: str) -> None:
        learn(alma, strategy=one, times=2)
        learn(alma, strategy=other, times=2)
        assert heuristics(alma) == []
        learn(alma, strategy=one)
        assert [made.strategy for made in heuristics(alma)] == [one]

    def test_later_failures_bring_the_confidence_down(self, alma: ALMA) -> None:
        before = learn(alma, times=3).heuristic.confidence
        learn(alma, "failure", times=7)
        (made,) = heuristics(alma)
        assert before == pytest.approx(2.833 / 3.833, abs=1e-3)
        assert made.confidence == pytest.approx((0.3 * 2.929 + 1) / 4.929, abs=1e-3)
        assert (made.occurrence_count, made.success_count) == (10, 3)

    def test_a_heuristic_carries_the_ids_of_its_outcomes(self, alma: ALMA) -> None:
        won = [learn(alma).outcome.id for _ in range(3)]
        lost = learn(alma, "failure").outcome.id
        (made,) = heuristics(alma)
        assert list(made.outcomes_for) == won
        assert list(made.outcomes_against) == [lost]
        assert all(o.lesson_id == made.id for o in alma.storage.find(Outcome, SHOP))

    def test_a_rule_written_by_hand_is_strengthened_not_repeated(self, alma: ALMA) -> None:
        rule = Heuristic(id="mine", agent="helena", project_id="shop", condition=FORM, strategy=STEPS, confidence=0.9)
        alma.writer.save(rule)
        learn(alma, times=4)
        (made,) = heuristics(alma)
        assert made.id == "mine"
        assert made.occurrence_count == 4

    def test_the_opposite_of_what_is_well_known_is_held_back(self, alma: ALMA) -> None:
        alma.learning.strategies.judge = ScriptedJudge(
            same=[(FORM, *(f"{FORM} {number}" for number in range(10)))],
            opposite=[("always retry the request", "never retry the request")],
        )
        for number in range(10):
            learn(alma, strategy="always retry the request", task=f"{FORM} {number}")
        learned = learn(alma, strategy="never retry the request", times=3)
        assert learned.heuristic is None
        assert "says the opposite" in learned.notes[0]
        assert [made.strategy for made in heuristics(alma)] == ["always retry the request"]

    def test_the_agent_says_how_often_is_enough(self, open_alma: Open) -> None:
        alma = open_alma(agents={"helena": {"min_occurrences_for_heuristic": 5}})
        assert learn(alma, times=4).heuristic is None
        assert learn(alma).heuristic is not None

    def test_another_process_goes_on_where_the_first_stopped(self, open_alma: Open) -> None:
        one, other = open_alma(), open_alma()
        learn(one, times=2)
        learn(other, times=2)
        learn(one)
        (made,) = heuristics(other)
        assert made.occurrence_count == 5

    def test_a_lesson_that_someone_else_begins_at_the_same_moment_is_the_same(self, open_alma: Open) -> None:
        one, other = open_alma(), open_alma()
        index = Interrupted(one.retrieval.index, lambda: learn(other, task="Bake roll 0"))
        one.learning = LearningProtocol(one.storage, one.embedder, index)
        lesson = learn(one, task="Bake roll 1").outcome.lesson_id
        assert [outcome.lesson_id for outcome in one.storage.find(Outcome, SHOP)] == [lesson, lesson]

    def test_another_lesson_that_begins_at_the_same_moment_stays_another(self, open_alma: Open) -> None:
        one, other = open_alma(), open_alma()
        index = Interrupted(one.retrieval.index, lambda: learn(other, task="Bake roll 0", strategy="Let it cool"))
        one.learning = LearningProtocol(one.storage, one.embedder, index)
        learn(one, task="Bake roll 1")
        assert len({outcome.lesson_id for outcome in one.storage.find(Outcome, SHOP)}) == 2

    def test_threads_lose_no_evidence(self, alma: ALMA) -> None:
        learn(alma, times=3)
        threads = [threading.Thread(target=learn, args=(alma,), kwargs={"times": 5}) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (made,) = heuristics(alma)
        assert (made.occurrence_count, made.success_count) == (18, 18)


class TestAntiPatterns:
    def test_validated_failures_make_one_anti_pattern_that_says_why(self, alma: ALMA) -> None:
        learn(alma, "failure", "wait with sleep(5)", error_message="TimeoutError: the page was not ready", times=5)
        (made,) = anti_patterns(alma)
        assert made.pattern == "wait with sleep(5)"
        assert made.occurrence_count == 5
        assert "TimeoutError: the page was not ready" in (made.why_bad or "")
        assert "5 times" in (made.why_bad or "")
        assert heuristics(alma) == []

    def test_errors_that_differ_in_a_number_are_told_once(self, alma: ALMA) -> None:
        for seconds in (4, 5, 6):
            learn(alma, "failure", "wait with sleep(5)", error_message=f"no element after {seconds} s")
        learn(alma, "failure", "wait with sleep(5)", error_message="HTTP 503")
        (made,) = anti_patterns(alma)
        assert (made.why_bad or "").endswith(": no element after 6 s; HTTP 503")

    def test_two_failures_are_not_yet_a_warning(self, alma: ALMA) -> None:
        assert learn(alma, "failure", times=2).anti_pattern is None

    def test_the_alternative_is_what_succeeded_before(self, alma: ALMA) -> None:
        learn(alma, strategy="wait for the element", times=2)
        learn(alma, "failure", "sleep for five seconds", times=3)
        (made,) = anti_patterns(alma)
        assert made.better_alternative == "wait for the element"

    def test_the_alternative_may_be_found_later(self, alma: ALMA) -> None:
        learn(alma, "failure", "sleep for five seconds", times=3)
        assert anti_patterns(alma)[0].better_alternative is None
        learn(alma, strategy="wait for the element")
        assert anti_patterns(alma)[0].better_alternative == "wait for the element"

    def test_the_failing_strategy_in_other_words_is_not_an_alternative(self, alma: ALMA) -> None:
        alma.learning.strategies.judge = ScriptedJudge(same=[("sleep for five seconds", "wait 5 s")], probability=0.55)
        alma.learning.strategies.tuning = LessonTuning(same=0.5)
        learn(alma, strategy="sleep for five seconds", task="Test the login form of the shop")
        learn(alma, "failure", "wait 5 s", times=6)
        assert {each.better_alternative for each in anti_patterns(alma)} <= {None}

    def test_an_alternative_that_fails_itself_is_offered_no_longer(self, alma: ALMA) -> None:
        learn(alma, strategy="regular expressions")
        learn(alma, "failure", "split lines at commas", times=3, error_message="quoted commas")
        assert anti_patterns(alma)[0].better_alternative == "regular expressions"
        learn(alma, "failure", "regular expressions", times=6, error_message="nested quotes")
        assert {each.better_alternative for each in anti_patterns(alma)} == {None}
        learn(alma, strategy="use the csv module")
        assert {each.better_alternative for each in anti_patterns(alma)} == {"use the csv module"}

    def test_what_did_better_takes_the_place_of_an_alternative_that_fails(self, alma: ALMA) -> None:
        learn(alma, strategy="regular expressions")
        learn(alma, "failure", "split lines at commas", times=3)
        learn(alma, strategy="use the csv module", times=2)
        learn(alma, "failure", "regular expressions", times=6)
        assert {each.better_alternative for each in anti_patterns(alma)} == {"use the csv module"}

    def test_a_warning_is_withdrawn_when_the_strategy_works_by_now(self, alma: ALMA) -> None:
        learn(alma, "failure", times=3)
        learn(alma, times=5)
        assert anti_patterns(alma) == []
        assert len(heuristics(alma)) == 1

    def test_it_is_found_by_the_task(self, alma: ALMA) -> None:
        learn(alma, "failure", "wait with sleep(5)", times=3)
        assert "sleep(5)" in alma.retrieve(FORM, "helena").to_prompt()


class TestOutcomes:
    def test_a_rule_that_was_proven_stands_before_a_newer_one_that_was_hardly_tried(self, alma: ALMA) -> None:
        learn(alma, strategy="Add a composite index", times=18)
        learn(alma, "failure", strategy="Add a composite index", times=2)
        learn(alma, strategy="Rewrite the query as a join", times=3)
        first, second = alma.retrieve(FORM, "helena").heuristics
        assert (first.strategy, second.strategy) == ("Add a composite index", "Rewrite the query as a join")
        assert first.confidence_interval[0] > second.confidence_interval[0]

    def test_a_rule_tells_how_sure_it_is(self, alma: ALMA) -> None:
        few = learn(alma, times=3).heuristic
        many = learn(alma, times=10).heuristic
        low, high = many.confidence_interval
        assert few.confidence_interval[0] < low < many.confidence < high
        assert many.success_rate == 1.0
        assert learn(alma, "failure").heuristic.success_rate == pytest.approx(13 / 14)

    @pytest.mark.parametrize("word", ["success", "Success", " OK ", "Passed!", "worked.", "✅", "y", True, 1, 1.0])
    def test_words_for_success(self, alma: ALMA, word: Any) -> None:
        assert learn(alma, word).success is True

    @pytest.mark.parametrize("word", ["failure", "FAILED", "error", "timed_out", "not successful", "❌", False, 0, 0.0])
    def test_words_for_failure(self, alma: ALMA, word: Any) -> None:
        assert learn(alma, word).success is False

    @pytest.mark.parametrize("word", ["perhaps", "", None, 0.5, 7])
    def test_nonsense_is_refused_and_nothing_is_stored(self, alma: ALMA, word: Any) -> None:
        with pytest.raises(ValidationError, match="must be"):
            learn(alma, word)
        assert alma.storage.count(Outcome, SHOP) == 0

    def test_the_answer_is_true_and_has_the_outcomes_fields(self, alma: ALMA) -> None:
        learned = learn(alma, "failure", duration_ms=12, feedback="slow")
        assert learned
        assert (learned.duration_ms, learned.user_feedback) == (12, "slow")
        assert alma.storage.get(Outcome, learned.id, SHOP) == learned.outcome

    def test_a_strategy_is_required(self, alma: ALMA) -> None:
        with pytest.raises(ValidationError, match="strategy_used"):
            learn(alma, strategy="  ")


class TestScopes:
    def test_a_forbidden_domain_is_refused_and_audited(self, open_alma: Open) -> None:
        alma = open_alma(agents=AGENTS)
        with pytest.raises(ScopeViolationError, match="backend_logic"):
            learn(alma, task_type="backend_logic")
        assert alma.storage.count(Outcome, SHOP) == 0
        refusals = [each for each in alma.storage.find(AuditEvent, Scope.everywhere()) if not each.success]
        assert [(each.action, each.agent_id) for each in refusals] == [("learn", "helena")]

    def test_a_domain_that_is_not_listed_is_refused(self, open_alma: Open) -> None:
        with pytest.raises(ScopeViolationError, match="testing_strategies"):
            learn(open_alma(agents=AGENTS), task_type="cooking")

    def test_spelling_does_not_matter(self, open_alma: Open) -> None:
        assert learn(open_alma(agents=AGENTS), task_type="Testing Strategies")

    def test_a_text_about_a_forbidden_domain_is_refused(self, open_alma: Open) -> None:
        with pytest.raises(ScopeViolationError, match="database_queries"):
            learn(open_alma(agents=AGENTS), task="Make the database query of the orders faster")

    @pytest.mark.parametrize(
        ("forbidden", "task"),
        [("backend_logic", "Fix the back-end logic of orders"), ("back-end_logic", "Fix the backend logic of orders")],
    )
    def test_a_forbidden_domain_is_known_in_one_word_and_in_two(
        self, open_alma: Open, forbidden: str, task: str
    ) -> None:
        alma = open_alma(agents={"helena": {"cannot_learn": [forbidden]}})
        with pytest.raises(ScopeViolationError, match=f"is about {forbidden}"):
            alma.learn("helena", task, "success", "extract a function")

    def test_what_names_no_domain_is_allowed(self, open_alma: Open) -> None:
        assert learn(open_alma(agents=AGENTS))

    def test_an_agent_without_a_scope_learns_nothing_once_others_have_one(self, open_alma: Open) -> None:
        alma = open_alma(agents=AGENTS)
        with pytest.raises(ScopeViolationError, match="helena, victor"):
            alma.learn("mallory", FORM, "success", STEPS)

    def test_knowledge_obeys_the_same_scope(self, open_alma: Open) -> None:
        alma = open_alma(agents=AGENTS)
        alma.add_domain_knowledge("victor", "database_queries", "orders are indexed by day")
        with pytest.raises(ScopeViolationError):
            alma.add_domain_knowledge("helena", "database_queries", "orders are indexed by day")

    def test_scopes_hold_however_they_are_given(self, alma: ALMA) -> None:
        engine = alma.retrieval
        protocol = LearningProtocol(alma.storage, engine.embedder, engine.index)
        limited = MemoryScope("helena", ["testing"], ["backend_logic"], share_with=["victor"])
        given = ALMA(alma.storage, engine, protocol, {"helena": limited}, "shop")
        with pytest.raises(ScopeViolationError, match="backend_logic"):
            learn(given, task_type="backend_logic")
        learn(given, times=3, task_type="testing")
        given.scopes["victor"] = MemoryScope("victor", inherit_from=["Helena"])
        assert [each.agent for each in given.retrieve(FORM, "victor").heuristics] == ["helena"]
        given.scopes["victor"] = MemoryScope("victor")
        assert not given.retrieve(FORM, "victor").heuristics

    def test_sharing_needs_both_sides(self, open_alma: Open) -> None:
        for report_weights, expected in ((["victor"], 1), ([], 0)):
            alma = open_alma(agents={"helena": {"share_with": report_weights}, "victor": {"inherit_from": ["helena"]}})
            if report_weights:
                learn(alma, times=3)
            assert len(alma.retrieve(FORM, "victor").heuristics) == expected

    def test_an_agent_next_to_a_big_one_finds_its_own(self, alma: ALMA) -> None:
        for n in range(40):
            alma.learn("big", f"{FORM} number {n}", "success", f"plan {n}")
        learn(alma, times=3)
        assert [h.agent for h in alma.retrieve(FORM, "helena").heuristics] == ["helena"]


def test_old_evidence_counts_less() -> None:
    extractor = HeuristicExtractor(half_life_days=30)
    now = clock.now()
    outcomes = [
        Trial("id", success, now - timedelta(days=days), "task", {})
        for success, days in ((True, 300), (True, 300), (True, 300), (False, 0), (False, 0))
    ]
    assert extractor.belief(outcomes, now).mean < 0.3


def _two_years_later(alma: ALMA) -> None:
    """As if all that was learned so far had been learned two years ago."""
    passed = timedelta(days=720)
    for outcome in alma.storage.find(Outcome, alma.scope()):
        assert outcome.timestamp is not None
        alma.storage.save(outcome.replace(timestamp=outcome.timestamp - passed))
    for rule in alma.storage.find(Heuristic, alma.scope()):
        assert rule.last_validated is not None
        alma.storage.save(rule.replace(last_validated=rule.last_validated - passed))


def test_what_fails_by_now_is_warned_of_however_often_it_succeeded_long_ago(alma: ALMA) -> None:
    learn(alma, times=20)
    _two_years_later(alma)
    learned = learn(alma, "failure", times=3, error_message="deprecated")
    assert learned.heuristic.confidence < 0.5
    assert learned.anti_pattern.occurrence_count == 3


def test_what_fails_as_often_as_it_succeeds_is_not_warned_of(alma: ALMA) -> None:
    learn(alma, times=3)
    assert learn(alma, "failure", times=3, error_message="a hiccup").anti_pattern is None
    assert learn(alma, "failure", error_message="a hiccup").anti_pattern is not None


def test_what_succeeds_by_now_is_not_warned_of_for_what_failed_long_ago(alma: ALMA) -> None:
    learn(alma, "failure", times=10, error_message="not released yet")
    _two_years_later(alma)
    learn(alma, times=5)
    learned = learn(alma, "failure", error_message="a hiccup")
    assert learned.heuristic.confidence > 0.5
    assert learned.anti_pattern is None
    assert not alma.retrieve(FORM, "helena").anti_patterns

"""Heuristics and anti-patterns: the rule or warning that the outcomes of a lesson make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple

from alma.errors import ValidationError
from alma.lazy import lazy_regex
from alma.learning.burst_damping import report_weights
from alma.model.fields import JsonObject
from alma.model.learning import (
    EVIDENCE_HALF_LIFE_DAYS,
    VERIFIED_BY,
    AntiPattern,
    Belief,
    Heuristic,
    Outcome,
    Supported,
    anti_pattern_id,
    belief_in,
    kept,
    verified_weight,
)

EVIDENCE_READ = 100
"""How many of the newest outcomes of a lesson are read for each new one."""
SAME_STRATEGY = "same_strategy"
"""The metadata key of an outcome under which the probability is kept that its strategy is that of its lesson."""
# A rule is written with every outcome, and its last version is kept: more ids would make long lessons slow.
_OUTCOMES_NAMED = 100
_ERRORS_NAMED = 3
_LONGEST_ERROR = 300
_NUMBERED = lazy_regex(r"0x[0-9a-fA-F]+|\d+(?:[.,:]\d+)*")


class Trial(NamedTuple):
    """The fields of an outcome that count as evidence."""

    id: str
    success: bool
    timestamp: datetime | None
    task_description: str
    metadata: JsonObject

    @classmethod
    def of(cls, outcome: Outcome) -> Trial:
        return cls._make(_trial(outcome))


class DetailedTrial(NamedTuple):
    """The fields of an outcome from which the text of a rule or a warning is made."""

    id: str
    success: bool
    timestamp: datetime | None
    task_description: str
    metadata: JsonObject
    lesson_id: str | None
    task_type: str | None
    strategy_used: str | None
    error_message: str | None

    @classmethod
    def of(cls, outcome: Outcome) -> DetailedTrial:
        return cls._make(_detailed_trial(outcome))


_trial, _detailed_trial = attrgetter(*Trial._fields), attrgetter(*DetailedTrial._fields)
AnyTrial = Trial | DetailedTrial | Outcome


@dataclass(frozen=True, slots=True)
class LessonEvidence:
    """The outcomes of one lesson, oldest first.

    `outcome` is the newest, `detailed` are the newest ones with their texts, and `every` are all of them.
    """

    outcome: Outcome
    lesson_id: str
    detailed: Sequence[DetailedTrial]
    every: Sequence[Trial | DetailedTrial]

    @property
    def successes(self) -> Sequence[DetailedTrial]:
        return [trial for trial in self.detailed if trial.success]

    @property
    def failures(self) -> Sequence[DetailedTrial]:
        return [trial for trial in self.detailed if not trial.success]

    def ids(self, *, success: bool) -> list[str]:
        """The ids of all outcomes that succeeded, or failed."""
        return [trial.id for trial in self.every if trial.success is success]


class HeuristicExtractor:
    """Makes heuristics and anti-patterns from the evidence of a lesson, without a model."""

    def __init__(self, half_life_days: float = EVIDENCE_HALF_LIFE_DAYS) -> None:
        is_number = isinstance(half_life_days, int | float) and not isinstance(half_life_days, bool)
        if not is_number or not 0 < half_life_days < float("inf"):
            raise ValidationError("heuristics", "half_life_days", half_life_days, "must be a number above 0")
        self.half_life_days = float(half_life_days)

    # ------------------------------------------------------------------ heuristics

    def heuristic(self, evidence: LessonEvidence, belief: Belief, now: datetime) -> Heuristic:
        """The rule of a lesson, for the shortest of its tasks and in the wording that was used most."""
        outcome, won, lost = evidence.outcome, evidence.ids(success=True), evidence.ids(success=False)
        return Heuristic(
            id=evidence.lesson_id,
            agent=outcome.agent,
            project_id=outcome.project_id,
            condition=condition_of(evidence.detailed),
            strategy=wording(evidence.successes or evidence.detailed),
            confidence=belief.mean,
            occurrence_count=len(evidence.every),
            success_count=len(won),
            weight_for=belief.weight_for,
            weight_against=belief.weight_against,
            outcomes_for=_newest(won),
            outcomes_against=_newest(lost),
            last_validated=now,
            metadata=_task_type(outcome),
        )

    def strengthened(
        self, heuristic: Heuristic, outcome: Outcome, earlier: Iterable[Trial], now: datetime
    ) -> Heuristic:
        """The rule after one more outcome, which may weaken it; `earlier` are the newest outcomes before it."""
        before, after = self._repeated(outcome, earlier, now)
        belief = self.current_belief(heuristic, now).changed(before, after)
        ids = [outcome.id]
        changes = {
            **_of_belief(belief, now),
            "occurrence_count": heuristic.occurrence_count + 1,
            "success_count": heuristic.success_count + int(outcome.success),
            "outcomes_for": _newest(ids if outcome.success else [], heuristic.outcomes_for),
            "outcomes_against": _newest([] if outcome.success else ids, heuristic.outcomes_against),
        }
        # Changes of checked numbers are valid; checking them again for every outcome would take time.
        return Heuristic.trusted({**heuristic.values(), **changes})

    def opposed(
        self, rule: Heuristic, outcome: Outcome, earlier: Iterable[Trial], probability: float, now: datetime
    ) -> Heuristic:
        """The rule after a success of a strategy that says the opposite with this probability; its counts stay.

        `earlier` are the newest outcomes of that strategy, because repeated successes count less here as well.
        """
        before, after = self._repeated(outcome, earlier, now)
        known = self.current_belief(rule, now)
        added = probability * max(0.0, after.weight_for - before.weight_for)
        belief = Belief(known.weight_for, known.weight_against + added)
        return Heuristic.trusted({**rule.values(), **_of_belief(belief, now)})

    def _repeated(self, outcome: Outcome, earlier: Iterable[Trial], now: datetime) -> tuple[Belief, Belief]:
        """The belief from the outcomes on the same task, without and with the new one: repetitions count less."""
        similarity = [trial for trial in earlier if trial.task_description == outcome.task_description]
        together: list[AnyTrial] = [outcome, *similarity]
        return self.belief(similarity, now), self.belief(together[:EVIDENCE_READ], now)

    def current_belief(self, heuristic: Heuristic, now: datetime) -> Belief:
        """The current belief in a rule by its evidence; a hand-written rule counts by its own numbers."""
        return current_belief(heuristic, now, self.half_life_days)

    def belief(self, outcomes: Sequence[AnyTrial], now: datetime) -> Belief:
        """The belief from outcomes of one lesson; older ones and repetitions count less."""
        weight = {True: 0.0, False: 0.0}
        for outcome, share in zip(outcomes, report_weights(outcomes), strict=True):
            counted = share * _probability(outcome) * verified_weight((outcome.metadata or {}).get(VERIFIED_BY))
            weight[outcome.success] += counted * kept(outcome.timestamp, now, self.half_life_days)
        return Belief(weight[True], weight[False])

    # ------------------------------------------------------------------ anti-patterns

    def anti_pattern(self, evidence: LessonEvidence, alternative: str | None, now: datetime) -> AntiPattern:
        """The warning from the failures of a lesson."""
        outcome, lost = evidence.outcome, evidence.ids(success=False)
        return AntiPattern(
            id=anti_pattern_id(evidence.lesson_id),
            agent=outcome.agent,
            project_id=outcome.project_id,
            pattern=wording(evidence.failures),
            why_bad=why_bad(evidence, len(lost)),
            better_alternative=alternative,
            occurrence_count=len(lost),
            outcomes_for=_newest(lost),
            last_seen=now,
            metadata=_task_type(outcome),
        )

    def seen_again(
        self, known: AntiPattern, evidence: LessonEvidence, alternative: str | None, now: datetime
    ) -> AntiPattern:
        """The warning after one more failure."""
        return known.replace(
            why_bad=why_bad(evidence, known.occurrence_count + 1),
            better_alternative=alternative or known.better_alternative,
            occurrence_count=known.occurrence_count + 1,
            outcomes_for=_newest([evidence.outcome.id], known.outcomes_for),
            last_seen=now,
        )


def condition_of(trials: Iterable[DetailedTrial]) -> str:
    """The representative of similar tasks: the shortest, which is the most general."""
    return most_general(trials).task_description


def most_general(trials: Iterable[DetailedTrial]) -> DetailedTrial:
    """The outcome on the shortest task."""
    return min(trials, key=lambda trial: (len(trial.task_description), trial.task_description))


def why_bad(evidence: LessonEvidence, failed: int) -> str:
    """Why a strategy is bad: how often it failed at which tasks, and the most frequent errors."""
    failures = evidence.failures
    times = "once" if failed == 1 else f"{failed} times"
    texts = [" ".join(each.error_message.split())[:_LONGEST_ERROR] for each in failures if each.error_message]
    # Errors that differ in numbers only are one error, of which the last text is shown.
    errors = Counter(map(_without_numbers, texts))
    shown = {_without_numbers(text): (i, text) for i, text in enumerate(texts)}
    common = sorted(errors, key=lambda error: (-errors[error], -shown[error][0]))[:_ERRORS_NAMED]
    ended = f": {'; '.join(shown[error][1] for error in common)}" if common else ""
    return f"failed {times} at tasks like “{condition_of(failures)}”{ended}"


def _without_numbers(error: str) -> str:
    return _NUMBERED.sub("#", error)


def best_lesson(trials: Mapping[str, Sequence[Trial]], belief: Callable[[Sequence[Trial]], Belief]) -> str | None:
    """The lesson that did best, if any succeeded more often than not."""
    worth = {key: belief(group) for key, group in trials.items() if any(trial.success for trial in group)}
    best = max(worth, key=lambda key: worth[key].lower_bound, default=None)
    return None if best is None or worth[best].mean <= 0.5 else best


def wording(trials: Sequence[DetailedTrial]) -> str:
    """The most frequent wording of the strategy; of several, the last."""
    texts = [trial.strategy_used or trial.task_description for trial in trials]
    counted = Counter(texts)
    return max(reversed(texts), key=lambda text: counted[text])


def current_belief(rule: Supported, now: datetime, half_life_days: float) -> Belief:
    """The current belief in a rule by its evidence; a hand-written rule counts by its own numbers."""
    known = belief_in(rule) or _claimed(rule)
    return known.aged(rule.last_validated, now, half_life_days)


def _claimed(rule: Supported) -> Belief:
    """The evidence that a hand-written rule claims: its counts, or two outcomes that give its confidence."""
    if rule.occurrence_count:
        won = min(rule.success_count, rule.occurrence_count)
        return Belief(float(won), float(rule.occurrence_count - won))
    return Belief(2 * rule.confidence, 2 * (1 - rule.confidence))


def _probability(trial: AnyTrial) -> float:
    """The probability that an outcome tried the strategy of its lesson; 1 where the words are the same."""
    known = trial.metadata.get(SAME_STRATEGY) if trial.metadata else None
    return float(known) if isinstance(known, float) and 0 <= known <= 1 else 1.0


def _of_belief(belief: Belief, now: datetime) -> dict[str, Any]:
    """The fields of a rule that follow from its belief."""
    return {
        "confidence": belief.mean,
        "weight_for": belief.weight_for,
        "weight_against": belief.weight_against,
        "last_validated": now,
    }


def _newest(ids: Sequence[str], older: Sequence[str] = ()) -> tuple[str, ...]:
    """The ids of the newest outcomes, newest last."""
    return (*older, *ids)[-_OUTCOMES_NAMED:]


def _task_type(outcome: Outcome) -> dict[str, object]:
    return {"task_type": outcome.task_type} if outcome.task_type else {}

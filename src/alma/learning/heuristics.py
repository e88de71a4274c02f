"""Heuristics and anti-patterns: what the outcomes of a lesson say, put into words and numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from alma.errors import ValidationError
from alma.learning.burst_damping import shares
from alma.model.fields import JsonObject
from alma.model.learning import (
    EVIDENCE_HALF_LIFE_DAYS,
    AntiPattern,
    Belief,
    Heuristic,
    Outcome,
    Supported,
    anti_pattern_id,
    belief_in,
    kept,
)

# With every outcome the rule is written anew, and its last version kept: more would make long lessons slow.
_OUTCOMES_NAMED = 100
_ERRORS_NAMED = 3
_LONGEST_ERROR = 300
_NUMBERED = re.compile(r"0x[0-9a-fA-F]+|\d+(?:[.,:]\d+)*")


EVIDENCE_READ = 100
SAME_STRATEGY = "same_strategy"
"""Under this name an outcome's metadata keeps how likely it is that its strategy is that of its lesson."""


class Seen(NamedTuple):
    """What counts of an outcome when it is compared with others."""

    id: str
    lesson_id: str | None
    task_type: str | None
    task_description: str
    strategy_used: str | None
    success: bool
    error_message: str | None
    timestamp: datetime | None
    metadata: JsonObject

    @classmethod
    def of(cls, outcome: Outcome) -> Seen:
        return cls._make(getattr(outcome, name) for name in cls._fields)


class Tried(NamedTuple):
    """What counts of an outcome as long as nothing is made of it."""

    success: bool
    timestamp: datetime | None
    task_description: str
    metadata: JsonObject

    @classmethod
    def of(cls, outcome: Outcome) -> Tried:
        return cls._make(getattr(outcome, name) for name in cls._fields)


class Counted(NamedTuple):
    """What counts of an outcome when something is made of its lesson."""

    id: str
    success: bool
    timestamp: datetime | None
    task_description: str
    metadata: JsonObject

    @classmethod
    def of(cls, outcome: Outcome) -> Counted:
        return cls._make(getattr(outcome, name) for name in cls._fields)


def probability_of(counted: Seen | Tried | Counted | Outcome) -> float:
    """How likely it is that an outcome is of the strategy of its lesson; 1 where the words are the same."""
    known = counted.metadata.get(SAME_STRATEGY) if counted.metadata else None
    return float(known) if isinstance(known, float) and 0 <= known <= 1 else 1.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """The outcomes of one lesson, oldest first, and the newest of them as it was told.

    `outcomes` are the newest, with their texts, and `every` are all of them.
    """

    newest: Outcome
    lesson_id: str
    outcomes: Sequence[Seen]
    every: Sequence[Seen | Counted]
    successes: Sequence[Seen] = field(init=False)
    failures: Sequence[Seen] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "successes", [outcome for outcome in self.outcomes if outcome.success])
        object.__setattr__(self, "failures", [outcome for outcome in self.outcomes if not outcome.success])

    @property
    def won(self) -> Sequence[Seen | Counted]:
        return [outcome for outcome in self.every if outcome.success]

    @property
    def lost(self) -> Sequence[Seen | Counted]:
        return [outcome for outcome in self.every if not outcome.success]


class HeuristicExtractor:
    """Turns the evidence of a lesson into a heuristic or an anti-pattern; arithmetic, no model."""

    def __init__(self, half_life_days: float = EVIDENCE_HALF_LIFE_DAYS) -> None:
        is_number = isinstance(half_life_days, int | float) and not isinstance(half_life_days, bool)
        if not is_number or not 0 < half_life_days < float("inf"):
            raise ValidationError("heuristics", "half_life_days", half_life_days, "must be a number above 0")
        self.half_life_days = float(half_life_days)

    # ------------------------------------------------------------------ heuristics

    def heuristic(self, evidence: Evidence, belief: Belief, now: datetime) -> Heuristic:
        """The rule that a lesson's outcomes make, under the shortest of its tasks and the words that were used last."""
        newest, won, lost = evidence.newest, evidence.won, evidence.lost
        return Heuristic(
            id=evidence.lesson_id,
            agent=newest.agent,
            project_id=newest.project_id,
            condition=condition_of(evidence.outcomes),
            strategy=wording(evidence.successes or evidence.outcomes),
            confidence=belief.mean,
            occurrence_count=len(evidence.every),
            success_count=len(won),
            weight_for=belief.weight_for,
            weight_against=belief.weight_against,
            outcomes_for=_named(won),
            outcomes_against=_named(lost),
            last_validated=now,
            metadata=_of_type(newest),
        )

    def strengthened(
        self, heuristic: Heuristic, outcome: Outcome, earlier: Iterable[Tried], now: datetime
    ) -> Heuristic:
        """The rule after one more outcome; `earlier` are the newest that its lesson has already."""
        # Of the earlier ones, those on the same task count less beside the new one.
        alike = [tried for tried in earlier if tried.task_description == outcome.task_description]
        with_it: list[Tried | Outcome] = [outcome, *alike]
        before, after = self.belief(alike, now), self.belief(with_it[:EVIDENCE_READ], now)
        belief = self.current_belief(heuristic, now).changed(before, after)
        won, lost = ((outcome,), ()) if outcome.success else ((), (outcome,))
        changes = {
            "confidence": belief.mean,
            "weight_for": belief.weight_for,
            "weight_against": belief.weight_against,
            "occurrence_count": heuristic.occurrence_count + 1,
            "success_count": heuristic.success_count + int(outcome.success),
            "outcomes_for": _named(won, heuristic.outcomes_for),
            "outcomes_against": _named(lost, heuristic.outcomes_against),
            "last_validated": now,
        }
        # It is done for every outcome, and what is made of checked numbers need not be checked again.
        return Heuristic.trusted({**heuristic.values(), **changes})

    def opposed(
        self, rule: Heuristic, outcome: Outcome, earlier: Sequence[Tried], probability: float, now: datetime
    ) -> Heuristic:
        """The rule after a success of what is, as likely as given, its opposite; what was seen of it stays as it is.

        `earlier` are the newest outcomes of the lesson of the opposite: repetitions of one count less here, too.
        """
        alike = [tried for tried in earlier if tried.task_description == outcome.task_description]
        with_it: list[Tried | Outcome] = [outcome, *alike]
        added = self.belief(with_it[:EVIDENCE_READ], now).weight_for - self.belief(alike, now).weight_for
        known = self.current_belief(rule, now)
        belief = Belief(known.weight_for, known.weight_against + probability * max(0.0, added))
        changes = {
            "confidence": belief.mean,
            "weight_for": belief.weight_for,
            "weight_against": belief.weight_against,
            "last_validated": now,
        }
        return Heuristic.trusted({**rule.values(), **changes})

    def current_belief(self, heuristic: Heuristic, now: datetime) -> Belief:
        """What the evidence of a rule says today; what was written by hand counts by its own numbers."""
        return current_belief(heuristic, now, self.half_life_days)

    def belief(self, outcomes: Sequence[Seen | Tried | Counted | Outcome], now: datetime) -> Belief:
        """The belief that these outcomes of one lesson give, the older ones and repetitions counting less."""
        weight = {True: 0.0, False: 0.0}
        for outcome, share in zip(outcomes, shares(outcomes), strict=True):
            counted = share * probability_of(outcome)
            weight[outcome.success] += counted * kept(outcome.timestamp, now, self.half_life_days)
        return Belief(weight[True], weight[False])

    # ------------------------------------------------------------------ anti-patterns

    def anti_pattern(self, evidence: Evidence, alternative: str | None, now: datetime) -> AntiPattern:
        """What the failures of a lesson warn of."""
        newest, lost = evidence.newest, evidence.lost
        return AntiPattern(
            id=anti_pattern_id(evidence.lesson_id),
            agent=newest.agent,
            project_id=newest.project_id,
            pattern=wording(evidence.failures),
            why_bad=why_bad(evidence, len(lost)),
            better_alternative=alternative,
            occurrence_count=len(lost),
            outcomes_for=_named(lost),
            last_seen=now,
            metadata=_of_type(newest),
        )

    def seen_again(
        self, known: AntiPattern, evidence: Evidence, outcome: Outcome, alternative: str | None, now: datetime
    ) -> AntiPattern:
        """The warning after one more failure."""
        return known.replace(
            why_bad=why_bad(evidence, known.occurrence_count + 1),
            better_alternative=alternative or known.better_alternative,
            occurrence_count=known.occurrence_count + 1,
            outcomes_for=_named((outcome,), known.outcomes_for),
            last_seen=now,
        )


def condition_of(outcomes: Iterable[Seen]) -> str:
    """The task that stands for similar ones: the shortest, being the most general."""
    return most_general(outcomes).task_description


def most_general(outcomes: Iterable[Seen]) -> Seen:
    """The outcome on the shortest task."""
    return min(outcomes, key=lambda seen: (len(seen.task_description), seen.task_description))


def why_bad(evidence: Evidence, failed: int) -> str:
    """Why a strategy is bad: how often it failed at what, and the errors it ended in."""
    failures = evidence.failures
    times = "once" if failed == 1 else f"{failed} times"
    texts = [" ".join(o.error_message.split())[:_LONGEST_ERROR] for o in failures if o.error_message]
    # What differs in a number alone is one error, and the last one of it is shown.
    errors = Counter(map(_without_numbers, texts))
    shown = {_without_numbers(text): (i, text) for i, text in enumerate(texts)}
    # The newest of equally common ones first: it is what one meets today.
    common = sorted(errors, key=lambda error: (-errors[error], -shown[error][0]))[:_ERRORS_NAMED]
    ended = f": {'; '.join(shown[error][1] for error in common)}" if common else ""
    return f"failed {times} at tasks like “{condition_of(failures)}”{ended}"


def _without_numbers(error: str) -> str:
    return _NUMBERED.sub("#", error)


def best_lesson(
    tried: Mapping[str, Sequence[Seen | Tried]], belief: Callable[[Sequence[Seen | Tried]], Belief]
) -> str | None:
    """The lesson that did best, if any succeeded more often than not."""
    worth = {key: belief(group) for key, group in tried.items() if any(outcome.success for outcome in group)}
    best = max(worth, key=lambda key: worth[key].lower_bound, default=None)
    return None if best is None or worth[best].mean <= 0.5 else best


def wording(outcomes: Sequence[Seen]) -> str:
    """How the strategy was put most often, and last."""
    texts = [outcome.strategy_used or outcome.task_description for outcome in outcomes]
    counted = Counter(texts)
    return max(reversed(texts), key=lambda text: counted[text])


def current_belief(rule: Supported, now: datetime, half_life_days: float) -> Belief:
    """What the evidence of a rule says today; what was written by hand counts by its own numbers."""
    known = belief_in(rule) or _stated(rule)
    return known.aged(rule.last_validated, now, half_life_days)


def _stated(heuristic: Supported) -> Belief:
    """The evidence that a hand-written rule claims: its counts, or a little of what its confidence says."""
    if heuristic.occurrence_count:
        won = min(heuristic.success_count, heuristic.occurrence_count)
        return Belief(float(won), float(heuristic.occurrence_count - won))
    return Belief(2 * heuristic.confidence, 2 * (1 - heuristic.confidence))


def _named(newer: Sequence[Seen | Counted | Outcome], older: Sequence[str] = ()) -> tuple[str, ...]:
    """The ids of the newest outcomes, newest last."""
    if not newer and isinstance(older, tuple) and len(older) <= _OUTCOMES_NAMED:
        # The same ones, so that nobody has to compare them to know.
        return older
    return (*older, *(outcome.id for outcome in newer))[-_OUTCOMES_NAMED:]


def _of_type(outcome: Outcome) -> dict[str, object]:
    return {"task_type": outcome.task_type} if outcome.task_type else {}

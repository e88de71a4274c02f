"""What agents learn: heuristics, outcomes, preferences, knowledge and anti-patterns; and the confidence in a
heuristic."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from alma.clock import moment_of, new_id, now
from alma.errors import ValidationError
from alma.model.common import Count, Floats, Label, Name, Prose, Share, Strings, Text, Weight
from alma.model.fields import JsonObject, following
from alma.model.record import Index, Record, record

SESSION_LENGTH = timedelta(hours=1)
"""Reports of one agent within this time of the first one count as one session."""


@record(
    "heuristic",
    table="heuristics",
    postgres_table="alma_heuristics",
    text=("condition", "strategy"),
    embeds=True,
    versioned=True,
    indexes=(Index("idx_heuristics_project_agent", ("project_id", "agent")),),
)
class Heuristic(Record):
    """A learned rule: when `condition`, do `strategy`.

    The counts are numbers of outcomes; the weights are the same evidence, decayed with age. A handwritten heuristic has
    no weights, and the confidence that its author gave. `outcomes_for` and `outcomes_against` are the ids of the newest
    hundred outcomes for and against it; `ALMA.evidence` lists all, which have its id as their `lesson_id`.
    """

    id: Name = field(default_factory=new_id)
    agent: Name
    project_id: Name
    condition: Text
    strategy: Text
    confidence: Share = 0.0
    occurrence_count: Count = 0
    success_count: Count = 0
    weight_for: Weight | None = None
    weight_against: Weight | None = None
    outcomes_for: Strings = ()
    outcomes_against: Strings = ()
    last_validated: datetime | None = None
    created_at: datetime | None = field(default_factory=now)
    metadata: JsonObject = field(default_factory=dict)
    embedding: Floats | None = None

    @property
    def success_rate(self) -> float:
        """The share of successes among all outcomes, without decay; 0 without outcomes."""
        return self.success_count / self.occurrence_count if self.occurrence_count else 0.0

    @property
    def record_of_success(self) -> str:
        """How often it worked, in words, and whether all outcomes were reported within an hour."""
        when = " within an hour" if self.in_one_session else ""
        return f"worked {self.success_count} of {self.occurrence_count} times{when}"

    @property
    def in_one_session(self) -> bool:
        """Whether all known outcomes were reported within an hour."""
        moments = [moment_of(outcome) for outcome in (*self.outcomes_for, *self.outcomes_against)]
        if moments and self.occurrence_count > len(moments):
            moments.append(self.created_at)
        known = [moment for moment in moments if moment is not None]
        return bool(known) and len(known) == len(moments) and max(known) - min(known) <= SESSION_LENGTH

    @property
    def confidence_interval(self) -> tuple[float, float]:
        """The 90 % credible interval of the success rate when it was last validated. Ranking uses the lower bound of
        today, when the evidence has decayed further. A handwritten heuristic has only its confidence.
        """
        belief = belief_in(self)
        return (self.confidence, self.confidence) if belief is None else belief.interval


@record(
    "outcome",
    table="outcomes",
    postgres_table="alma_outcomes",
    text=("task_description", "strategy_used", "error_message", "user_feedback"),
    embedded=("task_description",),
    embeds=True,
    versioned=True,
    indexes=(
        # SQLite reads the newest outcomes of a lesson from this covering index. PostgreSQL deduplicates index entries,
        # so a shorter index on project and agent is much smaller there.
        Index(
            "idx_outcomes_project_agent",
            ("project_id", "agent", "lesson_id", "timestamp DESC", "id", "success"),
            only="sqlite",
        ),
        Index("idx_outcomes_project_agent", ("project_id", "agent"), only="postgresql"),
        Index("idx_outcomes_lesson", ("project_id", "agent", "lesson_id", "timestamp DESC"), only="postgresql"),
        Index("idx_outcomes_task_type", ("project_id", "agent", "task_type"), where="task_type IS NOT NULL"),
        Index("idx_outcomes_timestamp", ("project_id", "timestamp")),
    ),
)
class Outcome(Record):
    """The result of a task and the strategy that was used; `lesson_id` is the lesson that it is evidence for.

    Its vector is that of the task alone, because outcomes are compared by task.
    """

    id: Name = field(default_factory=new_id)
    agent: Name
    project_id: Name
    task_type: Label | None = None
    task_description: Text
    success: bool = False
    strategy_used: Prose | None = None
    lesson_id: Name | None = None
    duration_ms: Count | None = None
    error_message: Prose | None = None
    user_feedback: Prose | None = None
    timestamp: datetime | None = field(default_factory=now)
    metadata: JsonObject = field(default_factory=dict)
    embedding: Floats | None = None


PROFILE_CATEGORY = "profile"
"""The category of facts about a user, as opposed to wishes."""


@record(
    "user_preference",
    table="preferences",
    postgres_table="alma_preferences",
    text=("preference", "category"),
    embeds=True,
    versioned=True,
    indexes=(Index("idx_preferences_user", ("user_id",)),),
)
class UserPreference(Record):
    """How a user wants things done."""

    id: Name = field(default_factory=new_id)
    user_id: Name
    category: Label | None = None
    preference: Text
    source: Prose | None = None
    confidence: Share = 1.0
    timestamp: datetime | None = field(default_factory=now)
    metadata: JsonObject = field(default_factory=dict)
    embedding: Floats | None = None


@record(
    "domain_knowledge",
    table="domain_knowledge",
    postgres_table="alma_domain_knowledge",
    text=("fact", "domain"),
    embeds=True,
    versioned=True,
    indexes=(Index("idx_domain_knowledge_project_agent", ("project_id", "agent")),),
)
class DomainKnowledge(Record):
    """A fact about a domain, as opposed to a strategy."""

    id: Name = field(default_factory=new_id)
    agent: Name
    project_id: Name
    domain: Label | None = None
    fact: Text
    source: Prose | None = None
    confidence: Share = 1.0
    last_verified: datetime | None = field(default_factory=now)
    metadata: JsonObject = field(default_factory=dict)
    embedding: Floats | None = None


@record(
    "anti_pattern",
    table="anti_patterns",
    postgres_table="alma_anti_patterns",
    text=("pattern", "why_bad", "better_alternative"),
    embeds=True,
    versioned=True,
    indexes=(Index("idx_anti_patterns_project_agent", ("project_id", "agent")),),
)
class AntiPattern(Record):
    """What not to do, why, and what to do instead."""

    id: Name = field(default_factory=new_id)
    agent: Name
    project_id: Name
    pattern: Text
    why_bad: Prose | None = None
    better_alternative: Prose | None = None
    occurrence_count: Count = 1
    outcomes_for: Strings = ()
    last_seen: datetime | None = following("created_at", default_factory=now)
    created_at: datetime | None = field(default_factory=now)
    metadata: JsonObject = field(default_factory=dict)
    embedding: Floats | None = None


@lru_cache(maxsize=4096)
def anti_pattern_id(lesson_id: str) -> str:
    """The id of the anti-pattern that a lesson becomes when its strategy fails."""
    return hashlib.sha256(f"anti_pattern\x1f{lesson_id}".encode()).hexdigest()[:32]


EVIDENCE_HALF_LIFE_DAYS = 180.0
"""The default half-life of evidence."""

_PRIOR = 1.0
_CERTAINTY = 0.9
_SECONDS_PER_DAY = 86_400
_SLICES = 128


class Belief(NamedTuple):
    """A Beta posterior over the success rate: evidence for and against, plus one of each as the prior.

    Evidence loses half of its weight with every half-life.
    """

    weight_for: float = 0.0
    weight_against: float = 0.0

    @property
    def mean(self) -> float:
        """The expected success rate."""
        return self._alpha / (self._alpha + self._beta)

    @property
    def interval(self) -> tuple[float, float]:
        """The 90 % credible interval of the success rate."""
        return self._quantile((1 - _CERTAINTY) / 2), self._quantile((1 + _CERTAINTY) / 2)

    @property
    def lower_bound(self) -> float:
        """The lower limit of the credible interval."""
        return self._quantile((1 - _CERTAINTY) / 2)

    @property
    def evidence(self) -> float:
        """The total weight of the evidence."""
        return self.weight_for + self.weight_against

    def changed(self, before: Belief, after: Belief) -> Belief:
        """The belief after a part of its evidence has changed."""
        won, lost = (known + new - old for known, old, new in zip(self, before, after, strict=True))
        return Belief(max(0.0, won), max(0.0, lost))

    def aged(self, since: datetime | None, now: datetime, half_life_days: float) -> Belief:
        """The belief when time has passed since the evidence was weighed."""
        share = kept(since, now, half_life_days)
        return Belief(self.weight_for * share, self.weight_against * share)

    @property
    def _alpha(self) -> float:
        return self.weight_for + _PRIOR

    @property
    def _beta(self) -> float:
        return self.weight_against + _PRIOR

    def _quantile(self, probability: float) -> float:
        # Rounded to hundredths of an outcome, so that results can be cached.
        return _beta_quantile(round(self._alpha, 2), round(self._beta, 2), probability)


def kept(since: datetime | None, now: datetime, half_life_days: float) -> float:
    """The share of its weight that evidence has kept since it was weighed."""
    if since is None or now <= since:
        return 1.0
    return float(0.5 ** ((now - since).total_seconds() / _SECONDS_PER_DAY / half_life_days))


class Supported(Protocol):
    """The fields of a heuristic with its evidence."""

    @property
    def confidence(self) -> float: ...
    @property
    def occurrence_count(self) -> int: ...
    @property
    def success_count(self) -> int: ...
    @property
    def weight_for(self) -> float | None: ...
    @property
    def weight_against(self) -> float | None: ...
    @property
    def last_validated(self) -> datetime | None: ...


def belief_in(heuristic: Supported) -> Belief | None:
    """The belief from a heuristic's evidence; None for a handwritten one."""
    if heuristic.weight_for is None or heuristic.weight_against is None:
        return None
    return Belief(heuristic.weight_for, heuristic.weight_against)


def belief_today(heuristic: Supported, now: datetime, half_life_days: float) -> Belief | None:
    """The belief in a heuristic with its evidence decayed to now."""
    known = belief_in(heuristic)
    return None if known is None else known.aged(heuristic.last_validated, now, half_life_days)


@lru_cache(maxsize=4096)
def _beta_quantile(alpha: float, beta: float, probability: float) -> float:
    """The quantile of the Beta distribution, by numeric integration over the range with any weight."""
    mean = alpha / (alpha + beta)
    reach = 8 * math.sqrt(mean * (1 - mean) / (alpha + beta + 1))
    low, high = max(0.0, mean - reach), min(1.0, mean + reach)
    width = (high - low) / _SLICES
    middles = [low + (i + 0.5) * width for i in range(_SLICES)]
    logarithms = [(alpha - 1) * math.log(x) + (beta - 1) * math.log1p(-x) for x in middles]
    # Scaled so that the highest density is one, which avoids underflow with thousands of outcomes.
    highest = max(logarithms)
    masses = [math.exp(each - highest) for each in logarithms]
    wanted = probability * math.fsum(masses)
    for x, mass in zip(middles, masses, strict=True):
        if wanted <= mass:
            return x + (wanted / mass - 0.5) * width
        wanted -= mass
    return high


VERIFIED_BY = "verified_by"
"""The key in an outcome's metadata for what verified it."""

VERIFIED_WEIGHTS: dict[str, float] = {"tests": 1.5, "human": 1.5, "tool": 1.25, "self-report": 1.0}
"""How much an outcome counts by what verified it; one that does not say counts as a self-report."""


def checked_verified_by(given: object) -> str | None:
    """What verified an outcome, if it is known."""
    if given is None or (isinstance(given, str) and given in VERIFIED_WEIGHTS):
        return given
    raise ValidationError("learn", VERIFIED_BY, given, f"must be one of {', '.join(VERIFIED_WEIGHTS)}")


def verified_weight(verified_by: object) -> float:
    """The weight of an outcome that this verified."""
    return VERIFIED_WEIGHTS.get(verified_by, 1.0) if isinstance(verified_by, str) else 1.0


SIGNAL = "signal"
"""The key in an outcome's metadata for how a host observed it, where it was not reported."""

DEMOTED = "benefit"
"""The key in a lesson's metadata for its demotion and its numbers, or when that was undone."""

IS_DEMOTED = "demoted"
"""The key below it that is true for a lesson that is demoted."""


def demotion_of(record: object) -> Mapping[str, Any] | None:
    """The numbers that a lesson was demoted for; None for one that is in use."""
    numbers = getattr(record, "metadata", {}).get(DEMOTED)
    return numbers if isinstance(numbers, Mapping) and numbers.get(IS_DEMOTED) is True else None

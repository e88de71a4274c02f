"""What an agent learns: heuristics, outcomes, user preferences, domain knowledge and anti-patterns."""

from __future__ import annotations

import hashlib
from dataclasses import field
from datetime import datetime, timedelta
from functools import lru_cache

from alma.clock import moment_of, new_id, now
from alma.model.belief import belief_in
from alma.model.common import Count, Floats, Label, Name, Prose, Share, Strings, Text, Weight
from alma.model.field_spec import following
from alma.model.fields import JsonObject
from alma.model.record import Index, Record, record

SESSION_LENGTH = timedelta(hours=1)
"""What one agent reports within this time of its first report is one session."""


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
    """A rule that was learned: when `condition`, do `strategy`.

    The counts are what was seen; the weights are the same evidence, of which the older counts less. A heuristic that
    was written by hand has no weights, and its confidence is what its author says. `outcomes_for` and
    `outcomes_against` are the ids of the newest hundred outcomes that speak for it and against it; all of them have its
    id as their `lesson_id`, and `ALMA.evidence` names them.
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
        """The share of what was seen that succeeded, all of it counting the same; 0 where nothing was seen."""
        return self.success_count / self.occurrence_count if self.occurrence_count else 0.0

    @property
    def record_of_success(self) -> str:
        """How often it worked, in words, and whether all of that was reported within an hour."""
        when = " within an hour" if self.in_one_session else ""
        return f"worked {self.success_count} of {self.occurrence_count} times{when}"

    @property
    def in_one_session(self) -> bool:
        """Whether all that was seen was reported within an hour, as far as the outcomes that it names tell."""
        moments = [moment_of(outcome) for outcome in (*self.outcomes_for, *self.outcomes_against)]
        if moments and self.occurrence_count > len(moments):
            moments.append(self.created_at)
        known = [moment for moment in moments if moment is not None]
        return bool(known) and len(known) == len(moments) and max(known) - min(known) <= SESSION_LENGTH

    @property
    def confidence_interval(self) -> tuple[float, float]:
        """Between which the share of successes lies, nine times in ten, as of when it was last validated.

        Ranking uses the lower limit of today, when the evidence counts less. Of a heuristic that was written by hand
        nothing is known but its confidence.
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
        # SQLite reads how the newest outcomes of a lesson went from the index alone. PostgreSQL keeps equal entries
        # together, so that there an index of project and agent is far smaller than one of more.
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
    """What happened when a task was tried, and with which strategy; `lesson_id` is the lesson it is evidence for.

    Its vector is that of the task alone: outcomes are compared by what was to be done.
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
"""The category of what is true of a user, as opposed to what they wish."""


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

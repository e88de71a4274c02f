"""The policy of forgetting: why a memory of any kind is forgotten."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from alma.errors import ValidationError
from alma.learning.decay import Decay, ExponentialDecay, NoDecay
from alma.model.kinds import kind_named
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory, ProjectPattern
from alma.model.query import And, Compare, Missing, Or, Predicate
from alma.model.record import Record, spec_of
from alma.model.scope import Scope, checked_scope

PINNED = "pinned"
"""A tag of a general memory, or a key of a lesson's metadata that is true: it is never forgotten."""

INSTRUCTIONS = ("instruction", "standing_instruction")
DEFAULT_DECAY_RATE = 0.1
IMPORTANT = 0.9
_UNTESTED_VALUE = 0.5
_FEW_OCCURRENCES = 3
_SECONDS_PER_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class KindFields:
    """The fields of a kind from which the age and the value of a memory are computed."""

    cls: type[Record]
    used: str
    created: str
    value: Callable[[Any], float]
    confidence: str | None = None

    def last_used(self, record: Record) -> datetime | None:
        """When the memory was last validated, verified, used or created."""
        moments = (getattr(record, self.used), getattr(record, self.created))
        return max((moment for moment in moments if moment is not None), default=None)

    def age_days(self, record: Record, now: datetime) -> float:
        """The days since then; 0 for a memory without any timestamp."""
        seen = self.last_used(record)
        return 0.0 if seen is None else max(0.0, (now - seen).total_seconds() / _SECONDS_PER_DAY)

    def unused_since(self, moment: datetime) -> Predicate:
        """The predicate of memories that were last used before then."""
        created = And() if self.created == self.used else Or(Missing(self.created), Compare(self.created, "lt", moment))
        unseen = And(Missing(self.used), Compare(self.created, "lt", moment)) if self.created != self.used else Or()
        return Or(And(Compare(self.used, "lt", moment), created), unseen)

    def created_since(self, moment: datetime) -> Predicate:
        """The predicate of memories that were created since then."""
        return Compare(self.created, "ge", moment)

    def strength(self, record: Record, decay: Decay, now: datetime) -> float:
        """The value of the memory after decay."""
        age = self.age_days(record, now) * getattr(record, "decay_rate", DEFAULT_DECAY_RATE) / DEFAULT_DECAY_RATE
        return self.value(record) * decay.strength(age)


def _heuristic_value(record: Heuristic) -> float:
    return _UNTESTED_VALUE if is_untested(record) else record.confidence


def _anti_pattern_value(record: AntiPattern) -> float:
    return 1.0 - 0.5 / (1 + record.occurrence_count)


KIND_FIELDS: tuple[KindFields, ...] = (
    KindFields(Heuristic, "last_validated", "created_at", _heuristic_value, "confidence"),
    KindFields(AntiPattern, "last_seen", "created_at", _anti_pattern_value),
    KindFields(DomainKnowledge, "last_verified", "last_verified", lambda each: each.confidence, "confidence"),
    KindFields(UserPreference, "timestamp", "timestamp", lambda each: each.confidence, "confidence"),
    KindFields(Outcome, "timestamp", "timestamp", lambda _: 0.4),
    KindFields(Memory, "last_accessed_at", "created_at", lambda each: each.importance_score),
    KindFields(ProjectPattern, "last_used_at", "created_at", lambda each: each.success_rate),
)


def is_pinned(record: Any) -> bool:
    """Whether a memory is never forgotten: pinned, an instruction, or of the highest importance."""
    if isinstance(record, Memory):
        standing = record.memory_type in INSTRUCTIONS or record.importance_score >= IMPORTANT
        return standing or PINNED in record.tags or record.context_json.get(PINNED) is True
    return getattr(record, "metadata", {}).get(PINNED) is True


def is_untested(record: Any) -> bool:
    """Whether a rule has too few occurrences for its confidence to count."""
    return isinstance(record, Heuristic) and record.occurrence_count < _FEW_OCCURRENCES


def is_young(record: Any, fields: KindFields, now: datetime, grace: timedelta) -> bool:
    """Whether the memory was created within the grace period."""
    created = getattr(record, fields.created)
    return created is not None and created > now - grace


def fits(cls: type[Record], scope: Scope) -> bool:
    """Whether a kind has all the fields that the scope names; otherwise no record of it is inside."""
    checked_scope(cls.spec.kind, scope)
    names = ("user_id", "project_id", "session_id", "agent")
    return all(name in cls.spec.by_name for name in names if getattr(scope, name) is not None)


NOTHING = Or()
"""The predicate that no memory fulfils."""


class PruneReason(StrEnum):
    """Why a memory is forgotten."""

    EXPIRED = "expired"
    OLD = "old"
    STALE = "stale"
    LOW_CONFIDENCE = "low_confidence"
    DECAYED = "decayed"
    SPACE = "space"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A reason to forget a memory, and the rule in words."""

    reason: PruneReason
    rule: str


def _usual_ages() -> dict[str, float]:
    lessons = ("heuristic", "domain_knowledge", "anti_pattern", "memory", "project_pattern")
    return {"outcome": 90.0, **dict.fromkeys(lessons, 365.0)}


@dataclass(frozen=True, slots=True)
class PrunePolicy:
    """What is forgotten, for each kind: "heuristic", "outcome", "memory" and so on, or the class itself.

    * `stale_after_days`: memories that were not validated, verified or used for this time; outcomes by their age.
    * `min_confidence`: memories with less confidence, once tried a few times or after the grace period.
    * `min_strength`: memories with a lower value after `decay`; None switches it off.
    * `expired`: memories whose time to live is over.
    * `ttl_days`: the time to live of a whole kind, even if its memories are used.
    * `max_memories`, `max_bytes`: above these limits, the memories of least value are forgotten.

    Pinned memories, instructions and those of the highest importance are kept unless their own time to live is over.
    User preferences do not become stale. Within `grace_days` of its creation, a memory is not stale, decayed or of low
    confidence.
    """

    stale_after_days: Mapping[Any, float] = field(default_factory=_usual_ages)
    min_confidence: Mapping[Any, float] = field(default_factory=lambda: {"heuristic": 0.3})
    decay: Decay = field(default_factory=lambda: ExponentialDecay(90.0))
    min_strength: float | None = None
    expired: bool = True
    ttl_days: Mapping[Any, float] = field(default_factory=dict)
    max_memories: int | None = None
    max_bytes: int | None = None
    grace_days: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "stale_after_days", _by_kind("stale_after_days", self.stale_after_days, math.inf))
        object.__setattr__(self, "ttl_days", _by_kind("ttl_days", self.ttl_days, math.inf))
        object.__setattr__(self, "min_confidence", _by_kind("min_confidence", self.min_confidence, 1.0))
        if not isinstance(self.decay, Decay):
            raise ValidationError("policy", "decay", self.decay, "must be a Decay, for example ExponentialDecay()")
        if self.min_strength is not None:
            _number("min_strength", self.min_strength, 1.0)
        for name in ("max_memories", "max_bytes"):
            limit = getattr(self, name)
            if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
                raise ValidationError("policy", name, limit, "must be a whole number of at least 0")
        _number("grace_days", self.grace_days, math.inf)

    @classmethod
    def of_forget(cls, older_than_days: float, below_confidence: float) -> PrunePolicy:
        """The documented `forget`: outcomes older than that, and heuristics trusted less than that."""
        return cls(
            stale_after_days={"outcome": _number("older_than_days", older_than_days, math.inf)},
            min_confidence={"heuristic": _number("below_confidence", below_confidence, 1.0)},
            expired=False,
            # An explicit call also means memories that were created a moment ago.
            grace_days=0.0,
        )

    def without_decay(self) -> PrunePolicy:
        """The same policy for memories that do not decay."""
        return replace(self, decay=NoDecay(), min_strength=None)

    @property
    def grace(self) -> timedelta:
        return timedelta(days=self.grace_days)

    def candidates(self, fields: KindFields, now: datetime) -> Predicate:
        """The predicate of all memories of a kind that could be forgotten, and few others."""
        parts = [self.past_ttl(fields, now), self.stale(fields, now), self.below_confidence(fields)]
        if self.min_strength is not None:
            parts.append(fields.unused_since(_before(now, self.grace_days)))
        return Or(*(part for part in parts if part != NOTHING))

    def past_ttl(self, fields: KindFields, now: datetime) -> Predicate:
        """The predicate of memories past their own time to live or that of their kind."""
        kind = fields.cls.spec.kind
        parts: list[Predicate] = []
        if self.expired and "expires_at" in fields.cls.spec.by_name:
            parts.append(Compare("expires_at", "le", now))
        if kind in self.ttl_days:
            parts.append(Compare(fields.created, "lt", _before(now, self.ttl_days[kind])))
        return Or(*parts)

    def stale(self, fields: KindFields, now: datetime) -> Predicate:
        """The predicate of memories that were not used for too long."""
        limit = self.stale_after_days.get(fields.cls.spec.kind)
        return NOTHING if limit is None else fields.unused_since(_before(now, limit))

    def below_confidence(self, fields: KindFields) -> Predicate:
        """The predicate of memories with too little confidence."""
        limit = self.min_confidence.get(fields.cls.spec.kind)
        return NOTHING if limit is None or fields.confidence is None else Compare(fields.confidence, "lt", limit)

    def verdict(self, record: Record, fields: KindFields, now: datetime) -> Verdict | None:
        """Why this memory is forgotten, or None."""
        if self.expired and (end := getattr(record, "expires_at", None)) is not None and end <= now:
            return Verdict(PruneReason.EXPIRED, "its time to live is over")
        if is_pinned(record):
            return None
        return (
            self._of_kind(record, fields, now)
            or self._of_age(record, fields, now)
            or self._of_confidence(record, fields, now)
            or self._of_strength(record, fields, now)
        )

    def _of_kind(self, record: Record, fields: KindFields, now: datetime) -> Verdict | None:
        limit, created = self.ttl_days.get(record.spec.kind), getattr(record, fields.created)
        if limit is None or created is None or created >= _before(now, limit):
            return None
        return Verdict(PruneReason.EXPIRED, f"made more than {limit:g} days ago, its kind's time to live")

    def _of_age(self, record: Record, fields: KindFields, now: datetime) -> Verdict | None:
        limit = self.stale_after_days.get(record.spec.kind)
        seen = fields.last_used(record)
        if limit is None or seen is None or seen >= _before(now, limit):
            return None
        if isinstance(record, Outcome):
            return Verdict(PruneReason.OLD, f"older than {limit:g} days")
        return Verdict(PruneReason.STALE, f"not validated or used for more than {limit:g} days")

    def _of_confidence(self, record: Record, fields: KindFields, now: datetime) -> Verdict | None:
        limit = self.min_confidence.get(record.spec.kind)
        if limit is None or fields.confidence is None or getattr(record, fields.confidence) >= limit:
            return None
        untried = is_untested(record) if record.spec.kind == "heuristic" else True
        if untried and is_young(record, fields, now, self.grace):
            return None
        return Verdict(PruneReason.LOW_CONFIDENCE, f"confidence below {limit:g}")

    def _of_strength(self, record: Record, fields: KindFields, now: datetime) -> Verdict | None:
        if self.min_strength is None or is_young(record, fields, now, self.grace):
            return None
        if fields.strength(record, self.decay, now) >= self.min_strength:
            return None
        return Verdict(PruneReason.DECAYED, f"worth less than {self.min_strength:g} after decay")


def checked_policy(subject: str, policy: object) -> PrunePolicy:
    """The policy, if it is one; otherwise a ValidationError."""
    if not isinstance(policy, PrunePolicy):
        raise ValidationError(subject, "policy", policy, "must be a PrunePolicy")
    return policy


def _before(now: datetime, days: float) -> datetime:
    """This number of days earlier, or the earliest moment."""
    try:
        return now - timedelta(days=days)
    except OverflowError:
        return datetime.min.replace(year=2, tzinfo=now.tzinfo)


def _by_kind(name: str, given: Any, most: float) -> dict[str, float]:
    if not isinstance(given, Mapping):
        raise ValidationError("policy", name, given, "must be a number for each kind, as {'heuristic': 0.3}")
    return {_kind(kind): _number(name, value, most) for kind, value in given.items()}


def _kind(kind: Any) -> str:
    return (spec_of(kind) if isinstance(kind, type) else kind_named(kind).spec).kind


def _number(name: str, value: Any, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        limits = "must be a number of at least 0" if most == math.inf else f"must be a number from 0 to {most:g}"
        raise ValidationError("policy", name, value, limits)
    try:
        return float(value)
    except OverflowError:
        return math.inf

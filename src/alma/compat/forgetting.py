"""Forgetting as in alma-memory 0.4: its policies, results and calls, by project instead of by scope.

`prune` of a project follows the limits of the policy under their earlier names; `prune` of a scope follows the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from alma.clock import now
from alma.compat.decay import ConfidenceDecayer as ConfidenceDecayer
from alma.compat.decay import DecayFunction as DecayFunction
from alma.compat.decay import DecayResult as DecayResult
from alma.compat.decay import ExponentialDecay as ExponentialDecay
from alma.compat.decay import LinearDecay as LinearDecay
from alma.compat.decay import NoDecay as NoDecay
from alma.compat.decay import StepDecay as StepDecay
from alma.learning import policy as policies
from alma.learning import pruning
from alma.learning.policy import KindFields, Verdict, is_pinned
from alma.learning.pruning import MOST_OUTCOMES as MOST_OUTCOMES
from alma.learning.pruning import ForgettingTrigger as ForgettingTrigger
from alma.learning.pruning import Forgotten as Forgotten
from alma.learning.pruning import Pruned as Pruned
from alma.memory.archive import Archive
from alma.model.governance import ANONYMOUS, Attribution
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome
from alma.model.query import EVERYTHING, Compare, Or, Predicate
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.storage.earlier import LESSONS, has_only_named_methods, store_of
from alma.storage.in_memory import InMemoryStorage

_EARLIER_REASONS = {"old": "stale", "space": "quota"}
_WELL_KNOWN = 20
_CANDIDATE_HALF_LIFE = ExponentialDecay(30.0)


class PruneReason(StrEnum):
    """Why a memory is forgotten: the earlier reasons, and those of a scope."""

    STALE = "stale"
    LOW_CONFIDENCE = "low_confidence"
    LOW_SUCCESS_RATE = "low_success"
    SUPERSEDED = "superseded"
    DUPLICATE = "duplicate"
    QUOTA_EXCEEDED = "quota"
    EXPIRED = "expired"
    OLD = "old"
    DECAYED = "decayed"
    SPACE = "space"


@dataclass
class PruneResult:
    """A memory that was forgotten, or in a dry run would be."""

    reason: PruneReason
    item_type: str
    item_id: str
    agent: str
    project_id: str
    details: str = ""


@dataclass
class PruneSummary:
    """How many memories were forgotten, or in a dry run would be."""

    outcomes_pruned: int = 0
    heuristics_pruned: int = 0
    knowledge_pruned: int = 0
    anti_patterns_pruned: int = 0
    total_pruned: int = 0
    pruned_items: list[PruneResult] = field(default_factory=list)
    execution_time_ms: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The counts."""
        return {name: value for name, value in asdict(self).items() if name != "pruned_items"}


@dataclass(frozen=True)
class _Rules(policies.PrunePolicy):
    """The rules of alma-memory: confidence first, then the rate of success, then age."""

    min_success_rate: float = 0.0
    min_occurrences: int = 0

    def candidates(self, fields: KindFields, now: datetime) -> Predicate:
        usual = policies.PrunePolicy.candidates(self, fields, now)
        tried = Compare("occurrence_count", "ge", self.min_occurrences)
        return Or(usual, tried) if fields.cls is Heuristic else usual

    def verdict(self, record: Record, fields: KindFields, now: datetime) -> Verdict | None:
        if is_pinned(record):
            return None
        return self._of_confidence(record, fields, now) or self._of_success(record) or self._of_age(record, fields, now)

    def _of_success(self, record: Record) -> Verdict | None:
        if not isinstance(record, Heuristic) or record.occurrence_count < self.min_occurrences:
            return None
        if record.success_rate >= self.min_success_rate:
            return None
        reason: Any = PruneReason.LOW_SUCCESS_RATE
        return Verdict(reason, f"success rate below {self.min_success_rate:g}")


@dataclass(frozen=True)
class PrunePolicy(policies.PrunePolicy):
    """The limits of alma-memory 0.4, which hold when a project is pruned, besides those of `alma.PrunePolicy`."""

    outcome_max_age_days: float = 90
    knowledge_max_age_days: float = 180
    anti_pattern_max_age_days: float = 365
    heuristic_min_confidence: float = 0.3
    knowledge_min_confidence: float = 0.5
    heuristic_min_success_rate: float = 0.4
    min_occurrences_before_prune: int = 5
    max_heuristics_per_agent: int = 100
    max_outcomes_per_agent: int = 500
    max_knowledge_per_agent: int = 200
    max_anti_patterns_per_agent: int = 50
    heuristic_stale_days: float = 60
    knowledge_stale_days: float = 90

    def rules(self, kind: type[Record]) -> policies.PrunePolicy:
        """The rules for the memories of one kind of one agent."""
        most = {
            Heuristic: self.max_heuristics_per_agent,
            Outcome: self.max_outcomes_per_agent,
            DomainKnowledge: self.max_knowledge_per_agent,
            AntiPattern: self.max_anti_patterns_per_agent,
        }
        return _Rules(
            stale_after_days={
                Outcome: self.outcome_max_age_days,
                Heuristic: self.heuristic_stale_days,
                DomainKnowledge: min(self.knowledge_stale_days, self.knowledge_max_age_days),
                AntiPattern: self.anti_pattern_max_age_days,
            },
            min_confidence={Heuristic: self.heuristic_min_confidence, DomainKnowledge: self.knowledge_min_confidence},
            expired=False,
            max_memories=most[kind],
            grace_days=0.0,
            min_success_rate=self.heuristic_min_success_rate,
            min_occurrences=self.min_occurrences_before_prune,
        )


class ForgettingEngine(pruning.ForgettingEngine):
    """Forgets in a project or, as `alma.ForgettingEngine`, in a scope.

    Memories of a store of ours are archived, so that they can be restored; of an object with the named methods of
    alma-memory alone, they are deleted.
    """

    def __init__(
        self, storage: Any, policy: policies.PrunePolicy | None = None, archive: Archive | None = None
    ) -> None:
        self._given = storage
        self._limits = policy if isinstance(policy, PrunePolicy) else PrunePolicy()
        super().__init__(InMemoryStorage() if has_only_named_methods(storage) else storage, policy, archive)

    def prune(
        self,
        scope: Any = None,
        policy: Any = None,
        dry_run: bool = False,
        by: Attribution = ANONYMOUS,
        kinds: Iterable[type[Record]] | type[Record] | None = None,
        progress: Callable[[int, int], None] | None = None,
        where: Predicate = EVERYTHING,
        *,
        project_id: str | None = None,
        agent: str | None = None,
    ) -> Any:
        """Forget in a project, of one agent or all, or in a scope; a dry run says what it would be."""
        if isinstance(scope, Scope):
            return super().prune(scope, policy, dry_run, by, kinds, progress, where)
        return self._prune_project(str(project_id or scope), agent or policy, dry_run)

    def _prune_project(self, project_id: str, agent: str | None, dry_run: bool) -> PruneSummary:
        started = time.perf_counter()
        store = store_of(self._given, project_id, agent)
        items: list[PruneResult] = []
        for cls in LESSONS:
            engine = pruning.ForgettingEngine(store, self._limits.rules(cls))
            for name in _agents(store, cls, project_id) if agent is None else [agent]:
                found = engine.prune(Scope(project_id=project_id, agent=name), dry_run=dry_run, kinds=cls)
                items += [_result(each, name, project_id) for each in found.items]
        if not dry_run and store is not self._given:
            self._delete(items, project_id, agent)
        return _summary(items, started)

    def _delete(self, items: Iterable[PruneResult], project_id: str, agent: str | None) -> None:
        if any(each.item_type == "outcome" and each.reason is PruneReason.STALE for each in items):
            oldest = now() - timedelta(days=self._limits.outcome_max_age_days)
            self._given.delete_outcomes_older_than(project_id=project_id, older_than=oldest, agent=agent)
        for each in items:
            if each.item_type != "outcome" or each.reason is not PruneReason.STALE:
                getattr(self._given, f"delete_{each.item_type}")(each.item_id)

    def compute_decay_score(
        self, item_age_days: float, confidence: float, success_rate: float, occurrence_count: int
    ) -> float:
        """What a memory is worth, from 0 to 1: its age and confidence count most."""
        recency = _CANDIDATE_HALF_LIFE.strength(item_age_days)
        known = min(occurrence_count / _WELL_KNOWN, 1.0)
        return 0.3 * recency + 0.3 * confidence + 0.2 * success_rate + 0.2 * known

    def identify_candidates(
        self, project_id: str, agent: str | None = None, max_candidates: int = 20
    ) -> list[dict[str, Any]]:
        """The heuristics that are worth least, those first."""
        store, scope = store_of(self._given, project_id, agent, [Heuristic]), Scope(project_id=project_id, agent=agent)
        found = [self._candidate(rule) for rule in store.iterate(Heuristic, scope)]
        return sorted(found, key=lambda each: float(each["score"]))[:max_candidates]

    def _candidate(self, rule: Heuristic) -> dict[str, Any]:
        used = rule.last_validated or rule.created_at
        age = (now() - used).days if used is not None else 0
        score = self.compute_decay_score(age, rule.confidence, rule.success_rate, rule.occurrence_count)
        return {
            "type": "heuristic",
            "id": rule.id,
            "agent": rule.agent,
            "score": score,
            "age_days": age,
            "confidence": rule.confidence,
            "summary": rule.strategy,
        }


def _agents(store: StorageBackend, cls: type[Record], project_id: str) -> list[str]:
    return sorted({name for (name,) in store.values(cls, ("agent",), Scope(project_id=project_id))})


def _result(each: Pruned, agent: str, project_id: str) -> PruneResult:
    reason = PruneReason(_EARLIER_REASONS.get(each.reason, each.reason))
    return PruneResult(reason, each.kind, each.id, agent, project_id, each.rule)


def _summary(items: list[PruneResult], started: float) -> PruneSummary:
    kinds = [each.item_type for each in items]
    milliseconds = int((time.perf_counter() - started) * 1000)
    return PruneSummary(
        kinds.count("outcome"),
        kinds.count("heuristic"),
        kinds.count("domain_knowledge"),
        kinds.count("anti_pattern"),
        len(items),
        items,
        milliseconds,
    )


def __getattr__(name: str) -> Any:
    # The jobs are a module of their own, which imports this one.
    from alma.compat import cleanup

    if name not in cleanup.NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(cleanup, name)

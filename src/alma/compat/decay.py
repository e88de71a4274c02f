"""Decay as in alma-memory 0.4: its names for the curves, and confidence that decays by project."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from alma.learning import confidence_decay, decay, pruning
from alma.learning.confidence_decay import DecayedConfidence
from alma.learning.policy import PrunePolicy
from alma.model.learning import DomainKnowledge, Heuristic
from alma.model.scope import Scope
from alma.storage.earlier import store_of

_KINDS = (Heuristic, DomainKnowledge)
_STEPS = ((30.0, 0.9), (60.0, 0.7), (90.0, 0.5), (180.0, 0.3))


class DecayFunction(decay.Decay):
    """A curve by its earlier names; a curve of a program's own defines `compute_decay` and `get_name`."""

    @abstractmethod
    def compute_decay(self, days_since_validation: float) -> float:
        """The value after this many days."""

    @abstractmethod
    def get_name(self) -> str:
        """A name for logs."""

    def strength(self, age_days: float) -> float:
        return self.compute_decay(age_days)


class _Computed(DecayFunction):
    def compute_decay(self, days_since_validation: float) -> float:
        return self.strength(days_since_validation)


class ExponentialDecay(decay.ExponentialDecay, _Computed):
    """Halves in every half-life."""

    def get_name(self) -> str:
        return f"exponential(half_life={self.half_life_days}d)"


class LinearDecay(decay.LinearDecay, _Computed):
    """Falls by the same amount every day down to the smallest value."""

    def __init__(self, decay_period_days: float = 90.0, min_value: float = 0.1) -> None:
        super().__init__(decay_period_days, min_value)

    def get_name(self) -> str:
        return f"linear(period={self.days}d, min={self.floor})"


class StepDecay(decay.StepDecay, _Computed):
    """The value of the last step that was passed."""

    def __init__(self, steps: Sequence[tuple[float, float]] | None = None) -> None:
        super().__init__(_STEPS if steps is None else steps)

    def get_name(self) -> str:
        return f"step({len(self.steps)} steps)"


class NoDecay(decay.NoDecay, _Computed):
    """Always 1."""

    def get_name(self) -> str:
        return "none"


@dataclass
class DecayResult:
    """How many memories decayed, and by how much on average."""

    items_processed: int = 0
    items_updated: int = 0
    items_pruned: int = 0
    avg_decay_applied: float = 0.0
    execution_time_ms: int = 0


class ConfidenceDecayer:
    """Lowers the confidence of a project's lessons with their age, and forgets those that fall below a limit."""

    def __init__(
        self, storage: Any, decay_function: decay.Decay | None = None, prune_below_confidence: float = 0.1
    ) -> None:
        self.storage = storage
        self.decay_function = ExponentialDecay() if decay_function is None else decay_function
        self.prune_below_confidence = prune_below_confidence

    def apply_decay(self, project_id: str, agent: str | None = None, dry_run: bool = False) -> DecayResult:
        """Set the confidences to their values of today; a dry run counts what would change."""
        started = time.perf_counter()
        store, scope = store_of(self.storage, project_id, agent, _KINDS), Scope(project_id=project_id, agent=agent)
        processed = sum(store.count(cls, scope) for cls in _KINDS)
        decayer = confidence_decay.ConfidenceDecayer(store, self.decay_function, floor=0.0)
        changed = decayer.apply(scope, dry_run).items
        pruned = [each for each in changed if each.after < self.prune_below_confidence]
        if not dry_run:
            self._store(store, scope, changed)
        return DecayResult(
            items_processed=processed,
            items_updated=len(changed) - len(pruned),
            items_pruned=len(pruned),
            avg_decay_applied=fmean(1 - each.after / each.before for each in changed) if changed else 0.0,
            execution_time_ms=int((time.perf_counter() - started) * 1000),
        )

    def _store(self, store: Any, scope: Scope, changed: Sequence[DecayedConfidence]) -> None:
        limit = self.prune_below_confidence
        if store is self.storage:
            limits = PrunePolicy({}, dict.fromkeys(_KINDS, limit), expired=False, grace_days=0.0)
            pruning.ForgettingEngine(store, limits).prune(scope, kinds=_KINDS)
            return
        for each in changed:
            if each.after < limit:
                getattr(self.storage, f"delete_{each.kind}")(each.id)
            elif each.kind == Heuristic.spec.kind:
                self.storage.update_heuristic_confidence(each.id, each.after)
            else:
                self.storage.update_knowledge_confidence(each.id, each.after)

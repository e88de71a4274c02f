"""Learning: from outcomes to heuristics and anti-patterns; each name is loaded when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

if TYPE_CHECKING:
    from alma.learning.confidence_decay import ConfidenceDecayer as ConfidenceDecayer
    from alma.learning.decay import ExponentialDecay as ExponentialDecay
    from alma.learning.decay import LinearDecay as LinearDecay
    from alma.learning.decay import NoDecay as NoDecay
    from alma.learning.decay import StepDecay as StepDecay
    from alma.learning.health import MemoryHealthMonitor as MemoryHealthMonitor
    from alma.learning.heuristics import HeuristicExtractor as HeuristicExtractor
    from alma.learning.lifecycle import MemoryLifecycle as MemoryLifecycle
    from alma.learning.policy import PrunePolicy as PrunePolicy
    from alma.learning.policy import PruneReason as PruneReason
    from alma.learning.protocols import Learned as Learned
    from alma.learning.protocols import LearningProtocol as LearningProtocol
    from alma.learning.pruning import ForgettingEngine as ForgettingEngine
    from alma.learning.pruning import PruneSummary as PruneSummary
    from alma.learning.recommendation import Recommendation as Recommendation
    from alma.learning.schedule import CleanupScheduler as CleanupScheduler
    from alma.learning.validation import ScopeValidator as ScopeValidator

_HOMES = {
    "alma.learning.decay": ("ExponentialDecay", "LinearDecay", "NoDecay", "StepDecay"),
    "alma.learning.confidence_decay": ("ConfidenceDecayer",),
    "alma.learning.pruning": ("ForgettingEngine", "PruneSummary"),
    "alma.learning.health": ("MemoryHealthMonitor",),
    "alma.learning.heuristics": ("HeuristicExtractor",),
    "alma.learning.lifecycle": ("MemoryLifecycle",),
    "alma.learning.policy": ("PrunePolicy", "PruneReason"),
    "alma.learning.protocols": ("Learned", "LearningProtocol"),
    "alma.learning.recommendation": ("Recommendation",),
    "alma.learning.schedule": ("CleanupScheduler",),
    "alma.learning.validation": (
        "ScopeValidator",
        "TaskTypeValidator",
        "ValidationReport",
        "ValidationResult",
        "validate_learning_request",
    ),
    # Names of alma-memory 0.4; those that are also names of ours are in `alma.learning.forgetting`.
    "alma.compat.cleanup": (
        "CleanupJob",
        "CleanupResult",
        "HealthAlert",
        "HealthThresholds",
        "MemoryHealthMetrics",
    ),
    "alma.compat.forgetting": ("DecayFunction", "DecayResult", "PruneResult"),
    "alma.compat.heuristic_extractor": ("ExtractionResult", "PatternCandidate", "extract_heuristics_from_outcome"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [*_HOME_OF]

__getattr__ = loader(__name__, _HOME_OF)

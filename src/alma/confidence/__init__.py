"""Confidence: estimate the success of a strategy before it is tried, from heuristics, outcomes and anti-patterns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from alma import clock
from alma.arguments import earlier, renamed
from alma.confidence.earlier_calls import EarlierCalls, by_wording
from alma.confidence.signals import (
    BAD,
    DOUBTFUL,
    GOOD,
    STRONG,
    ConfidenceSignal,
    OpportunitySignal,
    RecommendationLevel,
    RiskSignal,
)
from alma.core import ALMA, checked_memory
from alma.errors import ConfigurationError, ValidationError
from alma.learning.burst_damping import limited_by_hours
from alma.learning.recommendation import Assessed
from alma.model.common import same_name
from alma.model.learning import AntiPattern, Belief, Heuristic, belief_in
from alma.model.record import Record
from alma.model.slice import REPORTED_BY, MemorySlice
from alma.retrieval.router import checked_query as checked_context

__all__ = ["ConfidenceEngine", "ConfidenceSignal", "OpportunitySignal", "RecommendationLevel", "RiskSignal"]


_LOOKED_AT = 20
_TRIED, _WELL_TRIED = 3, 5
# The weight of a warning about the same strategy, in outcomes.
_WARNING_COUNTS_AS = 3.0
# The prior success rate, and the weight of outcomes on other tasks.
_UNKNOWN, _ON_OTHER_TASKS = 0.5, 0.25
# The severity of a risk for strategies that only another agent has tried.
_ONE_SOURCE = 0.3


@earlier(renamed({"similarity_threshold": None, "min_occurrences_for_confidence": None}))
class ConfidenceEngine(EarlierCalls):
    """Estimates the success of strategies, with the evidence; nothing is stored.

    Without a memory, only the wording of a strategy is looked at.
    """

    def __init__(self, alma: ALMA | None = None) -> None:
        self._alma = None if alma is None else checked_memory("confidence", alma)

    def assess_strategy(
        self, strategy: str, context: str, agent: str, heuristic: Heuristic | None = None
    ) -> ConfidenceSignal:
        """Estimate the success of a strategy in this context; a heuristic that is given counts as known."""
        return self._signals([strategy], context, agent, [] if heuristic is None else [heuristic])[0]

    def rank_strategies(self, strategies: Sequence[str], context: str, agent: str) -> list[ConfidenceSignal]:
        """Estimate the success of several strategies, the most promising first."""
        if isinstance(strategies, str) or not isinstance(strategies, Iterable) or not strategies:
            raise ValidationError("rank_strategies", "strategies", strategies, "must be a list of strategies")
        return sorted(self._signals(strategies, context, agent), key=lambda signal: -signal.confidence_score)

    def get_risks(self, context: str, agent: str) -> list[RiskSignal]:
        """The known risks in this context, the most severe first."""
        found = self._known(context, agent)
        return sorted((_warning(each, agent) for each in found.anti_patterns), key=lambda risk: -risk.severity)

    def get_opportunities(self, context: str, agent: str) -> list[OpportunitySignal]:
        """The known opportunities in this context, the strongest first."""
        found = self._known(context, agent)
        return sorted(self._chances(found.heuristics, agent), key=lambda chance: -chance.strength)

    def _signals(
        self, strategies: Sequence[str], context: str, agent: str, given: Sequence[Heuristic] = ()
    ) -> list[ConfidenceSignal]:
        unique = dict.fromkeys(map(_checked_strategy, strategies))
        if self._alma is None:
            return [self._by_wording(strategy, context, agent) for strategy in unique]
        found, near = self._known(context, agent), self._near(context, agent)
        found = found if not given else replace(found, heuristics=(*given, *found.heuristics))
        # Assessed one by one, so that the result for a strategy does not depend on the other strategies of the call.
        assessed = [self._memory.assess(context, agent, [strategy])[0] for strategy in unique]
        return [self._signal(each, context, agent, found, near) for each in assessed]

    def _by_wording(self, strategy: str, context: str, agent: str) -> ConfidenceSignal:
        draft = ConfidenceSignal.create(strategy, context, agent)
        draft.uncertainty, draft.reasoning = self._compute_uncertainty(0, 0.0), self._generate_reasoning(draft)
        by_wording(draft)
        return draft

    @property
    def _memory(self) -> ALMA:
        if self._alma is None:
            raise ConfigurationError("what is known is read from a memory; give it: ConfidenceEngine(alma)")
        return self._alma

    def _known(self, context: str, agent: str) -> MemorySlice:
        return self._memory.retrieve(checked_context(context), agent, top_k=_LOOKED_AT)

    def _near(self, context: str, agent: str) -> list[str]:
        """The strategies that were tried on similar tasks, as `recommend` finds them."""
        threshold = self._memory.learning.recommender.advisor.tuning.threshold
        ranked = self._memory.recommend(context, agent).ranked
        return [each.strategy for each in ranked if each.relevance is not None and each.relevance >= threshold]

    def _signal(
        self, assessed: Assessed, context: str, agent: str, found: MemorySlice, near: Sequence[str]
    ) -> ConfidenceSignal:
        rules = [each for each in found.heuristics if self._is_same(each.strategy, assessed.strategy)]
        warnings = [each for each in found.anti_patterns if self._is_same(each.pattern, assessed.strategy)]
        opposite = self._memory.learning.strategies.opposite
        opposites = [each for each in _works(found.heuristics) if opposite(each.strategy, assessed.strategy)]
        elsewhere = bool(assessed.tried) and not any(self._is_same(each, assessed.strategy) for each in near)
        strengths = [self._strength(each, agent) for each in opposites]
        score = _weighed(assessed, warnings, strengths, elsewhere=elsewhere)
        risks = (
            *(_warning(each, agent) for each in warnings),
            *map(_opposite, opposites, strengths),
            *_doubts(assessed, agent, elsewhere=elsewhere),
        )
        return ConfidenceSignal(
            strategy=assessed.strategy,
            context=context,
            agent=agent,
            confidence_score=score,
            recommendation=_level(score, assessed, [*warnings, *opposites], elsewhere=elsewhere),
            assessed=assessed,
            risks=risks,
            opportunities=tuple(self._chances(rules, agent)),
        )

    def _is_same(self, one: str, other: str) -> bool:
        return self._memory.learning.is_same_strategy(one, other)

    def _chances(self, rules: Iterable[Heuristic], agent: str) -> list[OpportunitySignal]:
        return [self._proven(each, agent) for each in _works(rules)]

    def _proven(self, known: Heuristic, agent: str) -> OpportunitySignal:
        text = f"“{known.strategy}” is known to work for “{known.condition}”{_source(known, agent)}"
        strength = self._strength(known, agent)
        return OpportunitySignal("proven_strategy", text, strength, (known.id, *known.outcomes_for))

    def _strength(self, known: Heuristic, agent: str) -> float:
        belief = self._memory.learning.extractor.current_belief(known, clock.now())
        if not _is_own(known.agent, agent):
            return limited_by_hours(belief, known.created_at, known.last_validated).lower_bound
        return known.confidence if belief_in(known) is None else belief.lower_bound


def _checked_strategy(strategy: object) -> str:
    if not isinstance(strategy, str) or not strategy.strip():
        raise ValidationError("confidence", "strategy", strategy, "must be a text that says what to do")
    return strategy


def _weighed(
    assessed: Assessed,
    warnings: Sequence[AntiPattern],
    opposed: Iterable[float],
    *,
    elsewhere: bool,
) -> float:
    """The expected success rate, lowered by warnings that are not derived from outcomes, and by opposite rules.

    `opposed` has the strength of each opposite rule.
    """
    expected = (
        _UNKNOWN + _ON_OTHER_TASKS * (assessed.expected - _UNKNOWN) if elsewhere else _limited_by_evidence(assessed)
    )
    total, weight = expected * (1 + assessed.evidence), 1.0 + assessed.evidence
    unseen = sum(not warning.outcomes_for for warning in warnings)
    weight += _WARNING_COUNTS_AS * unseen + _WARNING_COUNTS_AS * sum(opposed)
    return min(1.0, max(0.0, total / weight))


def _limited_by_evidence(assessed: Assessed) -> float:
    """The expected success rate, limited to what this much unanimous evidence allows."""
    if not assessed.tried:
        return assessed.expected
    surest = Belief(assessed.evidence, 0).mean
    return min(surest, max(1 - surest, assessed.expected))


def _level(score: float, assessed: Assessed, warnings: Sequence[Record], *, elsewhere: bool) -> RecommendationLevel:
    # One failure does not prove that something always fails.
    if (score < BAD and assessed.tried >= _TRIED) or (warnings and score < DOUBTFUL):
        return RecommendationLevel.AVOID
    if score < DOUBTFUL or (warnings and score < GOOD):
        return RecommendationLevel.CAUTION
    if score < GOOD or elsewhere:
        return RecommendationLevel.NEUTRAL
    if score >= STRONG and assessed.evidence >= _WELL_TRIED:
        return RecommendationLevel.STRONG_YES
    return RecommendationLevel.YES


def _doubts(assessed: Assessed, agent: str, *, elsewhere: bool) -> list[RiskSignal]:
    if not assessed.tried:
        return [RiskSignal("untested", "It was never tried here", 0.3)]
    if elsewhere:
        return [RiskSignal("untested", "It was never tried on a task like this", 0.3, assessed.outcome_ids)]
    failed = assessed.tried - assessed.succeeded
    found = []
    if failed > assessed.succeeded:
        said, share = f"It failed {failed} of {assessed.tried} times", failed / assessed.tried
        found.append(RiskSignal("fails_often", said, share, assessed.outcome_ids))
    if len(assessed.agents) == 1 and not _is_own(assessed.agents[0], agent):
        said = assessed.source[0].upper() + assessed.source[1:]
        found.append(RiskSignal("one_source", said, _ONE_SOURCE, assessed.outcome_ids))
    return found


def _warning(known: AntiPattern, agent: str) -> RiskSignal:
    why = f": {known.why_bad}" if known.why_bad else ""
    severity = known.occurrence_count / (known.occurrence_count + 1)
    said = f"“{known.pattern}” is to be avoided{why}{_source(known, agent)}"
    return RiskSignal("anti_pattern", said, severity, (known.id, *known.outcomes_for))


def _opposite(known: Heuristic, strength: float) -> RiskSignal:
    said = f"“{known.strategy}”, the opposite, is known to work for “{known.condition}”"
    return RiskSignal("opposite_works", said, strength, (known.id, *known.outcomes_for))


def _source(known: Heuristic | AntiPattern, agent: str) -> str:
    return "" if _is_own(known.agent, agent) else f" ({REPORTED_BY} {known.agent} alone)"


def _is_own(author: str, agent: str) -> bool:
    return same_name(author) == same_name(agent)


def _works(rules: Iterable[Heuristic]) -> list[Heuristic]:
    """The rules whose strategies clearly succeed more often than they fail."""
    return [each for each in rules if each.confidence >= GOOD]

"""Recommendation: which of the known strategies to use for a task, with the evidence."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from alma.errors import NotFoundError, ValidationError
from alma.lazy import lazy_module
from alma.learning.advice import Advisor, NearbyStrategy
from alma.learning.estimator import Estimate, Observations, StrategyEstimator, observations, with_exploration
from alma.learning.evidence import MOST_OUTCOMES, MOST_TASKS, Evidence, EvidenceSnapshot, read_evidence
from alma.learning.heuristics import HeuristicExtractor
from alma.learning.rule_evidence import Lesson, Rule, UnstoredEvidence, lessons_of, unstored_evidence, with_unstored
from alma.learning.strategies import StrategyComparer, shared_words, strategy_key
from alma.model.fields import Refused, check_text
from alma.model.learning import Belief
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage.base import StorageBackend

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy_module("numpy")

_NAMED = 5
# Opposites share most of their words; at most this number is judged.
_SHARED_BY_OPPOSITES, _OPPOSITES_JUDGED = 0.3, 3

Support = Literal["supported", "weak", "none"]


@dataclass(frozen=True, slots=True)
class Assessed:
    """The evidence about one strategy for a task.

    `expected` is the expected share of successes, with a 90 % interval between the bounds. `outcome_ids` are the
    outcomes on the most similar tasks, most similar first; `tried` and `succeeded` also count outcomes that only rules
    know. `evidence` is the weight of all of them, in which repetitions count less; `agents` reported it in so many
    `sessions` (an hour of one agent), 0 if that is unknown. `relevance` is that of the nearest task, where it was
    computed.
    """

    strategy: str
    expected: float
    lower_bound: float
    upper_bound: float
    tried: int
    succeeded: int
    outcome_ids: tuple[str, ...] = ()
    heuristic_ids: tuple[str, ...] = ()
    evidence: float = 0.0
    agents: tuple[str, ...] = ()
    sessions: int = 0
    relevance: float | None = None

    @property
    def source(self) -> str:
        """That a single agent reported it, and whether within an hour; otherwise empty."""
        if len(self.agents) != 1:
            return ""
        return f"reported by {self.agents[0]} alone{', within an hour' if self.sessions == 1 else ''}"


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The strategy to use for a task, or None, with a reason in either case.

    `ranked` has the evidence about every strategy in question, the recommended one first; without a recommendation,
    about the nearest ones. `support` is *supported*, *weak* if it depends on a single report or on less similar tasks
    or often fails, or *none*. `opposites` are strategies that say the opposite and mostly worked as well.
    """

    strategy: str | None
    ranked: tuple[Assessed, ...] = ()
    support: Support = "none"
    reason: str = ""
    opposites: tuple[Assessed, ...] = ()

    @property
    def best(self) -> Assessed:
        """The evidence about the recommended strategy."""
        if self.strategy is None:
            raise NotFoundError("strategy", self.reason)
        return self.ranked[0]

    def __str__(self) -> str:
        if self.strategy is None:
            return f"no recommendation: {self.reason}"
        best = self.best
        if not best.tried:
            return f"{self.strategy} (never tried, so there is no evidence for or against it)"
        against = "".join(
            f"; but “{each.strategy}” says the opposite and worked {each.succeeded} of {each.tried} times"
            for each in self.opposites
        )
        source = f", {best.source}" if best.source else ""
        return (
            f"{self.strategy} ({best.expected:.0%} expected, between {best.lower_bound:.0%} and "
            f"{best.upper_bound:.0%}; worked {best.succeeded} of {best.tried} times{source}{against})"
        )


class Recommender:
    """Recommends from the nearest tasks, or for a closed list of strategies from all tasks."""

    def __init__(
        self,
        storage: StorageBackend,
        strategies: StrategyComparer,
        extractor: HeuristicExtractor | None = None,
        *,
        advisor: Advisor,
        vector_of: Callable[[str], Vector | None],
    ) -> None:
        self.evidence_reader = EvidenceReader(storage)
        self.advisor = advisor
        self._strategies = strategies
        self._vector_of = vector_of
        self._extractor = extractor or HeuristicExtractor()
        self._lock = threading.Lock()

    def recommend(
        self, task: str, scope: Scope, among: Iterable[str] | None = None, *, explore: bool = False
    ) -> Recommendation:
        """The strategy that did best on the nearest tasks, or the one of `among` with the highest lower bound.

        With `explore`, less similar tasks count as well, and a little known strategy of `among` may be tried.
        """
        if among is None:
            return self._advised(task, scope, explore=explore)
        assessed, exploring = self.assess(task, scope, among)
        values = exploring if explore else [known.lower_bound for known in assessed]
        # Other spellings count for the first one.
        choices = _first_spellings([known.strategy for known in assessed])
        best = max(choices, key=lambda i: values[i])
        rest = sorted((assessed[i] for i in choices if i != best), key=lambda a: -a.expected)
        return self._recommended((assessed[best], *rest))

    def _advised(self, task: str, scope: Scope, *, explore: bool) -> Recommendation:
        """The strategy that did best on the nearest tasks."""
        tried = self.advisor.tried_near(
            task, self._vector_of(task), scope, _reader(scope), self._extractor.half_life_days
        )
        found = self.advisor.without_deleted(tried, scope)
        if tried and not found:
            return Recommendation(None, reason="what worked on tasks like this one was deleted or rejected")
        threshold = 0.0 if explore else self.advisor.tuning.threshold
        near = [each for each in found if each.relevance >= threshold]
        works = [each for each in near if each.succeeded]
        if not works:
            nearest = sorted(found, key=lambda each: -each.relevance)[:_NAMED]
            return Recommendation(None, tuple(map(_from_advice, nearest)), reason=_why_none(near, nearest, threshold))
        best = works[0]
        rest = [each for each in near if each is not best]
        return self._recommended(tuple(map(_from_advice, [best, *rest])))

    def _recommended(self, ranked: tuple[Assessed, ...]) -> Recommendation:
        best, tuning = ranked[0], self.advisor.tuning
        if not best.tried:
            return Recommendation(best.strategy, ranked, "none", "it was never tried")
        worked = f"it worked {best.succeeded} of {best.tried} times"
        if best.relevance is not None and best.relevance < tuning.threshold:
            return Recommendation(best.strategy, ranked, "none", f"{worked}, but on no task near this one")
        is_near = best.relevance is None or best.relevance >= tuning.near
        is_supported = is_near and best.evidence >= tuning.supported_by and best.expected >= tuning.supported_from
        support: Support = "supported" if is_supported else "weak"
        reason = f"{worked}{f', {best.source}' if best.source else ''}"
        return Recommendation(best.strategy, ranked, support, reason, self._opposites(ranked))

    def _opposites(self, ranked: Sequence[Assessed]) -> tuple[Assessed, ...]:
        """The next best strategies that say the opposite of the best and mostly worked as well."""
        best = ranked[0].strategy
        works = [each for each in ranked[1:] if 2 * each.succeeded > each.tried]
        near = [each for each in works if shared_words(each.strategy, best) >= _SHARED_BY_OPPOSITES][:_OPPOSITES_JUDGED]
        self._strategies.judge_all((each.strategy, best) for each in near)
        return tuple(each for each in near if self._strategies.opposite(each.strategy, best))

    def assess(self, task: str, scope: Scope, among: Iterable[str]) -> tuple[Sequence[Assessed], Sequence[float]]:
        """The evidence about each strategy for this task, and its value with exploration."""
        reader = _reader(scope)
        # The arrays grow with what was learned in between, so one thread at a time.
        with self._lock:
            evidence_reader = self.evidence_reader.read(scope)
            evidence, lessons = evidence_reader.evidence, evidence_reader.lessons
            strategies = _checked(among)
            known = self._strategies.matches(evidence.strategy_rows, strategies)
            similarity = evidence.texts.similarity(task)
            observed = observations(evidence, np.array(known, dtype=int), similarity, reader)
            found = evidence_reader.estimator.estimate(task, similarity, evidence, observed, len(strategies))
            named = self._named(lessons, strategies)
            tried = np.bincount(observed.strategies, minlength=len(strategies))
            weight = np.bincount(observed.strategies, weights=observed.weights, minlength=len(strategies))
            # Outcomes beyond the limits are stored, but not in the arrays.
            is_whole = len(evidence.ids) < MOST_OUTCOMES and len(evidence.task_rows) < MOST_TASKS
            half_life_days = self._extractor.half_life_days
            unstored = [
                unstored_evidence(named.get(i, ()), task, int(tried[i]), half_life_days, reader)
                if is_whole
                else UnstoredEvidence()
                for i in range(len(strategies))
            ]
            found = with_unstored(found, weight, unstored)
            if len(evidence.author_rows) > 1 or reader not in evidence.author_rows:
                found = _limited_by_evidence(
                    found, _tried_by_others_only(reader, evidence, observed, tried), weight, unstored
                )
            return [
                _assessed(i, strategy, evidence, observed, similarity, found, named.get(i, ()), unstored[i])
                for i, strategy in enumerate(strategies)
            ], with_exploration(found)

    def _named(self, lessons: Sequence[Lesson], strategies: Sequence[str]) -> dict[int, list[Lesson]]:
        """The lessons about each of the strategies, by its number."""
        named: dict[int, list[Lesson]] = {}
        numbers = self._strategies.matches([lesson.strategy for lesson in lessons], strategies)
        for lesson, number in zip(lessons, numbers, strict=True):
            if number >= 0:
                named.setdefault(number, []).append(lesson)
        return named


def _assessed(
    number: int,
    strategy: str,
    evidence: Evidence,
    observed: Observations,
    similarity: Any,
    found: Estimate,
    lessons: Sequence[Lesson],
    unstored: UnstoredEvidence,
) -> Assessed:
    own = np.flatnonzero(observed.strategies == number)
    similarity_of_own, results = similarity[observed.tasks[own]], observed.results[own]
    nearest_first = observed.outcomes[own[np.argsort(-similarity_of_own, kind="stable")]]
    expected, weights = float(found.means[number]), observed.weights[own]
    low, high = _belief(results, similarity_of_own * weights, unstored).interval
    authors = list(evidence.author_rows)
    reported_by = dict.fromkeys(authors[evidence.authors[i]] for i in observed.outcomes[own])
    if unstored.is_any:
        reported_by |= dict.fromkeys(lesson.agent for lesson in lessons)
    return Assessed(
        strategy=strategy,
        expected=expected,
        lower_bound=min(expected, low),
        upper_bound=max(expected, high),
        tried=len(own) + unstored.tried,
        succeeded=round(float(results.sum())) + unstored.succeeded,
        outcome_ids=tuple(evidence.ids[i] for i in nearest_first[:_NAMED]),
        heuristic_ids=tuple([lesson.id for lesson in lessons if isinstance(lesson, Rule)][:_NAMED]),
        evidence=float(weights.sum()) + unstored.belief.evidence,
        agents=tuple(reported_by),
        sessions=0 if unstored.is_any else len({evidence.sessions[i] for i in observed.outcomes[own]}),
    )


def _tried_by_others_only(reader: str | None, evidence: Evidence, observed: Observations, tried: Any) -> Any:
    """Which of the strategies were tried by other agents only."""
    authors = np.array(evidence.authors, dtype=int)[observed.outcomes]
    foreign = observed.strategies[authors != evidence.number_of(reader)]
    return (tried > 0) & (np.bincount(foreign, minlength=len(tried)) == tried)


def _limited_by_evidence(
    found: Estimate, is_foreign: Any, weight: Any, unstored: Sequence[UnstoredEvidence]
) -> Estimate:
    """The estimate, limited by the weight of the evidence for strategies that only other agents report."""
    surest = 1 - 1 / (weight + [each.belief.evidence for each in unstored] + 2)
    return replace(found, means=np.where(is_foreign, np.clip(found.means, 1 - surest, surest), found.means))


def _reader(scope: Scope) -> str | None:
    """The agent that asks: the first of those it reads from."""
    return scope.agent if scope.agent is None or isinstance(scope.agent, str) else scope.agent[0]


def _belief(results: Any, weights: Any, unstored: UnstoredEvidence) -> Belief:
    """The belief from a strategy's own outcomes, weighted by similarity, and from unstored evidence."""
    won, lost = unstored.belief
    return Belief(float(results @ weights) + won, float((1 - results) @ weights) + lost)


def _first_spellings(strategies: Sequence[str]) -> list[int]:
    """The numbers of the strategies, without other spellings of earlier ones."""
    first: dict[str, int] = {}
    for number, strategy in enumerate(strategies):
        first.setdefault(strategy_key(strategy), number)
    return list(first.values())


def _from_advice(found: NearbyStrategy) -> Assessed:
    low, high = found.belief.interval
    return Assessed(
        strategy=found.strategy,
        # Rounded, because evidence ages continuously and a repeated call should give the same answer.
        expected=round(found.belief.mean, 4),
        lower_bound=low,
        upper_bound=high,
        tried=found.tried,
        succeeded=found.succeeded,
        outcome_ids=found.outcome_ids,
        heuristic_ids=found.heuristic_ids,
        evidence=round(found.belief.evidence, 4),
        agents=found.agents,
        sessions=found.sessions,
        relevance=found.relevance,
    )


def _why_none(near: Sequence[NearbyStrategy], nearest: Sequence[NearbyStrategy], threshold: float) -> str:
    if near:
        failed, strategy = sum(each.tried for each in near), max(near, key=lambda each: each.relevance).strategy
        if failed == 1:
            return f"the only attempt at a task like this one failed: “{strategy}”"
        return f"all {failed} attempts at tasks like this one failed, the nearest with “{strategy}”"
    if not nearest:
        return "nothing was tried yet"
    said = f"its relevance is {nearest[0].relevance:.2f}, and {threshold:.2f} is the threshold"
    return f"nothing was tried on a task like this one; the nearest is “{nearest[0].strategy}”, but {said}"


def _checked(among: Iterable[str]) -> list[str]:
    if isinstance(among, str) or not isinstance(among, Iterable):
        raise ValidationError("recommend", "among", among, "must be a list of strategies")
    strategies = list(dict.fromkeys(map(_checked_strategy, among)))
    if not strategies:
        raise ValidationError("recommend", "among", among, "must name at least one strategy")
    return strategies


def _checked_strategy(strategy: Any) -> str:
    if not isinstance(strategy, str) or not strategy.strip():
        raise ValidationError("recommend", "among", strategy, "must hold texts that say what to do")
    try:
        return check_text(strategy)
    except Refused as refused:
        raise ValidationError("recommend", "among", strategy, str(refused)) from None


MOST_SCOPES = 256
MOST_TASKS_TOGETHER = 16_000
"""The number of agents, and of different tasks together, whose experience is cached: a task takes 16 KB."""


@dataclass(frozen=True)
class ScopeEvidence:
    """The outcomes, rules and warnings of a scope at one generation of the store."""

    generation: str
    snapshot: EvidenceSnapshot
    lessons: Sequence[Lesson]
    estimator: StrategyEstimator = field(default_factory=StrategyEstimator)

    @property
    def evidence(self) -> Evidence:
        return self.snapshot.evidence


class EvidenceReader:
    """Caches the evidence of scopes until something is committed; for one thread at a time."""

    def __init__(self, storage: StorageBackend) -> None:
        self._storage = storage
        self._held: OrderedDict[Scope, ScopeEvidence] = OrderedDict()

    def __len__(self) -> int:
        """How many scopes are cached."""
        return len(self._held)

    def read(self, scope: Scope) -> ScopeEvidence:
        """The evidence of the current generation of the store."""
        held = self._held.get(scope)
        if held is None or held.generation != self._storage.generation():
            held = self._held[scope] = self._read(scope, held)
            self._let_go()
        self._held.move_to_end(scope)
        return held

    def _read(self, scope: Scope, held: ScopeEvidence | None) -> ScopeEvidence:
        with self._storage.reading() as (_, generation):
            lessons = lessons_of(self._storage, scope)
            if held is None:
                return ScopeEvidence(generation, read_evidence(self._storage, scope), lessons)
            return ScopeEvidence(
                generation, read_evidence(self._storage, scope, held.snapshot), lessons, held.estimator
            )

    def _let_go(self) -> None:
        """Evict the least recently used scopes until the rest fits; the newest is kept."""
        tasks = sum(len(held.evidence.task_rows) for held in self._held.values())
        while len(self._held) > 1 and (len(self._held) > MOST_SCOPES or tasks > MOST_TASKS_TOGETHER):
            _, gone = self._held.popitem(last=False)
            tasks -= len(gone.evidence.task_rows)

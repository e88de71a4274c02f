"""Advice: the strategies that were tried on tasks near a given one, found by vectors and by words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from alma import clock
from alma.errors import ProviderError, StorageError
from alma.lazy import lazy_module
from alma.learning.burst_damping import Sessions, limited_by_hours, weights_for
from alma.learning.lesson_index import unit
from alma.learning.lessons import deleted_lessons
from alma.learning.rule_evidence import Rule
from alma.learning.strategies import strategy_key, word_overlap
from alma.learning.tuning import AdviceFeatures, AdviceTuning
from alma.model.learning import Belief, Heuristic, Outcome, kept
from alma.model.query import In
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage.base import StorageBackend
from alma.text.tokens import query_terms, terms
from alma.vectors.base import VectorIndex

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy_module("numpy")

_NAMED = 5


class Report(NamedTuple):
    """The fields of an outcome that count as a report."""

    id: str
    lesson_id: str | None
    task_description: str
    strategy_used: str | None
    success: bool
    timestamp: datetime | None
    agent: str


@dataclass(frozen=True, slots=True)
class NearbyStrategy:
    """One strategy with its evidence near a task, nearest outcome first."""

    lesson: str
    strategy: str
    relevance: float
    belief: Belief
    tried: int
    succeeded: int
    outcome_ids: tuple[str, ...]
    heuristic_ids: tuple[str, ...]
    agents: tuple[str, ...]
    sessions: int
    score: float = 0.0

    @property
    def key(self) -> str:
        return strategy_key(self.strategy)


class _Scored(NamedTuple):
    """A candidate with its relevance and its score for ranking."""

    record: Report | Rule
    relevance: float
    score: float

    @property
    def lesson(self) -> str:
        """The lesson, or the strategy itself where there is none."""
        if isinstance(self.record, Rule):
            return self.record.id
        return self.record.lesson_id or strategy_key(self.record.strategy_used or "")


class Advisor:
    """Finds and weighs what was tried on tasks near a given one."""

    def __init__(self, storage: StorageBackend, index: VectorIndex, tuning: AdviceTuning | None = None) -> None:
        self._storage = storage
        self._index = index
        self.tuning = tuning or AdviceTuning()

    def tried_near(
        self, task: str, vector: Vector | None, scope: Scope, reader: str | None, half_life_days: float
    ) -> list[NearbyStrategy]:
        """Every strategy that was tried on one of the nearest tasks, the most promising first."""
        scored = self._scored(task, vector, scope)
        if not scored:
            return []
        best = max(candidate.score for candidate in scored)
        weights = [math.exp((candidate.score - best) / self.tuning.nearness) for candidate in scored]
        counted = _counted(scored, weights, reader)
        lessons: dict[str, list[int]] = {}
        for place, candidate in enumerate(scored):
            lessons.setdefault(candidate.lesson, []).append(place)
        now = clock.now()
        found = [
            _nearby(
                [scored[i] for i in places],
                [weights[i] for i in places],
                [counted[i] for i in places],
                reader,
                now,
                half_life_days,
            )
            for places in lessons.values()
        ]
        return sorted(_one_of_each(found), key=lambda each: (-each.belief.mean, -each.score))

    def without_deleted(self, found: Sequence[NearbyStrategy], scope: Scope) -> list[NearbyStrategy]:
        """The strategies without those of deleted and rejected rules, whose outcomes are still stored."""
        if scope.project_id is None or not found:
            return list(found)
        with self._storage.snapshot() as tx:
            gone = deleted_lessons(tx, scope.project_id, {each.lesson: each.strategy for each in found})
        return [each for each in found if each.lesson not in gone]

    def _scored(self, task: str, vector: Vector | None, scope: Scope) -> list[_Scored]:
        """The candidates with their score and relevance, best first."""
        tuning = self.tuning
        scored = [
            _Scored(record, probability(tuning.relevance.score(known)), tuning.score.score(known))
            for record, known in self.features(task, vector, scope)
        ]
        return sorted(scored, key=lambda each: (-each.score, each.record.id))

    def features(self, task: str, vector: Vector | None, scope: Scope) -> list[tuple[Report | Rule, AdviceFeatures]]:
        """The candidates on the nearest tasks with their features."""
        cosines, ids = dict[type[Record], dict[str, float]](), dict[type[Record], list[str]]()
        for cls in (Outcome, Heuristic):
            ids[cls], cosines[cls] = self._candidates(cls, task, vector, scope)
        rows = self._storage.values(Outcome, Report._fields, scope, In("id", ids[Outcome]))
        rules = self._storage.values(Heuristic, Rule._fields, scope, In("id", ids[Heuristic]))
        candidates: list[Report | Rule] = [*map(Report._make, rows), *map(Rule._make, rules)]
        candidates = [each for each in candidates if strategy_of(each)]
        wanted = set(query_terms(task))
        texts_of = [(set(query_terms(task_of(each))), set(terms(strategy_of(each)))) for each in candidates]
        rarity = _rarity(wanted, [one | other for one, other in texts_of])
        tried = math.log(1 + self._storage.count(Outcome, scope)) if candidates else 0.0
        found = []
        for each, (in_task, in_strategy) in zip(candidates, texts_of, strict=True):
            overlap = word_overlap(wanted, in_task)
            # Without a vector, the overlap of words takes the place of the cosine.
            cosine = cosines[Heuristic if isinstance(each, Rule) else Outcome].get(each.id, overlap)
            by_task, by_strategy, by_either = (
                _share(wanted & words, rarity) for words in (in_task, in_strategy, in_task | in_strategy)
            )
            found.append((each, AdviceFeatures(max(cosine, overlap), by_task, by_strategy, by_either, tried)))
        return found

    def _candidates(
        self, cls: type[Record], task: str, vector: Vector | None, scope: Scope
    ) -> tuple[list[str], dict[str, float]]:
        """The ids of the nearest records by vectors and by words, and the cosines of those with a vector."""
        near = self._by_meaning(cls, vector, scope)
        worded = [each for each in self._by_words(cls, task, scope) if each not in near]
        return [*near, *worded], {**self._cosines(cls, worded, vector), **near}

    def _by_meaning(self, cls: type[Record], vector: Vector | None, scope: Scope) -> dict[str, float]:
        if vector is None:
            return {}
        try:
            return dict(self._index.search(cls, vector, scope, limit=self.tuning.candidates))
        except ProviderError:
            return {}  # the index is down: words still find

    def _by_words(self, cls: type[Record], task: str, scope: Scope) -> list[str]:
        try:
            return [
                record_id for record_id, _ in self._storage.matching_ids(cls, task, scope, limit=self.tuning.candidates)
            ]
        except StorageError:
            return []  # full-text search is down: meaning still finds

    def _cosines(self, cls: type[Record], ids: Sequence[str], vector: Vector | None) -> dict[str, float]:
        if vector is None or not ids:
            return {}
        mine, cosines = unit(vector), dict[str, float]()
        for stored in self._storage.vectors_of(cls, ids):
            if stored.model == self._storage.embedding_model:
                cosine = float(mine.dot(unit(stored.vector)))
                cosines[stored.record_id] = max(cosine, cosines.get(stored.record_id, -1.0))
        return cosines


def _counted(scored: Sequence[_Scored], weights: Sequence[float], reader: str | None) -> list[float]:
    """The weight of each outcome beside repetitions and beside reports of other agents."""
    reports = [(i, each.record) for i, each in enumerate(scored) if isinstance(each.record, Report)]
    counted = [1.0] * len(scored)
    if not reports:
        return counted
    sessions, groups = Sessions(), Sessions()
    order = sorted(reports, key=lambda each: each[1].timestamp.timestamp() if each[1].timestamp else 0.0)
    agents = {agent: number for number, agent in enumerate(dict.fromkeys(each.agent for _, each in reports))}
    strategies = {key: number for number, key in enumerate(dict.fromkeys(scored[i].lesson for i, _ in reports))}
    rows = []
    for i, report in order:
        author, strategy = agents[report.agent], strategies[scored[i].lesson]
        session = sessions.number(author, report.timestamp)
        group = groups.number((author, report.task_description, strategy), report.timestamp)
        rows.append((i, author, group, session, strategy))
    places, authors, grouped, held, known = (np.array(column) for column in zip(*rows, strict=True))
    asks = None if reader is None else agents.get(reader, len(agents))
    similarity = np.array([weights[i] for i in places])
    for i, share in zip(places, weights_for(asks, authors, grouped, held, known, similarity), strict=True):
        counted[i] = float(share)
    return counted


def _nearby(
    found: Sequence[_Scored],
    weights: Sequence[float],
    counted: Sequence[float],
    reader: str | None,
    now: datetime,
    half_life_days: float,
) -> NearbyStrategy:
    """The evidence about one lesson: that of its rule, if there is one, or of its outcomes near the task."""
    rules = [each.record for each in found if isinstance(each.record, Rule)]
    reports = [
        (each.record, weight * share)
        for each, weight, share in zip(found, weights, counted, strict=True)
        if isinstance(each.record, Report)
    ]
    won = sum(weight * _aged(each, now, half_life_days) for each, weight in reports if each.success)
    lost = sum(weight * _aged(each, now, half_life_days) for each, weight in reports if not each.success)
    belief = Belief(won, lost)
    tried, succeeded = len(reports), sum(each.success for each, _ in reports)
    if rules:
        rule = rules[0]
        # Reports of another agent count themselves; its rule would count them again.
        if rule.agent == reader or reader is None or not reports:
            known = rule.belief(now, half_life_days)
            if reader is not None and rule.agent != reader:
                known = limited_by_hours(known, rule.created_at, rule.last_validated)
            near = max(weights)
            belief = Belief(max(won, known.weight_for * near), max(lost, known.weight_against * near))
        tried, succeeded = max(tried, rule.occurrence_count), max(succeeded, rule.success_count)
    reported_by = dict.fromkeys([*(each.agent for each, _ in reports), *(rule.agent for rule in rules)])
    times = Sessions()
    return NearbyStrategy(
        lesson=found[0].lesson,
        strategy=rules[0].strategy if rules else strategy_of(found[0].record),
        relevance=max(each.relevance for each in found),
        score=max(each.score for each in found),
        belief=belief,
        tried=tried,
        succeeded=succeeded,
        outcome_ids=tuple(each.id for each, _ in reports[:_NAMED]),
        heuristic_ids=tuple(rule.id for rule in rules[:_NAMED]),
        agents=tuple(reported_by),
        sessions=0 if tried > len(reports) else len({times.number(each.agent, each.timestamp) for each, _ in reports}),
    )


def _one_of_each(found: Iterable[NearbyStrategy]) -> list[NearbyStrategy]:
    """The lessons with different strategies; of several with the same, the most promising."""
    best: dict[str, NearbyStrategy] = {}
    for each in found:
        known = best.setdefault(each.key, each)
        if each.belief.mean > known.belief.mean:
            best[each.key] = each
    return list(best.values())


def task_of(record: Report | Rule) -> str:
    """The task that a candidate is about."""
    return record.condition if isinstance(record, Rule) else record.task_description


def strategy_of(record: Report | Rule) -> str:
    """The strategy that a candidate is about."""
    return record.strategy if isinstance(record, Rule) else record.strategy_used or ""


def probability(log_odds: float) -> float:
    """The logistic function."""
    return 1 / (1 + math.exp(-log_odds)) if log_odds > 0 else math.exp(log_odds) / (1 + math.exp(log_odds))


def _rarity(wanted: set[str], texts: Sequence[set[str]]) -> dict[str, float]:
    """The inverse document frequency of each of these words."""
    counts = Counter(word for text in texts for word in wanted & text)
    return {word: math.log1p((len(texts) - counts[word] + 0.5) / (counts[word] + 0.5)) for word in wanted}


def _share(words: set[str], rarity: Mapping[str, float]) -> float:
    total = sum(rarity.values())
    return sum(rarity[word] for word in words) / total if total else 0.0


def _aged(report: Report, now: datetime, half_life_days: float) -> float:
    return kept(report.timestamp, now, half_life_days)

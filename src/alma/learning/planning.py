"""Planning: the nearest neighbours of a new outcome, and the lesson it belongs to.

A plan is made outside of the transaction: it finds the similar tasks and rules, and judges which of their strategies
the new one means. `Planner.match` then selects the lesson inside the transaction, from what was judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache
from typing import NamedTuple

from alma import clock
from alma.errors import IndexUnavailable
from alma.learning.heuristics import SAME_STRATEGY, DetailedTrial
from alma.learning.lesson_index import Entry, Floats, LessonIndex, Near, unit
from alma.learning.lessons import NEWEST_FIRST, NOT_THE_SAME, StoredLessons, lesson_id_of
from alma.learning.strategies import StrategyComparer, shared_words, strategy_key, word_overlap
from alma.learning.tuning import LESSONS
from alma.model.learning import AntiPattern, Heuristic, Outcome
from alma.model.query import Compare, In
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage.base import StorageBackend
from alma.storage.transaction import Transaction
from alma.text.tokens import query_terms
from alma.vectors.base import Nearest, VectorIndex

_OUTCOMES_SEARCHED = 24
_OUTCOMES_INDEXED = 64
_RULES = 8
# The time that a search and a plan may take, and by which the clocks of two machines differ.
_MEANWHILE = timedelta(minutes=10)

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The similar tasks with the strategies that were tried on them, and the rules for such tasks; nearest first.

    `version` is that of the lesson index; None where the store was searched.
    """

    tasks: Near
    rules: Near = field(default_factory=list)
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The neighbours and judgements for one outcome.

    What a final plan lacks is answered inside the transaction.
    """

    outcome: Outcome
    scope: Scope
    neighbours: Neighbours
    vectors: Mapping[str, Vector | None] = field(default_factory=dict)
    has_given_vector: bool = False
    is_final: bool = False

    @property
    def strategy(self) -> str:
        return self.outcome.strategy_used or ""

    @property
    def vector(self) -> Floats | None:
        """The vector of the task, of length one."""
        return unit(self.outcome.embedding) if isinstance(self.outcome.embedding, Vector) else None


@dataclass(slots=True)
class Missing:
    """Parts missing in a plan: judgements of strategies, and vectors of texts."""

    pairs: list[Pair] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.pairs or self.texts)


class LessonMatch(NamedTuple):
    """The lesson of an outcome, and the probability that its strategy is that of the lesson.

    `repeats` is an earlier outcome on the same task with the same strategy.
    """

    lesson_id: str
    probability: float = 1.0
    repeats: str | None = None
    is_new: bool = False


class Planner:
    """Finds what is near an outcome, by the lesson index or in the store, and which lesson the outcome belongs to."""

    def __init__(
        self,
        storage: StorageBackend,
        index: VectorIndex,
        strategies: StrategyComparer,
        vector_of: Callable[[str], Vector | None],
    ) -> None:
        self._storage = storage
        self._vectors = index
        self._strategies = strategies
        self._vector_of = vector_of
        self.index = LessonIndex(storage)

    # ------------------------------------------------------------------ outside of the transaction

    def plan(self, outcome: Outcome, *, has_given_vector: bool = False) -> Plan:
        """Find what is near the outcome, and judge its strategy."""
        scope = agent_scope(outcome.project_id, outcome.agent)
        # Inside a transaction of the caller, the index does not know what that has written, and nothing is outside.
        is_inside = self._storage.is_writing
        neighbours = None if is_inside else self._indexed(outcome, scope)
        neighbours = neighbours or self._searched(outcome, scope)
        plan = Plan(outcome, scope, neighbours, has_given_vector=has_given_vector, is_final=is_inside)
        self._strategies.judge_all(self._pairs(plan.strategy, plan.neighbours))
        return plan

    def completed(self, plan: Plan, missing: Missing, *, is_final: bool) -> Plan:
        """The plan with what a commit found missing."""
        self._strategies.judge_all(missing.pairs)
        vectors = {**plan.vectors, **{text: self._vector_of(text) for text in missing.texts}}
        return replace(plan, vectors=vectors, is_final=is_final)

    def _indexed(self, outcome: Outcome, scope: Scope) -> Neighbours | None:
        if not isinstance(outcome.embedding, Vector):
            return None
        most = (_OUTCOMES_INDEXED, _RULES)
        found = self.index.near(scope, unit(outcome.embedding), self._strategies.tuning.similar, most)
        return None if found is None else Neighbours(*found)

    def _searched(self, outcome: Outcome, scope: Scope) -> Neighbours:
        if not self._storage.is_writing and isinstance(outcome.embedding, Vector):
            self.index.searched(scope)
        vector, names = outcome.embedding, DetailedTrial._fields
        if not isinstance(vector, Vector):
            found = self._storage.matching_ids(Outcome, outcome.task_description, scope, limit=_OUTCOMES_SEARCHED)
            ids = [key for key, _ in found]
            rows = map(DetailedTrial._make, self._storage.values(Outcome, names, scope, In("id", ids)))
            return Neighbours(_entries(_alike_in_words(outcome, rows)))
        near = self._nearest(Outcome, vector, scope, _OUTCOMES_SEARCHED)
        least = self._strategies.tuning.similar
        cosines = {each.record_id: each.cosine for each in near if each.cosine >= least}
        rows = map(DetailedTrial._make, self._storage.values(Outcome, names, scope, In("id", list(cosines))))
        return Neighbours(_entries((cosines[each.id], each) for each in rows), self._rules(vector, scope))

    def _rules(self, vector: Vector, scope: Scope) -> Near:
        """The rules for similar tasks."""
        near = self._nearest(Heuristic, vector, scope, _RULES)
        least = self._strategies.tuning.similar
        cosines = {each.record_id: each.cosine for each in near if each.cosine >= least}
        rows = self._storage.values(Heuristic, ("id", "strategy"), scope, In("id", list(cosines)))
        rules = ((cosines[key], Entry(key, text, key)) for key, text in rows)
        return sorted(rules, key=_cosine)

    def _nearest(self, cls: type[Record], vector: Vector, scope: Scope, limit: int) -> list[Nearest]:
        try:
            return self._vectors.search(cls, vector, scope, limit=limit)
        except IndexUnavailable:
            # Evidence is counted wherever vectors are searched.
            return [Nearest(*found) for found in self._storage.nearest_ids(cls, vector, scope, limit=limit)]

    def _pairs(self, strategy: str, neighbours: Neighbours) -> list[Pair]:
        """The pairs of strategies to judge: with those of the rules, and with the likeliest of the tasks.

        A strategy in the same words as that of a similar task is compared with the rules alone.
        """
        key = strategy_key(strategy)
        rules = {strategy_key(entry.strategy): entry.strategy for _, entry in neighbours.rules}
        others: dict[str, tuple[float, str]] = {}
        for cosine, entry in neighbours.tasks:
            other = strategy_key(entry.strategy)
            if other not in others and other not in rules:
                others[other] = (cosine + shared_words(strategy, entry.strategy), entry.strategy)
        is_known = key in others or any(strategy_key(entry.strategy) == key for _, entry in neighbours.tasks)
        ranked = [] if is_known else [text for _, text in sorted(others.values(), key=_cosine)]
        rules.pop(key, None)
        return [(strategy, other) for other in [*rules.values(), *ranked][: self._strategies.tuning.pairs]]

    # ------------------------------------------------------------------ inside the transaction

    def current(self, tx: Transaction, plan: Plan) -> Neighbours:
        """The neighbours of the plan, or those of today where another process wrote since."""
        if plan.neighbours.version is None or self.index.follow(tx, plan.scope) == plan.neighbours.version:
            return plan.neighbours
        return self._indexed(plan.outcome, plan.scope) or self._searched(plan.outcome, plan.scope)

    def unjudged(self, plan: Plan, neighbours: Neighbours) -> list[Pair]:
        """The pairs that have to be judged before the lesson is selected; a final plan judges them here."""
        pairs = self._pairs(plan.strategy, neighbours)
        if plan.is_final:
            self._strategies.judge_all(pairs)
        return [pair for pair in pairs if self._strategies.cached(*pair) is None]

    def match(self, stored: StoredLessons, plan: Plan, neighbours: Neighbours) -> LessonMatch:
        """The lesson of an outcome, or a new one; the store says which lessons there still are."""
        likely = self._likely(plan.strategy, neighbours)
        rules = {entry.id for _, entry in neighbours.rules}
        found = [(cosine, entry.lesson_id) for cosine, entry in neighbours.tasks if entry.lesson_id in likely]
        ranked = self._ranked(found, lambda key: key in rules or self.index.has_rule(plan.scope, key))
        for lesson in dict.fromkeys([*ranked, *(e.id for _, e in neighbours.rules if e.id in likely)]):
            current = self._current_id(stored, lesson, plan.strategy, neighbours)
            if current is not None:
                return LessonMatch(current, likely[lesson], self._repeated(plan.strategy, lesson, neighbours))
        outcome = plan.outcome
        key = lesson_id_of(outcome.project_id, outcome.agent, plan.strategy, outcome.task_description)
        return LessonMatch(key, is_new=True)

    def _likely(self, strategy: str, neighbours: Neighbours) -> dict[str, float]:
        """The lessons that a strategy may belong to, each with the probability.

        Those with the same words go before all others. A lesson that also holds an opposite strategy is left out.
        """
        tuning, same, opposed = self._strategies.tuning, dict[str, float](), set[str]()
        for _, entry in (*neighbours.tasks, *neighbours.rules):
            judged = self._strategies.cached(strategy, entry.strategy)
            if judged is None:
                continue
            probability = judged.probabilities
            same[entry.lesson_id] = max(same.get(entry.lesson_id, 0.0), probability["same"])
            if probability["opposite"] >= tuning.opposite:
                opposed.add(entry.lesson_id)
        exact = {lesson: 1.0 for lesson, probability in same.items() if probability >= 1.0}
        return exact or {
            lesson: probability
            for lesson, probability in same.items()
            if probability >= tuning.same and lesson not in opposed
        }

    def _ranked(self, found: Iterable[tuple[float, str]], is_rule: Callable[[str], bool]) -> list[str]:
        """The lessons that a task may belong to, best first, from similar tasks with their cosines, nearest first.

        That of the same task is first, then rules; then those with more and nearer tasks. By the nearest task alone,
        two lessons of one strategy would grow side by side.
        """
        nearest: dict[str, float] = {}
        total: dict[str, float] = {}
        for cosine, lesson in found:
            nearest.setdefault(lesson, cosine)
            total[lesson] = total.get(lesson, 0.0) + cosine
        if len(nearest) < 2:
            return list(nearest)
        same_task = self._strategies.tuning.same_task
        return sorted(nearest, key=lambda each: (nearest[each] < same_task, not is_rule(each), -total[each]))

    def _repeated(self, strategy: str, lesson: str, neighbours: Neighbours) -> str | None:
        """An outcome of the lesson on the same task with the same strategy."""
        same_task = self._strategies.tuning.same_task
        same = (
            e.id for c, e in neighbours.tasks if c >= same_task and e.lesson_id == lesson and e.strategy == strategy
        )
        return next(same, None)

    def _current_id(self, stored: StoredLessons, lesson: str, strategy: str, neighbours: Neighbours) -> str | None:
        """The id of the lesson today, since lessons are merged and strategies separated; None where it is gone."""
        rule = stored.rule(lesson)
        is_separated = _is_separated(rule, strategy)
        if not is_separated and (rule is not None or stored.trials(lesson)):
            return lesson
        key, entries = strategy_key(strategy), [e for _, e in neighbours.tasks if e.lesson_id == lesson]
        nearest = min(entries, key=lambda entry: strategy_key(entry.strategy) != key, default=None)
        current = None if nearest is None else stored.lesson_of(nearest.id)
        if current is None and not is_separated:
            self.index.drop(stored.scope, lesson if nearest is None else nearest.id)
        return None if current is None or _is_separated(stored.rule(current), strategy) else current

    def begun_meanwhile(self, tx: Transaction, plan: Plan) -> Neighbours | None:
        """The similar tasks that others stored since the store was searched; who begins a lesson waits for them.

        Where a feed was followed inside the transaction, there are none.
        """
        if plan.neighbours.version is not None and self.index.has_feed:
            return None
        outcome = plan.outcome
        tx.hold(f"new lessons of {outcome.agent} in {outcome.project_id}")
        lately, known = Compare("timestamp", "ge", clock.now() - _MEANWHILE), {e.id for _, e in plan.neighbours.tasks}
        rows = tx.values(Outcome, DetailedTrial._fields, plan.scope, lately, (NEWEST_FIRST,), _OUTCOMES_SEARCHED)
        trials = map(DetailedTrial._make, rows)
        new = [trial for trial in trials if trial.id not in known and trial.lesson_id is not None]
        near = _entries(self._near_among(tx, plan, new))
        return Neighbours(near) if near else None

    def _near_among(self, tx: Transaction, plan: Plan, trials: Sequence[DetailedTrial]) -> list[_Alike]:
        vector = plan.vector
        if not trials or vector is None:
            return _alike_in_words(plan.outcome, trials)
        stored = tx.vectors_of(Outcome, [trial.id for trial in trials])
        own = (each for each in stored if each.model == tx.embedding_model and each.part == 0)
        cosines = {each.record_id: float(vector.dot(unit(each.vector))) for each in own}
        least = self._strategies.tuning.similar
        return [(cosines[trial.id], trial) for trial in trials if cosines.get(trial.id, -1.0) >= least]

    # ------------------------------------------------------------------ after the transaction

    def committed(
        self,
        plan: Plan,
        outcome: Outcome,
        made: Sequence[Heuristic | AntiPattern],
        match: LessonMatch,
        positions: tuple[int | None, int | None],
    ) -> None:
        """Add a committed outcome, and the rules made of it, to the lesson index."""
        vector = plan.vector
        if vector is None or self._storage.is_writing:
            return
        rules = [
            (unit(rule.embedding), Entry(rule.id, rule.strategy, rule.id))
            for rule in made
            if isinstance(rule, Heuristic) and isinstance(rule.embedding, Vector)
        ]
        span = (*positions, 1 + sum(each.embedding is not None for each in made))
        entry = _entry(DetailedTrial.of(outcome))
        self.index.add_committed(plan.scope, [(vector, entry)], rules, span, match.repeats)


@lru_cache(maxsize=1024)
def agent_scope(project_id: str, agent: str) -> Scope:
    """An outcome is compared with others of its agent in its project."""
    return Scope(project_id=project_id, agent=agent)


def in_lesson(outcome: Outcome, match: LessonMatch) -> Outcome:
    """The outcome as evidence for its lesson."""
    metadata = outcome.metadata
    if match.probability < 1.0:
        metadata = {**metadata, SAME_STRATEGY: round(match.probability, 3)}
    # Everything else of it is checked already.
    return Outcome.trusted({**outcome.values(), "lesson_id": match.lesson_id, "metadata": metadata})


_Alike = tuple[float, DetailedTrial]


def _entries(found: Iterable[_Alike]) -> Near:
    """The outcomes that belong to a lesson, nearest first."""
    return sorted(((cosine, _entry(trial)) for cosine, trial in found if trial.lesson_id), key=_cosine)


def _entry(trial: DetailedTrial) -> Entry:
    return Entry(trial.id, trial.strategy_used or "", trial.lesson_id or "", trial.success, not trial.success)


def _cosine(each: tuple[float, object]) -> float:
    return -each[0]


def _is_separated(rule: Heuristic | None, strategy: str) -> bool:
    """Whether a strategy was said not to be that of a rule."""
    return rule is not None and strategy_key(strategy) in rule.metadata.get(NOT_THE_SAME, ())


def _alike_in_words(outcome: Outcome, trials: Iterable[DetailedTrial]) -> list[_Alike]:
    """Those of these outcomes whose tasks share most of their words."""
    words = set(query_terms(outcome.task_description))
    shared = ((word_overlap(words, set(query_terms(trial.task_description))), trial) for trial in trials)
    return [each for each in shared if each[0] >= LESSONS.shared_words]

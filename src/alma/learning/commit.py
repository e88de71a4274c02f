"""The commit of one outcome and its lesson: CHECK, COMPARE and COMMIT inside a transaction.

What needs the judge or the embedding model was planned before. A commit that finds its plan incomplete writes nothing
and says what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from alma import clock
from alma.judge.base import OTHER, Judgement, Label
from alma.learning.heuristics import (
    EVIDENCE_READ,
    DetailedTrial,
    HeuristicExtractor,
    LessonEvidence,
    Trial,
    best_lesson,
    most_general,
    wording,
)
from alma.learning.lessons import RELATED, StoredLessons, deleted_lessons
from alma.learning.planning import LessonMatch, Missing, Neighbours, Plan, Planner, in_lesson
from alma.learning.strategies import StrategyComparer
from alma.model.learning import AntiPattern, Belief, Heuristic, Outcome
from alma.model.vector import Vector
from alma.storage.deleted_values import compared_text, deleted_near
from alma.storage.tombstones import Because, Tombstone, tombstone_of
from alma.storage.transaction import Transaction

Made = TypeVar("Made", Heuristic, AntiPattern)

_LINKED: frozenset[Label] = frozenset(("more", "less", "opposite"))
# The number of nearest lessons of which the best one is offered as an alternative.
_ALTERNATIVES = 8


@dataclass(frozen=True, slots=True)
class Learned:
    """What was learned: always the outcome, and the rule or warning that it made or changed.

    It is true, and has the outcome's fields. `notes` are sentences about what else is worth knowing: that no embedding
    could be made, or that a rule was held back and why.
    """

    outcome: Outcome
    heuristic: Heuristic | None = None
    anti_pattern: AntiPattern | None = None
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.outcome, name)


@dataclass(frozen=True, slots=True)
class Tools:
    """The parts of the learning protocol that a commit uses."""

    planner: Planner
    strategies: StrategyComparer
    extractor: HeuristicExtractor
    vector_of: Callable[[str], Vector | None]


class Commit:
    """One attempt to commit a planned outcome in a transaction."""

    def __init__(self, tools: Tools, plan: Plan, min_occurrences: int, tx: Transaction) -> None:
        self._planner = tools.planner
        self._strategies = tools.strategies
        self._extractor = tools.extractor
        self._vector_of = tools.vector_of
        self._tx = tx
        self._plan = plan
        self._min_occurrences = min_occurrences
        self._stored = StoredLessons(tx, plan.scope)
        self._now = clock.now()
        self._writes: list[Callable[[], object]] = []
        self._notes: list[str] = []
        self.missing = Missing()
        self.made: list[Heuristic | AntiPattern] = []
        self.positions: tuple[int | None, int | None] = (None, None)
        self.neighbours: Neighbours
        self.match: LessonMatch
        self._outcome: Outcome
        self._trials: list[Trial]

    def run(self) -> Learned | None:
        """Write the outcome and what it teaches; None, and nothing written, where the plan lacks something."""
        if not self._check_plan():
            return None
        rule = self._stored.rule(self._lesson_id)
        self._trials = [Trial.of(self._outcome), *self._stored.trials(self._lesson_id)][:EVIDENCE_READ]
        heuristic = self._new_heuristic() if rule is None else self._strengthened(rule)
        warning = self._encouraged(heuristic) if self._outcome.success else self._warned()
        self._oppose()
        if self.missing:
            return None
        return self._write(heuristic, warning)

    @property
    def _lesson_id(self) -> str:
        return self.match.lesson_id

    # ------------------------------------------------------------------ CHECK

    def _check_plan(self) -> bool:
        """Find the lesson among the neighbours of this moment; whether all their strategies were judged."""
        self.neighbours = self._planner.current(self._tx, self._plan)
        if self.neighbours is not self._plan.neighbours and not self._is_judged(self.neighbours):
            return False
        self.match = self._planner.match(self._stored, self._plan, self.neighbours)
        if self.match.is_new and (newer := self._planner.begun_meanwhile(self._tx, self._plan)):
            if not self._is_judged(newer):
                return False
            self.match = self._planner.match(self._stored, self._plan, newer)
        self._outcome = in_lesson(self._plan.outcome, self.match)
        return True

    def _is_judged(self, neighbours: Neighbours) -> bool:
        self.missing.pairs += self._planner.unjudged(self._plan, neighbours)
        return not self.missing

    def _judgement(self, one: str, other: str) -> Judgement:
        """The relation of one strategy to the other; a pair that was not judged is noted as missing."""
        if self._plan.is_final:
            return self._strategies.judgement(one, other)
        found = self._strategies.cached(one, other)
        if found is None:
            self.missing.pairs.append((one, other))
            return OTHER
        return found

    def _is_same_task(self, condition: str) -> bool:
        """Whether a rule is for the task of this outcome: what holds for large files need not for small ones."""
        return self._overlaps(self._plan.outcome.task_description, condition)

    def _overlaps(self, one: str, other: str) -> bool:
        """Whether one text says the same as the other, or a part of it."""
        found = self._judgement(one, other)
        return found["same"] + found["more"] + found["less"] >= self._strategies.tuning.same

    def _evidence(self, *, whole: bool) -> LessonEvidence:
        """The newest outcomes of the lesson; with `whole`, all of them are counted."""
        newest = [DetailedTrial.of(self._outcome), *self._stored.detailed_trials(self._lesson_id)][:EVIDENCE_READ]
        every: Sequence[Trial | DetailedTrial] = newest
        if whole and len(newest) == EVIDENCE_READ:
            every = [Trial.of(self._outcome), *self._stored.all_trials(self._lesson_id)]
        return LessonEvidence(self._outcome, self._lesson_id, newest[::-1], every[::-1])

    def _new_heuristic(self) -> Heuristic | None:
        """The rule that the lesson becomes with this success, if it succeeded often enough."""
        succeeded = sum(trial.success for trial in self._trials)
        if not self._outcome.success or succeeded < self._min_occurrences:
            return None
        if self._belief(self._trials).mean <= 0.5:
            return None
        evidence = self._evidence(whole=True)
        belief = self._belief(evidence.every)
        if belief.mean <= 0.5:
            return None
        made = self._compared(self._extractor.heuristic(evidence, belief, self._now))
        if made is not None:
            made = self._with_vector(made, evidence.detailed)
            return self._add(made)
        return None

    def _strengthened(self, rule: Heuristic) -> Heuristic:
        """The rule of the lesson after this outcome, which may also weaken it."""
        changed = self._extractor.strengthened(rule, self._outcome, self._trials[1:], self._now)
        self._revise(rule, changed)
        return changed

    # ------------------------------------------------------------------ COMPARE

    def _compared(self, made: Heuristic) -> Heuristic | None:
        """The new rule with its relations to similar rules; None where a better known one says the opposite."""
        links: dict[str, object] = {}
        for _, entry in self.neighbours.rules:
            judged = self._judgement(made.strategy, entry.strategy)
            if judged.label not in _LINKED or judged[judged.label] < self._strategies.tuning.linked:
                continue
            known = self._stored.rule(entry.id)
            if known is None or not self._is_same_task(known.condition):
                continue
            if judged.label == "opposite":
                if self._is_better_known(known, made):
                    self._notes.append(f"held back: heuristic {known.id} says the opposite and is better known")
                    return None
                self._notes.append(f"heuristic {known.id} says the opposite")
            links[entry.id] = {"is": judged.label, "probability": round(judged[judged.label], 3)}
        return made.replace(metadata={**made.metadata, RELATED: links}) if links else made

    def _is_better_known(self, known: Heuristic, made: Heuristic) -> bool:
        theirs, ours = (self._extractor.current_belief(each, self._now).lower_bound for each in (known, made))
        return theirs >= self._strategies.tuning.well_known and theirs > ours

    def _oppose(self) -> None:
        """Weaken the rules that say the opposite of a success, as much as it strengthens its own lesson."""
        if not self._outcome.success:
            return
        for _, entry in self.neighbours.rules:
            probability = self._judgement(self._plan.strategy, entry.strategy)["opposite"]
            if probability < self._strategies.tuning.opposite or entry.id == self._lesson_id:
                continue
            rule = self._stored.rule(entry.id)
            if rule is not None and self._is_same_task(rule.condition):
                self._revise(
                    rule, self._extractor.opposed(rule, self._outcome, self._trials[1:], probability, self._now)
                )

    # ------------------------------------------------------------------ warnings

    def _encouraged(self, heuristic: Heuristic | None) -> AntiPattern | None:
        """The warning after a success; it is withdrawn where the strategy mostly succeeds by now."""
        nearby = self._failed_nearby()
        # A rule that never failed has no warning.
        never_failed = heuristic is not None and heuristic.success_count >= heuristic.occurrence_count
        stored = self._stored.alternatives(nearby if never_failed else {*nearby, self._lesson_id})
        self._offer_alternative([lesson for lesson in nearby if stored.get(lesson, "") is None])
        known = self._stored.warning(self._lesson_id) if self._lesson_id in stored else None
        if known is None or heuristic is None or heuristic.confidence <= 0.5:
            return known
        self._writes.append(lambda: self._tx.delete(AntiPattern, [known.id], self._plan.scope))
        self._notes.append(f"anti-pattern {known.id} is withdrawn: the strategy succeeds by now")
        return None

    def _warned(self) -> AntiPattern | None:
        """The warning after a failure; a new one where the lesson failed often enough."""
        known = self._stored.warning(self._lesson_id)
        if known is not None:
            evidence = self._evidence(whole=False)
            changed = self._extractor.seen_again(
                known, evidence, known.better_alternative or self._alternative(), self._now
            )
            # Its text changes with every failure, its meaning does not: it keeps its vector.
            self._revise(known, changed)
            return changed
        if not self._fails_mostly():
            return None
        evidence = self._evidence(whole=True)
        made = self._extractor.anti_pattern(evidence, self._alternative(), self._now)
        made = self._with_vector(made, evidence.failures)
        self._retract_alternative(made.pattern)
        return self._add(made)

    def _fails_mostly(self) -> bool:
        """Whether the lesson failed often enough for a warning, and fails more often than it succeeds by now.

        Old outcomes count as little as in a rule, so that no rule recommends what a warning warns of.
        """
        failures = sum(not trial.success for trial in self._trials)
        if failures < self._min_occurrences:
            return False
        belief = self._belief(self._trials)
        return belief.weight_against > belief.weight_for + self._strategies.tuning.clearly

    def _failed_nearby(self) -> frozenset[str]:
        """The other lessons that failed on similar tasks."""
        return frozenset(entry.lesson_id for _, entry in self.neighbours.tasks if entry.failed) - {self._lesson_id}

    def _offer_alternative(self, lessons: Sequence[str]) -> None:
        """Name this success in the warnings of similar tasks that name no alternative."""
        for known in self._stored.warnings(lessons):
            if not self._overlaps(self._plan.strategy, known.pattern):
                self._revise(known, known.replace(better_alternative=self._plan.strategy))

    def _retract_alternative(self, failed: str) -> None:
        """Replace the strategy that is warned of now where it is the alternative in warnings of similar tasks."""
        for known in self._stored.warnings(self._failed_nearby()):
            offered = known.better_alternative
            if offered is not None and self._overlaps(offered, failed):
                instead = self._alternative()
                if instead is not None and self._overlaps(instead, known.pattern):
                    instead = None
                self._revise(known, known.replace(better_alternative=instead))

    def _alternative(self) -> str | None:
        """The strategy that did best on similar tasks and is not this one in other words."""
        succeeded = dict.fromkeys(entry.lesson_id for _, entry in self.neighbours.tasks if entry.succeeded)
        succeeded.pop(self._lesson_id, None)
        trials = {lesson: self._stored.trials(lesson) for lesson in list(succeeded)[:_ALTERNATIVES]}
        while (best := best_lesson(trials, self._belief)) is not None:
            found = [each for each in self._stored.detailed_trials(best) if each.success and each.strategy_used]
            offered = wording(found) if found else self._plan.strategy
            if not self._overlaps(offered, self._plan.strategy) and not self._is_deleted(best, offered):
                return offered
            del trials[best]
        return None

    def _is_deleted(self, lesson_id: str, strategy: str) -> bool:
        return bool(deleted_lessons(self._tx, self._outcome.project_id, {lesson_id: strategy}))

    def _belief(self, trials: Sequence[Trial | DetailedTrial]) -> Belief:
        return self._extractor.belief(trials, self._now)

    # ------------------------------------------------------------------ COMMIT

    def _write(self, heuristic: Heuristic | None, warning: AntiPattern | None) -> Learned:
        """Write all of it: it becomes visible together."""
        self._tx.add(self._outcome)
        for write in self._writes:
            write()
        if self.neighbours.version is not None:
            self.positions = (self.neighbours.version, self._planner.index.end(self._tx))
        return Learned(self._outcome, heuristic, warning, tuple(self._notes))

    def _add(self, made: Made) -> Made | None:
        """Store what was learned, unless it was deleted or rejected."""
        tombstone = tombstone_of(self._tx, made) or self._deleted_in_other_words(made)
        if tombstone is not None and tombstone.because is not Because.ERASED:
            self._notes.append(f"not stored: this {made.spec.kind} {tombstone}")
            return None
        self._writes.append(lambda: self._tx.insert(made))
        self.made.append(made)
        return made

    def _deleted_in_other_words(self, made: Heuristic | AntiPattern) -> Tombstone | None:
        for known, tombstone in deleted_near(self._tx, [made]).get(made.id, ()):
            if self._judgement(compared_text(made), compared_text(known))["same"] >= self._strategies.tuning.same:
                return tombstone
        return None

    def _revise(self, held: Made, made: Made) -> None:
        self._writes.append(partial(self._tx.revise, held, made))

    def _with_vector(self, made: Made, trials: Sequence[DetailedTrial]) -> Made:
        if self._plan.has_given_vector:
            # The caller's vectors may not be of the model: what is learned gets the vector of its task.
            vector = self._stored_vector(most_general(trials).id)
        elif (text := made.embedded_text()) in self._plan.vectors:
            vector = self._plan.vectors[text]
        elif self._plan.is_final:
            vector = self._vector_of(text)
        else:
            self.missing.texts.append(text)
            return made
        # Everything of it is checked already.
        return type(made).trusted({**made.values(), "embedding": vector})

    def _stored_vector(self, outcome_id: str) -> Vector | Sequence[float] | None:
        if outcome_id == self._outcome.id:
            return self._outcome.embedding
        stored = self._tx.vectors_of(Outcome, [outcome_id])
        own = (each.vector for each in stored if each.model == self._tx.embedding_model and each.part == 0)
        return next(own, self._outcome.embedding)

"""The learning protocol: five steps from what happened to what it teaches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar

from alma import clock
from alma.embeddings.base import EmbeddingProvider
from alma.errors import EmbeddingError, ScopeViolationError, ValidationError
from alma.judge.base import Judge, Judgement, Label
from alma.judge.strict import OTHER
from alma.learning.advice import Advisor
from alma.learning.forgetting import MOST_OUTCOMES, ForgettingTrigger
from alma.learning.heuristics import (
    EVIDENCE_READ,
    Counted,
    Evidence,
    HeuristicExtractor,
    Seen,
    Tried,
    best_lesson,
    most_general,
    wording,
)
from alma.learning.lessons import Belonging, LessonFinder, Neighbourhood, in_lesson, scope_of
from alma.learning.recommendation import Recommender
from alma.learning.stored import RELATED, StoredLessons, separate
from alma.learning.strategies import Strategies
from alma.learning.validation import ScopeValidator, parsed_outcome
from alma.memory.archive import Archive
from alma.memory.audit import AuditTrail, current_request
from alma.model.common import checked_part
from alma.model.governance import ANONYMOUS, Attribution
from alma.model.learning import AntiPattern, Belief, Heuristic, Outcome
from alma.model.scope import MemoryScope, Scope
from alma.model.vector import Vector
from alma.redaction.nested import Masked
from alma.retrieval.writing import join_space
from alma.storage.base import StorageBackend, checked_storage
from alma.storage.transaction import Transaction
from alma.vectors.base import VectorIndex

_log = logging.getLogger("alma.learning")

Made = TypeVar("Made", Heuristic, AntiPattern)
Cleaner = Callable[[Outcome], tuple[Outcome, Sequence[Masked]]]
Screen = Callable[[Outcome], tuple[Outcome, str | None]]

_WELL_KNOWN = 0.5
# By so many outcomes: as often is not more often, however much older the successes are.
_CLEARLY = 0.25
# Of so many lessons, the nearest, it is asked which strategy did best.
_ALTERNATIVES_LOOKED_AT = 8
_LINKED: frozenset[Label] = frozenset(("more", "less", "opposite"))


class Execution(NamedTuple):
    """What an agent did, as it is told to `learn`."""

    agent: str
    project_id: str
    task: str
    outcome: object
    strategy_used: str
    task_type: str | None = None
    duration_ms: int | None = None
    error_message: str | None = None
    feedback: str | None = None
    embedding: Sequence[float] | None = None
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Learned:
    """What was learned from an execution: always the outcome, and the rule or warning that it made or changed.

    It is true, as older callers expect, and has the outcome's fields, as newer ones do. `notes` says in sentences what
    else is worth knowing: that an embedding could not be made, or that a rule was held back and why.
    """

    outcome: Outcome
    heuristic: Heuristic | None = None
    anti_pattern: AntiPattern | None = None
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.outcome, name)


@lru_cache(maxsize=1024)
def _learner(agent: str) -> Attribution:
    return Attribution(agent=agent, reason="learned from an outcome")


def _as_it_is(outcome: Outcome) -> tuple[Outcome, Sequence[Masked]]:
    return outcome, ()


def _unscreened(outcome: Outcome) -> tuple[Outcome, str | None]:
    return outcome, None


class LearningProtocol:
    """VALIDATE, CHECK, COMPARE, COMMIT, TRIGGER: the only way from an outcome to a heuristic or an anti-pattern."""

    def __init__(
        self,
        storage: StorageBackend,
        embedder: EmbeddingProvider,
        index: VectorIndex,
        scopes: Mapping[str, MemoryScope] | None = None,
        extractor: HeuristicExtractor | None = None,
        most_outcomes: int = MOST_OUTCOMES,
        judge: Judge | None = None,
    ) -> None:
        self.storage = checked_storage("learning protocol", storage)
        self._embedder = join_space(storage, embedder)
        if not callable(getattr(index, "search", None)):
            raise ValidationError("learning protocol", "index", index, "must be a vector index, as engine.index is one")
        self.validator = ScopeValidator(scopes)
        if extractor is None:
            extractor = HeuristicExtractor()
        hint = "a HeuristicExtractor, or None for the usual one"
        self.extractor = checked_part("learning protocol", "extractor", extractor, HeuristicExtractor, hint)
        # What takes secrets out of an outcome before anything is done with it; the facade puts ingest here.
        self.clean: Cleaner = _as_it_is
        # What takes orders out of what an error says, and tells so; ingest as well.
        self.screen: Screen = _unscreened
        self.strategies = Strategies(judge)
        self.lessons = LessonFinder(storage, index, self.strategies)
        self._trigger = ForgettingTrigger(storage, Archive(storage), most_outcomes)
        self.recommender = Recommender(
            storage,
            self.strategies,
            self.extractor,
            advisor=Advisor(storage, index),
            vector_of=self.vector_of,
        )

    def learn(self, execution: Execution) -> Learned:
        """Record what happened and, when there is enough evidence, what it teaches."""
        success = parsed_outcome(execution.outcome)
        scope = self._validate(execution)
        outcome, notes = self._outcome(execution, success)
        by = _learner(outcome.agent)
        step = _Step(self, scope, outcome, has_own_vectors=execution.embedding is not None)
        step.plan()
        while (learned := self.storage.write(step.commit, by)) is None:
            step.plan()
        self.lessons.note(learned.outcome, step.around, step.belonging.like, step.made, step.written)
        self._trigger.learned(step.inside)
        return learned if not notes else replace(learned, notes=(*notes, *learned.notes))

    def is_same_strategy(self, one: str, other: str) -> bool:
        """Whether two texts say to do the same thing."""
        return self.strategies.same(one, other)

    def separate(
        self, heuristic_id: str, strategy: str, agent: str, project_id: str, by: Attribution = ANONYMOUS
    ) -> list[str]:
        """Say that a strategy is not that of a rule: its outcomes become a lesson of their own, and stay one."""
        scope = Scope(project_id=project_id, agent=agent)
        return separate(self.storage, self.extractor, heuristic_id, strategy, scope, by)

    # ------------------------------------------------------------------ VALIDATE

    def _validate(self, execution: Execution) -> MemoryScope:
        text = f"{execution.task} {execution.strategy_used}"
        return self.require(execution.agent, execution.task_type, text)

    def require(
        self, agent: str, domain: str | None, text: str, action: str = "learn", kind: str = Outcome.spec.kind
    ) -> MemoryScope:
        """The scope of an agent that may learn this; that it may not is a `ScopeViolationError`, and in the audit."""
        try:
            return self.validator.require(agent, domain, text)
        except ScopeViolationError as exc:
            self._record_refusal(agent, action, exc, kind)
            raise

    def _record_refusal(self, agent: str, action: str, exc: ScopeViolationError, kind: str) -> None:
        who = current_request()
        trail = AuditTrail(self.storage, mask=self.storage.masked)
        by = replace(who.by, agent=agent)
        with suppress(ScopeViolationError), trail.attempt(action, kind, by, resource_id="-", request=who.request):
            raise exc

    def _outcome(self, execution: Execution, success: bool) -> tuple[Outcome, tuple[str, ...]]:
        """The outcome to be stored, with its vector, and what there is to say about it."""
        if not isinstance(execution.strategy_used, str) or not execution.strategy_used.strip():
            raise ValidationError(
                "learn", "strategy_used", execution.strategy_used, "must be a text that says what was done"
            )
        given = execution.metadata
        outcome = Outcome(
            agent=execution.agent,
            project_id=execution.project_id,
            task_type=execution.task_type,
            task_description=execution.task,
            success=success,
            strategy_used=execution.strategy_used,
            duration_ms=execution.duration_ms,
            error_message=execution.error_message,
            user_feedback=execution.feedback,
            metadata=dict(given) if isinstance(given, Mapping) else given or {},
            embedding=execution.embedding,
        )
        outcome, masked = self.clean(outcome)
        outcome, withheld = self.screen(outcome)
        notes = tuple(f"a secret was masked in {each.field}: {each.kind}" for each in masked)
        notes = notes if withheld is None else (*notes, withheld)
        if outcome.embedding is not None:
            self._require_length(outcome.embedding)
            return outcome, notes
        vector = self.vector_of(outcome.embedded_text())
        if vector is None:
            return outcome, (*notes, "stored without a vector, because it could not be embedded")
        return outcome.replace(embedding=vector), notes

    def _require_length(self, vector: Sequence[float]) -> None:
        if len(vector) != self.storage.embedding_dim:
            reason = f"must have {self.storage.embedding_dim} dimensions, as this store's vectors do, not {len(vector)}"
            raise ValidationError("learn", "embedding", vector, reason)

    def vector_of(self, text: str) -> Vector | None:
        """The vector of a text; none where it cannot be made, because what happened must not be lost."""
        try:
            return self._embedder.encode(text)
        except EmbeddingError as exc:
            _log.warning("something learned is stored without a vector", extra={"error": str(exc)})
            return None


@dataclass(slots=True)
class _Missing:
    """What an outcome cannot be committed without, and what takes too long to make others wait for."""

    search: bool = False
    pairs: list[tuple[str, str]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    @property
    def is_any(self) -> bool:
        return self.search or bool(self.pairs) or bool(self.texts)


class _Step:
    """One outcome and what it teaches: planned outside of the transaction, committed if the plan still holds."""

    def __init__(
        self, learning: LearningProtocol, scope: MemoryScope, outcome: Outcome, *, has_own_vectors: bool
    ) -> None:
        self._extractor = learning.extractor
        self._lessons = learning.lessons
        self._strategies = learning.strategies
        self._vector_of = learning.vector_of
        self._scope = scope
        self._told = outcome
        self._strategy = outcome.strategy_used or ""
        self._has_own_vectors = has_own_vectors
        self._alone = not learning.storage.is_writing
        self._now = clock.now()
        self.inside = scope_of(outcome)
        # The plan: what is near, and the vectors of what will be made. What was judged is known to the strategies.
        self._searched: Neighbourhood | None = None
        self._vectors: dict[str, Vector | None] = {}
        self._missing = _Missing(search=self._lessons.must_search(outcome))
        self._begin()

    def _begin(self) -> None:
        self._outcome = self._told
        self._notes: list[str] = []
        self._writes: list[Callable[[], object]] = []
        self.made: list[Heuristic | AntiPattern] = []
        self.written: int | None = None
        self.around: Neighbourhood
        self.belonging: Belonging
        self._stored: StoredLessons

    def plan(self) -> None:
        """Find what is near and judge it, outside of the transaction; after a first try, what that was missing."""
        if self._missing.search:
            self._searched = self._lessons.searched(self._told)
        around = self._searched or self._lessons.booked(self._told)
        if around is not None:
            self._lessons.consider(self._strategy, around)
        self._strategies.consider(self._missing.pairs)
        for text in self._missing.texts:
            self._vectors[text] = self._vector_of(text)
        self._missing = _Missing()

    def commit(self, tx: Transaction) -> Learned | None:
        """CHECK, COMPARE and COMMIT: all of it becomes visible together. None, and nothing written, without a plan."""
        self._begin()
        self._stored = StoredLessons(tx, self.inside, alone=self._alone)
        if not self._find_lesson(tx):
            return None
        rule = self._stored.rule(self._lesson_id)
        self._tried = [Tried.of(self._outcome), *self._stored.tried(self._lesson_id)][:EVIDENCE_READ]
        heuristic = self._new_heuristic(tx) if rule is None else self._strengthened(rule)
        warning = self._encouraged(heuristic) if self._outcome.success else self._warned(tx, heuristic)
        self._oppose()
        if self._missing.is_any:
            return None
        self._stored.add(self._outcome)
        for write in self._writes:
            write()
        self.written = self._lessons.written(tx)
        return Learned(self._outcome, heuristic, warning, tuple(self._notes))

    @property
    def _lesson_id(self) -> str:
        return self.belonging.lesson_id

    def _find_lesson(self, tx: Transaction) -> bool:
        """Whether it is known which lesson the outcome belongs to."""
        around = self._searched or self._lessons.booked(self._told, tx)
        if around is None or not self._is_considered(around):
            self._missing.search |= around is None
            return False
        found = self._lessons.belonging(self._stored, self._told, around)
        if found.begins and not around.complete:
            self._missing.search = True
            return False
        if found.begins and (newer := self._lessons.begun_meanwhile(self._stored, self._told, around)):
            if not self._is_considered(newer):
                return False
            found = self._lessons.belonging(self._stored, self._told, newer)
        self.around, self.belonging = around, found
        self._outcome = in_lesson(self._told, found)
        return True

    def _is_considered(self, around: Neighbourhood) -> bool:
        others = self._lessons.candidates(self._strategy, around)
        self._missing.pairs += [
            (self._strategy, other) for other in others if self._strategies.known(self._strategy, other) is None
        ]
        return not self._missing.pairs

    def _judged(self, one: str, other: str) -> Judgement:
        """What one strategy is to the other; where that is not known yet, it is missing."""
        found = self._strategies.known(one, other)
        if found is None:
            self._missing.pairs.append((one, other))
            return OTHER
        return found

    def _is_same_task(self, condition: str) -> bool:
        """Whether a rule is for the task of this outcome: what holds for large files need not for small ones."""
        found = self._judged(self._told.task_description, condition)
        return found["same"] + found["more"] + found["less"] >= self._strategies.tuning.same

    def _says_no_more(self, one: str, other: str) -> bool:
        """Whether one strategy is the other, or a part of it."""
        found = self._judged(one, other)
        return found["same"] + found["more"] + found["less"] >= self._strategies.tuning.same

    def _strengthened(self, rule: Heuristic) -> Heuristic:
        """The rule that the lesson is already, after this outcome, which may weaken it as well."""
        changed = self._extractor.strengthened(rule, self._outcome, self._tried[1:], self._now)
        self._writes.append(lambda: self._stored.revise(rule, changed))
        return changed

    # ------------------------------------------------------------------ CHECK

    def _evidence(self, *, whole: bool) -> Evidence:
        """The newest outcomes of the lesson; where something new is made of it, with all others."""
        newest = [Seen.of(self._outcome), *self._stored.newest(self._lesson_id)][:EVIDENCE_READ]
        every: Sequence[Seen | Counted] = newest
        if whole and len(newest) == EVIDENCE_READ:
            every = [Counted.of(self._outcome), *self._stored.all_of(self._lesson_id)]
        return Evidence(self._outcome, self._lesson_id, newest[::-1], every[::-1])

    def _new_heuristic(self, tx: Transaction) -> Heuristic | None:
        if not self._outcome.success:
            return None
        if sum(each.success for each in self._tried) < self._scope.min_occurrences_for_heuristic:
            return None
        if self._belief(self._tried).mean <= 0.5:
            return None
        evidence = self._evidence(whole=True)
        belief = self._belief(evidence.every)
        if belief.mean <= 0.5:
            return None
        made = self._related(self._extractor.heuristic(evidence, belief, self._now))
        if made is None:
            return None
        made = self._with_vector(tx, made, evidence.outcomes)
        self._add(made)
        return made

    # ------------------------------------------------------------------ COMPARE

    def _related(self, made: Heuristic) -> Heuristic | None:
        """The new rule with what it is to rules that are near; None where a better known one says the opposite."""
        links: dict[str, object] = {}
        for _, entry in self.around.rules:
            verdict = self._judged(made.strategy, entry.strategy)
            likely = verdict.label
            if likely not in _LINKED or verdict[likely] < self._strategies.tuning.linked:
                continue
            known = self._stored.rule(entry.id)
            if known is None or not self._is_same_task(known.condition):
                continue
            if likely == "opposite":
                ours, theirs = (self._extractor.current_belief(each, self._now).lower_bound for each in (made, known))
                if theirs >= _WELL_KNOWN and theirs > ours:
                    self._notes.append(f"held back: heuristic {known.id} says the opposite and is better known")
                    return None
                self._notes.append(f"heuristic {known.id} says the opposite")
            links[entry.id] = {"is": likely, "probability": round(verdict[likely], 3)}
        return made.replace(metadata={**made.metadata, RELATED: links}) if links else made

    def _oppose(self) -> None:
        """Let a success weaken the rules that say the opposite, as much as it strengthens its own lesson."""
        if not self._outcome.success:
            return
        for _, entry in self.around.rules:
            probability = self._judged(self._strategy, entry.strategy)["opposite"]
            if probability < self._strategies.tuning.opposite or entry.id == self._lesson_id:
                continue
            rule = self._stored.rule(entry.id)
            if rule is not None and self._is_same_task(rule.condition):
                changed = self._extractor.opposed(rule, self._outcome, self._tried[1:], probability, self._now)
                self._writes.append(partial(self._stored.revise, rule, changed))

    # ------------------------------------------------------------------ COMMIT

    def _warning(self, heuristic: Heuristic | None) -> AntiPattern | None:
        """The warning of the lesson, if there is one; there is none of a rule that never failed."""
        if heuristic is not None and not _has_failed(heuristic):
            return None
        return self._stored.warning(self._lesson_id)

    def _encouraged(self, heuristic: Heuristic | None) -> AntiPattern | None:
        """The warning after a success, unless the strategy has proved itself since."""
        self._offer_alternative()
        known = self._warning(heuristic)
        if known is None or heuristic is None or heuristic.confidence <= 0.5:
            return known
        self._writes.append(lambda: self._stored.withdraw(known))
        self._notes.append(f"anti-pattern {known.id} is withdrawn: the strategy succeeds by now")
        return None

    def _failed_nearby(self) -> frozenset[str]:
        """The other lessons that failed on tasks like this one."""
        return frozenset(e.lesson_id for _, e in self.around.near if e.failed) - {self._lesson_id}

    def _offer_alternative(self) -> None:
        """Tell the warnings of similar tasks what did succeed, where they know nothing yet."""
        for known in self._stored.unaware(self._failed_nearby()):
            if known.better_alternative is None and not self._says_no_more(self._strategy, known.pattern):
                changed = known.replace(better_alternative=self._strategy)
                self._writes.append(partial(self._stored.revise, known, changed))

    def _warned(self, tx: Transaction, heuristic: Heuristic | None) -> AntiPattern | None:
        """The warning after a failure, new where the lesson failed often enough."""
        known = self._warning(heuristic)
        if known is None and not self._fails_mostly():
            return None
        evidence = self._evidence(whole=known is None)
        if known is not None:
            alternative = known.better_alternative or self._alternative()
            changed = self._extractor.seen_again(known, evidence, self._outcome, alternative, self._now)
            # Its text changes with every failure; what it is about does not.
            self._writes.append(lambda: self._stored.revise(known, changed))
            return changed
        made = self._extractor.anti_pattern(evidence, self._alternative(), self._now)
        made = self._with_vector(tx, made, evidence.failures)
        self._add(made)
        self._retract_alternative(made.pattern)
        return made

    def _retract_alternative(self, failed: str) -> None:
        """The warnings of similar tasks offer something else in the place of what there is a warning of now."""
        for known in self._stored.warnings(self._failed_nearby()):
            offered = known.better_alternative
            if offered is not None and self._says_no_more(offered, failed):
                instead = self._alternative()
                if instead is not None and self._says_no_more(instead, known.pattern):
                    instead = None
                changed = known.replace(better_alternative=instead)
                self._writes.append(partial(self._stored.revise, known, changed))

    def _fails_mostly(self) -> bool:
        """Whether the lesson failed often enough for a warning, and by now fails more often than it succeeds.

        What is told long ago counts as little here as in a rule, so that none says to do what a warning says not to.
        """
        failures = sum(not each.success for each in self._tried)
        if failures < self._scope.min_occurrences_for_heuristic:
            return False
        belief = self._belief(self._tried)
        return belief.weight_against > belief.weight_for + _CLEARLY

    def _alternative(self) -> str | None:
        """What to do instead: what did best on similar tasks, and is not this strategy in other words."""
        if not self.around.complete:
            self._missing.search = True
            return None
        succeeded = dict.fromkeys(e.lesson_id for _, e in self.around.near if e.succeeded)
        succeeded.pop(self._lesson_id, None)
        tried = {lesson: self._stored.tried(lesson) for lesson in list(succeeded)[:_ALTERNATIVES_LOOKED_AT]}
        while (best := best_lesson(tried, self._belief)) is not None:
            told = [each for each in self._stored.newest(best) if each.success and each.strategy_used]
            if told and not self._says_no_more(wording(told), self._strategy):
                return wording(told)
            del tried[best]
        return None

    def _belief(self, tried: Sequence[Seen | Tried | Counted]) -> Belief:
        return self._extractor.belief(tried, self._now)

    def _add(self, made: Heuristic | AntiPattern) -> None:
        self._writes.append(lambda: self._stored.add_made(made))
        self.made.append(made)

    def _with_vector(self, tx: Transaction, made: Made, outcomes: Sequence[Seen]) -> Made:
        if self._has_own_vectors:
            # Whoever brings the vectors of tasks need not have the model: what is learned is found by its task.
            return _embedded(made, self._vector_in(tx, most_general(outcomes).id))
        text = made.embedded_text()
        if text not in self._vectors:
            self._missing.texts.append(text)
            return made
        return _embedded(made, self._vectors[text])

    def _vector_in(self, tx: Transaction, outcome_id: str) -> Sequence[float] | None:
        if outcome_id == self._outcome.id:
            return self._outcome.embedding
        stored = tx.vectors_of(Outcome, [outcome_id])
        own = (each.vector for each in stored if each.model == tx.embedding_model and each.part == 0)
        return next(own, self._outcome.embedding)


def _embedded(made: Made, vector: Sequence[float] | None) -> Made:
    """What was made, with its vector; all of it was checked already."""
    return type(made).trusted({**made.values(), "embedding": vector})


def _has_failed(heuristic: Heuristic) -> bool:
    return heuristic.success_count < heuristic.occurrence_count

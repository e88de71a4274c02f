"""The learning protocol: five steps from what happened to what it teaches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from alma import clock
from alma.embeddings.base import EmbeddingProvider
from alma.errors import EmbeddingError, ScopeViolationError, ValidationError
from alma.learning.advice import Advisor
from alma.learning.heuristics import Evidence, HeuristicExtractor, best_lesson, by_lesson, most_general, wording
from alma.learning.lessons import LessonFinder, Neighbourhood, in_lesson, scope_of
from alma.learning.meanings import MeaningWanted
from alma.learning.recommendation import Recommender
from alma.learning.stored import EVIDENCE_READ, Counted, Seen, StoredLessons, Tried
from alma.learning.strategies import contradicts
from alma.learning.trigger import MOST_OUTCOMES, ForgettingTrigger
from alma.learning.validation import ScopeValidator, parsed_outcome
from alma.memory.archive import Archive
from alma.memory.audit import AuditTrail, asked
from alma.model.belief import Belief
from alma.model.common import checked_part
from alma.model.governance import Attribution
from alma.model.learning import AntiPattern, Heuristic, Outcome
from alma.model.scope import MemoryScope
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

_WELL_KNOWN = 0.7
# By so many outcomes: as often is not more often, however much older the successes are.
_CLEARLY = 0.25
# Of so many lessons, the nearest, it is asked which strategy did best.
_ALTERNATIVES_LOOKED_AT = 8


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


class _NeedsVector(Exception):
    """A record is about to be made whose text has no vector yet; embedding is not done while others wait to write."""

    def __init__(self, text: str) -> None:
        self.text = text


class _NeedsRules(Exception):
    """The rules for similar tasks have to be searched in the store before a new one joins them."""


class _NeedsSearch(Exception):
    """What was tried on similar tasks has to be searched in the store, which takes too long to make others wait."""


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
        # What takes secrets out of an outcome before anything is done with it; the facade puts the door here.
        self.clean: Cleaner = _as_it_is
        # What takes orders out of what an error says, and tells so; the door as well.
        self.screen: Screen = _unscreened
        self._lessons = LessonFinder(storage, index, self._embedder)
        self._trigger = ForgettingTrigger(storage, Archive(storage), most_outcomes)
        self.recommender = Recommender(
            storage,
            self._lessons.meanings.same,
            self.extractor,
            advisor=Advisor(storage, index),
            vector_of=self._vector_of,
        )

    def learn(self, execution: Execution) -> Learned:
        """Record what happened and, when there is enough evidence, what it teaches."""
        success = parsed_outcome(execution.outcome)
        scope = self._validate(execution)
        outcome, notes = self._outcome(execution, success)
        by = _learner(outcome.agent)
        step = _Step(self.extractor, self._lessons, scope, outcome, has_own_vectors=execution.embedding is not None)
        if self._lessons.must_search(outcome):
            step.searched = self._lessons.searched(outcome)
        if self.storage.is_writing:
            step.embed_at_once = self._vector_of
        while True:
            try:
                learned = self.storage.write(step.commit, by)
            except _NeedsVector as needed:
                step.vectors[needed.text] = self._vector_of(needed.text)
                step.rules = self._lessons.rules_near(outcome)
            except _NeedsRules:
                step.rules = self._lessons.rules_near(outcome)
            except _NeedsSearch:
                step.searched = self._lessons.searched(outcome)
            except MeaningWanted as wanted:
                self._lessons.meanings.learn(wanted.texts)
            else:
                break
        self._lessons.note(learned.outcome, step.around, step.made, step.written)
        self._trigger.learned(step.inside)
        return learned if not notes else replace(learned, notes=(*notes, *learned.notes))

    def is_same_strategy(self, one: str, other: str) -> bool:
        """Whether two texts say to do the same thing."""
        return self._lessons.meanings.same(one, other)

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
        who = asked()
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
        vector = self._vector_of(outcome.embedded_text())
        if vector is None:
            return outcome, (*notes, "stored without a vector, because it could not be embedded")
        return outcome.replace(embedding=vector), notes

    def _require_length(self, vector: Sequence[float]) -> None:
        if len(vector) != self.storage.embedding_dim:
            reason = f"must have {self.storage.embedding_dim} dimensions, as this store's vectors do, not {len(vector)}"
            raise ValidationError("learn", "embedding", vector, reason)

    def _vector_of(self, text: str) -> Vector | None:
        """The vector of a text; none where it cannot be made, because what happened must not be lost."""
        try:
            return self._embedder.encode(text)
        except EmbeddingError as exc:
            _log.warning("something learned is stored without a vector", extra={"error": str(exc)})
            return None


class _Step:
    """One outcome and what it teaches, to be committed; what takes long is made ready between two attempts."""

    def __init__(
        self,
        extractor: HeuristicExtractor,
        lessons: LessonFinder,
        scope: MemoryScope,
        outcome: Outcome,
        *,
        has_own_vectors: bool,
    ) -> None:
        self._extractor = extractor
        self._lessons = lessons
        self._scope = scope
        self._outcome = outcome
        self._has_own_vectors = has_own_vectors
        self.inside = scope_of(outcome)
        self._now = clock.now()
        self._notes: list[str] = []
        # What is made ready outside: a search of the store, vectors for new records, and the rules they could oppose.
        self.searched: Neighbourhood | None = None
        self.vectors: dict[str, Vector | None] = {}
        self.rules: Sequence[Heuristic] | None = None
        self.around: Neighbourhood
        self._stored: StoredLessons
        self.made: list[Heuristic | AntiPattern] = []
        # Set where the transaction is somebody else's: what was written in it cannot be undone to try again.
        self.embed_at_once: Callable[[str], Vector | None] | None = None
        self.written: int | None = None

    def commit(self, tx: Transaction) -> Learned:
        """CHECK, COMPARE and COMMIT: all of it becomes visible together."""
        self._notes.clear()
        self.made.clear()
        self._stored = StoredLessons(tx, self.inside, alone=self.embed_at_once is None)
        self.around = self._lesson()
        self._outcome = in_lesson(self._outcome, self.around.lesson_id)
        rule = self._stored.rule(self.around.lesson_id)
        earlier = () if rule is None else self._stored.tried(self.around.lesson_id)
        self._stored.add(self._outcome)
        heuristic = self._new_heuristic(tx) if rule is None else self._strengthened(rule, earlier)
        warning = self._encouraged(heuristic) if self._outcome.success else self._warned(tx, heuristic)
        self.written = self._lessons.written(tx)
        self._stored.leave()
        return Learned(self._outcome, heuristic, warning, tuple(self._notes))

    def _lesson(self) -> Neighbourhood:
        around = self.searched or self._lessons.known(self._stored, self._outcome)
        if around is None:
            raise _NeedsSearch
        begun = self._lessons.begun_meanwhile(self._stored, self._outcome, around) if around.begins else None
        return around if begun is None else replace(around, lesson_id=begun, failed=around.failed - {begun})

    def _strengthened(self, rule: Heuristic, earlier: Sequence[Tried]) -> Heuristic:
        """The rule that the lesson is already, after this outcome, which may weaken it as well."""
        changed = self._extractor.strengthened(rule, self._outcome, earlier, self._now)
        self._stored.revise(rule, changed)
        return changed

    # ------------------------------------------------------------------ CHECK

    def _evidence(self, *, whole: bool) -> Evidence:
        """The newest outcomes of the lesson; where something new is made of it, with all others."""
        lesson_id = self.around.lesson_id
        newest = self._stored.newest(lesson_id)
        has_more = whole and len(newest) == EVIDENCE_READ
        return Evidence(
            self._outcome, lesson_id, newest[::-1], (self._stored.all_of(lesson_id) if has_more else newest)[::-1]
        )

    def _new_heuristic(self, tx: Transaction) -> Heuristic | None:
        if not self._outcome.success:
            return None
        tried = self._stored.tried(self.around.lesson_id)
        if sum(each.success for each in tried) < self._scope.min_occurrences_for_heuristic:
            return None
        if self._belief(tried).mean <= 0.5:
            return None
        evidence = self._evidence(whole=True)
        belief = self._belief(evidence.every)
        if belief.mean <= 0.5:
            return None
        made = self._with_vector(tx, self._extractor.heuristic(evidence, belief, self._now), evidence.outcomes)
        if self._is_contradicted(tx, made):
            return None
        self._add(made)
        return made

    # ------------------------------------------------------------------ COMPARE

    def _is_contradicted(self, tx: Transaction, made: Heuristic) -> bool:
        """Whether a rule that says the opposite is known better than this one."""
        rules = self.rules
        if rules is None:
            rules = self._lessons.opposed(tx, self.inside, self.around, made.strategy)
        if rules is None:
            if self.embed_at_once is None:
                raise _NeedsRules
            rules = self._lessons.rules_near(self._outcome)
        for known in rules:
            if not contradicts(made.strategy, known.strategy):
                continue
            ours, theirs = (self._extractor.current_belief(rule, self._now).lower_bound for rule in (made, known))
            if theirs >= _WELL_KNOWN and theirs > ours:
                self._notes.append(f"held back: heuristic {known.id} says the opposite and is better known")
                return True
            self._notes.append(f"heuristic {known.id} says the opposite")
        return False

    # ------------------------------------------------------------------ COMMIT

    def _warning(self, heuristic: Heuristic | None) -> AntiPattern | None:
        """The warning of the lesson, if there is one; there is none of a rule that never failed."""
        if heuristic is not None and not _has_failed(heuristic):
            return None
        return self._stored.warning(self.around.lesson_id)

    def _encouraged(self, heuristic: Heuristic | None) -> AntiPattern | None:
        """The warning after a success, unless the strategy has proved itself since."""
        self._offer_alternative()
        known = self._warning(heuristic)
        if known is None or heuristic is None or heuristic.confidence <= 0.5:
            return known
        self._stored.withdraw(known)
        self._notes.append(f"anti-pattern {known.id} is withdrawn: the strategy succeeds by now")
        return None

    def _offer_alternative(self) -> None:
        """Tell the warnings of similar tasks what did succeed, where they know nothing yet."""
        for known in self._stored.unaware(self.around.failed):
            if known.better_alternative is None:
                self._stored.revise(known, known.replace(better_alternative=self._outcome.strategy_used))

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
            self._stored.revise(known, changed)
            return changed
        made = self._extractor.anti_pattern(evidence, self._alternative(), self._now)
        made = self._with_vector(tx, made, evidence.failures)
        self._add(made)
        self._retract_alternative(made.pattern)
        return made

    def _retract_alternative(self, failed: str) -> None:
        """The warnings of similar tasks offer something else in the place of what there is a warning of now."""
        for known in self._stored.warnings(self.around.failed):
            offered = known.better_alternative
            if offered is not None and self._lessons.meanings.same(offered, failed):
                instead = self._alternative()
                self._stored.revise(
                    known, known.replace(better_alternative=None if instead == known.pattern else instead)
                )

    def _fails_mostly(self) -> bool:
        """Whether the lesson failed often enough for a warning, and by now fails more often than it succeeds.

        What is told long ago counts as little here as in a rule, so that none says to do what a warning says not to.
        """
        tried = self._stored.tried(self.around.lesson_id)
        failures = sum(not each.success for each in tried)
        if failures < self._scope.min_occurrences_for_heuristic:
            return False
        belief = self._belief(tried)
        return belief.weight_against > belief.weight_for + _CLEARLY

    def _alternative(self) -> str | None:
        """What to do instead: what did best on similar tasks."""
        neighbours = self.around.neighbours
        if neighbours is not None:
            lessons = by_lesson(other for other in neighbours if other.lesson_id != self.around.lesson_id)
            best = best_lesson(lessons, self._belief)
            return None if best is None else wording([seen for seen in lessons[best] if seen.success])
        if self.around.succeeded is None:
            raise _NeedsSearch
        nearest = list(dict.fromkeys(self.around.succeeded))[:_ALTERNATIVES_LOOKED_AT]
        best = best_lesson({lesson: self._stored.tried(lesson) for lesson in nearest}, self._belief)
        seen = () if best is None else self._stored.newest(best)
        told = [each for each in seen if each.success and each.strategy_used]
        return wording(told) if told else None

    def _belief(self, tried: Sequence[Seen | Tried | Counted]) -> Belief:
        return self._extractor.belief(tried, self._now)

    def _add(self, made: Heuristic | AntiPattern) -> None:
        self._stored.add_made(made)
        self.made.append(made)

    def _with_vector(self, tx: Transaction, made: Made, outcomes: Sequence[Seen]) -> Made:
        if self._has_own_vectors:
            # Whoever brings the vectors of tasks need not have the model: what is learned is found by its task.
            return _embedded(made, self._vector_of(tx, most_general(outcomes).id))
        text = made.embedded_text()
        if text not in self.vectors:
            if self.embed_at_once is None:
                raise _NeedsVector(text)
            self.vectors[text] = self.embed_at_once(text)
        return _embedded(made, self.vectors[text])

    def _vector_of(self, tx: Transaction, outcome_id: str) -> Sequence[float] | None:
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

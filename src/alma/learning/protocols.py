"""The learning protocol: from outcomes to lessons."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache, partial
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

from alma.clock import now
from alma.embeddings.base import EmbeddingProvider
from alma.errors import ALMAError, EmbeddingError, ValidationError
from alma.judge.base import Judge
from alma.learning.advice import Advisor
from alma.learning.commit import Commit, Learned, Tools
from alma.learning.heuristics import HeuristicExtractor
from alma.learning.lessons import separate
from alma.learning.planning import Plan, Planner
from alma.learning.pruning import MOST_OUTCOMES, ForgettingTrigger
from alma.learning.recommendation import Recommender
from alma.learning.strategies import StrategyComparer
from alma.learning.validation import ScopeValidator, parsed_outcome
from alma.memory.archive import Archive
from alma.memory.audit import AuditTrail, current_request
from alma.model.common import checked_part
from alma.model.governance import ANONYMOUS, Attribution
from alma.model.learning import VERIFIED_BY, DomainKnowledge, Outcome, UserPreference, checked_verified_by
from alma.model.record import Record
from alma.model.scope import MemoryScope, Scope
from alma.model.vector import Vector
from alma.redaction.nested import Masked
from alma.retrieval.writing import join_space
from alma.storage.base import StorageBackend, checked_storage
from alma.storage.transaction import Transaction
from alma.vectors.base import VectorIndex

__all__ = ["Execution", "Learned", "LearningProtocol"]

_log = logging.getLogger("alma.learning")

Cleaner = Callable[[Outcome], tuple[Outcome, Sequence[Masked]]]
Screen = Callable[[Outcome], tuple[Outcome, str | None]]

# The largest number of plans; the last one computes what it lacks inside the transaction, so it is always committed.
_MOST_PLANS = 5
_EQUIPMENT = ("_embedder", "planner", "_tools", "recommender")
_FROM_THE_USER = ("explicit_instruction", "user_stated")

T = TypeVar("T", bound=Record)


class Execution(NamedTuple):
    """A task and its outcome, as passed to `learn`."""

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
    verified_by: str | None = None


def _unredacted(outcome: Outcome) -> tuple[Outcome, Sequence[Masked]]:
    return outcome, ()


def _unscreened(outcome: Outcome) -> tuple[Outcome, str | None]:
    return outcome, None


class LearningProtocol:
    """The only way from an outcome to a heuristic or an anti-pattern.

    `LearningProtocol(storage, scopes)` takes the provider and the index of the memory that it becomes part of; on its
    own, those of the default configuration.
    """

    def __init__(
        self,
        storage: StorageBackend,
        embedder: EmbeddingProvider | Mapping[str, MemoryScope] | None = None,
        index: VectorIndex | None = None,
        scopes: Mapping[str, MemoryScope] | None = None,
        extractor: HeuristicExtractor | None = None,
        most_outcomes: int = MOST_OUTCOMES,
        judge: Judge | None = None,
    ) -> None:
        self.storage = checked_storage("learning protocol", storage)
        if isinstance(embedder, Mapping):
            embedder, scopes = None, embedder
        self.validator = ScopeValidator(scopes)
        self.scopes = self.validator.scopes
        self._audit = AuditTrail(storage, mask=storage.masked)
        if extractor is None:
            extractor = HeuristicExtractor()
        hint = "a HeuristicExtractor, or None for the usual one"
        self.extractor = checked_part("learning protocol", "extractor", extractor, HeuristicExtractor, hint)
        # The facade sets both to those of ingest: redaction of secrets, and screening of error messages.
        self.clean: Cleaner = _unredacted
        self.screen: Screen = _unscreened
        self.strategies = StrategyComparer(judge)
        self._trigger = ForgettingTrigger(storage, Archive(storage), most_outcomes)
        if embedder is not None:
            self._equip(embedder, index)

    def join(self, embedder: EmbeddingProvider, index: VectorIndex) -> None:
        """Use the provider and the index of a memory, unless it was made with its own."""
        if "planner" not in vars(self):
            self._equip(embedder, index)

    def __getattr__(self, name: str) -> Any:
        # Only reached while there is no provider: a protocol made without one, which no memory has joined.
        if name not in _EQUIPMENT:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        bootstrap = import_module("alma.bootstrap")
        self._equip(bootstrap.create_embedder("local"), bootstrap.open_vector_index(self.storage))
        return getattr(self, name)

    def _equip(self, embedder: EmbeddingProvider, index: VectorIndex | None) -> None:
        self._embedder = join_space(self.storage, embedder)
        if index is None or not callable(getattr(index, "search", None)):
            raise ValidationError("learning protocol", "index", index, "must be a vector index, as engine.index is one")
        self.planner = Planner(self.storage, index, self.strategies, self.vector_of)
        self._tools = Tools(self.planner, self.strategies, self.extractor, self.vector_of)
        self.recommender = Recommender(
            self.storage,
            self.strategies,
            self.extractor,
            advisor=Advisor(self.storage, index),
            vector_of=self.vector_of,
        )

    def learn(self, execution: Execution | str | None = None, *fields: Any, **named: Any) -> Learned:
        """Learn from an `Execution`, or from its fields as arguments.

        Record what happened and, when there is enough evidence, what it teaches.

        Parse, VALIDATE, embed and plan outside of the transaction; CHECK, COMPARE and COMMIT inside; then TRIGGER.
        """
        if not isinstance(execution, Execution):
            execution = Execution(*(() if execution is None else (execution,)), *fields, **named)
        success = parsed_outcome(execution.outcome)
        text = f"{execution.task} {execution.strategy_used}"
        scope = self.require(execution.agent, execution.task_type, text)
        outcome, notes = self._embedded(*self._screened(_outcome(execution, success)))
        plan = self.planner.plan(outcome, has_given_vector=execution.embedding is not None)
        learned = self._commit(plan, scope.min_occurrences_for_heuristic)
        self._trigger.learned(plan.scope)
        return learned if not notes else replace(learned, notes=(*notes, *learned.notes))

    def _commit(self, plan: Plan, min_occurrences: int) -> Learned:
        """CHECK, COMPARE and COMMIT in one transaction; again with a completed plan where that lacked something."""
        by = _learned_by(plan.outcome.agent)
        for attempts_left in reversed(range(_MOST_PLANS)):
            commit, learned = self.storage.write(partial(self._attempt, plan, min_occurrences), by)
            if learned is not None:
                self.planner.committed(plan, learned.outcome, commit.made, commit.match, commit.positions)
                return learned
            plan = self.planner.completed(plan, commit.missing, is_final=attempts_left == 1)
        raise AssertionError("a final plan lacks nothing")

    def _attempt(self, plan: Plan, min_occurrences: int, tx: Transaction) -> tuple[Commit, Learned | None]:
        commit = Commit(self._tools, plan, min_occurrences, tx)
        return commit, commit.run()

    def is_same_strategy(self, one: str, other: str) -> bool:
        """Whether two texts mean the same strategy."""
        return self.strategies.same(one, other)

    def separate(
        self, heuristic_id: str, strategy: str, agent: str, project_id: str, by: Attribution = ANONYMOUS
    ) -> list[str]:
        """Say that a strategy is not that of a rule: its outcomes become another lesson, and stay one."""
        scope = Scope(project_id=project_id, agent=agent)
        return separate(self.storage, self.extractor, heuristic_id, strategy, scope, by)

    # ------------------------------------------------------------------ calls of alma-memory 0.4

    def add_preference(self, user_id: str, category: str, preference: str, source: str) -> UserPreference:
        """Store a preference without redaction, screening or comparison; see `ALMA.add_user_preference`."""
        sure = 1.0 if source in _FROM_THE_USER else 0.7
        made = UserPreference(user_id=user_id, category=category, preference=preference, source=source, confidence=sure)
        return self._stored(made)

    def add_domain_knowledge(self, agent: str, project_id: str, domain: str, fact: str, source: str) -> DomainKnowledge:
        """Store a fact, if the agent may learn in its domain, without the rest of `ALMA.add_domain_knowledge`."""
        self.require(agent, domain, fact, "add_domain_knowledge", DomainKnowledge.spec.kind)
        sure = 1.0 if source in _FROM_THE_USER else 0.8
        made = DomainKnowledge(
            agent=agent, project_id=project_id, domain=domain, fact=fact, source=source, confidence=sure
        )
        return self._stored(made)

    def forget(
        self,
        project_id: str,
        agent: str | None = None,
        older_than_days: float = 90,
        below_confidence: float = 0.3,
    ) -> int:
        """Delete old outcomes and heuristics with little confidence; `ALMA.forget` archives them instead."""
        cutoff = now() - timedelta(days=older_than_days)
        outcomes = self.storage.delete_outcomes_older_than(project_id, cutoff, agent)
        return outcomes + self.storage.delete_low_confidence_heuristics(project_id, below_confidence, agent)

    def _stored(self, record: T) -> T:
        vector = self.vector_of(record.embedded_text()) if record.spec.vector_field is not None else None
        made = record if vector is None else record.replace(embedding=vector)
        self.storage.write(lambda tx: tx.save(made))
        return made

    # ------------------------------------------------------------------ VALIDATE

    def require(
        self, agent: str, domain: str | None, text: str, action: str = "learn", kind: str = Outcome.spec.kind
    ) -> MemoryScope:
        """The scope of an agent that may learn this; otherwise a `ScopeViolationError`, which is audited."""
        try:
            return self.validator.require(agent, domain, text)
        except ALMAError:
            requested = current_request()
            by = replace(requested.by, agent=agent)
            with self._audit.attempt(action, kind, by, resource_id="-", request=requested.request):
                raise

    # ------------------------------------------------------------------ embed

    def _screened(self, outcome: Outcome) -> tuple[Outcome, tuple[str, ...]]:
        """The outcome without secrets and without instructions in its error, with notes about both."""
        outcome, masked = self.clean(outcome)
        outcome, quarantined = self.screen(outcome)
        notes = tuple(f"a secret was masked in {each.field}: {each.kind}" for each in masked)
        return outcome, notes if quarantined is None else (*notes, quarantined)

    def _embedded(self, outcome: Outcome, notes: tuple[str, ...]) -> tuple[Outcome, tuple[str, ...]]:
        """The outcome with its vector; without one where it cannot be embedded, so that it is not lost."""
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
        """The vector of a text; None where the embedder fails."""
        try:
            return self._embedder.encode(text)
        except EmbeddingError as exc:
            _log.warning("something learned is stored without a vector", extra={"error": str(exc)})
            return None


@lru_cache(maxsize=256)
def _learned_by(agent: str) -> Attribution:
    return Attribution(agent=agent, reason="learned from an outcome")


def _outcome(execution: Execution, success: bool) -> Outcome:
    strategy, metadata = execution.strategy_used, execution.metadata
    if not isinstance(strategy, str) or not strategy.strip():
        raise ValidationError("learn", "strategy_used", strategy, "must be a text that says what was done")
    verified_by = checked_verified_by(execution.verified_by)
    given: Any = dict(metadata) if isinstance(metadata, Mapping) else metadata or {}
    if verified_by is not None and isinstance(given, dict):
        given[VERIFIED_BY] = verified_by
    return Outcome(
        agent=execution.agent,
        project_id=execution.project_id,
        task_type=execution.task_type,
        task_description=execution.task,
        success=success,
        strategy_used=strategy,
        duration_ms=execution.duration_ms,
        error_message=execution.error_message,
        user_feedback=execution.feedback,
        metadata=given,
        embedding=execution.embedding,
    )

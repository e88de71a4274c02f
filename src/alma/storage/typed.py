"""ALMA's named methods, written once for every store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, TypeVar

from alma import clock
from alma.errors import ValidationError
from alma.model.common import checked_name
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.query import And, Compare, Order, Predicate
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.records import RecordStore

T = TypeVar("T", bound=Record)

_ANYWHERE = Scope.everywhere()
_BY_CONFIDENCE = (Order("confidence", "desc"),)
_NEWEST_OUTCOMES = (Order("timestamp", "desc"),)
_LAST_VERIFIED = (Order("last_verified", "desc"),)
_LAST_SEEN = (Order("last_seen", "desc"),)


class TypedMemories(RecordStore):
    """The five typed memories by name: saving, reading, strengthening and pruning them."""

    storage_type: ClassVar[str]

    # ------------------------------------------------------------------ saving

    def save_heuristic(self, heuristic: Heuristic) -> str:
        """Store a heuristic; returns its id."""
        return self.save(_of_kind(Heuristic, heuristic))

    def save_outcome(self, outcome: Outcome) -> str:
        """Store an outcome; returns its id."""
        return self.save(_of_kind(Outcome, outcome))

    def save_user_preference(self, preference: UserPreference) -> str:
        """Store a user's preference; returns its id."""
        return self.save(_of_kind(UserPreference, preference))

    def save_domain_knowledge(self, knowledge: DomainKnowledge) -> str:
        """Store a fact; returns its id."""
        return self.save(_of_kind(DomainKnowledge, knowledge))

    def save_anti_pattern(self, anti_pattern: AntiPattern) -> str:
        """Store an anti-pattern; returns its id."""
        return self.save(_of_kind(AntiPattern, anti_pattern))

    def save_heuristics(self, heuristics: Iterable[Heuristic]) -> list[str]:
        """Store all of the heuristics or none; returns their ids."""
        return self.save_many(_all_of_kind(Heuristic, heuristics))

    def save_outcomes(self, outcomes: Iterable[Outcome]) -> list[str]:
        """Store all of the outcomes or none; returns their ids."""
        return self.save_many(_all_of_kind(Outcome, outcomes))

    def save_domain_knowledge_batch(self, knowledge_items: Iterable[DomainKnowledge]) -> list[str]:
        """Store all of the facts or none; returns their ids."""
        return self.save_many(_all_of_kind(DomainKnowledge, knowledge_items))

    def batch_save_heuristics(self, heuristics: Iterable[Heuristic]) -> list[str]:
        """Store all of the heuristics or none; returns their ids."""
        return self.save_heuristics(heuristics)

    def batch_save_outcomes(self, outcomes: Iterable[Outcome]) -> list[str]:
        """Store all of the outcomes or none; returns their ids."""
        return self.save_outcomes(outcomes)

    def batch_save_user_preferences(self, preferences: Iterable[UserPreference]) -> list[str]:
        """Store all of the preferences or none; returns their ids."""
        return self.save_many(_all_of_kind(UserPreference, preferences))

    def batch_save_domain_knowledge(self, knowledge_items: Iterable[DomainKnowledge]) -> list[str]:
        """Store all of the facts or none; returns their ids."""
        return self.save_domain_knowledge_batch(knowledge_items)

    def batch_save_anti_patterns(self, anti_patterns: Iterable[AntiPattern]) -> list[str]:
        """Store all of the anti-patterns or none; returns their ids."""
        return self.save_many(_all_of_kind(AntiPattern, anti_patterns))

    # ------------------------------------------------------------------ reading

    def get_heuristics(
        self,
        project_id: str,
        agent: str | None = None,
        embedding: Sequence[float] | None = None,
        top_k: int = 5,
        min_confidence: float = 0.0,
    ) -> list[Heuristic]:
        """The nearest heuristics, or without an embedding the most trusted ones."""
        where = Compare("confidence", "ge", min_confidence)
        return self._best(Heuristic, _in_project(project_id, agent), where, embedding, top_k, _BY_CONFIDENCE)

    def get_outcomes(
        self,
        project_id: str,
        agent: str | None = None,
        task_type: str | None = None,
        embedding: Sequence[float] | None = None,
        top_k: int = 5,
        success_only: bool = False,
    ) -> list[Outcome]:
        """The nearest outcomes, or without an embedding the latest ones."""
        where = _outcomes_where(task_type, success_only)
        return self._best(Outcome, _in_project(project_id, agent), where, embedding, top_k, _NEWEST_OUTCOMES)

    def get_user_preferences(self, user_id: str, category: str | None = None) -> list[UserPreference]:
        """Everything a user prefers, surest first."""
        scope = Scope(user_id=checked_name("scope", "user_id", user_id))
        return self.find(UserPreference, scope, _equal("category", category), _BY_CONFIDENCE)

    def get_domain_knowledge(
        self,
        project_id: str,
        agent: str | None = None,
        domain: str | None = None,
        embedding: Sequence[float] | None = None,
        top_k: int = 5,
    ) -> list[DomainKnowledge]:
        """The nearest facts, or without an embedding the last verified ones."""
        scope = _in_project(project_id, agent)
        return self._best(DomainKnowledge, scope, _equal("domain", domain), embedding, top_k, _LAST_VERIFIED)

    def get_anti_patterns(
        self,
        project_id: str,
        agent: str | None = None,
        embedding: Sequence[float] | None = None,
        top_k: int = 5,
    ) -> list[AntiPattern]:
        """The nearest anti-patterns, or without an embedding the last seen ones."""
        return self._best(AntiPattern, _in_project(project_id, agent), And(), embedding, top_k, _LAST_SEEN)

    def get_heuristics_for_agents(
        self,
        project_id: str,
        agents: Sequence[str],
        embedding: Sequence[float] | None = None,
        top_k: int = 5,
        min_confidence: float = 0.0,
    ) -> list[Heuristic]:
        """`get_heuristics` for several agents at once."""
        where = Compare("confidence", "ge", min_confidence)
        return self._best(Heuristic, _of_agents(project_id, agents), where, embedding, top_k, _BY_CONFIDENCE)

    def get_outcomes_for_agents(
        self,
        project_id: str,
        agents: Sequence[str],
        task_type: str | None = None,
        embedding: Sequence[float] | None = None,
        top_k: int = 5,
        success_only: bool = False,
    ) -> list[Outcome]:
        """`get_outcomes` for several agents at once."""
        where = _outcomes_where(task_type, success_only)
        return self._best(Outcome, _of_agents(project_id, agents), where, embedding, top_k, _NEWEST_OUTCOMES)

    def get_domain_knowledge_for_agents(
        self,
        project_id: str,
        agents: Sequence[str],
        domain: str | None = None,
        embedding: Sequence[float] | None = None,
        top_k: int = 5,
    ) -> list[DomainKnowledge]:
        """`get_domain_knowledge` for several agents at once."""
        scope = _of_agents(project_id, agents)
        return self._best(DomainKnowledge, scope, _equal("domain", domain), embedding, top_k, _LAST_VERIFIED)

    def get_anti_patterns_for_agents(
        self,
        project_id: str,
        agents: Sequence[str],
        embedding: Sequence[float] | None = None,
        top_k: int = 5,
    ) -> list[AntiPattern]:
        """`get_anti_patterns` for several agents at once."""
        return self._best(AntiPattern, _of_agents(project_id, agents), And(), embedding, top_k, _LAST_SEEN)

    def get_stats(self, project_id: str, agent: str | None = None) -> dict[str, Any]:
        """How many memories of each kind there are; preferences belong to users, so all of them count."""
        scope = _in_project(project_id, agent)
        with self.snapshot() as tx:
            counts = {
                "heuristics_count": tx.count(Heuristic, scope),
                "outcomes_count": tx.count(Outcome, scope),
                "domain_knowledge_count": tx.count(DomainKnowledge, scope),
                "anti_patterns_count": tx.count(AntiPattern, scope),
                "preferences_count": tx.count(UserPreference, _ANYWHERE),
            }
        total = sum(counts.values())
        described = {"project_id": project_id, "agent": agent, "storage_type": self.storage_type}
        return {**described, **counts, "total_count": total}

    # ------------------------------------------------------------------ changing

    def update_heuristic(self, heuristic_id: str, updates: Mapping[str, Any]) -> bool:
        """Change fields of a heuristic; False where there is none."""
        return self.update(Heuristic, heuristic_id, updates, _ANYWHERE) is not None

    def increment_heuristic_occurrence(self, heuristic_id: str, success: bool) -> bool:
        """Count one more occurrence atomically; False where there is no such heuristic."""
        if not isinstance(success, bool):
            raise ValidationError("heuristic", "success", success, "must be True or False")
        counters = {"occurrence_count": 1, "success_count": int(success)}
        validated = {"last_validated": clock.now()}
        return self.increment(Heuristic, heuristic_id, counters, _ANYWHERE, validated) is not None

    def update_heuristic_confidence(self, heuristic_id: str, new_confidence: float) -> bool:
        """Set a heuristic's confidence; False where there is none."""
        return self.update_heuristic(heuristic_id, {"confidence": new_confidence})

    def update_knowledge_confidence(self, knowledge_id: str, new_confidence: float) -> bool:
        """Set a fact's confidence; False where there is none."""
        return self.update(DomainKnowledge, knowledge_id, {"confidence": new_confidence}, _ANYWHERE) is not None

    # ------------------------------------------------------------------ deleting

    def delete_heuristic(self, heuristic_id: str) -> bool:
        """Delete a heuristic with its vector; False where there is none."""
        return self.delete(Heuristic, [heuristic_id], _ANYWHERE) > 0

    def delete_outcome(self, outcome_id: str) -> bool:
        """Delete an outcome with its vector; False where there is none."""
        return self.delete(Outcome, [outcome_id], _ANYWHERE) > 0

    def delete_user_preference(self, preference_id: str) -> bool:
        """Delete a preference; False where there is none."""
        return self.delete(UserPreference, [preference_id], _ANYWHERE) > 0

    def delete_domain_knowledge(self, knowledge_id: str) -> bool:
        """Delete a fact with its vector; False where there is none."""
        return self.delete(DomainKnowledge, [knowledge_id], _ANYWHERE) > 0

    def delete_anti_pattern(self, anti_pattern_id: str) -> bool:
        """Delete an anti-pattern with its vector; False where there is none."""
        return self.delete(AntiPattern, [anti_pattern_id], _ANYWHERE) > 0

    def delete_outcomes_older_than(self, project_id: str, older_than: datetime, agent: str | None = None) -> int:
        """Delete the outcomes from before an instant; returns how many there were."""
        where = Compare("timestamp", "lt", older_than)
        return self.delete_where(Outcome, _in_project(project_id, agent), where)

    def delete_low_confidence_heuristics(
        self, project_id: str, below_confidence: float, agent: str | None = None
    ) -> int:
        """Delete the heuristics trusted less than that; returns how many there were."""
        where = Compare("confidence", "lt", below_confidence)
        return self.delete_where(Heuristic, _in_project(project_id, agent), where)

    # ------------------------------------------------------------------ how they read

    def _best(
        self,
        cls: type[T],
        scope: Scope,
        where: Predicate,
        embedding: Sequence[float] | None,
        top_k: int,
        order: Sequence[Order],
    ) -> list[T]:
        if embedding is None:
            return self.find(cls, scope, where, order, top_k)
        return [hit.record for hit in self.search_vector(cls, embedding, scope, where, top_k)]


def _of_kind(cls: type[T], record: Any) -> T:
    if not isinstance(record, cls):
        raise ValidationError(cls.spec.kind, None, record, f"must be a {cls.__name__}")
    return record


def _all_of_kind(cls: type[T], records: Iterable[Any]) -> list[T]:
    if not isinstance(records, Iterable):
        raise ValidationError(cls.spec.kind, None, records, f"must be given as a list of {cls.__name__}")
    return [_of_kind(cls, each) for each in records]


def _in_project(project_id: str, agent: str | Sequence[str] | None) -> Scope:
    """The scope of a project, which must be named: without one, an agent would be met in every project."""
    return Scope(project_id=checked_name("scope", "project_id", project_id), agent=agent)


def _of_agents(project_id: str, agents: Sequence[str]) -> Scope:
    if isinstance(agents, str) or not isinstance(agents, Iterable):
        raise ValidationError("scope", "agents", agents, "must be a list of agent names")
    return _in_project(project_id, tuple(agents))


def _equal(name: str, value: str | None) -> Predicate:
    return And() if value is None else Compare(name, "eq", value)


def _outcomes_where(task_type: str | None, success_only: bool) -> Predicate:
    successful: Predicate = Compare("success", "eq", True) if success_only else And()
    return And(_equal("task_type", task_type), successful)

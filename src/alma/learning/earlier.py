"""The calls of alma-memory 0.4 on a learning protocol besides `learn`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from alma.clock import now
from alma.model.learning import DomainKnowledge, UserPreference

_FROM_THE_USER = ("explicit_instruction", "user_stated")


class EarlierLearning:
    """What `ALMA` offers under the same names with redaction, screening and comparison; here records are stored."""

    def add_preference(self: Any, user_id: str, category: str, preference: str, source: str) -> UserPreference:
        """Store a preference; see `ALMA.add_user_preference`."""
        sure = 1.0 if source in _FROM_THE_USER else 0.7
        made = UserPreference(user_id=user_id, category=category, preference=preference, source=source, confidence=sure)
        return self._stored(made)  # type: ignore[no-any-return]

    def add_domain_knowledge(
        self: Any, agent: str, project_id: str, domain: str, fact: str, source: str
    ) -> DomainKnowledge:
        """Store a fact, if the agent may learn in its domain; see `ALMA.add_domain_knowledge`."""
        self.require(agent, domain, fact, "add_domain_knowledge", DomainKnowledge.spec.kind)
        sure = 1.0 if source in _FROM_THE_USER else 0.8
        made = DomainKnowledge(
            agent=agent, project_id=project_id, domain=domain, fact=fact, source=source, confidence=sure
        )
        return self._stored(made)  # type: ignore[no-any-return]

    def forget(
        self: Any,
        project_id: str,
        agent: str | None = None,
        older_than_days: float = 90,
        below_confidence: float = 0.3,
    ) -> int:
        """Delete old outcomes and heuristics that are little trusted; `ALMA.forget` archives them instead."""
        cutoff = now() - timedelta(days=older_than_days)
        outcomes = self.storage.delete_outcomes_older_than(project_id, cutoff, agent)
        heuristics = self.storage.delete_low_confidence_heuristics(project_id, below_confidence, agent)
        return int(outcomes + heuristics)

    def _stored(self: Any, record: Any) -> Any:
        vector = self.vector_of(record.embedded_text()) if record.spec.vector_field is not None else None
        made = record if vector is None else record.replace(embedding=vector)
        self.storage.write(lambda tx: tx.save(made))
        return made

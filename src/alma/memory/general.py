"""Notes, decisions and other general memories of one project, with the methods of `ALMA` for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from alma.model.governance import Attribution
from alma.model.memory import Memory
from alma.model.scope import Scope

if TYPE_CHECKING:
    from alma.memory.entries import Content
    from alma.memory.filters import MemoryFilter
    from alma.memory.journal import Journal
    from alma.memory.search import SearchResult
    from alma.retrieval.simple_search import Mode


class GeneralMemories:
    """The methods of `ALMA` for general memories: its `journal` inside its project."""

    project_id: str

    if TYPE_CHECKING:

        @property
        def journal(self) -> Journal: ...

    def remember(
        self,
        content: Content,
        *,
        agent: str | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        title: str | None = None,
        memory_type: str | None = None,
        category: str | None = None,
        tags: Iterable[str] | None = None,
        importance_score: float | None = None,
        layers: Iterable[str] | None = None,
        ttl_seconds: float | None = None,
        event_time: datetime | None = None,
        is_private: bool | None = None,
        source: str | None = None,
        context_json: Mapping[str, Any] | None = None,
    ) -> Memory:
        """Store a note, a decision or any other text in this project, and return it as it is stored.

        Category, importance and layers that are not given are chosen by rules. `source` says where the text comes from;
        text that looks like a prompt injection is refused unless it is from user, agent or system.
        """
        by = Attribution(user_id=user_id, agent=agent, session_id=session_id)
        return self.journal.create(
            content,
            by=by,
            source=source,
            project_id=self.project_id,
            user_id=user_id,
            session_id=session_id,
            title=title,
            memory_type=memory_type,
            category=category,
            tags=None if tags is None else tuple(tags),
            importance_score=importance_score,
            layers=None if layers is None else tuple(layers),
            ttl_seconds=ttl_seconds,
            event_time=event_time,
            is_private=is_private,
            context_json=context_json,
        )

    def search(
        self,
        query: str,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        mode: Mode = "hybrid",
        where: MemoryFilter | None = None,
        min_similarity: float | None = None,
        limit: int = 10,
        now: datetime | None = None,
    ) -> SearchResult:
        """The general memories of this project that answer a query best, with the reasons for their scores.

        Private memories are found by their user only.
        """
        by = Attribution(user_id=user_id, session_id=session_id)
        return self.journal.search(
            query,
            Scope(project_id=self.project_id),
            by=by,
            mode=mode,
            where=where,
            min_similarity=min_similarity,
            limit=limit,
            now=now,
        )

    def correct(
        self, memory_id: str, correction: str, *, user_id: str | None = None, reason: str | None = None
    ) -> Memory:
        """Replace what a general memory of this project says; it keeps its id and its history."""
        by = Attribution(user_id=user_id)
        changes = {"content": correction}
        within = Scope(project_id=self.project_id)
        return self.journal.update(memory_id, changes, within, by=by, reason=reason or "corrected")

    def delete(
        self, memory_id: str, *, user_id: str | None = None, hard: bool = False, reason: str | None = None
    ) -> bool:
        """Delete a general memory of this project; returns whether there was one.

        `alma.journal.undelete` restores it unless it was deleted with `hard`.
        """
        by = Attribution(user_id=user_id)
        return self.journal.delete(memory_id, Scope(project_id=self.project_id), by=by, hard=hard, reason=reason)

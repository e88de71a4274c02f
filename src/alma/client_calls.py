"""The operations that `alma.client.Client` has methods for; every argument of the operation is a keyword."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from alma.model.fields import JsonObject
from alma.operations.base import Output
from alma.operations.learning import KnowledgeKept, LearnedFrom, PreferenceKept, Recommended
from alma.operations.maintenance import Stats
from alma.operations.memories import Context, Hits, MemoryKept, MemoryPage
from alma.operations.retrieving import Retrieved
from alma.operations.sessions import SessionOpen

Made = TypeVar("Made", bound=Output)


class Calls:
    """A method for each of the most common operations; arguments that are None are omitted."""

    def call(self, name: str, **arguments: Any) -> JsonObject:
        """Call any operation by its name; arguments that are None are omitted."""
        raise NotImplementedError

    def _call(self, name: str, output: type[Made], arguments: Mapping[str, Any]) -> Made:
        raise NotImplementedError

    def retrieve(
        self,
        task: str,
        agent: str,
        user_id: str | None = None,
        top_k: int | None = None,
        *,
        project_id: str | None = None,
        session_id: str | None = None,
        max_tokens: int | None = None,
        weak: bool | None = None,
        explain: bool | None = None,
        why_not: str | None = None,
        already_shown: str | None = None,
        as_of: datetime | str | None = None,
    ) -> Retrieved:
        """Retrieve the memories worth knowing for this task; `prompt` is the text for a language model."""
        return self._call("retrieve", Retrieved, _given(locals()))

    def learn(
        self,
        agent: str,
        task: str,
        outcome: str | bool,
        strategy_used: str,
        *,
        project_id: str | None = None,
        task_type: str | None = None,
        duration_ms: int | None = None,
        error_message: str | None = None,
        feedback: str | None = None,
        verified_by: str | None = None,
        retrieval_id: str | None = None,
    ) -> LearnedFrom:
        """Record the outcome of a task."""
        return self._call("learn", LearnedFrom, _given(locals()))

    def recommend(
        self,
        task: str,
        agent: str,
        among: Sequence[str] | None = None,
        *,
        project_id: str | None = None,
        explore: bool | None = None,
    ) -> Recommended:
        """Recommend a strategy for a task, with the evidence."""
        return self._call("recommend", Recommended, _given(locals()))

    def add_preference(
        self,
        user_id: str,
        category: str,
        preference: str,
        *,
        source: str | None = None,
        supersedes: Sequence[str] | None = None,
    ) -> PreferenceKept:
        """Store how a user wants things done."""
        return self._call("add_preference", PreferenceKept, _given(locals()))

    def add_knowledge(
        self,
        agent: str,
        domain: str,
        fact: str,
        *,
        project_id: str | None = None,
        source: str | None = None,
        supersedes: Sequence[str] | None = None,
    ) -> KnowledgeKept:
        """Store a fact, if the agent may learn in this domain."""
        return self._call("add_knowledge", KnowledgeKept, _given(locals()))

    def stats(self, agent: str | None = None, project_id: str | None = None) -> Stats:
        """Count the memories of each kind."""
        return self._call("stats", Stats, _given(locals()))

    def remember(
        self,
        content: str | Mapping[str, Any],
        *,
        project_id: str | None = None,
        title: str | None = None,
        summary: str | None = None,
        memory_type: str | None = None,
        category: str | None = None,
        tags: Sequence[str] | None = None,
        importance_score: float | None = None,
        priority: int | None = None,
        layers: Sequence[str] | None = None,
        ttl_seconds: float | None = None,
        expires_at: datetime | str | None = None,
        event_time: datetime | str | None = None,
        context_json: Mapping[str, Any] | None = None,
        source_tool: str | None = None,
        external_id: str | None = None,
        is_private: bool | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        agent: str | None = None,
        source: str | None = None,
    ) -> MemoryKept:
        """Create a memory: a note, a decision, a solution or a part of a conversation."""
        return self._call("create_memory", MemoryKept, _given(locals()))

    def get(self, memory_id: str, *, project_id: str | None = None, user_id: str | None = None) -> MemoryKept:
        """Read a memory by its id; its version can be passed to `update`."""
        return self._call("get_memory", MemoryKept, _given(locals()))

    def update(
        self,
        memory_id: str,
        *,
        project_id: str | None = None,
        title: str | None = None,
        summary: str | None = None,
        memory_type: str | None = None,
        category: str | None = None,
        tags: Sequence[str] | None = None,
        importance_score: float | None = None,
        priority: int | None = None,
        layers: Sequence[str] | None = None,
        ttl_seconds: float | None = None,
        expires_at: datetime | str | None = None,
        event_time: datetime | str | None = None,
        context_json: Mapping[str, Any] | None = None,
        source_tool: str | None = None,
        external_id: str | None = None,
        is_private: bool | None = None,
        content: str | Mapping[str, Any] | None = None,
        is_archived: bool | None = None,
        user_id: str | None = None,
        reason: str | None = None,
        expected_version: int | None = None,
        source: str | None = None,
    ) -> MemoryKept:
        """Change a memory; with `expected_version`, a ConflictError if it has changed since."""
        return self._call("update_memory", MemoryKept, _given(locals()))

    def delete(
        self,
        memory_id: str,
        *,
        project_id: str | None = None,
        user_id: str | None = None,
        hard: bool | None = None,
        reason: str | None = None,
        expected_version: int | None = None,
    ) -> bool:
        """Delete a memory, softly unless `hard`; returns whether there was one."""
        return bool(self.call("delete_memory", **_given(locals()))["deleted"])

    def list(
        self,
        *,
        project_id: str | None = None,
        ids: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        sort: Sequence[str] | None = None,
        limit: int | None = None,
        offset: int | None = None,
        cursor: str | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
    ) -> MemoryPage:
        """A page of memories; pass `next_cursor` for the next page."""
        return self._call("list_memories", MemoryPage, _given(locals()))

    def search(
        self,
        query: str,
        *,
        project_id: str | None = None,
        mode: str | None = None,
        where: Mapping[str, Any] | None = None,
        min_similarity: float | None = None,
        limit: int | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        route_layers: bool | None = None,
        why_not: str | None = None,
    ) -> Hits:
        """Search memories by meaning and by words."""
        return self._call("search_memories", Hits, _given(locals()))

    def context(
        self,
        activity: str | None = None,
        *,
        project_id: str | None = None,
        files: Sequence[str] | None = None,
        git_branch: str | None = None,
        max_tokens: int | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        agent: str | None = None,
    ) -> Context:
        """Collect the memories that matter for an activity, files and a branch."""
        return self._call("get_context", Context, _given(locals()))

    def create_session(
        self,
        name: str | None = None,
        *,
        project_id: str | None = None,
        description: str | None = None,
        session_type: str | None = None,
        goal: str | None = None,
        user_id: str | None = None,
        agent: str | None = None,
        parent_session_id: str | None = None,
        git_branch: str | None = None,
        git_commit: str | None = None,
        working_directory: str | None = None,
        context: Mapping[str, Any] | None = None,
        session_id: str | None = None,
    ) -> SessionOpen:
        """Create a session, to which memories and agent states can belong."""
        return self._call("create_session", SessionOpen, _given(locals()))

    def end_session(
        self, session_id: str, summary: str | None = None, archive: bool | None = None, *, project_id: str | None = None
    ) -> SessionOpen:
        """End a session and store its summary."""
        return self._call("end_session", SessionOpen, _given(locals()))


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a method, with times as text."""
    given = {name: value for name, value in values.items() if name != "self"}
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in given.items()}

"""The MCP tools of alma-memory 0.4 as functions: each takes the memory first and returns a dictionary.

They never raise: an error is `{"success": False, "error": …}`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ParamSpec

from alma.clock import now

if TYPE_CHECKING:
    from alma.core import ALMA
    from alma.model.slice import MemorySlice

_log = logging.getLogger("alma.mcp")
P = ParamSpec("P")
_SHOWN: Mapping[str, tuple[str, ...]] = {
    "preference": ("id", "user_id", "category", "preference", "source"),
    "knowledge": ("id", "agent", "domain", "fact", "source"),
    "outcome": ("id", "agent", "task_type", "task_description", "success", "strategy_used"),
}
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "heuristics": ("id", "condition", "strategy", "confidence", "occurrence_count", "success_rate"),
    "outcomes": ("id", "task_type", "task_description", "success", "strategy_used", "duration_ms"),
    "domain_knowledge": ("id", "domain", "fact", "confidence"),
    "anti_patterns": ("id", "pattern", "why_bad", "better_alternative"),
    "preferences": ("id", "category", "preference"),
}
_TYPES = ("heuristics", "outcomes", "domain_knowledge", "anti_patterns")
_CONSOLIDATED = {"heuristics": "heuristic", "domain_knowledge": "domain_knowledge", "anti_patterns": "anti_pattern"}


def _answered(**extra: Any) -> Callable[[Callable[P, dict[str, Any]]], Callable[P, dict[str, Any]]]:
    """Add `success`; an error, such as an empty text, becomes the answer, with `extra`."""

    def decorate(tool: Callable[P, dict[str, Any]]) -> Callable[P, dict[str, Any]]:
        expected = signature(tool)
        required = [name for name, each in expected.parameters.items() if each.default is each.empty][1:]

        @wraps(tool)
        def answer(*args: P.args, **given: P.kwargs) -> dict[str, Any]:
            told = expected.bind_partial(*args, **given).arguments
            empty = next((name for name in required if not str(told.get(name) or "").strip()), None)
            if empty is not None:
                return {"success": False, **extra, "error": f"{empty} cannot be empty"}
            try:
                return {"success": True, **tool(*args, **given)}
            except Exception as exc:  # noqa: BLE001 - the caller reads the error from the answer
                _log.warning("a tool failed", extra={"tool": tool.__name__, "error_type": type(exc).__name__})
                return {"success": False, **extra, "error": str(exc)}

        return answer

    return decorate


def _named(kind: str, record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in _SHOWN[kind]}


@_answered()
def alma_retrieve(alma: ALMA, task: str, agent: str, user_id: str | None = None, top_k: int = 5) -> dict[str, Any]:
    """The memories for a task, and the text of them for a prompt."""
    found = alma.retrieve(task=task, agent=agent, user_id=user_id, top_k=top_k)
    return {"memories": _plain_slice(found), "prompt_injection": found.to_prompt()}


@_answered()
def alma_learn(
    alma: ALMA,
    agent: str,
    task: str,
    outcome: str,
    strategy_used: str,
    task_type: str | None = None,
    duration_ms: int | None = None,
    error_message: str | None = None,
    feedback: str | None = None,
) -> dict[str, Any]:
    """Learn from an outcome: "success" or "failure"."""
    learned: Any = alma.learn(
        agent=agent,
        task=task,
        outcome=outcome,
        strategy_used=strategy_used,
        task_type=task_type,
        duration_ms=duration_ms,
        error_message=error_message,
        feedback=feedback,
    )
    record = getattr(learned, "outcome", learned)
    told = _named("outcome", record) if hasattr(record, "task_description") else {}
    message = "Outcome recorded" if learned else "Learning rejected (scope violation)"
    return {"learned": bool(learned), "outcome": told, "message": message}


@_answered()
def alma_add_preference(
    alma: ALMA, user_id: str, category: str, preference: str, source: str = "explicit_instruction"
) -> dict[str, Any]:
    """Store how a user wants things done."""
    made = alma.add_user_preference(user_id=user_id, category=category, preference=preference, source=source)
    return {"preference": _named("preference", made)}


@_answered()
def alma_add_knowledge(alma: ALMA, agent: str, domain: str, fact: str, source: str = "user_stated") -> dict[str, Any]:
    """Store a fact, if the agent may learn in this domain."""
    made: Any = alma.add_domain_knowledge(agent=agent, domain=domain, fact=fact, source=source)
    if made is None:
        return {"success": False, "error": f"Agent '{agent}' is not allowed to learn in domain '{domain}'"}
    return {"knowledge": _named("knowledge", made)}


@_answered()
def alma_forget(
    alma: ALMA, agent: str | None = None, older_than_days: int = 90, below_confidence: float = 0.3
) -> dict[str, Any]:
    """Forget what is old or little trusted."""
    count = int(alma.forget(agent=agent, older_than_days=older_than_days, below_confidence=below_confidence))
    return {"pruned_count": count, "message": f"{count} old or little trusted memories were archived"}


@_answered()
def alma_stats(alma: ALMA, agent: str | None = None) -> dict[str, Any]:
    """The counts of memories."""
    return {"stats": alma.get_stats(agent=agent)}


@_answered(status="unhealthy")
def alma_health(alma: ALMA) -> dict[str, Any]:
    """Whether the memory answers, and which agents it knows."""
    return {
        "status": "healthy",
        "project_id": alma.project_id,
        "total_memories": alma.get_stats().get("total_count", 0),
        "registered_agents": list(alma.scopes),
        "timestamp": now().isoformat(),
    }


async def alma_consolidate(
    alma: ALMA,
    agent: str,
    memory_type: str = "heuristics",
    similarity_threshold: float = 0.85,
    dry_run: bool = True,
) -> dict[str, Any]:
    """Merge the memories of an agent that say the same; see `alma.consolidation`."""
    return _answered()(_consolidated)(alma, agent, memory_type, similarity_threshold, dry_run)


def _plain_slice(found: MemorySlice) -> dict[str, Any]:
    """The memories of a slice as dictionaries, by kind."""
    kinds = {
        kind: [{name: getattr(record, name) for name in names} for record in getattr(found, kind)]
        for kind, names in _FIELDS.items()
    }
    told = {"query": found.query, "agent": found.agent, "retrieval_time_ms": found.retrieval_time_ms}
    return {**kinds, **told, "total_items": found.total_items}


def _consolidated(
    alma: ALMA, agent: str, memory_type: str, similarity_threshold: float, dry_run: bool
) -> dict[str, Any]:
    """Merge what says the same, and say what was merged; outcomes are evidence, and are never merged."""
    if not agent.strip():
        raise ValueError("agent cannot be empty")
    if memory_type not in _TYPES:
        raise ValueError(f"memory_type must be one of: {', '.join(_TYPES)}")
    if not 0.0 <= similarity_threshold <= 1.0:
        raise ValueError("similarity_threshold must be between 0.0 and 1.0")
    from alma.consolidation import ConsolidationEngine

    groups: list[Any] = []
    processed = 0
    if memory_type in _CONSOLIDATED:
        result = ConsolidationEngine(alma).consolidate(
            agent, alma.project_id, _CONSOLIDATED[memory_type], similarity_threshold, dry_run
        )
        groups, processed = list(result.groups), result.memories_processed
    merged = sum(len(group.merged_ids) for group in groups)
    did = "Would merge" if dry_run else "Merged"
    return {
        "dry_run": dry_run,
        "merged_count": merged,
        "groups_found": len(groups),
        "memories_processed": processed,
        "merge_details": [str(group) for group in groups],
        "errors": [],
        "message": f"{did} {merged} memories from {len(groups)} similar groups (processed {processed} total)",
    }


__all__ = [
    "alma_add_knowledge",
    "alma_add_preference",
    "alma_consolidate",
    "alma_forget",
    "alma_health",
    "alma_learn",
    "alma_retrieve",
    "alma_stats",
]

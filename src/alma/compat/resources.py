"""The MCP resources of alma-memory 0.4 as functions of a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from alma.core import ALMA

_JSON = {"mimeType": "application/json"}
_CONFIG = {
    "uri": "alma://config",
    "name": "config",
    "description": "The project of the memory, its store and its agents.",
    **_JSON,
}
_AGENTS = {
    "uri": "alma://agents",
    "name": "agents",
    "description": "The agents with their scopes and the counts of their memories.",
    **_JSON,
}
_SCOPE = ("can_learn", "cannot_learn", "min_occurrences_for_heuristic")


def list_resources() -> list[dict[str, Any]]:
    """The resources there are, without their contents."""
    return [dict(_CONFIG), dict(_AGENTS)]


def get_config_resource(alma: ALMA) -> dict[str, Any]:
    """The project, its store, and what its agents may learn."""
    content = {
        "project_id": alma.project_id,
        "storage_type": type(alma.storage).__name__,
        "registered_agents": list(alma.scopes),
        "scopes": {name: _scope(scope) for name, scope in alma.scopes.items()},
    }
    return {**_CONFIG, "content": content}


def get_agents_resource(alma: ALMA) -> dict[str, Any]:
    """The agents, what each may learn, and how many memories it has."""
    agents = [
        {"name": name, "scope": _scope(scope), "stats": dict(alma.get_stats(agent=name))}
        for name, scope in alma.scopes.items()
    ]
    return {**_AGENTS, "content": {"project_id": alma.project_id, "agent_count": len(agents), "agents": agents}}


def _scope(scope: Any) -> dict[str, Any]:
    return {name: getattr(scope, name) for name in _SCOPE}

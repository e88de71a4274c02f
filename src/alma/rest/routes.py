"""Routes: every operation at /v1/operations/NAME, and resource paths for the most common ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from alma.operations import OPERATIONS, operation_named
from alma.operations.base import Face, Operation
from alma.rest.arguments import QueryString

# The operations of the Memory Orchestrator come first, under their known paths.
_RESOURCES: tuple[tuple[str, str, str], ...] = (
    ("POST", "/v1/memories", "create_memory"),
    ("GET", "/v1/memories/{memory_id}", "get_memory"),
    ("PATCH", "/v1/memories/{memory_id}", "update_memory"),
    ("DELETE", "/v1/memories/{memory_id}", "delete_memory"),
    ("GET", "/v1/memories", "list_memories"),
    ("POST", "/v1/memories/search", "search_memories"),
    ("POST", "/v1/memories/bulk-delete", "bulk_delete"),
    ("POST", "/v1/memories/summarize", "summarize"),
    ("POST", "/v1/memories/{memory_id}/restore", "restore_memory"),
    ("POST", "/v1/sessions", "create_session"),
    ("GET", "/v1/sessions", "list_sessions"),
    ("GET", "/v1/sessions/{session_id}", "get_session"),
    ("POST", "/v1/sessions/{session_id}/end", "end_session"),
    ("POST", "/v1/sessions/{session_id}/switch", "switch_session"),
    ("DELETE", "/v1/sessions/{session_id}", "delete_session"),
    ("POST", "/v1/retrieve", "retrieve"),
    ("POST", "/v1/learn", "learn"),
    ("POST", "/v1/recommend", "recommend"),
    ("POST", "/v1/context", "get_context"),
    ("POST", "/v1/preferences", "add_preference"),
    ("GET", "/v1/preferences", "list_preferences"),
    ("POST", "/v1/knowledge", "add_knowledge"),
    ("POST", "/v1/forget", "forget"),
    ("GET", "/v1/stats", "stats"),
    ("GET", "/v1/projects", "list_projects"),
)
_CREATING = frozenset({"create_memory", "create_session"})
_WITHOUT_BODY = frozenset({"GET", "DELETE"})
_IN_PATH = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Route:
    """One operation at one method and path."""

    method: str
    path: str
    operation: Operation[Any, Any]

    @property
    def is_generic(self) -> bool:
        return self.path.startswith("/v1/operations/")

    @property
    def status(self) -> int:
        """The status of success: 201 where a resource path creates something."""
        return 201 if not self.is_generic and self.operation.name in _CREATING else 200

    @property
    def id(self) -> str:
        """The operationId in the OpenAPI document."""
        return f"call_{self.operation.name}" if self.is_generic else self.operation.name

    @cached_property
    def in_path(self) -> tuple[str, ...]:
        return tuple(_IN_PATH.findall(self.path))

    @cached_property
    def query(self) -> QueryString | None:
        """The query parameters, if the method has no body."""
        return QueryString(self.operation, self.in_path) if self.method in _WITHOUT_BODY else None

    @property
    def has_etag(self) -> bool:
        """Whether the response has the version of a memory as its ETag."""
        return self.path == "/v1/memories/{memory_id}" or (self.path, self.method) == ("/v1/memories", "POST")

    @property
    def takes_if_match(self) -> bool:
        return self.has_etag and self.method in ("PATCH", "DELETE")


def routes() -> Iterator[Route]:
    """Every route of every operation that REST offers."""
    offered = [each for each in OPERATIONS if Face.REST in each.faces]
    names = {each.name for each in offered}
    for method, path, name in _RESOURCES:
        if name in names:
            yield Route(method, path, operation_named(name))
    for each in offered:
        yield Route("POST", f"/v1/operations/{each.name}", each)

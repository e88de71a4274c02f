"""Resources: what a client can read without calling a tool."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import unquote

from mcp_types import ReadResourceResult, Resource, ResourceTemplate, TextResourceContents

from alma import __version__
from alma.errors import NotFoundError
from alma.mcp.continuation import as_text
from alma.mcp.server import Options
from alma.operations import BY_NAME
from alma.operations.access import Caller
from alma.operations.base import Face, to_json

_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Template:
    """A family of resources: each is the answer of an operation."""

    uri: str
    name: str
    description: str
    operation: str
    arguments: Callable[[str], Mapping[str, Any]]

    def named(self, uri: str) -> str | None:
        """What an address names in this family, if it belongs to it."""
        before, _, after = re.escape(self.uri).partition(r"\{id\}")
        found = re.fullmatch(f"{before}([^/?#]+){after}", uri)
        return None if found is None else unquote(found.group(1))


TEMPLATES = (
    Template(
        "memory://memories/{id}",
        "memory",
        "One general memory, whole.",
        "get_memory",
        lambda name: {"id": name},
    ),
    Template(
        "memory://projects/{id}/context",
        "project-context",
        "What is worth knowing in a project, in a few thousand tokens.",
        "get_context",
        lambda name: {"project_id": name},
    ),
    Template(
        "memory://patterns/{id}",
        "patterns",
        "What recurs in the project, of one type of pattern.",
        "find_similar_patterns",
        lambda name: {"pattern_type": name},
    ),
)


class Resources:
    """What can be read, and reading it."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._own: Mapping[str, tuple[str, Callable[[Caller], Any]]] = {
            "alma://config": ("What this server serves, and how; without secrets.", self._config),
            "alma://agents": ("The agents that are configured, and what each may learn and read.", self._agents),
        }

    def listed(self) -> list[Resource]:
        """The resources that are always there."""
        return [
            Resource(uri=uri, name=uri.partition("://")[2], description=description, mime_type=_JSON)
            for uri, (description, _) in self._own.items()
        ]

    def templates(self) -> list[ResourceTemplate]:
        """The families of resources."""
        return [
            ResourceTemplate(uri_template=each.uri, name=each.name, description=each.description, mime_type=_JSON)
            for each in _offered()
        ]

    def read(self, caller: Caller, uri: str) -> ReadResourceResult:
        """The resource at an address."""
        text = as_text(self._content(caller, uri))
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=_JSON, text=text)])

    def _content(self, caller: Caller, uri: str) -> Any:
        if uri in self._own:
            return self._own[uri][1](caller)
        for each in _offered():
            name = each.named(uri)
            if name is not None:
                return to_json(BY_NAME[each.operation].perform(caller, each.arguments(name)))
        raise NotFoundError("resource", uri)

    def _config(self, caller: Caller) -> Any:
        memory = caller.store
        return {
            "version": __version__,
            "project_id": caller.project(),
            "storage": type(memory.storage).__name__,
            "embedding_model": memory.embedder.model,
            "toolset": self._options.toolset,
            "max_tokens": self._options.max_tokens,
            "agents": [scope["agent_name"] for scope in self._agents(caller)],
        }

    def _agents(self, caller: Caller) -> Any:
        only = caller.grant.agent
        return [asdict(scope) for name, scope in caller.store.scopes.items() if only in (None, name)]


def _offered() -> list[Template]:
    return [each for each in TEMPLATES if each.operation in BY_NAME and Face.MCP in BY_NAME[each.operation].faces]

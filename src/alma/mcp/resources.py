"""Resources that a client can read without calling a tool."""

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
from alma.model.memory import ProjectPattern
from alma.model.query import Compare, Order
from alma.operations import BY_NAME
from alma.operations.access import Caller, Right
from alma.operations.base import to_json
from alma.storage.document import to_document
from alma.text.disguise import visible

_JSON = "application/json"
_MOST_PATTERNS = 100


@dataclass(frozen=True, slots=True)
class Template:
    """A resource template and how its resources are read."""

    uri: str
    name: str
    description: str
    read: Callable[[Caller, str], Any]

    def named(self, uri: str) -> str | None:
        """The name in a URI of this template, or None."""
        before, after = re.split(r"\{\w+\}", self.uri)
        found = re.fullmatch(f"{re.escape(before)}([^/?#]+){re.escape(after)}", uri)
        return None if found is None else unquote(found.group(1))


def _performed(name: str, argument: str) -> Callable[[Caller, str], Any]:
    return lambda caller, given: to_json(BY_NAME[name].perform(caller, {argument: given}))


def _patterns(caller: Caller, pattern_type: str) -> Any:
    caller.require(Right.READ)
    of_type = Compare("pattern_type", "eq", pattern_type)
    found = caller.store.storage.find(
        ProjectPattern, caller.project_scope(), of_type, (Order("last_used_at", "desc"),), _MOST_PATTERNS
    )
    shown = caller.store.patterns.shown_by(found, caller.visible())
    return {"pattern_type": pattern_type, "patterns": [to_document(pattern, {"embedding"}) for pattern in shown]}


TEMPLATES = (
    Template("memory://memories/{id}", "memory", "One general memory.", _performed("get_memory", "memory_id")),
    Template(
        "memory://projects/{id}/context",
        "project-context",
        "The most important memories of a project, in a few thousand tokens.",
        _performed("get_context", "project_id"),
    ),
    Template("memory://patterns/{type}", "patterns", "Recurring patterns of one type in the project.", _patterns),
)


class Resources:
    """The resources and how to read them."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._own: Mapping[str, tuple[str, Callable[[Caller], Any]]] = {
            "alma://config": ("The configuration of this server, without secrets.", self._config),
            "alma://agents": ("The configured agents and their scopes.", self._agents),
        }

    def listed(self) -> list[Resource]:
        """The fixed resources."""
        return [
            Resource(uri=uri, name=uri.partition("://")[2], description=description, mime_type=_JSON)
            for uri, (description, _) in self._own.items()
        ]

    def templates(self) -> list[ResourceTemplate]:
        """The resource templates."""
        return [
            ResourceTemplate(uri_template=each.uri, name=each.name, description=each.description, mime_type=_JSON)
            for each in TEMPLATES
        ]

    def read(self, caller: Caller, uri: str) -> ReadResourceResult:
        """The resource with this URI."""
        text = visible(as_text(self._content(caller, uri)))
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=_JSON, text=text)])

    def agents(self, caller: Caller) -> list[str]:
        """The names of the configured agents."""
        return [scope["agent_name"] for scope in self._agents(caller)]

    def _content(self, caller: Caller, uri: str) -> Any:
        if uri in self._own:
            return self._own[uri][1](caller)
        for each in TEMPLATES:
            name = each.named(uri)
            if name is not None:
                return each.read(caller, name)
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
            "agents": self.agents(caller),
        }

    def _agents(self, caller: Caller) -> Any:
        caller.require(Right.READ)
        only = caller.grant.agent
        return [asdict(scope) for name, scope in caller.store.scopes.items() if only in (None, name)]

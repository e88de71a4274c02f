"""Resources that a client can read, and prompts that it can fill in, without calling a tool."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import unquote

from mcp_types import (
    GetPromptResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
)

from alma import __version__
from alma.errors import NotFoundError, ValidationError
from alma.lazy import loader
from alma.mcp.continuation import as_text
from alma.mcp.server import Options
from alma.mcp.tools import Toolset
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


_NOTHING = "No stored memory is relevant to this task."


@dataclass(frozen=True, slots=True)
class _Offer:
    description: str
    required: Mapping[str, str]
    optional: Mapping[str, str]
    text: Callable[[Callable[[], Caller], Mapping[str, str]], str]


class Prompts:
    """The prompts and how to render them."""

    def __init__(self, toolbox: Toolset) -> None:
        self._toolbox = toolbox
        task = {"task": "The task.", "agent": "The agent that does it."}
        self._offers = {
            "before_task": _Offer(
                "Start a task with the memories that are relevant to it.",
                task,
                {"user_id": "Whose preferences apply."},
                self._before_task,
            ),
            "after_task": _Offer(
                "Record the outcome of a task.",
                {"task": "The task.", "agent": "The agent that did it."},
                {"outcome": "success or failure.", "strategy_used": "What the agent did that mattered."},
                self._after_task,
            ),
            "hand_over": _Offer(
                "End a session with a handoff for the next one.",
                {"agent": "The agent."},
                {"session_id": "The session that ends."},
                self._hand_over,
            ),
        }

    def listed(self) -> list[Prompt]:
        """All prompts as described to clients."""
        return [
            Prompt(
                name=name,
                title=name.replace("_", " ").capitalize(),
                description=offer.description,
                arguments=[
                    PromptArgument(name=argument, description=text, required=argument in offer.required)
                    for argument, text in {**offer.required, **offer.optional}.items()
                ],
            )
            for name, offer in self._offers.items()
        ]

    def made(self, caller: Callable[[], Caller], name: str, arguments: Mapping[str, str]) -> GetPromptResult:
        """A prompt with its arguments filled in."""
        if name not in self._offers:
            raise NotFoundError("prompt", name)
        offer = self._offers[name]
        for argument in offer.required:
            if not arguments.get(argument, "").strip():
                raise ValidationError(name, argument, None, "is required")
        known = {**offer.required, **offer.optional}
        for argument in arguments:
            if argument not in known:
                raise ValidationError(
                    name, argument, arguments[argument], f"is not a known argument; there are {', '.join(known)}"
                )
        message = PromptMessage(role="user", content=TextContent(text=visible(offer.text(caller, arguments))))
        return GetPromptResult(description=offer.description, messages=[message])

    def _before_task(self, caller: Callable[[], Caller], given: Mapping[str, str]) -> str:
        arguments = {name: value for name, value in given.items() if value}
        found = BY_NAME["retrieve"].perform(caller(), arguments)
        return (
            f"You are the agent {given['agent']!r}, and this is your task:\n\n{given['task']}\n\n"
            f"{found.prompt or _NOTHING}\n\n"
            "Use what is above where it fits. When you are done, call alma_learn with the outcome, and with the "
            "strategy you used in words that help in similar tasks."
        )

    def _after_task(self, caller: Callable[[], Caller], given: Mapping[str, str]) -> str:
        said = "".join(
            f"\n{words}: {given[name]}"
            for name, words in (("outcome", "Outcome"), ("strategy_used", "Strategy"))
            if given.get(name)
        )
        return (
            f"The agent {given['agent']!r} has finished this task:\n\n{given['task']}\n{said}\n\n"
            "Call alma_learn once: outcome is success or failure, strategy_used says in one sentence what was done "
            "that mattered, error_message what went wrong, and feedback what the user said. Store lasting facts "
            "that came to light with alma_add_knowledge, and how the user wants things done with "
            "alma_add_preference."
        )

    def _hand_over(self, caller: Callable[[], Caller], given: Mapping[str, str]) -> str:
        session = f" of the session {given['session_id']!r}" if given.get("session_id") else ""
        if "alma_create_handoff" in self._toolbox:
            how = "Call alma_create_handoff"
        elif "alma_remember" in self._toolbox:
            how = "Call alma_remember once, with a memory_type of progress,"
        else:
            how = "Call alma_add_knowledge once, in the domain handover,"
        return (
            f"Hand over the work{session} as the agent {given['agent']!r}. {how} and say: what was worked on, what is "
            "done, what is left in the order it should be done, what is blocked, and the first thing to do next. "
            "Write for a reader who has not seen this conversation."
        )


# The resources as functions that take the memory, as in alma-memory.
_FUNCTIONS = ("list_resources", "get_config_resource", "get_agents_resource")
__getattr__ = loader(__name__, dict.fromkeys(_FUNCTIONS, "alma.compat.resources"))

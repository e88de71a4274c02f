"""Prompts that a user can choose, filled with retrieved memories."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mcp_types import GetPromptResult, Prompt, PromptArgument, PromptMessage, TextContent

from alma.errors import NotFoundError, ValidationError
from alma.mcp.tools import Toolset
from alma.operations.access import Caller
from alma.text.disguise import visible

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
        found = self._toolbox.operation("alma_retrieve").perform(caller(), arguments)
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
        if "create_handoff" in self._toolbox:
            how = "Call create_handoff"
        elif "alma_remember" in self._toolbox:
            how = "Call alma_remember once, with a memory_type of progress,"
        else:
            how = "Call alma_add_knowledge once, in the domain handover,"
        return (
            f"Hand over the work{session} as the agent {given['agent']!r}. {how} and say: what was worked on, what is "
            "done, what is left in the order it should be done, what is blocked, and the first thing to do next. "
            "Write for a reader who has not seen this conversation."
        )

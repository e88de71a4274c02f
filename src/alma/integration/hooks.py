"""Hooks for agents that run outside of ALMA: memories before a task and learning after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from alma.errors import ValidationError
from alma.harness.base import Agent, Context, RunResult, Setting
from alma.harness.domains import CodingDomain
from alma.harness.runner import Harness
from alma.learning.validation import parsed_outcome
from alma.model.slice import DEFAULT_PROMPT_TOKENS

if TYPE_CHECKING:
    from alma.core import ALMA

HEADING = "## Knowledge from Past Runs"

__all__ = ["ClaudeAgentHooks", "HelenaHooks", "VictorHooks"]


class ClaudeAgentHooks:
    """Hooks that an agent runtime calls before and after each task.

    `agent` is the name of an agent with a scope in the memory, or an `Agent` with a schema.
    """

    def __init__(self, alma: ALMA, agent: Agent | str, top_k: int = 5, max_tokens: int = DEFAULT_PROMPT_TOKENS) -> None:
        chosen = Agent(agent) if isinstance(agent, str) else agent
        self._harness = Harness(Setting("claude agents"), chosen, alma, top_k=top_k, max_memory_tokens=max_tokens)

    @property
    def agent(self) -> Agent:
        """The agent of these hooks."""
        return self._harness.agent

    def pre_task(
        self, task: str, user_id: str | None = None, project_id: str | None = None, session_id: str | None = None
    ) -> str:
        """The prompt section with relevant memories, or an empty string."""
        context = Context(task, project_id, user_id, session_id)
        known = self._harness.recall(context).to_prompt(self._harness.max_memory_tokens)
        return f"{HEADING}\n\n{known}" if known else ""

    def post_task(
        self,
        task: str,
        outcome: str | bool,
        strategy_used: str,
        task_type: str | None = None,
        duration_ms: int | None = None,
        error_message: str | None = None,
        feedback: str | None = None,
        project_id: str | None = None,
        user_id: str | None = None,
    ) -> RunResult:
        """Learn from a task; the result says what was learned, or why nothing was.

        A hook never stops the agent: scope violations and failures of the store are reported in the result.
        """
        if not isinstance(strategy_used, str) or not strategy_used.strip():
            raise ValidationError("post_task", "strategy_used", strategy_used, "must be a text that says what was done")
        result = RunResult(
            success=parsed_outcome(outcome),
            strategy_used=strategy_used,
            duration_ms=duration_ms,
            error=error_message,
            feedback=feedback,
        )
        return self._harness.post_run(Context(task, project_id, user_id, task_type=task_type), result)

    def get_stats(self) -> dict[str, Any]:
        """Statistics of the agent's memory."""
        memory: dict[str, Any] = self._harness.get_stats()["memory"]
        return memory


class HelenaHooks(ClaudeAgentHooks):
    """Hooks of Helena, who tests user interfaces and does not learn about backends or databases."""

    def __init__(self, alma: ALMA, top_k: int = 5, max_tokens: int = DEFAULT_PROMPT_TOKENS) -> None:
        super().__init__(alma, CodingDomain.agent("helena"), top_k, max_tokens)


class VictorHooks(ClaudeAgentHooks):
    """Hooks of Victor, who tests backends and does not learn about frontends."""

    def __init__(self, alma: ALMA, top_k: int = 5, max_tokens: int = DEFAULT_PROMPT_TOKENS) -> None:
        super().__init__(alma, CodingDomain.agent("victor"), top_k, max_tokens)

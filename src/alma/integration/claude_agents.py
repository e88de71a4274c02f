"""Hooks for agents that run elsewhere, Helena and Victor among them: memory before a task, learning after it."""

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


class ClaudeAgentHooks:
    """What an agent's runtime calls before and after each task.

    `agent` is the name of an agent, whose scope the memory has, or an `Agent` with a schema of its own.
    """

    def __init__(self, alma: ALMA, agent: Agent | str, top_k: int = 5, max_tokens: int = DEFAULT_PROMPT_TOKENS) -> None:
        chosen = Agent(agent) if isinstance(agent, str) else agent
        self._harness = Harness(Setting("claude agents"), chosen, alma, top_k=top_k, max_memory_tokens=max_tokens)

    @property
    def agent(self) -> Agent:
        """Whose hooks these are."""
        return self._harness.agent

    def pre_task(
        self, task: str, user_id: str | None = None, project_id: str | None = None, session_id: str | None = None
    ) -> str:
        """The section of the prompt that says what is known, or nothing where nothing is."""
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
        """Learn how the task went; the answer says what was learned, or in `not_learned` why nothing was.

        A hook never stops the agent: what the agent may not learn, or a store that is down, is said in the answer.
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
        """What the agent has in memory."""
        memory: dict[str, Any] = self._harness.get_stats()["memory"]
        return memory


class HelenaHooks(ClaudeAgentHooks):
    """Hooks of Helena, who tests user interfaces and learns nothing of backends or databases."""

    def __init__(self, alma: ALMA, top_k: int = 5, max_tokens: int = DEFAULT_PROMPT_TOKENS) -> None:
        super().__init__(alma, CodingDomain.agent("helena"), top_k, max_tokens)


class VictorHooks(ClaudeAgentHooks):
    """Hooks of Victor, who tests interfaces and data and learns nothing of frontends."""

    def __init__(self, alma: ALMA, top_k: int = 5, max_tokens: int = DEFAULT_PROMPT_TOKENS) -> None:
        super().__init__(alma, CodingDomain.agent("victor"), top_k, max_tokens)

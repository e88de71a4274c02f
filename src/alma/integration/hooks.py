"""Hooks for agents that run outside of ALMA: memories before a task and learning after it."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from alma.errors import ScopeViolationError, ValidationError
from alma.harness.base import Agent, Context, RunResult, Setting
from alma.harness.runner import Harness
from alma.lazy import loader
from alma.learning.validation import parsed_outcome
from alma.model.common import checked_part
from alma.model.slice import DEFAULT_PROMPT_TOKENS, MemorySlice

if TYPE_CHECKING:
    from alma.core import ALMA

_EARLIER = "alma.compat.claude_agents"
HEADING = "## Knowledge from Past Runs"

__all__ = ["ClaudeAgentHooks"]


class ClaudeAgentHooks:
    """Hooks that an agent runtime calls before and after each task.

    `agent` is the name of an agent with a scope in the memory, or an `Agent` with a schema.
    """

    def __init__(
        self,
        alma: ALMA,
        agent: Agent | str | None = None,
        top_k: int = 5,
        max_tokens: int | None = None,
        *,
        agent_type: Any = None,
        harness: Any = None,
        auto_learn: bool = True,
    ) -> None:
        if not callable(getattr(alma, "retrieve", None)):
            raise ValidationError("hooks", "alma", alma, "must be a memory, as ALMA.quickstart() opens one")
        # In alma-memory the agent is a member of AgentType.
        given = agent_type if agent is None else agent
        named = getattr(given, "value", given)
        self.agent = Agent(named) if isinstance(named, str) else named
        self.alma = alma
        self.agent_type = agent_type or given
        self.agent_name = checked_part("hooks", "agent", self.agent, Agent, "an agent or its name").name
        self.harness = harness
        self.auto_learn = auto_learn
        self.started: dict[int, datetime] = {}
        self._top_k = top_k
        self._max_tokens = DEFAULT_PROMPT_TOKENS if max_tokens is None else max_tokens

    @cached_property
    def _harness(self) -> Harness:
        setting = Setting("claude agents")
        return Harness(setting, self.agent, self.alma, top_k=self._top_k, max_memory_tokens=self._max_tokens)

    def pre_task(
        self,
        task: Any = None,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        *,
        top_k: int = 5,
        context: Any = None,
    ) -> Any:
        """The prompt section with relevant memories, or an empty string.

        For a `TaskContext`, given as `task` or `context`, it is the slice itself.
        """
        task = context if task is None else task
        if hasattr(task, "task_description"):
            return import_module(_EARLIER).recall(self, task, top_k)
        run = Context(task, project_id, user_id, session_id)
        known = self._harness.recall(run).to_prompt(self._harness.max_memory_tokens)
        return f"{HEADING}\n\n{known}" if known else ""

    def post_task(
        self,
        task: Any = None,
        outcome: Any = None,
        strategy_used: str = "",
        task_type: str | None = None,
        duration_ms: int | None = None,
        error_message: str | None = None,
        feedback: str | None = None,
        project_id: str | None = None,
        user_id: str | None = None,
        *,
        context: Any = None,
    ) -> Any:
        """Learn from a task; the `RunResult` says what was learned, or why nothing was.

        For a `TaskContext`, given as `task` or `context`, with its `TaskOutcome` it is a bool. A hook never stops the
        agent: scope violations and failures of the store are reported in the result.
        """
        task = context if task is None else task
        if hasattr(task, "task_description"):
            return import_module(_EARLIER).record(self, task, outcome)
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

    def get_agent_stats(self) -> dict[str, Any]:
        """The earlier form of `get_stats`."""
        return self.alma.get_stats(agent=self.agent_name)

    def add_knowledge(self, domain: str, fact: str, source: str = "agent_discovered") -> bool:
        """Store a fact that the agent found out; False if the agent may not learn in this domain."""
        try:
            made: Any = self.alma.add_domain_knowledge(agent=self.agent_name, domain=domain, fact=fact, source=source)
        except ScopeViolationError:
            return False
        return made is not None

    def format_memories_for_prompt(self, memories: MemorySlice, include_section_headers: bool = True) -> str:
        """A slice as a list, by kind."""
        text: str = import_module(_EARLIER).formatted(memories, include_section_headers)
        return text

    def _asked(self, task: str, top_k: int) -> MemorySlice:
        return self.alma.retrieve(task=task, agent=self.agent_name, top_k=top_k)


_HOME_OF = {"HelenaHooks": "alma.compat.helena", "VictorHooks": "alma.compat.victor"}

__getattr__ = loader(__name__, _HOME_OF)

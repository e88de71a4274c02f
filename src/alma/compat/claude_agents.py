"""Agents of alma-memory 0.4: a task as a context, its outcome, and the hooks of several agents together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

from alma.clock import now
from alma.errors import ScopeViolationError
from alma.harness.base import Context, RunResult
from alma.harness.domains import CodingDomain as CodingDomain
from alma.integration.hooks import ClaudeAgentHooks
from alma.model.slice import MemorySlice

if TYPE_CHECKING:
    from alma.core import ALMA

_RECENT = 3


class AgentType(Enum):
    """The agents with a name of their own."""

    HELENA = "helena"
    VICTOR = "victor"
    CLARA = "clara"
    ALEX = "alex"
    CUSTOM = "custom"


@dataclass
class TaskContext:
    """A task of an agent."""

    task_description: str
    task_type: str
    agent_name: str
    project_id: str
    user_id: str | None = None
    session_id: str | None = None
    inputs: dict[str, Any] = field(default_factory=dict)
    constraints: list[str] = field(default_factory=list)
    timestamp: datetime = field(default_factory=now)

    def to_harness_context(self) -> Context:
        """The task as the harness takes it."""
        return Context(
            self.task_description,
            self.project_id,
            self.user_id,
            self.session_id,
            self.task_type or None,
            inputs=self.inputs,
            constraints=self.constraints,
        )


@dataclass
class TaskOutcome:
    """The outcome of a task."""

    success: bool
    strategy_used: str
    output: Any = None
    tools_used: list[str] = field(default_factory=list)
    duration_ms: int | None = None
    error_message: str | None = None
    feedback: str | None = None
    reflections: list[str] = field(default_factory=list)

    def to_run_result(self) -> RunResult:
        """The outcome as the harness takes it."""
        return RunResult(
            success=self.success,
            output=self.output,
            strategy_used=self.strategy_used,
            error=self.error_message,
            feedback=self.feedback,
            tools_used=self.tools_used,
            duration_ms=self.duration_ms,
            reflections=self.reflections,
        )


def recall(hooks: Any, context: TaskContext, top_k: int) -> MemorySlice:
    """The memories for a task, from the harness of the hooks or else from the memory itself."""
    hooks.started[id(context)] = now()
    if hooks.harness is not None:
        recalled: MemorySlice = hooks.harness.pre_run(context.to_harness_context())
        return recalled
    found: MemorySlice = hooks.alma.retrieve(
        task=context.task_description, agent=hooks.agent_name, user_id=context.user_id, top_k=top_k
    )
    return found


def record(hooks: Any, context: TaskContext, outcome: TaskOutcome) -> bool:
    """Learn from a task; False where the hooks do not learn, or the memory did not."""
    if not hooks.auto_learn:
        return False
    begun = hooks.started.pop(id(context), None)
    if outcome.duration_ms is None and begun is not None:
        outcome.duration_ms = int((now() - begun).total_seconds() * 1000)
    if hooks.harness is not None:
        hooks.harness.post_run(context.to_harness_context(), outcome.to_run_result())
        return True
    try:
        learned = hooks.alma.learn(
            agent=hooks.agent_name,
            task=context.task_description,
            outcome="success" if outcome.success else "failure",
            strategy_used=outcome.strategy_used,
            task_type=context.task_type,
            duration_ms=outcome.duration_ms,
            error_message=outcome.error_message,
            feedback=outcome.feedback,
        )
    except ScopeViolationError:
        return False
    return bool(learned)


def formatted(memories: MemorySlice, with_headings: bool = True) -> str:
    """The memories as a list, by kind; nothing for an empty slice."""
    kinds = {
        "Proven Strategies": [
            f"**{each.condition}**: {each.strategy} (confidence: {round(100 * each.confidence)}%)"
            for each in memories.heuristics
        ],
        "Avoid These": [f"{each.pattern}: {each.why_bad}" for each in memories.anti_patterns],
        "Domain Knowledge": [f"[{each.domain}] {each.fact}" for each in memories.domain_knowledge],
        "User Preferences": [f"[{each.category}] {each.preference}" for each in memories.preferences],
        "Recent Outcomes": [
            f"{'✓' if each.success else '✗'} {each.task_type}: {each.task_description}"
            for each in memories.outcomes[:_RECENT]
        ],
    }
    lines: list[str] = []
    for heading, texts in kinds.items():
        lines += [f"\n### {heading}:"] if with_headings and texts else []
        lines += [f"- {text}" for text in texts]
    if not lines:
        return ""
    return "\n".join((["## Relevant Memory (from past runs)"] if with_headings else []) + lines)


def with_words(memories: MemorySlice, words: Iterable[str]) -> list[Any]:
    """The heuristics whose condition contains one of the words."""
    sought = tuple(words)
    return [each for each in memories.heuristics if any(word in each.condition.casefold() for word in sought)]


def strategies(found: Iterable[Any]) -> list[dict[str, Any]]:
    """Condition, strategy and confidence of heuristics."""
    return [{"condition": each.condition, "strategy": each.strategy, "confidence": each.confidence} for each in found]


def facts(memories: MemorySlice, domains: Iterable[str]) -> list[dict[str, Any]]:
    """The known facts in these domains, with their sources."""
    chosen = tuple(domains)
    return [{"fact": each.fact, "source": each.source} for each in memories.domain_knowledge if each.domain in chosen]


class AgentIntegration:
    """The hooks of several agents on one memory."""

    def __init__(self, alma: ALMA) -> None:
        self.alma = alma
        self._agents: dict[str, ClaudeAgentHooks] = {}

    def register_agent(self, agent_type: AgentType, harness: Any = None, auto_learn: bool = True) -> ClaudeAgentHooks:
        """Hooks for an agent, which replace earlier ones."""
        hooks = ClaudeAgentHooks(self.alma, agent_type=agent_type, harness=harness, auto_learn=auto_learn)
        self._agents[agent_type.value] = hooks
        return hooks

    def get_hooks(self, agent_name: str) -> ClaudeAgentHooks | None:
        """The hooks of an agent, or None."""
        return self._agents.get(agent_name)

    def list_agents(self) -> list[str]:
        """The names of the agents."""
        return list(self._agents)

    def get_all_stats(self) -> dict[str, dict[str, Any]]:
        """The statistics of each agent's memory."""
        return {name: hooks.get_agent_stats() for name, hooks in self._agents.items()}


def create_integration(alma: ALMA, agents: Iterable[AgentType] | None = None) -> AgentIntegration:
    """Hooks for these agents, by default Helena and Victor."""
    integration = AgentIntegration(alma)
    for agent_type in (AgentType.HELENA, AgentType.VICTOR) if agents is None else agents:
        integration.register_agent(agent_type)
    return integration

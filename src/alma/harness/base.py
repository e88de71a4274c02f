"""What a harness is made of: the fixed setting, the context of one run, the agent, and what a run gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from alma.errors import ValidationError
from alma.learning.validation import parsed_outcome
from alma.model.common import LONGEST_TEXT, checked_name, checked_prose
from alma.model.learning import Outcome
from alma.model.scope import MemoryScope
from alma.model.slice import MemorySlice

if TYPE_CHECKING:
    from alma.learning.protocols import Learned


class ToolType(StrEnum):
    """What a tool is for."""

    SEARCH = "search"
    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"
    ANALYZE = "analyze"
    COMMUNICATE = "communicate"
    CUSTOM = "custom"


@dataclass(frozen=True, slots=True)
class Tool:
    """Something an agent can use, what for, and what it must mind when it does."""

    name: str
    description: str = ""
    tool_type: ToolType = ToolType.CUSTOM
    constraints: Sequence[str] = ()

    def __post_init__(self) -> None:
        checked_name("tool", "name", self.name)
        object.__setattr__(self, "description", checked_prose("tool", "description", self.description))
        object.__setattr__(self, "tool_type", _tool_type(self.tool_type))
        object.__setattr__(self, "constraints", _sentences("tool", "constraints", self.constraints))


@dataclass(frozen=True, slots=True)
class Setting:
    """The environment that stays the same from run to run: what it is, its tools, its constraints."""

    name: str
    description: str = ""
    tools: Sequence[Tool] = ()
    constraints: Sequence[str] = ()

    def __post_init__(self) -> None:
        checked_name("setting", "name", self.name)
        object.__setattr__(self, "description", checked_prose("setting", "description", self.description))
        object.__setattr__(self, "constraints", _sentences("setting", "constraints", self.constraints))
        object.__setattr__(self, "tools", _tools(self.tools))


@dataclass(frozen=True, slots=True)
class Context:
    """What one run is about: the task, for whom and in which project, and whatever else it is given.

    Without a `project_id` it is the project of the memory. `task_type` is the category in which the run is learned,
    `strategy` how it is to be done, where that is known beforehand. `inputs` are shown in the prompt as data.
    """

    task: str
    project_id: str | None = None
    user_id: str | None = None
    session_id: str | None = None
    task_type: str | None = None
    strategy: str | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    constraints: Sequence[str] = ()

    def __post_init__(self) -> None:
        checked_name("context", "task", self.task, LONGEST_TEXT)
        for name in ("project_id", "user_id", "session_id", "task_type"):
            if getattr(self, name) is not None:
                checked_name("context", name, getattr(self, name))
        if self.strategy is not None:
            checked_name("context", "strategy", self.strategy, LONGEST_TEXT)
        if not isinstance(self.inputs, Mapping):
            raise ValidationError("context", "inputs", self.inputs, "must be a dict")
        object.__setattr__(
            self, "inputs", {checked_name("context", "inputs", name): value for name, value in self.inputs.items()}
        )
        object.__setattr__(self, "constraints", _sentences("context", "constraints", self.constraints))


@dataclass(frozen=True, slots=True)
class MemorySchema:
    """What an agent of a domain may learn, what it may not, and how often it must have seen something first."""

    domain: str
    learnable: Sequence[str] = ()
    forbidden: Sequence[str] = ()
    description: str = ""
    min_occurrences: int = 3

    def __post_init__(self) -> None:
        checked_name("memory schema", "domain", self.domain)
        object.__setattr__(self, "description", checked_prose("memory schema", "description", self.description))
        # The rules for these names are those of a scope.
        scope = self.scope_of("anybody")
        object.__setattr__(self, "learnable", scope.can_learn)
        object.__setattr__(self, "forbidden", scope.cannot_learn)

    def scope_of(self, agent: str) -> MemoryScope:
        """The scope that this schema gives to an agent."""
        return MemoryScope(
            agent_name=agent,
            can_learn=self.learnable,
            cannot_learn=self.forbidden,
            min_occurrences_for_heuristic=self.min_occurrences,
        )


@dataclass(frozen=True, slots=True)
class Agent:
    """Who runs: a name, under which it remembers, a role, and what it may learn."""

    name: str
    role: str = ""
    description: str = ""
    memory_schema: MemorySchema | None = None

    def __post_init__(self) -> None:
        checked_name("agent", "name", self.name)
        object.__setattr__(self, "role", checked_prose("agent", "role", self.role))
        object.__setattr__(self, "description", checked_prose("agent", "description", self.description))
        if self.memory_schema is not None and not isinstance(self.memory_schema, MemorySchema):
            raise ValidationError("agent", "memory_schema", self.memory_schema, "must be a MemorySchema")


class RunStatus(StrEnum):
    """How far a run came."""

    PREPARED = "prepared"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RunResult:
    """What became of a run.

    An executor may return one to say how it went: `success`, in the words of `learn` or as a bool, `output`,
    `strategy_used`, `error`, `feedback`, `tools_used`. The harness adds the rest: the `prompt` and the `memories` in
    it, the time it took, and what was `learned`, or in `not_learned` why nothing was. A run that was only prepared has
    no success: it is None.
    """

    success: bool | None = None
    output: Any = None
    strategy_used: str | None = None
    error: str | None = None
    feedback: str | None = None
    tools_used: Sequence[str] = ()
    duration_ms: int | None = None
    prompt: str = ""
    memories: MemorySlice = field(default_factory=MemorySlice, repr=False)
    learned: Learned | Outcome | None = field(default=None, repr=False)
    not_learned: str = ""
    exception: Exception | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.success is not None:
            # As `learn` reads it: a run that says how it went must not count as failed for the way it says so.
            object.__setattr__(self, "success", parsed_outcome(self.success, "run result", "success"))
        for name in ("strategy_used", "error", "feedback"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, checked_prose("run result", name, getattr(self, name)))
        object.__setattr__(self, "tools_used", _sentences("run result", "tools_used", self.tools_used))

    @property
    def status(self) -> RunStatus:
        """Whether the run was prepared only, succeeded or failed."""
        if self.success is None:
            return RunStatus.PREPARED
        return RunStatus.SUCCEEDED if self.success else RunStatus.FAILED


def _tools(values: Any) -> tuple[Tool, ...]:
    if isinstance(values, Tool) or not isinstance(values, Iterable):
        raise ValidationError("setting", "tools", values, "must be a list of tools")
    tools = tuple(values)
    names: set[str] = set()
    for tool in tools:
        if not isinstance(tool, Tool):
            raise ValidationError("setting", "tools", tool, "must be a list of tools")
        if tool.name in names:
            raise ValidationError("setting", "tools", tool.name, "is given twice; keep one of them")
        names.add(tool.name)
    return tools


def _tool_type(value: Any) -> ToolType:
    try:
        return ToolType(value)
    except ValueError:
        raise ValidationError("tool", "tool_type", value, f"must be one of {', '.join(ToolType)}") from None


def _sentences(subject: str, name: str, values: Any) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValidationError(subject, name, values, "must be a list of texts")
    return tuple(checked_name(subject, name, value, LONGEST_TEXT) for value in values)

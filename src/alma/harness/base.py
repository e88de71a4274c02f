"""The parts of a harness: setting, context, agent, and the result of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any

from alma.arguments import earlier
from alma.errors import ValidationError, shown
from alma.harness.earlier import (
    EarlierAgent,
    EarlierContext,
    EarlierSchema,
    EarlierSetting,
    agent_arguments,
    context_arguments,
    schema_arguments,
    setting_arguments,
    tool_arguments,
)
from alma.lazy import loader
from alma.learning.validation import parsed_outcome
from alma.model.common import LONGEST_TEXT, checked_name, checked_prose
from alma.model.learning import Outcome
from alma.model.scope import MemoryScope
from alma.model.slice import MemorySlice

if TYPE_CHECKING:
    from alma.learning.protocols import Learned


_MAX_ERROR_LENGTH = 1_000
# Keys that state an outcome, without case and underscores; for those in _ALL_PASSED numbers do not count.
_VERDICTS = ("success", "succeeded", "successful", "issuccess", "issuccessful", "ok", "isok")
_IN_WORDS = ("status", "outcome")
_ALL_PASSED = ("passed", "ispassed", "haspassed", "worked")
_FAILED = ("failed", "failure", "failures", "isfailure", "hasfailed", "iserror")
_ERRORS = ("error", "errors", "errormessage", "exception")
_EXIT_CODES = ("returncode", "exitcode", "exitstatus")
# The error of a program only if it failed.
_ERRORS_OF_FAILURES = ("stderr",)
_OUTCOME_NAMES = frozenset((*_VERDICTS, *_ALL_PASSED, *_FAILED, *_ERRORS, *_EXIT_CODES, *_ERRORS_OF_FAILURES))
# Words that state a failure; "no" or "error" may be ordinary output.
_WORDS_OF_FAILURE = ("failure", "failed")
_NO_ERROR = ("", "none", "null", "no", "no error", "no errors", "n/a", "false", "0")
# Attributes of other types are ignored, such as methods and columns of tables.
_READABLE_TYPES = (int, str, bytes, list, tuple, Exception)


class ToolType(StrEnum):
    """What a tool is for."""

    SEARCH = "search"
    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"
    ANALYZE = "analyze"
    COMMUNICATE = "communicate"
    CUSTOM = "custom"
    # The names of alma-memory for the same.
    DATA_ACCESS = READ
    EXECUTION = EXECUTE
    COMMUNICATION = COMMUNICATE
    ANALYSIS = ANALYZE
    CREATION = WRITE

    @classmethod
    def _missing_(cls, value: object) -> ToolType | None:
        return cls.__members__.get(value.upper()) if isinstance(value, str) else None


@earlier(tool_arguments)
@dataclass(frozen=True, slots=True)
class Tool:
    """A tool of an agent: its purpose and constraints."""

    name: str
    description: str = ""
    tool_type: ToolType = ToolType.CUSTOM
    constraints: Sequence[str] = ()

    def __post_init__(self) -> None:
        checked_name("tool", "name", self.name)
        object.__setattr__(self, "description", checked_prose("tool", "description", self.description))
        object.__setattr__(self, "tool_type", _tool_type(self.tool_type))
        object.__setattr__(self, "constraints", _sentences("tool", "constraints", self.constraints))


@earlier(setting_arguments)
@dataclass(frozen=True, slots=True)
class Setting(EarlierSetting):
    """The environment that stays the same between runs: description, tools, constraints."""

    name: str
    description: str = ""
    tools: Sequence[Tool] = ()
    constraints: Sequence[str] = ()

    def __post_init__(self) -> None:
        checked_name("setting", "name", self.name)
        object.__setattr__(self, "description", checked_prose("setting", "description", self.description))
        object.__setattr__(self, "constraints", _sentences("setting", "constraints", self.constraints))
        object.__setattr__(self, "tools", _tools(self.tools))


@earlier(context_arguments)
@dataclass(frozen=True, slots=True)
class Context(EarlierContext):
    """One run: the task, the user and project, and inputs.

    `project_id` defaults to the project of the memory. `task_type` is the category under which the run is learned,
    `strategy` how it is to be done, if known in advance. `inputs` are shown in the prompt as data.
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


@earlier(schema_arguments)
@dataclass(frozen=True, slots=True)
class MemorySchema(EarlierSchema):
    """What an agent of a domain may learn, and how many occurrences make a heuristic."""

    domain: str
    learnable: Sequence[str] = ()
    forbidden: Sequence[str] = ()
    description: str = ""
    min_occurrences: int = 3

    def __post_init__(self) -> None:
        checked_name("memory schema", "domain", self.domain)
        object.__setattr__(self, "description", checked_prose("memory schema", "description", self.description))
        # Validated as the names of a scope.
        scope = self.scope_of("any")
        object.__setattr__(self, "learnable", scope.can_learn)
        object.__setattr__(self, "forbidden", scope.cannot_learn)

    def scope_of(self, agent: str) -> MemoryScope:
        """The scope of an agent with this schema."""
        return MemoryScope(
            agent_name=agent,
            can_learn=self.learnable,
            cannot_learn=self.forbidden,
            min_occurrences_for_heuristic=self.min_occurrences,
        )


@earlier(agent_arguments)
@dataclass(frozen=True, slots=True)
class Agent(EarlierAgent):
    """An agent: the name under which it remembers, its role, what it may learn, and how it works."""

    name: str
    role: str = ""
    description: str = ""
    memory_schema: MemorySchema | None = None
    traits: Sequence[str] = ()

    def __post_init__(self) -> None:
        checked_name("agent", "name", self.name)
        object.__setattr__(self, "role", checked_prose("agent", "role", self.role))
        object.__setattr__(self, "description", checked_prose("agent", "description", self.description))
        if self.memory_schema is not None and not isinstance(self.memory_schema, MemorySchema):
            raise ValidationError("agent", "memory_schema", self.memory_schema, "must be a MemorySchema")
        object.__setattr__(self, "traits", _sentences("agent", "traits", self.traits))


class RunStatus(StrEnum):
    """The status of a run."""

    PREPARED = "prepared"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run.

    An executor can return one with `success`, in the words of `learn` or as a bool, `output`, `strategy_used`, `error`,
    `feedback` and `tools_used`. The harness adds the `prompt`, the `memories` in it, the duration, and what was
    `learned`, or in `not_learned` why nothing was. The success of a run that was only prepared is None.
    """

    success: bool | None = None
    output: Any = None
    strategy_used: str | None = None
    error: str | None = None
    feedback: str | None = None
    tools_used: Sequence[str] = ()
    duration_ms: int | None = None
    reflections: Sequence[str] = ()
    prompt: str = ""
    memories: MemorySlice = field(default_factory=MemorySlice, repr=False)
    learned: Learned | Outcome | None = field(default=None, repr=False)
    not_learned: str = ""
    exception: Exception | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.success is not None:
            # Parsed as `learn` does.
            object.__setattr__(self, "success", parsed_outcome(self.success, "run result", "success"))
        for name in ("strategy_used", "error", "feedback"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, checked_prose("run result", name, getattr(self, name)))
        object.__setattr__(self, "tools_used", _sentences("run result", "tools_used", self.tools_used))

    @property
    def status(self) -> RunStatus:
        """Whether the run was only prepared, succeeded or failed."""
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


def result_of(returned: Any) -> RunResult:
    """The result for the return value of an executor.

    A `RunResult`, a bool, a bool followed by output, a mapping or object with an outcome, an exception, or plain
    output.
    """
    if isinstance(returned, RunResult):
        return replace(returned, success=returned.error is None) if returned.success is None else returned
    if _is_bool(returned):
        return RunResult(success=bool(returned), output=returned)
    if isinstance(returned, Mapping):
        return _parsed_result(returned, returned)
    if isinstance(returned, tuple) and _begins_with_verdict(returned):
        success, output = bool(returned[0]), returned[1] if len(returned) == 2 else returned[1:]
        return RunResult(success=success, output=output, error=None if success else _error(output))
    if isinstance(returned, Exception):
        return RunResult(success=False, output=returned, error=_error(returned), exception=returned)
    if _states_failure(returned):
        return RunResult(success=False, output=returned)
    return _parsed_result(_outcome_attributes(returned), returned)


def error_text(exc: Exception) -> str:
    """The type and message of an exception."""
    outcomes = _error(_in_text(exc))
    return f"{type(exc).__name__}: {outcomes}" if outcomes else type(exc).__name__


def _is_bool(value: Any) -> bool:
    # NumPy has its own bool.
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def _begins_with_verdict(returned: tuple[Any, ...]) -> bool:
    """Whether a tuple is a bool followed by output; a tuple of several bools is output."""
    first, *others = returned or (None,)
    return _is_bool(first) and (len(others) == 1 or (len(others) > 1 and not any(map(_is_bool, others))))


def _states_failure(returned: Any) -> bool:
    """Whether a returned word or enum member states a failure."""
    if isinstance(returned, Enum):
        return _verdict(returned) is False
    return isinstance(returned, str) and returned.strip(" .!\n").casefold() in _WORDS_OF_FAILURE


def _outcome_attributes(returned: Any) -> Mapping[str, Any]:
    """The attributes of an object that state an outcome, as results of subprocesses and HTTP requests have."""
    names = (name for name in dir(returned) if _spelled(name) in _OUTCOME_NAMES)
    values = {name: _attribute(returned, name) for name in names}
    return {name: value for name, value in values.items() if _is_bool(value) or isinstance(value, _READABLE_TYPES)}


def _attribute(returned: Any, name: str) -> Any:
    try:
        return getattr(returned, name)
    except Exception:  # noqa: BLE001 - unreadable attributes are ignored
        return None


def _spelled(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")


def _parsed_result(outcomes: Mapping[Any, Any], output: Any) -> RunResult:
    stated = {_spelled(key): value for key, value in outcomes.items() if isinstance(key, str)}
    error = _first_error_of(stated, _ERRORS) or _unclear(stated)
    success = _success(stated, error)
    return RunResult(
        success=success,
        output=output,
        strategy_used=storable_text(stated.get("strategyused")) or storable_text(stated.get("strategy")),
        error=None if success else error or _first_error_of(stated, _ERRORS_OF_FAILURES),
        feedback=storable_text(stated.get("feedback")),
        tools_used=_texts(stated.get("toolsused")),
    )


def _first_error_of(stated: Mapping[str, Any], names: Iterable[str]) -> str | None:
    return next((text for name in names if (text := _error(stated.get(name))) is not None), None)


def _success(stated: Mapping[str, Any], error: str | None) -> bool:
    """The stated success, where one failure is enough; else whether there is no error."""
    outcomes = [verdict for name in _VERDICTS if (verdict := _verdict(stated.get(name))) is not None]
    outcomes += [verdict for name in _IN_WORDS if (verdict := _in_words(stated.get(name))) is not None]
    outcomes += [bool(stated[name]) for name in _ALL_PASSED if _is_bool(stated.get(name))]
    outcomes += [not stated[name] for name in _FAILED if _is_bool(stated.get(name))]
    outcomes += [not stated[name] for name in _EXIT_CODES if isinstance(stated.get(name), int)]
    # A number of failures; zero failures alone do not state success.
    outcomes += [False for name in _FAILED if not _is_bool(stated.get(name)) and _error(stated.get(name)) is not None]
    return all(outcomes) if outcomes else error is None


def _unclear(stated: Mapping[str, Any]) -> str | None:
    """An error for a stated outcome that is neither success nor failure, which must not count as success."""
    outcomes = {name: stated[name] for name in _VERDICTS if stated.get(name) is not None}
    unclear = next((name for name, value in outcomes.items() if _verdict(value) is None), None)
    return None if unclear is None else f"{unclear} is {shown(outcomes[unclear])}, which is neither success nor failure"


def _verdict(value: Any) -> bool | None:
    try:
        return parsed_outcome(value)
    except ValidationError:
        return None


def _in_words(value: Any) -> bool | None:
    """An outcome in words; numbers may be any code."""
    return _verdict(value) if isinstance(value, str | bool) else None


def _error(value: Any) -> str | None:
    """The error that a value describes, or None."""
    if isinstance(value, Mapping):
        value = value.get("message") or (dict(value) or None)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        value = "; ".join(filter(None, map(_error, value)))
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if value is None or value is False:
        return None
    stated = _in_text(value).strip() or (type(value).__name__ if isinstance(value, Exception) else "")
    if stated.casefold() in _NO_ERROR:
        return None
    # Replace characters that text fields refuse.
    readable = "".join(sign if sign.isprintable() else " " for sign in stated)
    return storable_text(" ".join(readable.split())[:_MAX_ERROR_LENGTH]) or "an error"


def _in_text(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - __str__ of foreign objects can fail
        return ""


def storable_text(value: Any) -> str | None:
    """Text that can be stored, or None."""
    try:
        return checked_prose("run result", "text", value).strip() or None
    except ValidationError:
        return None


def _texts(value: Any) -> tuple[str, ...]:
    listed = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
    return tuple(text for each in listed if (text := storable_text(each)) is not None)


# The place of the harness in alma-memory.
__getattr__ = loader(__name__, {"Harness": "alma.harness.runner"})

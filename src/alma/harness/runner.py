"""The harness: retrieve memories before a run, run, and learn from the result."""

from __future__ import annotations

import copy
import inspect
import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from alma.core import ALMA, checked_memory
from alma.errors import ALMAError, ProviderError, StorageError, ValidationError
from alma.harness.base import Agent, Context, RunResult, RunStatus, Setting, Tool, error_text, result_of, storable_text
from alma.lazy import lazy_regex
from alma.learning.validation import ScopeValidator
from alma.model.common import checked_part
from alma.model.governance import Attribution
from alma.model.learning import Outcome
from alma.model.prompt import as_data
from alma.model.slice import DEFAULT_PROMPT_TOKENS, MemorySlice
from alma.text.disguise import visible

if TYPE_CHECKING:
    from alma.learning.protocols import Learned


_log = logging.getLogger("alma.harness")
Executor = Callable[..., Any]
_MAX_STRATEGY_LENGTH = 300
_SYNC = "must be a function that is not async; call asyncio.run inside of it"
# Some Markdown parsers treat more characters than \n as the end of a line.
_HEADING = lazy_regex(r"(^|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029])(?=[^\S\n]*#)")


class Harness:
    """Runs an agent in its setting with memories in the prompt, and learns from the result.

    `top_k` limits the memories of each kind, `max_memory_tokens` their length in the prompt.
    """

    def __init__(
        self,
        setting: Setting,
        agent: Agent,
        alma: ALMA,
        *,
        top_k: int = 5,
        max_memory_tokens: int = DEFAULT_PROMPT_TOKENS,
    ) -> None:
        self.setting = checked_part("harness", "setting", setting, Setting, "a Setting of alma.harness")
        self.agent = checked_part("harness", "agent", agent, Agent, "an Agent of alma.harness")
        self.alma = checked_memory("harness", alma)
        self._memory = _for_agent(alma, agent)
        self.top_k = top_k
        self.max_memory_tokens = max_memory_tokens
        self._lock = threading.Lock()
        self._runs = dict.fromkeys(RunStatus, 0)

    def run(self, context: Context, executor: Executor | None = None) -> RunResult:
        """Build the prompt, call the executor, and learn from the result.

        The executor is called with the prompt, and with the context if it takes two arguments; parameters named
        `prompt`, `context` or `memories` receive these. It returns output, a bool alone or followed by output, a
        mapping or an object with an outcome, or a `RunResult`; an exception makes the run a failure, and returning
        nothing counts as success. Without an executor the result only holds the prompt, and nothing is learned.
        """
        memories = self.recall(context)
        prompt = self.build_prompt(context, memories)
        prepared = RunResult(prompt=prompt, memories=memories)
        if executor is None:
            self._count(RunStatus.PREPARED)
            return prepared
        started = time.perf_counter()
        result = _executed(executor, prompt, context, memories)
        elapsed_ms = round((time.perf_counter() - started) * 1000)
        duration_ms = elapsed_ms if result.duration_ms is None else result.duration_ms
        result = replace(result, prompt=prompt, memories=memories, duration_ms=duration_ms)
        self._count(result.status)
        return self.post_run(context, result)

    # ------------------------------------------------------------------ steps

    def pre_run(self, context: Context) -> MemorySlice:
        """The agent's memories that are relevant to the task."""
        alma = self._memory_of(context)
        return alma.retrieve(
            context.task, self.agent.name, user_id=context.user_id, top_k=self.top_k, session_id=context.session_id
        )

    def build_prompt(self, context: Context, memories: MemorySlice | None = None) -> str:
        """The prompt of a run; memories are retrieved unless they are given."""
        known = self.pre_run(context) if memories is None else memories
        checked_part("harness", "memories", known, MemorySlice, "a MemorySlice, as retrieve gives it")
        return written_prompt(self.setting, self.agent, context, known.to_prompt(self.max_memory_tokens))

    def post_run(self, context: Context, result: RunResult) -> RunResult:
        """Learn from a run; the result says what was learned, or why nothing was.

        A failure to learn, because of the scope or because the store is down, does not affect the run.
        """
        checked_part("harness", "result", result, RunResult, "a RunResult, as RunResult(success=True)")
        if result.success is None:
            return replace(result, not_learned="the run was only prepared")
        try:
            return replace(result, learned=self._learned(context, result))
        except ALMAError as exc:
            _log.warning(
                "a run was not learned from", extra={"agent": self.agent.name, "error_type": type(exc).__name__}
            )
            return replace(result, not_learned=str(exc))

    def get_stats(self) -> dict[str, Any]:
        """Statistics of this harness's runs and, under `memory`, of the agent's memory."""
        with self._lock:
            runs = dict(self._runs)
        executed = runs[RunStatus.SUCCEEDED] + runs[RunStatus.FAILED]
        return {
            "agent": self.agent.name,
            "setting": self.setting.name,
            "runs": executed,
            **{str(status): count for status, count in runs.items()},
            "success_rate": runs[RunStatus.SUCCEEDED] / executed if executed else None,
            "memory": self.alma.get_stats(self.agent.name),
        }

    # ------------------------------------------------------------------ memory

    def _memory_of(self, context: Context) -> ALMA:
        """The memory of the project in the context."""
        checked_part("harness", "context", context, Context, "a Context, as Context(task=…)")
        if context.project_id is None or context.project_id == self._memory.project_id:
            return self._memory
        other = copy.copy(self._memory)
        other.project_id = context.project_id
        return other

    def recall(self, context: Context) -> MemorySlice:
        """The result of `pre_run`, or an empty slice if memory is down, because agents must run without it."""
        try:
            return self.pre_run(context)
        except (StorageError, ProviderError) as exc:
            _log.warning("memory is unavailable for a run", extra={"agent": self.agent.name, "error": str(exc)})
            return MemorySlice(query=context.task, agent=self.agent.name, degraded=f"memory is down ({exc})")

    def _learned(self, context: Context, result: RunResult) -> Learned | Outcome:
        alma, strategy = self._memory_of(context), _strategy(context, result)
        if not strategy:
            return self._store_outcome(alma, context, result)
        return alma.learn(
            agent=self.agent.name,
            task=context.task,
            outcome=bool(result.success),
            strategy_used=strategy,
            task_type=context.task_type,
            duration_ms=result.duration_ms,
            error_message=result.error,
            feedback=result.feedback,
            retrieval_id=result.memories.retrieval_id,
        )

    def _store_outcome(self, alma: ALMA, context: Context, result: RunResult) -> Outcome:
        """Store the outcome without learning from it, because the strategy is unknown."""
        alma.learning.require(self.agent.name, context.task_type, context.task)
        outcome = Outcome(
            agent=self.agent.name,
            project_id=alma.project_id,
            task_type=context.task_type,
            task_description=context.task,
            success=bool(result.success),
            duration_ms=result.duration_ms,
            error_message=result.error,
            user_feedback=result.feedback,
        )
        outcome, _ = alma.ingest.screen_outcome(alma.ingest.clean(outcome)[0])
        alma.writer.save(outcome, Attribution(agent=self.agent.name, reason="a run of the harness"))
        alma.benefit.credit(outcome, result.memories.retrieval_id)
        return outcome

    def _count(self, status: RunStatus) -> None:
        with self._lock:
            self._runs[status] += 1


def _for_agent(alma: ALMA, agent: Agent) -> ALMA:
    """The memory with the agent limited to its schema, unless a scope is configured for it."""
    schema = agent.memory_schema
    if schema is None or agent.name.casefold() in {name.casefold() for name in alma.scopes}:
        return alma
    scoped, learning = copy.copy(alma), copy.copy(alma.learning)
    learning.validator = ScopeValidator({**alma.scopes, agent.name: schema.scope_of(agent.name)})
    scoped.learning = learning
    return scoped


def _executed(executor: Executor, prompt: str, context: Context, memories: MemorySlice) -> RunResult:
    call = _bound(executor, {"prompt": prompt, "context": context, "memories": memories})
    try:
        returned = _gathered(call())
    except Exception as exc:  # noqa: BLE001 - any exception of an executor is a failed run
        return RunResult(success=False, error=error_text(exc), exception=exc)
    if inspect.isawaitable(returned) or inspect.isasyncgen(returned):
        if inspect.iscoroutine(returned):
            returned.close()
        raise _not_callable(executor, _SYNC)
    return result_of(returned)


def _gathered(returned: Any) -> Any:
    """The output of an executor, joined if it is a generator."""
    if not inspect.isgenerator(returned):
        return returned
    pieces: list[Any] = list(returned)
    return "".join(pieces) if pieces and all(isinstance(piece, str) for piece in pieces) else pieces


def _bound(executor: Executor, given: Mapping[str, Any]) -> Callable[[], Any]:
    """The call with the arguments an executor takes; an executor with a wrong signature is an error of the caller."""
    if not callable(executor) or inspect.iscoroutinefunction(executor):
        raise _not_callable(executor, _SYNC)
    try:
        signature = inspect.signature(executor)
    except (TypeError, ValueError):
        return partial(executor, given["prompt"])
    positional, named = _arguments(signature, given)
    try:
        signature.bind(*positional, **named)
    except TypeError as exc:
        raise _not_callable(executor, f"must take the prompt, or prompt and context: {exc}") from None
    return partial(executor, *positional, **named)


def _not_callable(executor: object, reason: str) -> ValidationError:
    return ValidationError("harness", "executor", executor, reason)


def _arguments(signature: inspect.Signature, given: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments by name, else the prompt first and then the context."""
    parameters = signature.parameters.values()
    unclaimed = [given[name] for name in ("prompt", "context") if name not in signature.parameters]
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional.extend(unclaimed[:1] if len(parameters) == 1 else ())
        elif parameter.name in given:
            named[parameter.name] = given[parameter.name]
        elif _takes_next(parameter, unclaimed) and parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(unclaimed.pop(0))
        elif _takes_next(parameter, unclaimed):
            named[parameter.name] = unclaimed.pop(0)
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    return positional, dict(given) if takes_any and not positional and not named else named


def _takes_next(parameter: inspect.Parameter, unclaimed: Sequence[Any]) -> bool:
    """Whether a parameter receives the next argument: the first does, others if they have no default."""
    by_place = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    return by_place and (len(unclaimed) == 2 or (len(unclaimed) == 1 and parameter.default is parameter.empty))


def _strategy(context: Context, result: RunResult) -> str:
    """How the task was done, if known."""
    if result.strategy_used or context.strategy:
        return result.strategy_used or context.strategy or ""
    if result.tools_used:
        return f"used {', '.join(result.tools_used)}"
    said = storable_text(result.output) or ""
    # A single line of output can describe the strategy.
    return said if len(said) <= _MAX_STRATEGY_LENGTH and "\n" not in said and len(said.split()) > 2 else ""


def written_prompt(
    setting: Setting | None = None, agent: Agent | None = None, context: Context | None = None, knowledge: str = ""
) -> str:
    """The prompt as text, of the parts that are given; `knowledge` is the text of the memories."""
    tools = setting.tools if setting else ()
    constraints = [text for part in (setting, context) if part for text in part.constraints]
    sections = (
        ("Your Role", _role(agent) if agent else ""),
        ("Environment", visible(setting.description) if setting else ""),
        ("Tools", "\n".join(line for tool in tools for line in _tool_lines(tool))),
        ("Constraints", _listed(constraints)),
        ("Your Task", _instructions(context.task) if context else ""),
        ("Strategy to Follow", _instructions(context.strategy or "") if context else ""),
        ("Inputs", "\n".join(_input_lines(context.inputs)) if context else ""),
    )
    parts = [f"## {heading}\n{text}" for heading, text in sections if text.strip()]
    if knowledge:
        parts.append(f"# Knowledge from Past Runs\n\n{knowledge}")
    return "\n\n".join(parts)


def _instructions(text: str) -> str:
    """Instructions as they were written, but without headings, which belong to the prompt."""
    return _HEADING.sub(r"\1│ ", visible(text).strip())


def _role(agent: Agent) -> str:
    named = f"You are {agent.name}, {agent.role}." if agent.role else f"You are {agent.name}."
    return "\n".join(
        [visible(f"{named}\n{agent.description}").strip(), *(f"- {as_data(text)}" for text in agent.traits)]
    )


def _tool_lines(tool: Tool) -> Iterator[str]:
    what = f": {as_data(tool.description)}" if tool.description else ""
    yield f"- {as_data(tool.name)} ({tool.tool_type}){what}"
    for constraint in tool.constraints:
        yield f"  - {as_data(constraint)}"


def _listed(texts: Iterable[str]) -> str:
    return "\n".join(f"- {as_data(text)}" for text in dict.fromkeys(texts))


def _input_lines(inputs: Mapping[str, Any]) -> Iterator[str]:
    for name, value in inputs.items():
        yield f"- {as_data(name)}: {as_data(_text(value))}"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        return str(value)

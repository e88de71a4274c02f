"""Victor's hooks of alma-memory 0.4: tests of backends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from alma.compat.claude_agents import AgentType, TaskContext, TaskOutcome, facts, formatted, strategies, with_words
from alma.harness import domains
from alma.harness.domains import CodingDomain as CodingDomain
from alma.integration.hooks import ClaudeAgentHooks
from alma.model.slice import MemorySlice

if TYPE_CHECKING:
    from alma.core import ALMA

VICTOR_CATEGORIES = [
    "api_design_patterns",
    "authentication_patterns",
    "error_handling",
    "performance_optimization",
    "database_query_patterns",
    "caching_strategies",
]
VICTOR_FORBIDDEN = ["frontend_styling", "ui_testing", "marketing_content"]


@dataclass
class APITestContext(TaskContext):
    """A test of an interface; the type of the task follows from the rest if it is empty."""

    endpoint: str | None = None
    method: str = "GET"
    expected_status: int | None = None
    request_body: dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    is_auth_test: bool = False
    is_performance_test: bool = False
    is_database_test: bool = False

    def __post_init__(self) -> None:
        self.agent_name = "victor"
        self.task_type = self.task_type or self._inferred()

    def _inferred(self) -> str:
        told = {
            "authentication_patterns": self.is_auth_test,
            "performance_optimization": self.is_performance_test,
            "database_query_patterns": self.is_database_test,
            "api_design_patterns": self.endpoint,
        }
        return next((name for name, holds in told.items() if holds), "api_testing")


@dataclass
class APITestOutcome(TaskOutcome):
    """The outcome of such a test; the response time is its duration unless another is given."""

    response_status: int | None = None
    response_time_ms: int | None = None
    response_body: dict[str, Any] | None = None
    database_queries_count: int = 0
    cache_hits: int = 0
    cache_misses: int = 0
    validation_errors: list[str] = field(default_factory=list)
    performance_metrics: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.duration_ms = self.response_time_ms if self.duration_ms is None else self.duration_ms


class VictorCalls(ClaudeAgentHooks):
    """The queries and notes of Victor."""

    def get_api_patterns(self, endpoint_type: str, top_k: int = 5) -> list[dict[str, Any]]:
        """The strategies for endpoints of a type."""
        found = with_words(self._asked(f"API patterns for {endpoint_type} endpoints", top_k), ["api", "endpoint"])
        return [
            {
                "pattern": each.strategy,
                "condition": each.condition,
                "confidence": each.confidence,
                "occurrences": each.occurrence_count,
            }
            for each in found
        ]

    def get_error_handling_patterns(self, top_k: int = 5) -> list[dict[str, Any]]:
        """The strategies for errors."""
        asked = self._asked("error handling patterns validation responses", top_k)
        return strategies(with_words(asked, ["error", "exception", "validation"]))

    def get_performance_strategies(self, top_k: int = 5) -> list[dict[str, Any]]:
        """The strategies and facts about speed."""
        asked = self._asked("performance optimization caching query database", top_k)
        found = strategies(with_words(asked, ["performance", "cache", "query", "slow"]))
        return found + facts(asked, ["performance_optimization", "caching_strategies"])

    def get_auth_patterns(self, top_k: int = 5) -> list[dict[str, Any]]:
        """The strategies for authentication."""
        asked = self._asked("authentication authorization JWT token permission testing", top_k)
        return strategies(with_words(asked, ["auth", "token", "permission", "jwt"]))

    def record_api_pattern(
        self, endpoint: str, method: str, pattern_type: str, description: str, success: bool
    ) -> bool:
        """Note what holds for an endpoint."""
        fact = f"[{method}] {endpoint}: {description}"
        return self.add_knowledge(pattern_type, fact, f"api_test:success={success}")

    def record_performance_metric(
        self, endpoint: str, response_time_ms: int, query_count: int, threshold_ms: int = 500
    ) -> bool:
        """Note how fast an endpoint answers."""
        rating = "SLOW" if response_time_ms > threshold_ms else "OK"
        fact = f"{endpoint}: {response_time_ms}ms, {query_count} queries [{rating}]"
        return self.add_knowledge("performance_optimization", fact, f"performance_test:threshold={threshold_ms}ms")

    def format_api_test_prompt(self, memories: MemorySlice, test_context: APITestContext) -> str:
        """The memories and the test as text."""
        context, body = test_context, test_context.request_body
        shown = {
            "Task": context.task_description,
            "Task Type": context.task_type,
            "Endpoint": f"{context.method} {context.endpoint}" if context.endpoint else None,
            "Expected Status": context.expected_status,
            "Request Body": f"{len(body)} fields" if body else None,
            "Focus": _focus(context),
        }
        lines = [f"- **{name}**: {value}" for name, value in shown.items() if value]
        return "\n".join(filter(None, [formatted(memories), "\n## Current Test Context", *lines]))


def _focus(context: APITestContext) -> str:
    focus = ["Authentication/Authorization"] if context.is_auth_test else []
    focus += ["Performance testing"] if context.is_performance_test else []
    return ", ".join([*focus, *(["Database validation"] if context.is_database_test else [])])


class VictorHooks(VictorCalls):
    """Hooks of Victor, who tests backends and does not learn about frontends."""

    def __init__(
        self, alma: ALMA, top_k: int = 5, max_tokens: int | None = None, *, auto_learn: bool = True, harness: Any = None
    ) -> None:
        super().__init__(
            alma,
            domains.CodingDomain.agent("victor"),
            top_k,
            max_tokens,
            agent_type=AgentType.VICTOR,
            harness=harness,
            auto_learn=auto_learn,
        )


def create_victor_hooks(alma: ALMA, auto_learn: bool = True) -> VictorHooks:
    """The hooks of Victor."""
    return VictorHooks(alma, auto_learn=auto_learn)


def victor_pre_task(
    alma: ALMA,
    task: str,
    endpoint: str | None = None,
    method: str = "GET",
    project_id: str = "default",
    top_k: int = 5,
) -> dict[str, Any]:
    """The memories for a test, as a slice and in a prompt, and the context of the test."""
    hooks = VictorHooks(alma, auto_learn=False)
    context = APITestContext(task, "", "victor", project_id, endpoint=endpoint, method=method)
    memories = hooks.pre_task(context, top_k=top_k)
    return {"memories": memories, "prompt": hooks.format_api_test_prompt(memories, context), "context": context}


def victor_post_task(
    alma: ALMA,
    task: str,
    success: bool,
    strategy_used: str,
    endpoint: str | None = None,
    method: str = "GET",
    response_status: int | None = None,
    response_time_ms: int | None = None,
    project_id: str = "default",
    error_message: str | None = None,
) -> bool:
    """Learn from a test."""
    outcome = APITestOutcome(
        success,
        strategy_used,
        error_message=error_message,
        response_status=response_status,
        response_time_ms=response_time_ms,
    )
    context = APITestContext(task, "", "victor", project_id, endpoint=endpoint, method=method)
    learned: bool = VictorHooks(alma).post_task(context, outcome)
    return learned

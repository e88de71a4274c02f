"""Helena's hooks of alma-memory 0.4: tests of user interfaces."""

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

HELENA_CATEGORIES = [
    "testing_strategies",
    "selector_patterns",
    "ui_component_patterns",
    "form_testing",
    "accessibility_testing",
]
HELENA_FORBIDDEN = ["backend_logic", "database_queries", "api_design", "infrastructure"]
_FLAKY_BELOW = 0.7


@dataclass
class UITestContext(TaskContext):
    """A test of a user interface; the type of the task follows from the rest if it is empty."""

    component_type: str | None = None
    page_url: str | None = None
    viewport: dict[str, int] | None = None
    browser: str = "chromium"
    is_accessibility_test: bool = False
    is_visual_test: bool = False

    def __post_init__(self) -> None:
        self.agent_name = "helena"
        self.task_type = self.task_type or self._inferred()

    def _inferred(self) -> str:
        if self.is_accessibility_test:
            return "accessibility_testing"
        if self.is_visual_test:
            return "visual_testing"
        if self.component_type:
            return "form_testing" if "form" in self.component_type.casefold() else "ui_component_patterns"
        return "testing_strategies"


@dataclass
class UITestOutcome(TaskOutcome):
    """The outcome of such a test; the selectors are its tools unless others are named."""

    selectors_used: list[str] = field(default_factory=list)
    accessibility_issues: list[dict[str, Any]] = field(default_factory=list)
    visual_diffs: list[str] = field(default_factory=list)
    flaky_elements: list[str] = field(default_factory=list)
    screenshots: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tools_used = self.tools_used or self.selectors_used


class HelenaCalls(ClaudeAgentHooks):
    """The queries and notes of Helena."""

    def get_selector_patterns(self, component_type: str, top_k: int = 5) -> list[dict[str, Any]]:
        """The selectors that are known to work for a component."""
        found = with_words(self._asked(f"selector patterns for {component_type}", top_k), ["selector"])
        return [
            {"pattern": each.strategy, "confidence": each.confidence, "occurrences": each.occurrence_count}
            for each in found
        ]

    def get_form_testing_strategies(self, top_k: int = 5) -> list[dict[str, Any]]:
        """The strategies for forms."""
        asked = self._asked("form testing validation submit strategies", top_k)
        return strategies(with_words(asked, ["form", "validation", "input"]))

    def get_accessibility_patterns(self, top_k: int = 5) -> list[dict[str, Any]]:
        """The strategies and facts about accessibility."""
        asked = self._asked("accessibility ARIA keyboard screen reader testing", top_k)
        found = strategies(with_words(asked, ["access", "aria", "keyboard"]))
        return found + facts(asked, ["accessibility_testing"])

    def record_selector_pattern(
        self, selector: str, component_type: str, success: bool, stability_score: float = 1.0
    ) -> bool:
        """Note a selector and how stable it is."""
        doubt = " (may be flaky)" if stability_score < _FLAKY_BELOW else ""
        fact = f"Selector '{selector}' for {component_type} {'works' if success else 'does not work'}{doubt}"
        return self.add_knowledge("selector_patterns", fact, f"test_run:stability={stability_score:.2f}")

    def record_accessibility_issue(self, issue_type: str, element: str, fix_suggestion: str) -> bool:
        """Note a problem of accessibility and its fix."""
        fact = f"Issue: {issue_type} on {element}. Fix: {fix_suggestion}"
        return self.add_knowledge("accessibility_testing", fact, "accessibility_audit")

    def format_ui_test_prompt(self, memories: MemorySlice, test_context: UITestContext) -> str:
        """The memories and the test as text."""
        size = test_context.viewport
        shown = {
            "Task": test_context.task_description,
            "Task Type": test_context.task_type,
            "Component": test_context.component_type,
            "Page": test_context.page_url,
            "Viewport": f"{size.get('width', '?')}x{size.get('height', '?')}" if size else None,
            "Focus": _focus(test_context),
        }
        lines = [f"- **{name}**: {value}" for name, value in shown.items() if value]
        return "\n".join(filter(None, [formatted(memories), "\n## Current Test Context", *lines]))


def _focus(context: UITestContext) -> str:
    focus = ["Accessibility validation"] if context.is_accessibility_test else []
    return ", ".join([*focus, *(["Visual regression testing"] if context.is_visual_test else [])])


class HelenaHooks(HelenaCalls):
    """Hooks of Helena, who tests user interfaces and does not learn about backends or databases."""

    def __init__(
        self, alma: ALMA, top_k: int = 5, max_tokens: int | None = None, *, auto_learn: bool = True, harness: Any = None
    ) -> None:
        super().__init__(
            alma,
            domains.CodingDomain.agent("helena"),
            top_k,
            max_tokens,
            agent_type=AgentType.HELENA,
            harness=harness,
            auto_learn=auto_learn,
        )


def create_helena_hooks(alma: ALMA, auto_learn: bool = True) -> HelenaHooks:
    """The hooks of Helena."""
    return HelenaHooks(alma, auto_learn=auto_learn)


def helena_pre_task(
    alma: ALMA,
    task: str,
    component_type: str | None = None,
    page_url: str | None = None,
    project_id: str = "default",
    top_k: int = 5,
) -> dict[str, Any]:
    """The memories for a test, as a slice and in a prompt, and the context of the test."""
    hooks = HelenaHooks(alma, auto_learn=False)
    context = UITestContext(task, "", "helena", project_id, component_type=component_type, page_url=page_url)
    memories = hooks.pre_task(context, top_k=top_k)
    return {"memories": memories, "prompt": hooks.format_ui_test_prompt(memories, context), "context": context}


def helena_post_task(
    alma: ALMA,
    task: str,
    success: bool,
    strategy_used: str,
    selectors_used: list[str] | None = None,
    accessibility_issues: list[dict[str, Any]] | None = None,
    project_id: str = "default",
    duration_ms: int | None = None,
    error_message: str | None = None,
) -> bool:
    """Learn from a test."""
    outcome = UITestOutcome(
        success,
        strategy_used,
        duration_ms=duration_ms,
        error_message=error_message,
        selectors_used=selectors_used or [],
        accessibility_issues=accessibility_issues or [],
    )
    learned: bool = HelenaHooks(alma).post_task(UITestContext(task, "", "helena", project_id), outcome)
    return learned

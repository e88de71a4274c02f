"""The session initializer of alma-memory 0.4, which also makes work items from the lines of a prompt.

`alma.session.SessionInitializer` gathers the same, within a token budget and from a tracker's items.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from alma.clock import new_id, now
from alma.model.workspace import WorkItem
from alma.session.initializer import CodebaseOrientation as Codebase

_log = logging.getLogger("alma.session")
_UNKNOWN = "unknown"
_KEY_DIRECTORIES = ("src", "lib", "tests", "test", "app", "api", "core")
_QUALITY_GATES = ("All tests pass", "No regressions introduced", "Changes documented if significant")
_LANGUAGES = {
    "package.json": "Node.js project",
    "pyproject.toml": "Python project",
    "setup.py": "Python project",
    "Cargo.toml": "Rust project",
    "go.mod": "Go project",
}
_BULLETS = ("- ", "* ", "• ")
_LONGEST_TITLE = 100
_COMMITS = 5
_USUAL_PRIORITY = 50


@dataclass
class CodebaseOrientation:
    """Where the work happens: branch, commits, directories and configuration files."""

    current_branch: str
    has_uncommitted_changes: bool
    recent_commits: list[str]
    root_path: str
    key_directories: list[str]
    config_files: list[str]
    summary: str | None = None

    def to_prompt(self) -> str:
        """The orientation as lines of text."""
        lines = [f"Branch: {self.current_branch}"]
        lines.append(f"Uncommitted changes: {'Yes' if self.has_uncommitted_changes else 'No'}")
        lines += _indented("Recent commits:", self.recent_commits[:_COMMITS])
        lines += [f"Key directories: {', '.join(self.key_directories)}"] if self.key_directories else []
        return "\n".join([*lines, *([f"Summary: {self.summary}"] if self.summary else [])])


@dataclass
class RulesOfEngagement:
    """What an agent may do, may not do, and what must hold before its work is done."""

    scope_rules: list[str] = field(default_factory=list)
    constraints: list[str] = field(default_factory=list)
    quality_gates: list[str] = field(default_factory=list)

    def to_prompt(self) -> str:
        """The rules as lines of text; nothing without rules."""
        lines = _indented("You CAN:", self.scope_rules) + _indented("You CANNOT:", self.constraints)
        return "\n".join(lines + _indented("Before marking DONE, verify:", self.quality_gates))


@dataclass
class InitializationResult:
    """What an agent begins with."""

    id: str
    session_id: str
    project_id: str
    agent: str
    original_prompt: str
    goal: str
    work_items: list[Any] = field(default_factory=list)
    orientation: CodebaseOrientation | None = None
    recent_activity: list[str] = field(default_factory=list)
    relevant_memories: Any = None
    rules: RulesOfEngagement = field(default_factory=RulesOfEngagement)
    recommended_start: Any = None
    initialized_at: datetime = field(default_factory=now)
    metadata: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def create(
        cls, project_id: str, agent: str, original_prompt: str, goal: str | None = None, session_id: str | None = None
    ) -> InitializationResult:
        """A result to fill in; the goal is the prompt unless another is given."""
        return cls(new_id(), session_id or new_id(), project_id, agent, original_prompt, goal or original_prompt)

    def to_prompt(self) -> str:
        """Everything as a text with headings."""
        head = f"## Session Initialization for {self.agent}\nProject: {self.project_id}\nSession: {self.session_id}"
        items = [f"{i}. [{_status(item)}] {_title(item)}" for i, item in enumerate(self.work_items, 1)]
        first = f"Start with: {_title(self.recommended_start)}" if self.recommended_start else ""
        sections = {
            "Goal": self.goal,
            "Work Items": "\n".join(items),
            "Codebase Orientation": self.orientation.to_prompt() if self.orientation else "",
            "Relevant Knowledge from Past Runs": _as_prompt(self.relevant_memories),
            "Rules of Engagement": self.rules.to_prompt(),
            "Recommended First Action": first,
        }
        return "\n\n".join([head, *(f"### {name}\n{text}" for name, text in sections.items() if text)]) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON can hold it."""
        return {
            **{name: getattr(self, name) for name in ("id", "session_id", "project_id", "agent", "original_prompt")},
            "goal": self.goal,
            "work_items": [_title(item) for item in self.work_items],
            "orientation": asdict(self.orientation) if self.orientation else None,
            "recent_activity": self.recent_activity,
            "rules": asdict(self.rules),
            "recommended_start": _title(self.recommended_start) if self.recommended_start else None,
            "initialized_at": self.initialized_at.isoformat(),
            "metadata": self.metadata,
        }


class SessionInitializer:
    """Gathers what an agent begins with, from a memory and a session manager if there are."""

    def __init__(self, alma: Any = None, progress_tracker: Any = None, session_manager: Any = None) -> None:
        self.alma = alma
        self.progress_tracker = progress_tracker
        self.session_manager = session_manager

    def initialize(
        self,
        project_id: str,
        agent: str,
        user_prompt: str,
        project_path: str | None = None,
        auto_expand: bool = True,
        memory_top_k: int = 5,
    ) -> InitializationResult:
        """Begin a session: items, codebase, memories, rules and the last handoff.

        What the memory or the manager cannot give is logged and left out.
        """
        result = InitializationResult.create(project_id, agent, user_prompt)
        if auto_expand:
            result.work_items = self.expand_prompt(user_prompt)
            result.goal = self._summarize_goal(user_prompt, result.work_items)
            result.recommended_start = self._select_starting_point(result.work_items)
        if project_path:
            result.orientation = self.orient_to_codebase(project_path)
        result.rules = self.get_rules_of_engagement(agent)
        if self.alma is not None:
            _tried(lambda: setattr(result, "relevant_memories", self._memories(user_prompt, agent, memory_top_k)))
        if self.session_manager is not None:
            _tried(lambda: self._start(result))
        return result

    def _memories(self, prompt: str, agent: str, top_k: int) -> Any:
        return self.alma.retrieve(task=prompt, agent=agent, top_k=top_k)

    def _start(self, result: InitializationResult) -> None:
        context = self.session_manager.start_session(agent=result.agent, goal=result.goal)
        result.session_id = context.session_id
        if context.previous_handoff is not None:
            result.recent_activity = list(context.previous_handoff.next_steps)

    def expand_prompt(self, user_prompt: str, use_ai: bool = False) -> list[WorkItem]:
        """An item for each line with a bullet or a number; for a prompt without these, one for all of it."""
        titles = [told for line in user_prompt.splitlines() if (told := _listed(line.strip()))]
        if titles:
            return [_item(title, title) for title in titles]
        short = user_prompt[:_LONGEST_TITLE].strip()
        return [_item(f"{short}..." if len(user_prompt) > _LONGEST_TITLE else short, user_prompt)]

    def orient_to_codebase(self, project_path: str | os.PathLike[str], max_commits: int = 5) -> CodebaseOrientation:
        """What Git and the names of files say about a directory."""
        seen = Codebase.of(os.fspath(project_path))
        found = CodebaseOrientation(
            current_branch=(seen.current_branch or "HEAD detached") if seen.is_git else _UNKNOWN,
            has_uncommitted_changes=seen.has_uncommitted_changes,
            recent_commits=list(seen.recent_commits[:max_commits]),
            root_path=os.fspath(project_path),
            key_directories=[name for name in _KEY_DIRECTORIES if name in seen.directories],
            config_files=list(seen.config_files),
        )
        found.summary = self._generate_orientation_summary(found)
        return found

    def get_rules_of_engagement(self, agent: str) -> RulesOfEngagement:
        """The rules that follow from the agent's scope; none without a memory or a scope."""
        scopes = getattr(self.alma, "scopes", None)
        scope = scopes.get(agent) if isinstance(scopes, Mapping) else None
        if scope is None:
            return RulesOfEngagement()
        allowed = [f"Learn from: {', '.join(scope.can_learn)}"] if scope.can_learn else []
        forbidden = [f"Do not learn from: {', '.join(scope.cannot_learn)}"] if scope.cannot_learn else []
        return RulesOfEngagement(allowed, forbidden, list(_QUALITY_GATES))

    def _summarize_goal(self, prompt: str, work_items: Sequence[Any]) -> str:
        if len(work_items) < 2:
            return prompt
        more = "..." if len(work_items) > 3 else ""
        return f"{prompt}\n\nBroken down into {len(work_items)} items: {', '.join(map(_title, work_items[:3]))}{more}"

    def _select_starting_point(self, work_items: Sequence[Any]) -> Any:
        free = [item for item in work_items if _status(item) == "pending" and not getattr(item, "blocked_by", ())]
        first = next(iter(work_items), None)
        return max(free, key=lambda item: getattr(item, "priority", _USUAL_PRIORITY), default=first)

    def _generate_orientation_summary(self, orientation: CodebaseOrientation) -> str:
        parts = [f"Branch: {orientation.current_branch}"]
        parts += ["has uncommitted changes"] if orientation.has_uncommitted_changes else []
        parts += [f"key dirs: {', '.join(orientation.key_directories[:3])}"] if orientation.key_directories else []
        written = next((told for name, told in _LANGUAGES.items() if name in orientation.config_files), None)
        return "; ".join([*parts, *([written] if written else [])])


def _item(title: str, description: str) -> WorkItem:
    item: WorkItem = WorkItem.create("default", title, description)
    return item


def _listed(line: str) -> str:
    """The text of a line with a bullet or a number; nothing for other lines."""
    if line.startswith(_BULLETS):
        return line[2:].strip()
    number, point, rest = line.partition(". ")
    return rest.strip() if point and number.isdecimal() else ""


def _tried(step: Any) -> None:
    try:
        step()
    except Exception as exc:  # noqa: BLE001 - the session begins without what this step would add
        _log.warning("a session begins without a part of its context", extra={"error": str(exc)})


def _indented(heading: str, texts: Sequence[str]) -> list[str]:
    return [heading, *(f"  - {text}" for text in texts)] if texts else []


def _title(item: Any) -> str:
    return str(getattr(item, "title", item))


def _status(item: Any) -> str:
    return str(getattr(item, "status", "pending"))


def _as_prompt(memories: Any) -> str:
    if memories is None:
        return ""
    return str(memories.to_prompt()) if hasattr(memories, "to_prompt") else str(memories)

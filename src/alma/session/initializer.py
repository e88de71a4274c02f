"""The session initializer: gathers what an agent should know before a session starts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from alma.clock import new_id
from alma.errors import ValidationError
from alma.ingest.screening import injection_in
from alma.memory.git import Git, read_git_context
from alma.model.briefing import Line, Topic, briefing
from alma.model.common import LONGEST_TEXT, Part, checked_names, checked_part, same_name
from alma.model.prompt import checked_tokens
from alma.model.scope import MemoryScope
from alma.model.slice import MemorySlice
from alma.model.workspace import SessionHandoff, WorkItem, WorkItemStatus
from alma.paths import checked_directory
from alma.progress.tracker import ProgressTracker
from alma.redaction.redactor import redact_text
from alma.session.context import PreviousSession, handoff_topics
from alma.session.manager import SessionManager
from alma.tokens import count_tokens

DEFAULT_PROMPT_TOKENS = 2000
_WORK_ITEMS = 5
_PREVIOUS_SESSIONS = 3
_COMMITS = 5
_LEFT_OUT = "left out, because it looks like a prompt injection"
_CONFIGURATION = frozenset(
    {
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "requirements.txt",
        "package.json",
        "tsconfig.json",
        "Cargo.toml",
        "go.mod",
        "pom.xml",
        "build.gradle",
        "Gemfile",
        "composer.json",
        "Makefile",
        "Dockerfile",
        "docker-compose.yml",
        "CMakeLists.txt",
    }
)
_ENTRIES = 100
_MAX_NAME = 200


class Retriever(Protocol):
    """Retrieves memories as `ALMA` does."""

    @property
    def scopes(self) -> Mapping[str, MemoryScope]:
        """What each agent may learn and read."""
        ...

    def retrieve(self, task: str, agent: str, user_id: str | None = None, top_k: int = 5) -> MemorySlice:
        """The memories relevant to a task."""
        ...


@dataclass(frozen=True, slots=True)
class CodebaseOrientation:
    """The state of a working directory; less is known without git or if it does not exist."""

    root_path: str
    exists: bool = True
    is_git: bool = False
    current_branch: str | None = None
    current_commit: str | None = None
    remote_url: str | None = None
    recent_commits: tuple[str, ...] = ()
    dirty_files: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    @classmethod
    def of(cls, path: str | os.PathLike[str] | None = None) -> CodebaseOrientation:
        """The orientation in a directory, by default the current one."""
        root = checked_directory("session", "project_path", path) if path is not None else Path.cwd()
        if not root.is_dir():
            return cls(str(root), exists=False)
        directories, files = listing(root)
        repository = read_git_context(root, with_dirty=False)
        if repository is None:
            return cls(str(root), directories=directories, files=files)
        git = Git(root)
        return cls(
            str(root),
            is_git=True,
            current_branch=repository.branch,
            current_commit=repository.commit,
            remote_url=repository.remote,
            recent_commits=git.recent_commits(_COMMITS),
            dirty_files=git.dirty_files() or (),
            directories=directories,
            files=files,
        )

    @property
    def has_uncommitted_changes(self) -> bool:
        return bool(self.dirty_files)

    @property
    def config_files(self) -> tuple[str, ...]:
        """The files that configure how the project is built."""
        return tuple(name for name in self.files if name in _CONFIGURATION)

    def topic(self) -> Topic:
        """The orientation as a topic of a briefing; file names and commit messages are untrusted data.

        Secrets in them are masked, and prompt injections are left out.
        """
        if not self.exists:
            return Topic("Codebase", (Line("There is no directory", self.root_path),))
        lines = [Line("Directory", self.root_path)]
        if self.is_git:
            lines.append(Line("Branch", _shown(self.current_branch or "none (detached)")))
        if self.dirty_files:
            lines.append(Line(f"Not committed ({len(self.dirty_files)})", _listed(self.dirty_files)))
        lines += [Line("Commit", _shown(commit)) for commit in self.recent_commits]
        if self.directories or self.files:
            lines.append(Line("Contents", _listed([*(f"{name}/" for name in self.directories), *self.files])))
        return Topic("Codebase", tuple(lines))


@dataclass(frozen=True, slots=True)
class RulesOfEngagement:
    """The rules an agent works under."""

    scope_rules: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    quality_gates: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        scope: MemoryScope | None,
        constraints: tuple[str, ...] = (),
        quality_gates: tuple[str, ...] = (),
    ) -> RulesOfEngagement:
        """The rules that follow from an agent's scope, and additional ones."""
        limits = (*_limits(scope), *checked_names("rules", "constraints", constraints, LONGEST_TEXT))
        gates = tuple(checked_names("rules", "quality_gates", quality_gates, LONGEST_TEXT))
        return cls(() if scope is None else tuple(_scope_rules(scope)), limits, gates)

    def topic(self) -> Topic:
        """The rules as a topic of a briefing."""
        lines = [
            *(Line("", rule) for rule in self.scope_rules),
            *(Line("Constraint", rule) for rule in self.constraints),
            *(Line("Before it is done", gate) for gate in self.quality_gates),
        ]
        return Topic("Rules Of Engagement", tuple(lines))


@dataclass(frozen=True, slots=True)
class InitializationResult:
    """What an agent should know before a session starts."""

    session_id: str
    """An id for the session, to pass to `SessionManager.start_session`."""
    project_id: str
    agent: str
    goal: str
    previous_handoff: SessionHandoff | None = None
    recent_sessions: tuple[PreviousSession, ...] = ()
    work_items: tuple[WorkItem, ...] = ()
    memories: MemorySlice = field(default_factory=MemorySlice)
    orientation: CodebaseOrientation | None = None
    rules: RulesOfEngagement = field(default_factory=RulesOfEngagement)

    @property
    def selected_item(self) -> WorkItem | None:
        """The work item to start with."""
        return self.work_items[0] if self.work_items else None

    def to_prompt(self, max_tokens: int = DEFAULT_PROMPT_TOKENS) -> str:
        """All of it as text for a language model, within the token budget; stored text is quoted as data.

        Gathered facts get at least half of the budget if they need it; memories get the rest.
        """
        aim = checked_tokens(max_tokens)
        while True:
            text = self._filled(aim)
            # Joined text can take more tokens than its parts.
            excess = count_tokens(text) - max_tokens
            if excess <= 0:
                return text
            aim -= excess

    def _filled(self, max_tokens: int) -> str:
        around = self._topics()
        gathered = briefing(around, max_tokens // 2 if self.memories else max_tokens)
        remembered = self.memories.to_prompt(_room(max_tokens, gathered))
        if remembered:
            # Use what the memories did not need.
            gathered = briefing(around, _room(max_tokens, remembered))
        return "\n\n".join(text for text in (gathered, remembered) if text)

    def _topics(self) -> list[Topic]:
        handoff = [] if self.previous_handoff is None else handoff_topics(self.previous_handoff)
        items = [f"{item.title} ({item.status}, priority {item.priority})" for item in self.work_items]
        around = [] if self.orientation is None else [self.orientation.topic()]
        return [
            Topic.of("Goal", "", [self.goal]),
            self.rules.topic(),
            *handoff,
            Topic.of("Work Items", "", items),
            *around,
        ]


class SessionInitializer:
    """Gathers previous sessions, work items, memories, the codebase and the rules for a new session."""

    def __init__(
        self,
        alma: Retriever | None = None,
        progress_tracker: ProgressTracker | None = None,
        session_manager: SessionManager | None = None,
        scopes: Mapping[str, MemoryScope] | None = None,
    ) -> None:
        if alma is not None and not callable(getattr(alma, "retrieve", None)):
            raise ValidationError(
                "session initializer", "alma", alma, "must be a memory, as ALMA.quickstart() opens one"
            )
        self._alma = alma
        self._tracker = _of_kind("progress_tracker", progress_tracker, ProgressTracker)
        self._manager = _of_kind("session_manager", session_manager, SessionManager)
        self._scopes = scopes if scopes is not None else (alma.scopes if alma is not None else {})

    def initialize(
        self,
        project_id: str,
        agent: str,
        user_prompt: str,
        project_path: str | os.PathLike[str] | None = None,
        *,
        user_id: str | None = None,
        top_k: int = 5,
        constraints: tuple[str, ...] = (),
        quality_gates: tuple[str, ...] = (),
    ) -> InitializationResult:
        """The briefing of an agent for a request."""
        self._require_project(project_id)
        return InitializationResult(
            session_id=new_id(),
            project_id=project_id,
            agent=agent,
            goal=user_prompt,
            previous_handoff=None if self._manager is None else self._manager.get_latest_handoff(agent),
            recent_sessions=self._recent_sessions(agent),
            work_items=self._work_items(agent),
            memories=self._memories(agent, user_prompt, user_id, top_k),
            orientation=None if project_path is None else CodebaseOrientation.of(project_path),
            rules=RulesOfEngagement.of(self._scope(agent), constraints, quality_gates),
        )

    def _require_project(self, project_id: str) -> None:
        for part in (self._manager, self._tracker, self._alma):
            theirs = getattr(part, "project_id", project_id)
            if theirs != project_id:
                raise ValidationError(
                    "session",
                    "project_id",
                    project_id,
                    f"differs from the project of the manager, tracker or memory: {theirs}",
                )

    def _recent_sessions(self, agent: str) -> tuple[PreviousSession, ...]:
        return () if self._manager is None else tuple(self._manager.get_previous_sessions(agent, _PREVIOUS_SESSIONS))

    def _work_items(self, agent: str) -> tuple[WorkItem, ...]:
        """The items the agent has started, then those it could start next."""
        if self._tracker is None:
            return ()
        begun = self._tracker.get_items(WorkItemStatus.IN_PROGRESS, agent)
        return (*begun, *self._tracker.get_next_items(_WORK_ITEMS, agent=agent))[:_WORK_ITEMS]

    def _memories(self, agent: str, task: str, user_id: str | None, top_k: int) -> MemorySlice:
        return MemorySlice() if self._alma is None else self._alma.retrieve(task, agent, user_id, top_k)

    def _scope(self, agent: str) -> MemoryScope | None:
        """The agent's scope, ignoring the case of its name."""
        by_name = {same_name(name): scope for name, scope in self._scopes.items()}
        return self._scopes.get(agent) or by_name.get(same_name(agent))


def _room(max_tokens: int, taken: str) -> int:
    """The tokens left after a text and an empty line."""
    return max(0, max_tokens - count_tokens(taken + "\n\n"))


def _of_kind(name: str, part: Part | None, kind: type[Part]) -> Part | None:
    return part if part is None else checked_part("session initializer", name, part, kind, f"a {kind.__name__}")


def _shown(text: str) -> str:
    """Untrusted text from a repository, as it may be shown in a prompt."""
    clean = redact_text(text).text
    return _LEFT_OUT if injection_in([clean]) else clean


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(_shown, names))


def listing(root: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The directories and files directly under the root, without hidden ones."""
    try:
        with os.scandir(root) as entries:
            seen = [(_printable(entry.name), entry.is_dir(follow_symlinks=False)) for entry in entries]
    except OSError:
        return (), ()
    visible = sorted((name, is_dir) for name, is_dir in seen if not name.startswith("."))
    return _named(visible, True), _named(visible, False)


def _named(entries: Sequence[tuple[str, bool]], directories: bool) -> tuple[str, ...]:
    return tuple(name for name, is_dir in entries if is_dir is directories)[:_ENTRIES]


def _printable(name: str) -> str:
    """A printable name for any bytes that the file system returned."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")[:_MAX_NAME]


def _scope_rules(scope: MemoryScope) -> list[str]:
    rules = [
        f"Learn about {_joined_names(scope.can_learn)}" if scope.can_learn else "Learn about anything not forbidden"
    ]
    if scope.inherit_from:
        rules.append(f"Memories of {_joined_names(scope.inherit_from)} can be read too")
    if scope.share_with:
        rules.append(f"What is learned may be read by {_joined_names(scope.share_with)}")
    rules.append(f"{scope.min_occurrences_for_heuristic} like outcomes make a strategy known to work")
    return rules


def _limits(scope: MemoryScope | None) -> tuple[str, ...]:
    if scope is None or not scope.cannot_learn:
        return ()
    return (f"Do not learn about {_joined_names(scope.cannot_learn)}",)


def _joined_names(names: Iterable[str]) -> str:
    return ", ".join(names)

"""Projects: created from a directory, with language and framework detected, and statistics about them."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from alma.clock import new_id, now
from alma.errors import UniquenessError, ValidationError
from alma.memory.git import read_git_context
from alma.memory.tuning import table
from alma.memory.updates import Screen, screened, without_secrets
from alma.model.fields import JsonObject
from alma.model.governance import ANONYMOUS, Attribution
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome
from alma.model.memory import Layer, Memory, ProjectPattern
from alma.model.query import And, Compare, Order
from alma.model.scope import Scope, checked_scope
from alma.model.workspace import Project, Session, SessionHandoff, WorkItem
from alma.paths import checked_directory
from alma.storage.base import StorageBackend, Transaction, checked_storage

_EVERYWHERE = Scope.everywhere()
_LATEST_FIRST = (Order("last_accessed_at", "desc"),)
_MAX_ENTRIES = 2000
_MAX_MANIFEST_BYTES = 1 << 20
_SKIPPED_FOLDERS = frozenset(
    {"node_modules", "vendor", "target", "dist", "build", "venv", "__pycache__", "site-packages"}
)


@dataclass(frozen=True, slots=True)
class ProjectStats:
    """The number of records that a store holds for a project."""

    project_id: str
    memories: int
    memories_by_type: Mapping[str, int]
    memories_by_layer: Mapping[str, int]
    heuristics: int
    outcomes: int
    success_rate: float | None
    anti_patterns: int
    domain_knowledge: int
    patterns: int
    sessions: int
    active_sessions: int
    handoffs: int
    work_items: Mapping[str, int]
    last_activity: datetime | None


class Projects:
    """The projects of a store."""

    def __init__(self, storage: StorageBackend, screen: Screen = without_secrets) -> None:
        self._storage = checked_storage("projects", storage)
        self._screen = screen

    def initialize(
        self,
        user_id: str,
        name: str | None = None,
        path: str | os.PathLike[str] | None = None,
        *,
        project_id: str | None = None,
        description: str | None = None,
        language: str | None = None,
        framework: str | None = None,
        project_type: str | None = None,
        config: JsonObject | None = None,
        by: Attribution = ANONYMOUS,
    ) -> Project:
        """Create the project of this name, or update it from its directory.

        The name defaults to that of the directory. Given values win over detected ones. The id is the name, so that
        memories with that project id belong to it, unless the project of another user has that id.
        """
        found = _inspected(path)
        known: dict[str, Any] = {
            "description": description,
            "path": found.path,
            "git_remote_url": found.remote_url,
            "git_branch": found.branch,
            "language": language or found.detected.language,
            "framework": framework or found.detected.framework,
            "project_type": project_type or found.detected.project_type,
            "config_json": config,
        }
        given = {each: value for each, value in known.items() if value is not None}
        project = Project(id=project_id or new_id(), user_id=user_id, name=name or _name(found.path), **given)

        def write(tx: Transaction) -> Project:
            return _initialized(tx, project, project_id, given, self._screen)

        try:
            return self._storage.write(write, by)
        except UniquenessError:
            # Another process has created it since; now it is found and updated.
            return self._storage.write(write, by)

    def get(self, project_id: str, scope: Scope) -> Project | None:
        """The project with this id, if the scope's user has it."""
        return self._storage.get(Project, project_id, _of_user(scope))

    def named(self, user_id: str, name: str) -> Project | None:
        """The user's project of this name, if there is one."""
        return _by_name(self._storage, user_id, name)

    def list_all(self, user_id: str, active_only: bool = True) -> list[Project]:
        """The projects of the user, most recently used first."""
        where = Compare("is_active", "eq", True) if active_only else And()
        return self._storage.find(Project, Scope(user_id=user_id), where, _LATEST_FIRST)

    def stats(self, project_id: str) -> ProjectStats:
        """Statistics about a project, read from one snapshot."""
        with self._storage.snapshot() as tx:
            return _stats(tx, project_id)


@dataclass(frozen=True, slots=True)
class DetectedProject:
    """The properties detected from the files of a project, and the evidence."""

    language: str | None = None
    framework: str | None = None
    project_type: str | None = None
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Found:
    path: str | None = None
    remote_url: str | None = None
    branch: str | None = None
    detected: DetectedProject = field(default_factory=DetectedProject)


def _inspected(path: str | os.PathLike[str] | None) -> _Found:
    if path is None:
        return _Found()
    root = checked_directory("project", "path", path).resolve()
    if not root.is_dir():
        raise ValidationError("project", "path", str(path), "must be a directory that exists")
    git = read_git_context(root, with_dirty=False)
    if git is None:
        return _Found(str(root), detected=detect(root))
    return _Found(str(root), git.remote, git.branch, detect(root))


def _name(path: str | None) -> str:
    if path is None:
        raise ValidationError("project", "name", None, "or a path must be given")
    return Path(path).name or path


def _initialized(
    tx: Transaction, project: Project, project_id: str | None, given: Mapping[str, Any], screen: Screen
) -> Project:
    known = _by_name(tx, project.user_id, project.name)
    moment = now()
    if known is not None:
        if project_id is not None and project_id != known.id:
            raise ValidationError(
                "project", "id", project_id, f"is not that of {project.name!r}, which is {known.id!r}"
            )
        fresh = {**given, "is_active": True, "updated_at": moment, "last_accessed_at": moment}
        updated = tx.update(Project, known.id, screened(known, fresh, screen), Scope(user_id=project.user_id))
        assert updated is not None, "it was just found"
        return updated
    if project_id is None and tx.get(Project, project.name, _EVERYWHERE) is None:
        project = project.replace(id=project.name)
    project = screen(project)
    tx.insert(project)
    return project


def _by_name(reader: StorageBackend | Transaction, user_id: str, name: str) -> Project | None:
    found = reader.find(Project, Scope(user_id=user_id), Compare("name", "eq", name), limit=1)
    return found[0] if found else None


def _of_user(scope: Scope) -> Scope:
    """Projects belong to users, so only the user of a scope narrows them."""
    return _EVERYWHERE if checked_scope("projects", scope).unlimited else Scope(user_id=scope.user_id)


def _stats(tx: Transaction, project_id: str) -> ProjectStats:
    scope = Scope(project_id=project_id)
    live = And(Compare("is_active", "eq", True), Compare("is_archived", "eq", False))
    columns = ("memory_type", *(f"layer_{layer}" for layer in Layer))
    memories = tx.values(Memory, columns, scope, live)
    outcomes = tx.count(Outcome, scope)
    successes = tx.count(Outcome, scope, Compare("success", "eq", True))
    return ProjectStats(
        project_id=project_id,
        memories=len(memories),
        memories_by_type=dict(sorted(Counter(row[0] for row in memories).items())),
        memories_by_layer={
            layer.value: sum(bool(row[i]) for row in memories) for i, layer in enumerate(Layer, start=1)
        },
        heuristics=tx.count(Heuristic, scope),
        outcomes=outcomes,
        success_rate=successes / outcomes if outcomes else None,
        anti_patterns=tx.count(AntiPattern, scope),
        domain_knowledge=tx.count(DomainKnowledge, scope),
        patterns=tx.count(ProjectPattern, scope),
        sessions=tx.count(Session, scope),
        active_sessions=tx.count(Session, scope, Compare("is_active", "eq", True)),
        handoffs=tx.count(SessionHandoff, scope),
        work_items=dict(Counter(str(row[0]) for row in tx.values(WorkItem, ("status",), scope))),
        last_activity=_last_activity(tx, scope),
    )


def _last_activity(tx: Transaction, scope: Scope) -> datetime | None:
    newest = {Memory: "updated_at", Session: "last_active_at", WorkItem: "updated_at", Outcome: "timestamp"}
    found = (tx.values(cls, (name,), scope, order=(Order(name, "desc"),), limit=1) for cls, name in newest.items())
    return max((rows[0][0] for rows in found if rows), default=None)


# ---------------------------------------------------------------------- detection


def detect(root: Path) -> DetectedProject:
    """Detect language, framework and type of the project in a directory; None for what cannot be detected."""
    known = table("frameworks")
    manifests = [name for name in known["manifests"] if (root / name).is_file()]
    language, why = _language(root, manifests)
    if language is None:
        return DetectedProject()
    text = "\n".join(_read(root / name) for name in manifests)
    family = known["families"].get(language, language)
    for needle, framework, project_type in known["frameworks"].get(family, ()):
        if _depends_on(text, needle):
            return DetectedProject(language, framework, project_type, (why, f"depends on {needle}"))
    return DetectedProject(language, None, _type_without_framework(root, language, text), (why,))


def _language(root: Path, manifests: list[str]) -> tuple[str | None, str]:
    if manifests:
        return table("frameworks")["manifests"][manifests[0]], f"has {manifests[0]}"
    suffixes = table("frameworks")["suffixes"]
    counted = Counter(suffixes[path.suffix] for path in _source_files(root) if path.suffix in suffixes)
    if not counted:
        return None, ""
    language = min(counted, key=lambda each: (-counted[each], each))
    return language, f"has {counted[language]} {language} files"


def _source_files(root: Path) -> Iterable[Path]:
    """A few thousand files at most, up to three levels below the root, in a fixed order."""
    seen = 0
    level = [root]
    for _ in range(3):
        entries = sorted(entry for folder in level for entry in _entries(folder))
        seen += len(entries)
        yield from (entry for entry in entries if entry.is_file())
        if seen > _MAX_ENTRIES:
            return
        level = [
            entry for entry in entries if entry.is_dir() and not entry.is_symlink() and _is_source_folder(entry.name)
        ]


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _is_source_folder(name: str) -> bool:
    return name not in _SKIPPED_FOLDERS and not name.startswith(".")


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_MANIFEST_BYTES)
    except OSError:
        return ""


def _depends_on(manifests: str, needle: str) -> bool:
    """Whether a manifest names this dependency as a whole word: `next` does not match `next-tick`."""
    if "/" in needle:
        return needle in manifests
    return re.search(rf"(?<![\w@/-]){re.escape(needle)}(?![\w/-])", manifests, re.IGNORECASE) is not None


def _type_without_framework(root: Path, language: str, manifests: str) -> str | None:
    """The type of a project without a known framework: a command line tool or a library."""
    if language in ("javascript", "typescript"):
        return "cli" if '"bin"' in manifests else ("library" if _is_package(root) else None)
    if language == "python":
        return "cli" if "[project.scripts]" in manifests or "console_scripts" in manifests else "library"
    if language == "rust":
        return "library" if (root / "src" / "lib.rs").is_file() else "cli"
    return None


def _is_package(root: Path) -> bool:
    try:
        package = json.loads(_read(root / "package.json"))
    except ValueError:
        return False
    return isinstance(package, dict) and any(name in package for name in ("main", "module", "exports"))

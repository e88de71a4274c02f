"""Orientation: a look around the directory that an agent is going to work in."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from alma.ingest.screening import suspicion
from alma.memory.directory import listing
from alma.memory.git import Git, read_git_context
from alma.model.briefing import Line, Topic
from alma.paths import checked_directory
from alma.redaction.redactor import redact_text

_COMMITS = 5
_LEFT_OUT = "left out, as it looks like orders to its reader"
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


@dataclass(frozen=True, slots=True)
class CodebaseOrientation:
    """A look around a working directory; of one without git, or that does not exist, less is known."""

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
        """The orientation in a directory, the current one if none is named."""
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
        """The files that say how the project is built."""
        return tuple(name for name in self.files if name in _CONFIGURATION)

    def topic(self) -> Topic:
        """The orientation as a topic of a briefing; names and messages are data, as anybody may have chosen them.

        Secrets in them are masked, and what looks like orders is left out.
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


def _shown(text: str) -> str:
    """What somebody wrote into a repository, as a prompt may show it."""
    return _LEFT_OUT if suspicion([text]) else redact_text(text).text


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(_shown, names))

"""Git context: branch, commit, remote and dirty state of a working directory, read without starting a shell."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from alma.lazy import lazy_regex
from alma.paths import checked_directory

_MAX_BYTES = 1 << 20
_MAX_REFS_BYTES = 64 << 20
_MAX_BRANCH_LENGTH = 200
_TIMEOUT_SECONDS = 5.0
_COMMIT = lazy_regex(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_UNPRINTABLE = lazy_regex(r"[\x00-\x20\x7f]")
_MAX_FILES = 50
_MAX_NAME_LENGTH = 200
_FILTERS = r"^filter\..*\.(clean|smudge|process|required)$"
# Programs named by the repository's configuration are never run.
_COMMAND = (
    "git",
    "--no-optional-locks",
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "log.showSignature=false"),
)
# Git would run the filters of submodules to inspect them.
_STATUS = ("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=dirty")


@dataclass(frozen=True, slots=True)
class GitContext:
    """The Git state of a working directory; None for what is unknown.

    Without a branch the head is detached. The remote contains no credentials.
    """

    root: str
    branch: str | None = None
    commit: str | None = None
    remote: str | None = None
    dirty: bool | None = None

    @property
    def is_detached(self) -> bool:
        return self.branch is None and self.commit is not None

    def to_json(self) -> dict[str, Any]:
        """For the `git_context_json` of a memory."""
        known = {"branch": self.branch, "commit": self.commit, "remote": self.remote, "dirty": self.dirty}
        return {name: value for name, value in known.items() if value is not None}


class Git:
    """Runs git in a directory without a shell, prompts, hooks or programs that the repository names."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = root

    def recent_commits(self, most: int) -> tuple[str, ...]:
        """The newest commits, each as its short hash and subject."""
        answer = self._run("log", f"-{most}", "--format=%h %s")
        return tuple((answer or b"").decode("utf-8", "replace").splitlines())

    def dirty_files(self) -> tuple[str, ...] | None:
        """The paths that differ from the last commit, untracked ones too; None where git cannot tell."""
        # NUL-terminated and unquoted, so that names are unambiguous.
        answer = self._run(*_STATUS, without=self._filters())
        if answer is None:
            return None
        entries = answer.decode("utf-8", "replace").split("\0")
        return tuple(entry[3:][:_MAX_NAME_LENGTH] for entry in entries if len(entry) > 3)[:_MAX_FILES]

    def _filters(self) -> list[str]:
        """The filter programs that the repository configures for comparing files."""
        answer = self._run("config", "--name-only", "-z", "--get-regexp", _FILTERS)
        return [key for key in (answer or b"").decode("utf-8", "surrogateescape").split("\0") if key]

    def _run(self, *arguments: str, without: Sequence[str] = ()) -> bytes | None:
        """The output of git, or None if it fails, times out or is not installed."""
        try:
            done = subprocess.run(
                [*_COMMAND, *arguments],
                cwd=self._root,
                env=_environment(without),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_TIMEOUT_SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout if done.returncode == 0 else None


def _environment(without: Sequence[str]) -> dict[str, str]:
    """The environment without variables that redirect git, and with these settings emptied."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    settings = {"GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat", "LC_ALL": "C", "GIT_CONFIG_COUNT": str(len(without))}
    # A partial clone would fetch missing objects with a program that its configuration names.
    settings |= {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
    for number, key in enumerate(without):
        settings |= {
            f"GIT_CONFIG_KEY_{number}": key,
            f"GIT_CONFIG_VALUE_{number}": "false" if key.endswith(".required") else "",
        }
    return {**kept, **settings}


def read_git_context(directory: str | os.PathLike[str] | None = None, *, with_dirty: bool = True) -> GitContext | None:
    """The Git context of a directory, by default the current one, or None outside of a repository.

    Branch, commit and remote are read from the files of the repository; only the dirty state needs git and is None if
    git is not installed.
    """
    found = _repository(Path.cwd() if directory is None else checked_directory("git", "directory", directory))
    if found is None:
        return None
    root, git_dir = found
    common = _common_dir(git_dir)
    branch, commit = _head(git_dir, common)
    return GitContext(
        root=str(root),
        branch=branch,
        commit=commit,
        remote=_remote(common),
        dirty=_is_dirty(root) if with_dirty else None,
    )


def _is_dirty(root: Path) -> bool | None:
    changed = Git(root).dirty_files()
    return None if changed is None else bool(changed)


def without_credentials(url: str) -> str | None:
    """The address of a remote without user names, passwords and tokens; None if they cannot be recognized."""
    if _UNPRINTABLE.search(url):
        return None
    if "://" not in url:
        # In git@host:path the name is a shared account; the rest are local paths.
        return url if "@" not in url or re.fullmatch(r"[A-Za-z0-9._-]+@[^@:]+:[^@]*", url) else None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    place = (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
    return urlunsplit((parts.scheme, place, parts.path, "", ""))


# ---------------------------------------------------------------------- the files of a repository


def _repository(directory: Path) -> tuple[Path, Path] | None:
    """The top of the working tree and its git folder, which is elsewhere for worktrees and submodules."""
    try:
        here = directory.resolve()
    except (OSError, RuntimeError):
        return None
    for folder in (here, *here.parents):
        entry = folder / ".git"
        if (entry / "HEAD").is_file():
            return folder, entry
        if entry.is_file():
            pointed = _text(entry).removeprefix("gitdir:").strip()
            target = (folder / pointed) if pointed else None
            return (folder, target) if target is not None and (target / "HEAD").is_file() else None
    return None


def _common_dir(git_dir: Path) -> Path:
    """The folder that worktrees share."""
    pointed = _text(git_dir / "commondir").strip()
    return git_dir / pointed if pointed else git_dir


def _head(git_dir: Path, common: Path) -> tuple[str | None, str | None]:
    head = _text(git_dir / "HEAD").strip()
    if not head.startswith("ref:"):
        return None, head if _COMMIT.fullmatch(head) else None
    name = head.removeprefix("ref:").strip()
    if not _is_ref(name):
        return None, None
    branch = name.removeprefix("refs/heads/") if name.startswith("refs/heads/") else None
    if branch is not None and len(branch) > _MAX_BRANCH_LENGTH:
        branch = None
    return branch, _commit_of(name, git_dir, common)


def _is_ref(name: str) -> bool:
    """Whether a name from HEAD is a ref inside the repository."""
    parts = name.split("/")
    return (
        parts[0] == "refs"
        and len(parts) > 1
        and not _UNPRINTABLE.search(name)
        and not any(part in ("", ".", "..") or part == ".invalid" for part in parts)
    )


def _commit_of(name: str, git_dir: Path, common: Path) -> str | None:
    for folder in (git_dir, common):
        commit = _text(folder / name).strip()
        if _COMMIT.fullmatch(commit):
            return commit
    for line in _text(common / "packed-refs", _MAX_REFS_BYTES).splitlines():
        commit, _, packed = line.partition(" ")
        if packed == name and _COMMIT.fullmatch(commit):
            return commit
    return None


def _remote(common: Path) -> str | None:
    """The address of origin, or of the only remote."""
    section, urls = "", dict[str, str]()
    for line in _text(common / "config").splitlines():
        stripped = line.strip()
        if stripped.startswith("["):
            heading = re.fullmatch(r'\[remote "([^"\\]+)"\].*', stripped)
            section = heading[1] if heading else ""
        elif section and (setting := re.fullmatch(r"url\s*=\s*(.+)", stripped, re.IGNORECASE)):
            urls.setdefault(section, setting[1].strip().strip('"'))
    url = urls.get("origin") or (next(iter(urls.values())) if len(urls) == 1 else None)
    return None if url is None else without_credentials(url)


def _text(path: Path, most: int = _MAX_BYTES) -> str:
    """The content of a file, or an empty string if it is unreadable, special or too large."""
    try:
        if not path.is_file() or path.stat().st_size > most:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return ""

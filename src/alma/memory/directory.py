"""Directories: what lies in one and what git knows about it, read without a shell."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

_GIT_SECONDS = 5.0
_FILES = 50
_ENTRIES = 100
_LONGEST_NAME = 200
_FILTERS = r"^filter\..*\.(clean|smudge|process|required)$"
# Nothing that a repository's own configuration names is run.
_COMMAND = (
    "git",
    "--no-optional-locks",
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "log.showSignature=false"),
)


class Git:
    """Asks git about a directory: without a shell, without prompts, hooks or programs that the directory names."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def ask(self, *arguments: str) -> str | None:
        """What git answers, or None where it has no answer, takes too long or is not there."""
        answer = self._answer(*arguments)
        return None if answer is None else answer.decode("utf-8", "replace").strip() or None

    def dirty_files(self) -> tuple[str, ...]:
        """The paths that differ from the last commit, untracked ones too."""
        # Ended by NUL and not quoted, so that no name can be taken for two, or for something else.
        answer = self._answer(
            "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal", without=self._filters()
        )
        entries = (answer or b"").decode("utf-8", "replace").split("\0")
        return tuple(entry[3:][:_LONGEST_NAME] for entry in entries if len(entry) > 3)[:_FILES]

    def _filters(self) -> list[str]:
        """The programs that the repository would have its files pass when they are compared."""
        answer = self._answer("config", "--name-only", "-z", "--get-regexp", _FILTERS)
        return [key for key in (answer or b"").decode("utf-8", "surrogateescape").split("\0") if key]

    def _answer(self, *arguments: str, without: Sequence[str] = ()) -> bytes | None:
        try:
            done = subprocess.run(
                [*_COMMAND, *arguments],
                cwd=self._root,
                env=_environment(without),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_GIT_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode == 0 else None


def _environment(without: Sequence[str]) -> dict[str, str]:
    """Ours, without what would make git look at another repository, and with these settings made empty."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    settings = {"GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat", "LC_ALL": "C", "GIT_CONFIG_COUNT": str(len(without))}
    for number, key in enumerate(without):
        settings |= {
            f"GIT_CONFIG_KEY_{number}": key,
            f"GIT_CONFIG_VALUE_{number}": "false" if key.endswith(".required") else "",
        }
    return {**kept, **settings}


def listing(root: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The directories and files right under the root, hidden ones left out."""
    try:
        with os.scandir(root) as entries:
            seen = [(_shown(entry.name), entry.is_dir(follow_symlinks=False)) for entry in entries]
    except OSError:
        return (), ()
    visible = sorted((name, is_dir) for name, is_dir in seen if not name.startswith("."))
    return _names(visible, True), _names(visible, False)


def _names(entries: Sequence[tuple[str, bool]], directories: bool) -> tuple[str, ...]:
    return tuple(name for name, is_dir in entries if is_dir is directories)[:_ENTRIES]


def _shown(name: str) -> str:
    """A name that can be printed and stored, whatever bytes the file system has for it."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")[:_LONGEST_NAME]


def without_password(url: str | None) -> str | None:
    """An address without what stands before the host: it may be a password."""
    if url is None or "://" not in url:
        return url
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"

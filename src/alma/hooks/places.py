"""Where a hook finds the memory, and where hooks keep their own files. Imports only what starts fast."""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from alma.hooks.hosts import Json

_FOLDER = ".alma"
_ROOTS = ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CURSOR_PROJECT_DIR")
DEFAULT_PROJECT = "default"


class Place(NamedTuple):
    """A memory as a configuration or a store, and the folder for spooled events, sessions and the log."""

    folder: Path
    config: str | None = None
    store: str | None = None
    project: str | None = None

    @property
    def key(self) -> str:
        """The key that distinguishes two memories on this machine."""
        named = "\0".join((str(self.folder), self.store or "", self.project or ""))
        return blake2b(named.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    @property
    def socket(self) -> Path:
        """The socket of the resident process; the path is short, as the system demands."""
        return runtime_folder() / f"{self.key}.sock"

    @property
    def arguments(self) -> list[str]:
        """The options that name this memory."""
        named = {"--config": self.config, "--store": self.store, "--project": self.project}
        return [part for option, value in named.items() if value for part in (option, value)]


def place_of(config: str | None, store: str | None, project: str | None, payload: Json) -> Place | None:
    """The chosen memory, or that of the project of an event; None where there is none."""
    if config:
        file = Path(config).absolute()
        return Place(file.parent / "hooks", config=str(file), project=project)
    if store:
        return _of_store(store, project)
    for root in _roots(payload):
        for folder in (root, *root.parents):
            if (found := folder / _FOLDER / "config.yaml").is_file():
                return Place(found.parent / "hooks", config=str(found), project=project)
            if (found := folder / _FOLDER / "alma.db").is_file():
                return _of_store(str(found), project)
    return None


def _of_store(store: str, project: str | None) -> Place:
    if "://" in store:
        home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        name = blake2b(store.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        return Place(home / "alma" / "hooks" / name, store=store, project=project)
    file = Path(store).absolute()
    folder = file.parent / "hooks" if file.parent.name == _FOLDER else file.with_name(f"{file.name}.hooks")
    return Place(folder, store=str(file), project=project)


def _roots(payload: Json) -> list[Path]:
    workspaces = payload.get("workspace_roots")
    first = workspaces[0] if isinstance(workspaces, list) and workspaces else None
    named = (*(os.environ.get(name) for name in _ROOTS), payload.get("cwd"), first)
    return [*(path for each in named if isinstance(each, str) and (path := Path(each)).is_absolute()), Path.cwd()]


def runtime_folder() -> Path:
    """A folder for sockets that only this user can enter."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(base) / "alma" if base else Path(os.environ.get("TMPDIR") or "/tmp") / f"alma-{_user_id()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & 0o077):
        raise PermissionError(f"{folder} must belong to this user alone: remove it, or set XDG_RUNTIME_DIR")
    return folder


def _user_id() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else "user"

"""`alma init --host`: add hooks and the MCP server to the files of a coding assistant, and keep all else in them."""

from __future__ import annotations

import difflib
import json
import shlex
import shutil
import sys
import tomllib
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alma.config import DEFAULT_CONFIG
from alma.errors import ConfigurationError
from alma.hooks.hosts import HOSTS, Host

_SECONDS = 10
_OURS = ("alma hook ", "-m alma hook ")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file of a host, as it is and as it should be."""

    path: Path
    before: str | None
    after: str

    @property
    def is_needed(self) -> bool:
        """Whether the file is to be written."""
        return self.before != self.after

    def write(self) -> None:
        """Write the file, and its folder."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(self.after, encoding="utf-8")

    def diff(self) -> str:
        """The change as a unified diff."""
        before, after = (text.splitlines(keepends=True) for text in (self.before or "", self.after))
        return "".join(difflib.unified_diff(before, after, str(self.path), str(self.path)))


def changes_for(host: str, root: Path, config: Path) -> list[FileChange]:
    """The changes to a host's files in a project; nothing is written yet."""
    known = HOSTS.get(host)
    if known is None:
        raise ConfigurationError(f"{host!r} is not a host that is known; there are {', '.join(HOSTS)}")
    extra = () if config == DEFAULT_CONFIG else ("--config", str(config.absolute()))
    server = {"command": _program()[0], "args": [*_program()[1:], "mcp", *extra]}
    hooks = hook_settings(known, [*_program(), "hook"], extra)
    if host == "claude-code":
        return [
            _merged(root / ".claude" / "settings.json", {"hooks": hooks}),
            _merged(root / ".mcp.json", {"mcpServers": {"alma": server}}),
        ]
    if host == "cursor":
        return [
            _merged(root / ".cursor" / "hooks.json", {"version": 1, "hooks": hooks}),
            _merged(root / ".cursor" / "mcp.json", {"mcpServers": {"alma": server}}),
        ]
    if host == "gemini-cli":
        return [_merged(root / ".gemini" / "settings.json", {"hooks": hooks, "mcpServers": {"alma": server}})]
    return [
        _merged(root / ".codex" / "hooks.json", {"hooks": hooks}),
        _with_server(root / ".codex" / "config.toml", server),
    ]


def hook_settings(host: Host, program: Sequence[str] = ("alma", "hook"), extra: Sequence[str] = ()) -> Json:
    """The hooks of a host by event, as its settings hold them."""
    named = () if host.name == "claude-code" else ("--host", host.name)
    seconds = _SECONDS * 1_000 if host.name == "gemini-cli" else _SECONDS
    settings: Json = {}
    for event in host.events:
        command = shlex.join([*program, event, *named, *extra])
        if host.flat:
            settings[event] = [{"command": command, "timeout": seconds}]
        else:
            matcher = {"matcher": host.matchers[event]} if event in host.matchers else {}
            settings[event] = [{**matcher, "hooks": [{"type": "command", "command": command, "timeout": seconds}]}]
    return settings


def _program() -> tuple[str, ...]:
    """How the command line is started: by its name where that is found, as other machines share these files."""
    return ("alma",) if shutil.which("alma") else (sys.executable, "-m", "alma")


def _merged(file: Path, ours: Json) -> FileChange:
    before = file.read_text(encoding="utf-8") if file.exists() else None
    try:
        held = json.loads(before) if before and before.strip() else {}
        after = _with({**held}, ours)
    except (ValueError, TypeError, AttributeError) as exc:
        raise ConfigurationError(f"{file} is not valid settings in JSON: {exc}; nothing was written") from exc
    if before is not None and after == held:
        return FileChange(file, before, before)
    return FileChange(file, before, json.dumps(after, indent=2, ensure_ascii=False) + "\n")


def _with(held: Json, ours: Json) -> Json:
    """Settings with ours: hooks of others stay, former ones of ours are replaced."""
    after: Json = deepcopy(held)
    for key, value in ours.items():
        if key == "hooks":
            hooks = after.setdefault("hooks", {})
            for event, entries in value.items():
                others = [each for each in hooks.get(event, []) if not _is_ours(each)]
                hooks[event] = [*others, *entries]
        elif isinstance(value, dict):
            after.setdefault(key, {}).update(value)
        else:
            after.setdefault(key, value)
    return after


def _is_ours(entry: Any) -> bool:
    inner = entry.get("hooks", [entry])
    return bool(inner) and all(any(mark in str(each.get("command", "")) for mark in _OURS) for each in inner)


def _with_server(file: Path, server: Json) -> FileChange:
    """A TOML file with the MCP server, appended so that comments and order stay."""
    before = file.read_text(encoding="utf-8") if file.exists() else None
    try:
        held = tomllib.loads(before or "")
    except tomllib.TOMLDecodeError as exc:
        raise ConfigurationError(f"{file} is not valid TOML: {exc}; nothing was written") from exc
    if "alma" in held.get("mcp_servers", {}):
        return FileChange(file, before, before or "")
    start = before.rstrip("\n") + "\n\n" if before and before.strip() else ""
    table = "".join(f"{name} = {json.dumps(value)}\n" for name, value in server.items())
    return FileChange(file, before, f"{start}[mcp_servers.alma]\n{table}")

"""The files of coding assistants: the plugin, and what `alma init --host` writes."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from skills_ref.validator import validate

from alma.cli.hosts import hook_settings
from alma.hooks.hosts import HOSTS

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "plugins" / "claude-code"

# As the reference of plugins describes them.
_NAME = {"type": "string", "pattern": "^[a-z][a-z0-9]*(-[a-z0-9]+)*$"}
_PERSON = {"type": "object", "properties": {"name": {"type": "string"}, "email": {}, "url": {}}, "required": ["name"]}
MANIFEST = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {
        "name": _NAME,
        "version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
        "description": {"type": "string"},
        "author": _PERSON,
        "license": {"type": "string"},
        "keywords": {"type": "array", "items": {"type": "string"}},
    },
}
HOOKS = {
    "type": "object",
    "required": ["hooks"],
    "additionalProperties": False,
    "properties": {
        "description": {"type": "string"},
        "hooks": {
            "type": "object",
            "additionalProperties": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["hooks"],
                    "properties": {
                        "matcher": {"type": "string"},
                        "hooks": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "required": ["type", "command"],
                                "additionalProperties": False,
                                "properties": {
                                    "type": {"const": "command"},
                                    "command": {"type": "string"},
                                    "timeout": {"type": "integer", "minimum": 1},
                                },
                            },
                        },
                    },
                    "additionalProperties": False,
                },
            },
        },
    },
}
SERVERS = {
    "type": "object",
    "required": ["mcpServers"],
    "properties": {
        "mcpServers": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "required": ["command"],
                "properties": {"command": {"type": "string"}, "args": {"type": "array", "items": {"type": "string"}}},
            },
        }
    },
}
# The hook events of the Claude Agent SDK 0.3 that have the fields which are used here.
EVENTS = {
    *("SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure"),
    *("Stop", "SubagentStop", "PreCompact", "SessionEnd"),
}


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_files_of_the_plugin_are_valid() -> None:
    jsonschema.validate(read(PLUGIN / ".claude-plugin" / "plugin.json"), MANIFEST)
    jsonschema.validate(read(PLUGIN / "hooks" / "hooks.json"), HOOKS)
    jsonschema.validate(read(PLUGIN / ".mcp.json"), SERVERS)
    assert validate(PLUGIN / "skills" / "alma-memory") == []
    (listed,) = read(ROOT / ".claude-plugin" / "marketplace.json")["plugins"]
    assert (ROOT / listed["source"]).resolve() == PLUGIN
    assert listed["name"] == read(PLUGIN / ".claude-plugin" / "plugin.json")["name"]


def test_the_hooks_of_the_plugin_are_those_of_the_host() -> None:
    assert read(PLUGIN / "hooks" / "hooks.json")["hooks"] == hook_settings(HOSTS["claude-code"])
    assert set(HOSTS["claude-code"].events) == EVENTS


# ---------------------------------------------------------------------- alma init --host


def init(folder: Path, *options: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "alma", "init", "--embeddings", "mock", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def files(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


FILES = {
    "claude-code": (".claude/settings.json", ".mcp.json"),
    "codex": (".codex/hooks.json", ".codex/config.toml"),
    "cursor": (".cursor/hooks.json", ".cursor/mcp.json"),
    "gemini-cli": (".gemini/settings.json",),
}
THEIRS = {"type": "command", "command": "notify-send done"}


def test_init_adds_hooks_and_server_once_and_keeps_what_is_there(tmp_path: Path) -> None:
    for settings, content in (
        (".claude/settings.json", {"model": "opus", "hooks": {"Stop": [{"hooks": [THEIRS]}]}}),
        (".mcp.json", {"mcpServers": {"other": {"command": "other"}}}),
        (".cursor/hooks.json", {"version": 1, "hooks": {"sessionEnd": [{"command": "./audit.sh"}]}}),
        (".gemini/settings.json", {"theme": "Ünïcode"}),
    ):
        (tmp_path / settings).parent.mkdir(exist_ok=True)
        (tmp_path / settings).write_text(json.dumps(content))
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text('# mine\nmodel = "gpt"\n')
    hosts = [option for host in FILES for option in ("--host", host)]
    init(tmp_path, *hosts)
    written = files(tmp_path)
    assert {name for names in FILES.values() for name in names} <= set(written)
    assert "up to date" in init(tmp_path, *hosts)
    assert {name: text for name, text in files(tmp_path).items() if ".alma" not in name} == {
        name: text for name, text in written.items() if ".alma" not in name
    }
    claude = json.loads(written[".claude/settings.json"])
    assert claude["model"] == "opus"
    assert claude["hooks"]["Stop"][0] == {"hooks": [THEIRS]}
    assert "hook Stop" in claude["hooks"]["Stop"][1]["hooks"][0]["command"]
    assert set(json.loads(written[".mcp.json"])["mcpServers"]) == {"other", "alma"}
    assert json.loads(written[".gemini/settings.json"])["theme"] == "Ünïcode"
    cursor = json.loads(written[".cursor/hooks.json"])["hooks"]
    assert cursor["sessionEnd"][0] == {"command": "./audit.sh"}
    assert "--host cursor" in cursor["sessionStart"][0]["command"]
    codex = tomllib.loads(written[".codex/config.toml"].decode())
    assert written[".codex/config.toml"].startswith(b"# mine\n")
    assert codex["model"] == "gpt"
    assert codex["mcp_servers"]["alma"]["args"][-1] == "mcp"


def test_an_unknown_host_is_refused(tmp_path: Path) -> None:
    assert "'emacs' is not a host that is known; there are claude-code" in init(tmp_path, "--host", "emacs", code=2)


def test_a_dry_run_shows_the_change_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text("{}")
    before = files(tmp_path)
    said = init(tmp_path, "--host", "claude-code", "--dry-run")
    assert "hook SessionStart" in said
    assert "+++" in said
    assert files(tmp_path) == before


@pytest.mark.parametrize("content", ["{ not json", "[]", '{"hooks": []}'])
def test_settings_that_cannot_be_read_are_left_and_nothing_is_written(tmp_path: Path, content: str) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text(content)
    before = files(tmp_path)
    assert "nothing was written" in init(tmp_path, "--host", "claude-code", code=2)
    assert files(tmp_path) == before


def test_the_command_that_init_writes_answers(tmp_path: Path) -> None:
    init(tmp_path, "--host", "claude-code")
    settings = read(tmp_path / ".claude" / "settings.json")
    command = settings["hooks"]["SessionStart"][0]["hooks"][0]["command"]
    payload = json.dumps({"session_id": "s", "cwd": str(tmp_path), "source": "startup"})
    done = subprocess.run(
        f"ALMA_HOOK_RESIDENT=0 {command}", shell=True, input=payload, text=True, capture_output=True, check=True
    )
    assert json.loads(done.stdout) == {}
    assert done.stderr == ""

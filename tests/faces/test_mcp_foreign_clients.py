"""Clients of other projects: the TypeScript client, the official inspector and the official conformance suite."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp import SECONDS, HttpServer, command, configured
from tests.support.node import MCP_CLIENTS, NODE, installed

# What a revision of the protocol requires of a server, and what an earlier one has in common with it.
REVISIONS = ("--requirements 2026-07-28", "--requirements 2025-11-25", "--spec-version 2025-06-18")


@pytest.fixture(scope="module")
def clients() -> Path:
    return installed(MCP_CLIENTS)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(configured(tmp_path_factory.mktemp("foreign")))


@pytest.fixture(scope="module")
def server(config: str) -> Iterator[HttpServer]:
    with HttpServer("--config", config, "--toolset", "full") as running:
        yield running


def ran(*arguments: str, cwd: Path) -> str:
    """What a program prints; one that fails is an error."""
    done = subprocess.run(
        [NODE, *arguments], cwd=cwd, capture_output=True, text=True, timeout=SECONDS, check=False, env={**os.environ}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_typescript_client_works(
    clients: Path, config: str, transport: str, request: pytest.FixtureRequest
) -> None:
    script = shutil.copy(Path(__file__).parents[1] / "support" / "mcp_client.mjs", clients)
    target = (
        command("--config", config, "--toolset", "full")
        if transport == "stdio"
        else [request.getfixturevalue("server").url]
    )
    said = json.loads(ran(str(script), *target, cwd=clients))
    assert said["server"]["name"] == "alma"
    assert len(said["tools"]) > 80
    assert said["learned"]["success"] is True
    assert "retry once" in said["retrieved"]
    assert said["refused"]["isError"] is True
    assert "retrieve.task is required" in said["refused"]["content"][0]["text"]
    assert said["progress"] == sorted(said["progress"])
    assert said["progress"]
    assert said["resources"] == ["alma://config", "alma://agents"]
    assert len(said["templates"]) == 3
    assert said["config"]["project_id"] == "demo"
    assert said["prompts"] == ["before_task", "after_task", "hand_over"]
    assert "retry once" in said["prompt"]


def inspected(clients: Path, target: list[str], *asked: str) -> Any:
    inspector = clients / "node_modules" / "@modelcontextprotocol" / "inspector-cli" / "build" / "cli.js"
    return json.loads(ran(str(inspector), "--cli", *target, *asked, cwd=clients))


def test_the_inspector_works_over_standard_input_and_output(clients: Path, config: str, tmp_path: Path) -> None:
    program, *arguments = command("--config", config, "--toolset", "full")
    servers = {"alma": {"command": program, "args": arguments, "env": dict(os.environ)}}
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    target = ["--config", str(file), "--server", "alma"]
    asked = ("--method", "tools/call", "--tool-name", "alma_stats", "--tool-arg", "agent=victor")
    assert inspected(clients, target, *asked)["structuredContent"]["project_id"] == "demo"


def test_the_inspector_works_over_http(clients: Path, server: HttpServer) -> None:
    target = [server.url, "--transport", "http"]
    assert len(inspected(clients, target, "--method", "tools/list")["tools"]) > 80
    read = inspected(clients, target, "--method", "resources/read", "--uri", "alma://agents")
    assert json.loads(read["contents"][0]["text"])[0]["agent_name"] == "helena"


@pytest.fixture(scope="module")
def fixture_server(config: str) -> Iterator[HttpServer]:
    """The server with the tools, prompts and resources that the conformance suite asks for by name."""
    program = [sys.executable, "-W", "ignore", "-m", "tests.support.mcp_fixtures", config]
    with HttpServer(program=program) as running:
        yield running


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_conformance_suite_is_passed(
    clients: Path, fixture_server: HttpServer, tmp_path: Path, revision: str
) -> None:
    suite = clients / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    said = ran(str(suite), "server", "--url", fixture_server.url, *revision.split(), cwd=tmp_path)
    passed = re.findall(r"^✓ ([\w-]+): [1-9]\d* passed, 0 failed", said, re.MULTILINE)
    failed = re.findall(r"^✗ ([\w-]+):", said, re.MULTILINE)
    # Extensions that the server does not have are run as well and do not count.
    assert set(failed) <= set(re.findall(r"✗ ([\w-]+) \((?:extension|pending)\)", said)), said[-3_000:]
    assert len(passed) >= 26

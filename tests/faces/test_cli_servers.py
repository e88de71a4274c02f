"""The commands around servers: keys that are made once, and the two servers that start and end by command."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from alma.bootstrap import open_existing
from alma.model.governance import ApiKey
from alma.model.scope import Scope
from tests.support.command_line import run
from tests.support.postgres import wait_until

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a configured memory, which is where the commands run."""
    monkeypatch.chdir(tmp_path)
    for name in ("ALMA_STORE", "ALMA_CONFIG", "ALMA_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    assert run("init", "--embeddings", "mock", "--project", "shop").returncode == 0
    return tmp_path


@contextlib.contextmanager
def serving(*arguments: str) -> Iterator[str]:
    """The service, at the address that it names."""
    command = [sys.executable, "-m", "alma", "serve", "--port", "0", *arguments]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert started.stdout is not None
    try:
        first = started.stdout.readline()
        found = re.search(r"http://\S+", first)
        assert found, f"{first}{started.stdout.read()}"
        yield found[0]
    finally:
        started.send_signal(signal.SIGINT)
        out, err = started.communicate(timeout=60)
    assert (started.returncode, err) == (0, ""), out


def test_a_key_is_shown_once_listed_without_its_text_and_revoked(folder: Path) -> None:
    made = run("keys", "create", "bot", "--right", "read", "--right", "write", "--project", "shop", "--days", "1")
    text = made.stdout.splitlines()[0]
    assert text.startswith("alma_")
    listed = run("keys", "list", "--json").json
    assert [(key["name"], key["rights"], key["limited_to"], key["status"]) for key in listed] == [
        ("bot", ["read", "write"], "project shop", "valid")
    ]
    assert text not in run("keys", "list", "--json").stdout + run("keys", "list").stdout
    with open_existing(".alma/alma.db") as storage:
        kept = storage.find(ApiKey, Scope.everywhere())
        assert text not in str(kept)
    assert "is revoked" in run("keys", "revoke", listed[0]["id"]).stdout
    assert run("keys", "revoke", listed[0]["prefix"], "--json").json["status"] == "revoked"
    assert run("keys", "create", "again", "--right", "admin", "--json").json["key"].startswith("alma_")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["create", "x"], 2, "--right"),
        (["create", "x", "--right", "fly"], 3, "read, write, delete, admin"),
        (["create", "", "--right", "read"], 3, "name"),
        (["create", "x", "--right", "read", "--days", "-1"], 2, "--days"),
        (["revoke", "nothing-such"], 4, "nothing-such"),
    ],
)
def test_a_mistake_with_keys_is_one_sentence(folder: Path, arguments: list[str], code: int, said: str) -> None:
    ran = run("keys", *arguments)
    assert (ran.returncode, ran.stderr.count("\n"), said in ran.stderr) == (code, 1, True), ran.stderr
    assert run("keys", "list").stdout.startswith("There are no keys")


def test_the_service_starts_on_the_configured_memory_and_wants_the_key_once_there_is_one(folder: Path) -> None:
    run("remember", "kept by a command")
    with serving() as address:
        asked = urllib.request.Request(f"{address}/v1/stats")
        with urllib.request.urlopen(asked) as answer:
            assert json.load(answer)["counts"]["memories_count"] == 1
        run("keys", "create", "bot", "--right", "read")
        # Another process made it: this one notices within half a second.
        wait_until(lambda: _status(asked) == 401)


def _status(request: urllib.request.Request) -> int:
    try:
        with urllib.request.urlopen(request) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code


def test_the_mcp_server_answers_a_client(folder: Path) -> None:
    command = [sys.executable, "-m", "alma", "mcp", "--config", ".alma/config.yaml"]
    done = subprocess.run(command, input=json.dumps(INITIALIZE) + "\n", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]


def test_the_snippet_that_init_prints_starts_the_server(folder: Path) -> None:
    server = run("init", "--force", "--json").json["mcp"]["mcpServers"]["alma"]
    command = [server["command"], *server["args"]]
    asked = json.dumps(INITIALIZE) + "\n"
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False, cwd="/")
    assert json.loads(done.stdout.splitlines()[0])["id"] == 1

"""API keys over HTTP: each reads what it was granted, and requests without a key are refused."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from alma import ALMA
from alma.access import ApiKeys
from tests.faces.test_mcp_tenants import tenant
from tests.support.mcp import SECONDS, HttpServer, configured, initialize
from tests.support.tenants import Json, damage, live, read

ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@dataclass
class Session:
    """A client with a key, that speaks HTTP by hand."""

    url: str
    token: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    number: int = 1

    def post(self, message: Json) -> httpx.Response:
        key = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        return httpx.post(self.url, json=message, headers={**ACCEPT, **key, **self.headers}, timeout=SECONDS)

    def open(self) -> Session:
        answer = self.post(initialize())
        assert answer.status_code == 200, answer.text
        self.headers["Mcp-Session-Id"] = answer.headers["mcp-session-id"]
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def ask(self, method: str, params: Json) -> Any:
        self.number += 1
        answer = self.post({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        data = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
        return json.loads(data[-1] if data else answer.text)

    def call(self, name: str, arguments: Json) -> Any:
        return self.ask("tools/call", {"name": name, "arguments": arguments})["result"]


@pytest.fixture
def tokens(tmp_path: Path) -> dict[str, str]:
    with ALMA.from_config(configured(tmp_path)) as memory:
        keys, made = ApiKeys(memory.storage), {}
        rights = ("read", "write", "delete", "admin")
        for project in ("atlantis", "babylon"):
            made[project] = keys.create(project, rights, user_id="*", project_id=project)[1]
        for user in ("ana", "bob"):
            made[user] = keys.create(user, rights, user_id=user, project_id="atlantis")[1]
        made["reader"] = keys.create("reader", ("read",), project_id="atlantis")[1]
        made["revoked"] = keys.create("revoked", ("read",))[1]
        keys.revoke(made["revoked"].rpartition("_")[0][:17])
        return made


@pytest.fixture
def server(tmp_path: Path, tokens: dict[str, str]) -> Iterator[HttpServer]:
    config = str(configured(tmp_path))
    with HttpServer("--config", config, "--toolset", "full", "--host", "0.0.0.0") as running:
        yield running


def test_keys_keep_what_is_whose(server: HttpServer, tokens: dict[str, str]) -> None:
    url = server.url.replace("0.0.0.0", "127.0.0.1")
    for wrong in (None, "x", "alma_0123456789ab_" + "x" * 43, tokens["revoked"], tokens["atlantis"][:-1] + "!"):
        refused = Session(url, wrong).post(initialize())
        assert refused.status_code == 401
        assert refused.headers["WWW-Authenticate"].startswith("Bearer")
    assert httpx.get(url.replace("/mcp", "/health")).status_code == 200

    first, second = Session(url, tokens["atlantis"]).open(), Session(url, tokens["babylon"]).open()
    stolen = Session(url, tokens["babylon"], dict(first.headers))
    assert stolen.post({"jsonrpc": "2.0", "id": 9, "method": "tools/list"}).status_code == 404
    reader = Session(url, tokens["reader"]).open()
    said = reader.call("alma_add_knowledge", {"agent": "victor", "domain": "d", "fact": "f"})
    assert "[permission_denied]" in said["content"][0]["text"]

    ours, spy = tenant("Zanzibar", "ana", first.call), tenant("Quagga", "bob", second.call)
    live(ours)
    live(spy)
    read(spy)
    read(spy, ours.ids, like="network")
    damage(spy, ours.ids)
    assert [name for name, answer in spy.answers if "zanzibar" in answer.lower()] == []
    assert any("Zanzibar" in answer for _, answer in ours.answers)


def test_keys_of_two_users_of_a_project_keep_what_is_whose(server: HttpServer, tokens: dict[str, str]) -> None:
    url = server.url.replace("0.0.0.0", "127.0.0.1")
    first, second = Session(url, tokens["ana"]).open(), Session(url, tokens["bob"]).open()
    ours = tenant("Zanzibar", "ana", first.call, shared="Common")
    spy = tenant("Quagga", "bob", second.call, shared="Common")
    live(ours)
    read(spy)
    live(spy)
    read(spy, ours.ids, like="network")
    damage(spy, ours.ids)
    patterns = second.ask("resources/read", {"uri": "memory://patterns/decision"})
    assert [name for name, answer in spy.answers if "zanzibar" in answer.lower()] == []
    assert "zanzibar" not in json.dumps(patterns).lower()
    taken = second.call("create_session", {"session_id": ours.ids["session_id"]})
    assert taken["_meta"]["code"] == "session_not_found"


def test_loopback_asks_for_keys_once_there_are_some(tmp_path: Path, tokens: dict[str, str]) -> None:
    with HttpServer("--config", str(configured(tmp_path)), "--toolset", "full", "--project", "babylon") as running:
        assert Session(running.url).post(initialize()).status_code == 401
        assert not Session(running.url, tokens["babylon"]).open().call("alma_stats", {})["isError"]
        other = Session(running.url, tokens["atlantis"]).open().call("alma_stats", {})
        assert "this server serves the project 'babylon'" in other["content"][0]["text"]


def test_a_key_has_so_many_sessions_and_the_one_idle_longest_is_ended(tmp_path: Path, tokens: dict[str, str]) -> None:
    with HttpServer(
        "--config", str(configured(tmp_path)), "--toolset", "full", "--max-sessions-per-key", "3"
    ) as running:
        other = Session(running.url, tokens["babylon"]).open()
        opened = [Session(running.url, tokens["atlantis"]).open() for _ in range(3)]
        assert not opened[0].call("alma_stats", {})["isError"]
        opened += [Session(running.url, tokens["atlantis"]).open() for _ in range(2)]
        ping = {"jsonrpc": "2.0", "id": 9, "method": "tools/list"}
        assert [each.post(ping).status_code for each in opened] == [200, 404, 404, 200, 200]
        assert other.post(ping).status_code == 200
        assert Session(running.url, tokens["atlantis"]).open().post(ping).status_code == 200


def test_sessions_that_are_in_use_are_not_ended_for_another(tmp_path: Path, tokens: dict[str, str]) -> None:
    with HttpServer(
        "--config", str(configured(tmp_path)), "--toolset", "full", "--max-sessions-per-key", "1"
    ) as running:
        first = Session(running.url, tokens["atlantis"]).open()
        listening = {**ACCEPT, **first.headers, "Authorization": f"Bearer {first.token}"}
        with httpx.stream("GET", running.url, headers=listening, timeout=SECONDS) as stream:
            assert stream.status_code == 200
            refused = Session(running.url, tokens["atlantis"]).post(initialize())
            assert (refused.status_code, refused.json()["error"]) == (429, "too_many_sessions")
        assert first.post({"jsonrpc": "2.0", "id": 9, "method": "tools/list"}).status_code == 200


def test_a_session_that_is_not_used_ends(tmp_path: Path, tokens: dict[str, str]) -> None:
    with HttpServer(
        "--config", str(configured(tmp_path)), "--toolset", "full", "--session-idle-seconds", "1"
    ) as running:
        session = Session(running.url, tokens["atlantis"]).open()
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            time.sleep(2)
            if session.post({"jsonrpc": "2.0", "id": 9, "method": "tools/list"}).status_code == 404:
                return
    raise AssertionError("the session is still there")


def test_memory_is_level_however_many_sessions_are_opened(tmp_path: Path) -> None:
    with (
        HttpServer("--config", str(configured(tmp_path)), "--toolset", "full") as running,
        httpx.Client(timeout=SECONDS) as client,
    ):

        def open_sessions(times: int) -> int:
            for _ in range(times):
                assert client.post(running.url, json=initialize(), headers=ACCEPT).status_code == 200
            return running.resident_kb

        warm = open_sessions(200)
        # A session takes 38 KB: without an end of the old ones this would be 30 MB.
        assert open_sessions(800) - warm < 15_000

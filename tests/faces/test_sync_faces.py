"""The engines beside a store, run, verified and repaired from every face."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client as MCPClient
from redis import Redis

from alma.access import ApiKeys
from alma.client import Client
from alma.core import ALMA
from alma.errors import PermissionDeniedError
from alma.mcp.server import Options
from tests.faces.rest import client_of, key_for, served
from tests.support.command_line import run
from tests.support.mcp import asked
from tests.support.postgres import wait_until

CONFIGURATION = """\
alma:
  project_id: shop
  embedding_provider: mock
  redis: {{url: "{url}", prefix: "{prefix}", projection: true}}
  sync: {{poll_seconds: 0.2}}
"""


@pytest.fixture
def prefix(redis_url: str, tmp_path: Path) -> Iterator[str]:
    """A namespace of its own on the shared server."""
    name = f"faces{abs(hash(tmp_path))}"
    yield name
    with Redis.from_url(redis_url) as redis:
        redis.delete(*redis.keys(f"{name}*"), "none")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, redis_url: str, prefix: str) -> Path:
    """A project whose memories are kept in Redis as well."""
    (tmp_path / ".alma").mkdir()
    (tmp_path / ".alma" / "config.yaml").write_text(CONFIGURATION.format(url=redis_url, prefix=prefix))
    monkeypatch.chdir(tmp_path)
    for name in ("ALMA_STORE", "ALMA_CONFIG", "ALMA_PROJECT", "ALMA_AGENT", "ALMA_USER"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def remembered(text: str) -> str:
    return str(run("remember", text, "--json").json["memory"]["id"])


def damaged(redis_url: str, prefix: str, memory_id: str) -> None:
    """An entry that is lost behind the back of the relay."""
    with Redis.from_url(redis_url) as redis:
        assert redis.hdel(f"{prefix}:projection:entries:memory", memory_id) == 1


def engines(result: dict[str, Any]) -> dict[str, Any]:
    (engine,) = result["engines"]
    return dict(engine)


# ---------------------------------------------------------------------- command line


def test_the_command_line_runs_verifies_and_repairs(folder: Path, redis_url: str, prefix: str) -> None:
    memory_id = remembered("the deploy needs two approvals")
    assert engines(run("sync", "status", "--json").json)["state"] == "new"
    assert run("sync", "verify").returncode == 1
    assert run("sync", "run").stdout.startswith("redis: ")
    assert run("sync", "verify").stdout.startswith("redis: consistent; ")
    remembered("another")
    waiting = engines(run("sync", "status", "--json").json)
    assert (waiting["state"], waiting["pending"], waiting["verified"]["is_consistent"]) == ("behind", 1, True)
    assert "1 change(s) wait" in next(line for line in run("doctor").stdout.splitlines() if "redis" in line)
    assert engines(run("sync", "run", "--engine", "redis", "--json").json)["applied"] == 1

    damaged(redis_url, prefix, memory_id)
    found = run("sync", "verify", "--json")
    assert found.returncode == 1
    report = json.loads(found.stdout)
    assert [(each["record_id"], each["difference"]) for each in report["issues"]] == [(memory_id, "missing")]
    shown = run("sync", "verify").stdout
    assert shown.startswith("redis: 1 missing; ")
    assert memory_id in shown
    assert "alma sync repair" in run("doctor").stdout
    assert run("sync", "repair").stdout == "1 issue repaired, 0 remaining\n"
    assert run("sync", "repair").stdout == "nothing differs: nothing to repair\n"
    assert engines(run("sync", "verify", "--json").json)["is_consistent"]
    assert run("sync", "rebuild", "redis").stdout.endswith("records applied\n")
    assert engines(run("sync", "memory", memory_id, "--json").json)["synced"]
    assert run("sync", "retry-parked", "--json").json == {"retried": 0}
    assert run("sync", "drop", "redis", "--json").json == {"engine": "redis", "dropped": True}


def test_mistakes_are_one_sentence(folder: Path) -> None:
    remembered("something")
    for arguments, code, said in [
        (("run", "--engine", "qdrant"), 3, "must be one of the configured engines: redis"),
        (("rebuild", "neo4j"), 3, "must be one of the configured engines: redis"),
        (("drop", "neo4j"), 3, "must be one of the engines that this store marks changes for"),
        (("run", "--follow", "--json"), 2, "leave out --json and --wait-seconds"),
        (("repair", "--issues", '[{"engine": "redis", "kind": "outcome", "record_id": "x"}]'), 3, "that redis has"),
    ]:
        ran = run("sync", *arguments)
        assert (ran.returncode, said in ran.stderr, ran.stderr.count("\n")) == (code, True, 1), ran
    (folder / ".alma" / "config.yaml").write_text("alma:\n  project_id: shop\n  embedding_provider: mock\n")
    ran = run("sync", "run")
    assert ran.returncode == 2
    assert "no engine is configured beside the store" in ran.stderr


def test_an_engine_that_is_down_is_reported(folder: Path, redis_url: str) -> None:
    remembered("something")
    run("sync", "run")
    config = folder / ".alma" / "config.yaml"
    config.write_text(config.read_text().replace(redis_url, "redis://127.0.0.1:1/0"))
    remembered("something else")
    ran = run("sync", "run")
    assert ran.returncode == 1
    assert "1 still waiting" in ran.stdout
    assert "check redis.url" in ran.stderr
    assert engines(run("sync", "status", "--json").json)["state"] == "degraded"
    assert run("health", "--json").json["status"] == "degraded"


def test_run_follows_until_it_is_told_to_stop(folder: Path, redis_url: str, prefix: str) -> None:
    remembered("before")
    with subprocess.Popen(
        [sys.executable, "-m", "alma", "sync", "run", "--follow"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().decode() == "keeping redis equal to the store; stop it with Ctrl-C\n"
        later = remembered("after")
        with Redis.from_url(redis_url) as redis:
            wait_until(lambda: bool(redis.hexists(f"{prefix}:projection:entries:memory", later)))
        wait_until(lambda: engines(run("sync", "status", "--json").json)["pending"] == 0)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, b"", b"")


# ---------------------------------------------------------------------- services


def test_a_service_relays_and_shows_its_engines(folder: Path, redis_url: str, prefix: str) -> None:
    with ALMA.from_config() as alma, served(alma) as address, client_of(address) as http, Client(address) as client:
        memory_id = client.remember("the deploy needs two approvals").memory.id
        with Redis.from_url(redis_url) as redis:
            wait_until(lambda: bool(redis.hexists(f"{prefix}:projection:entries:memory", memory_id)))
        wait_until(lambda: http.get("/ready").json()["engines"][0]["state"] == "ok")
        damaged(redis_url, prefix, memory_id)
        verified = http.post("/v1/operations/sync_verify", json={}).json()
        assert engines(verified)["differences"] == {"missing": 1}
        repaired = http.post("/v1/operations/sync_repair", json={"issues": verified["issues"]}).json()
        assert (repaired["success"], repaired["repaired"]) == (True, 1)
        assert http.post("/v1/operations/sync_verify", json={}).json()["is_consistent"]
        ready = engines(http.get("/ready").json())
        assert ready["verified"]["is_consistent"]
        health = http.post("/v1/operations/health", json={}).json()
        assert (health["status"], engines(health)["parked"]) == ("ok", 0)
        metrics = http.get("/metrics").text
        assert 'alma_sync_lag_seconds{engine="redis"} 0.0' in metrics
        assert 'alma_sync_parked{engine="redis"} 0.0' in metrics
        assert 'alma_sync_issues{engine="redis"} 0.0' in metrics


def test_a_limited_key_sees_no_engines(folder: Path) -> None:
    with ALMA.from_config() as alma, served(alma) as address:
        limited, full = key_for(alma, project_id="shop"), key_for(alma)
        reader = ApiKeys(alma.storage).create("reader", ["read"])[1]
        with client_of(address, limited) as http:
            assert http.get("/ready").json() == {"status": "ready"}
            assert "engines" not in http.post("/v1/operations/health", json={}).json()
            assert http.post("/v1/operations/sync_status", json={}).status_code == 403
            assert http.post("/v1/operations/sync_run", json={}).status_code == 403
        with client_of(address, reader) as http:
            assert http.post("/v1/operations/sync_status", json={}).status_code == 200
            assert http.post("/v1/operations/sync_repair", json={}).status_code == 403
        with Client(address, key=limited) as client, pytest.raises(PermissionDeniedError):
            client.call("sync_status")
        with Client(address, key=full) as client:
            assert engines(client.call("sync_run"))["engine"] == "redis"


def test_an_mcp_server_relays_and_has_the_tools(folder: Path, redis_url: str, prefix: str) -> None:
    options = Options(config=str(folder / ".alma" / "config.yaml"), toolset="full")

    async def talk(client: MCPClient) -> dict[str, Any]:
        made = await client.call_tool("alma_remember", {"content": "the deploy needs two approvals"})
        assert made.structured_content is not None
        memory_id = made.structured_content["id"]
        with Redis.from_url(redis_url) as redis:
            wait_until(lambda: bool(redis.hexists(f"{prefix}:projection:entries:memory", memory_id)))
        found = await client.call_tool("alma_sync_verify", {})
        assert found.structured_content is not None
        return dict(found.structured_content)

    assert asked(options, talk)["is_consistent"]

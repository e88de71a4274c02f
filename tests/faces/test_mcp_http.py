"""The server over HTTP: clients of every transport get the same answers, and other users' data stays hidden."""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx
import pytest
from mcp.client import Client

from alma import ALMA
from alma.mcp.http import asgi_app
from alma.operations.access import OWNER, Grant
from tests.support.mcp import SECONDS, HttpServer, StdioServer, command, configured, initialize, tool_call

LEARNED = {"agent": "victor", "task": "Call the service", "outcome": "success", "strategy_used": "retry once"}
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("http")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[HttpServer]:
    with HttpServer("--config", str(configured(folder)), "--toolset", "full") as running:
        yield running


def post(server: HttpServer, body: object, **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx.post(server.url, content=content, headers={**ACCEPT, **headers}, timeout=SECONDS)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_works_over_http(server: HttpServer, mode: str) -> None:
    told: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    async def conversation() -> None:
        async with Client(server.url, mode=mode) as client:
            assert client.server_info is not None
            assert client.server_info.name == "alma"
            assert len((await client.list_tools()).tools) > 80
            assert not (await client.call_tool("alma_learn", LEARNED)).is_error
            found: Any = await client.call_tool("alma_retrieve", {"task": "Call the service", "agent": "victor"})
            assert "retry once" in found.content[0].text
            assert (await client.call_tool("alma_retrieve", {"task": "t"})).is_error
            await client.call_tool("alma_forget", {"dry_run": True}, progress_callback=note)
            assert (await client.read_resource("alma://config")).contents

    anyio.run(conversation)
    assert told == sorted(told)
    assert told


def test_both_transports_serve_one_store(server: HttpServer, folder: Path) -> None:
    with StdioServer("--config", str(configured(folder))) as other:
        other.greet()
        other.call(2, "alma_add_knowledge", agent="victor", domain="ports", fact="The printer listens on 9100")

    async def conversation() -> str:
        async with Client(server.url) as client:
            found: Any = await client.call_tool(
                "alma_retrieve", {"task": "Which port has the printer?", "agent": "victor"}
            )
            return str(found.content[0].text)

    assert "9100" in anyio.run(conversation)


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("Host", "evil.example", 421),
        ("Host", "evil.example:8765", 421),
        ("Host", "127.0.0.1.evil.example", 421),
        ("Origin", "https://evil.example", 403),
        ("Origin", "null", 403),
        ("Origin", "http://localhost.evil.example", 403),
    ],
)
def test_a_web_page_reaches_nothing(server: HttpServer, header: str, value: str, status: int) -> None:
    assert post(server, initialize(), **{header: value}).status_code == status


def test_a_page_on_this_machine_may(server: HttpServer) -> None:
    assert post(server, initialize(), Origin="http://localhost:6274").status_code == 200


def test_health_is_told(server: HttpServer) -> None:
    assert httpx.get(f"{server.address}/health").json() == {"status": "ok"}


def test_only_loopback_is_listened_at(server: HttpServer) -> None:
    assert urlsplit(server.url).hostname == "127.0.0.1"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_other_addresses_are_refused_while_there_is_no_key(tmp_path: Path, host: str) -> None:
    arguments = command("--http", "--host", host, "--port", "0", "--config", str(configured(tmp_path)))
    ran = subprocess.run(arguments, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert ran.returncode == 2
    assert "loopback" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_port_that_is_taken_is_told_in_a_sentence(server: HttpServer, folder: Path) -> None:
    port = str(urlsplit(server.url).port)
    arguments = command("--http", "--port", port, "--config", str(configured(folder)))
    ran = subprocess.run(arguments, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert ran.returncode == 2
    assert ran.stderr.startswith(f"alma mcp: port {port} on 127.0.0.1 is in use: stop the other program, or choose")


def test_a_signal_ends_it_with_clients_connected(tmp_path: Path) -> None:
    with HttpServer("--config", str(configured(tmp_path)), "--toolset", "full") as own:

        async def conversation() -> None:
            async with Client(own.url, mode="legacy") as client:
                await client.list_prompts()
                own.stop(signal.SIGTERM)

        anyio.run(conversation)
    assert own.returncode == 0


def test_a_memory_that_cannot_be_opened_is_told_by_the_calls(tmp_path: Path) -> None:
    with HttpServer("--config", str(tmp_path / "nothing.yaml"), "--toolset", "full") as own:

        async def conversation() -> str:
            async with Client(own.url) as client:
                result = await client.call_tool("alma_health", {})
                assert result.is_error
                return str(result.content[0].text)  # type: ignore[union-attr]

        assert "there is no configuration at" in anyio.run(conversation)


# ---------------------------------------------------------------------- nonsense


def test_nonsense_never_ends_it(server: HttpServer) -> None:
    chance = random.Random(3)
    bodies: list[object] = [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 50_000, [initialize(), initialize(2)], {}]
    bodies += [chance.randbytes(300) for _ in range(10)]
    wrong: list[object] = [None, [], 5, {"protocolVersion": 5}]
    bodies += [{**initialize(), "params": params} for params in wrong]
    bodies += [tool_call(1, "alma_health"), {"jsonrpc": "2.0", "id": [], "method": 5}]
    headers: list[dict[str, str]] = [
        {},
        {"Content-Type": "text/plain"},
        {"Accept": "image/png"},
        {"MCP-Protocol-Version": "9999"},
        {"MCP-Protocol-Version": "2026-07-28"},
        {"Mcp-Session-Id": "made up"},
        {"Authorization": "Bearer " + "x" * 5_000},
        {"Authorization": "Basic eDp5"},
    ]
    for body in bodies:
        for chosen in chance.sample(headers, 3):
            assert post(server, body, **chosen).status_code < 500, (body, chosen)
    for method in ("GET", "DELETE", "PUT", "PATCH", "OPTIONS", "HEAD", "TRACE"):
        with httpx.stream(method, server.url, headers={"Accept": "text/plain"}, timeout=SECONDS) as answer:
            assert answer.status_code < 500
    assert post(server, b"x" * (17 << 20)).status_code == 413
    assert httpx.get(f"{server.address}/health").status_code == 200


def test_bytes_that_are_no_http_never_end_it(server: HttpServer) -> None:
    address = urlsplit(server.url)
    chance = random.Random(4)
    for _ in range(20):
        with socket.create_connection((address.hostname or "", address.port or 0), timeout=SECONDS) as raw:
            raw.sendall(chance.randbytes(500) + b"\r\n\r\n")
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=SECONDS) as raw:
        raw.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n{")
    assert httpx.get(f"{server.address}/health").status_code == 200
    assert server.returncode is None


# ---------------------------------------------------------------------- inside of another service


@pytest.mark.parametrize(("grant", "status"), [(None, 401), (OWNER, 200), (Grant(rights=frozenset(), key_id="k"), 200)])
def test_a_service_that_has_it_inside_says_what_each_caller_may_do(
    tmp_path: Path, grant: Grant | None, status: int
) -> None:
    async def conversation(memory: ALMA) -> None:
        app = asgi_app(memory, "full")

        async def gate(scope: Any, receive: Any, send: Any) -> None:
            await app({**scope, **({} if grant is None else {"alma.grant": grant})}, receive, send)

        transport = httpx.ASGITransport(gate)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://anywhere.example", headers=ACCEPT) as client,
        ):
            opened = await client.post("/mcp", json=initialize())
            assert opened.status_code == status
            if grant is None:
                return
            client.headers["Mcp-Session-Id"] = opened.headers["mcp-session-id"]
            called = await client.post("/mcp", json=tool_call(2, "alma_stats"))
            assert ("permission_denied" in called.text) == (grant is not OWNER)

    with ALMA.quickstart(tmp_path / "alma.db", embedding_provider="mock") as memory:
        anyio.run(conversation, memory)
        memory.get_stats()

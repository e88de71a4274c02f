"""The server as clients start it: a process that speaks over standard input and output, and nothing else."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from mcp import StdioServerParameters
from mcp.client import Client

from tests.support.mcp import SECONDS, StdioServer, command, configured, initialize, tool_call

LEARNED = {"agent": "victor", "task": "Call the service", "outcome": "success", "strategy_used": "retry once"}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
PING = {"jsonrpc": "2.0", "id": 99, "method": "ping"}


@pytest.fixture
def config(tmp_path: Path) -> str:
    return str(configured(tmp_path))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_works_over_standard_input_and_output(config: str, mode: str) -> None:
    async def conversation() -> None:
        parameters = StdioServerParameters(
            command=sys.executable, args=command("--config", config)[1:], env=dict(os.environ)
        )
        async with Client(parameters, mode=mode) as client:
            assert client.server_info is not None
            assert client.server_info.name == "alma"
            assert len((await client.list_tools()).tools) == 10
            assert not (await client.call_tool("alma_learn", LEARNED)).is_error
            found: Any = await client.call_tool("alma_retrieve", {"task": "Call the service", "agent": "victor"})
            assert "retry once" in found.content[0].text
            assert (await client.call_tool("alma_retrieve", {"task": "t"})).is_error

    anyio.run(conversation)


def test_an_initialization_is_answered_at_once(config: str) -> None:
    """The limit is half a second; on a busy machine it is the processor's time until the answer that counts."""
    with StdioServer("--config", config, "--toolset", "full") as server:
        server.send(initialize(1))
        server.answer(1)
        used = psutil.Process(server.process.pid).cpu_times()
        assert used.user + used.system < 0.3


def test_only_messages_reach_the_client_whatever_prints(config: str) -> None:
    program = (
        "import os, ctypes, alma.mcp.server as server, alma.core as core\n"
        "open_before = core.ALMA.from_config\n"
        "def noisy(path):\n"
        "    print('print'); os.write(1, b'fd 1\\n'); os.system('echo child'); ctypes.CDLL(None).puts(b'libc')\n"
        "    ctypes.CDLL(None).fflush(None); input_left = os.read(0, 10); assert input_left == b''\n"
        "    return open_before(path)\n"
        "core.ALMA.from_config = noisy\n"
        f"server.main(['--config', {config!r}, '--toolset', 'full'])\n"
    )
    with StdioServer(program=[sys.executable, "-c", program]) as server:
        server.greet()
        assert not server.call(2, "alma_health")["isError"]
        server.close_input()
        assert server.rest() == []
    assert all(word in server.errors for word in (b"print", b"fd 1", b"child", b"libc"))


def test_it_ends_when_the_client_closes_its_end(config: str) -> None:
    with StdioServer("--config", config, "--toolset", "full") as server:
        server.greet()
        server.close_input()
        assert server.process.wait(SECONDS) == 0


def test_it_ends_without_ever_being_asked(config: str) -> None:
    with StdioServer("--config", config, "--toolset", "full") as server:
        server.close_input()
        assert server.process.wait(SECONDS) == 0


def test_what_was_asked_before_the_end_is_answered(config: str) -> None:
    with StdioServer("--config", config, "--toolset", "full") as server:
        server.send(initialize(1), INITIALIZED, tool_call(2, "alma_learn", **LEARNED), tool_call(3, "alma_health"))
        server.close_input()
        answers = {message["id"]: message for message in server.rest()}
        assert server.process.wait(SECONDS) == 0
    assert set(answers) == {1, 2, 3}
    assert answers[2]["result"]["isError"] is False


def test_it_ends_within_a_call_that_never_does(config: str) -> None:
    program = (
        "import threading, alma.mcp.server as server, alma.mcp.stdio as stdio, alma.core as core\n"
        "stdio.FINISH_SECONDS = 0.2\n"
        "core.ALMA.from_config = lambda path: threading.Event().wait()\n"
        f"server.main(['--config', {config!r}, '--toolset', 'full'])\n"
    )
    with StdioServer(program=[sys.executable, "-c", program]) as server:
        server.greet()
        server.send(tool_call(2, "alma_health"), PING)
        server.answer(99)
        server.close_input()
        assert server.process.wait(SECONDS) == 0


def test_a_signal_ends_it_at_once(config: str) -> None:
    with StdioServer("--config", config, "--toolset", "full") as server:
        server.greet()
        server.call(2, "alma_health")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(SECONDS) == 0


def test_a_client_that_is_gone_is_not_waited_for(config: str) -> None:
    lines = [json.dumps(message) for message in (initialize(1), INITIALIZED, tool_call(2, "alma_health"), PING)]
    process = subprocess.Popen(
        command("--config", config), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdin is not None
    process.stdin.write(lines[0] + "\n")
    process.stdin.flush()
    process.stdout.readline()
    process.stdout.close()
    _, errors = process.communicate("\n".join(lines[1:]) + "\n", timeout=SECONDS)
    assert process.returncode == 0
    assert "Traceback" not in errors


def test_two_servers_on_one_store_see_each_others_memories(config: str) -> None:
    with (
        StdioServer("--config", config, "--toolset", "full") as one,
        StdioServer("--config", config, "--toolset", "full") as other,
    ):
        one.greet()
        other.greet()
        for number in range(2, 5):
            one.call(number, "alma_learn", **LEARNED)
            other.call(number, "alma_learn", **LEARNED)
        for server in (one, other):
            counts = server.call(9, "alma_stats")["structuredContent"]["counts"]
            assert counts["outcomes_count"] == 6
        found = other.call(10, "alma_retrieve", task="Call the service", agent="victor", details=True)
        assert found["structuredContent"]["heuristics"][0]["occurrence_count"] == 6


def test_a_wrong_configuration_is_told_by_the_calls(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("alma:\n  project_id: demo\n  storage: cupboard\n")
    with StdioServer("--config", str(wrong), "--toolset", "full") as server:
        assert server.greet()["result"]["serverInfo"]["name"] == "alma"
        result = server.call(2, "alma_stats")
        assert result["isError"]
        assert "storage is 'cupboard', which is not known" in result["content"][0]["text"]


def test_a_store_without_a_configuration_is_made_where_it_is_named(tmp_path: Path) -> None:
    with StdioServer("--store", str(tmp_path / "new" / "alma.db"), "--project", "p", "--toolset", "full") as server:
        server.greet()
        assert server.call(2, "alma_stats")["structuredContent"]["project_id"] == "p"
    assert (tmp_path / "new" / "alma.db").exists()


def test_the_store_of_the_folder_is_used_when_nothing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with StdioServer("--toolset", "full") as server:
        server.greet()
        assert not server.call(2, "alma_stats")["isError"]
    assert (tmp_path / ".alma" / "alma.db").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--toolset", "huge"], "invalid choice: 'huge'"),
        (["--port", "99999"], "must be from 0 to 65535"),
        (["--max-tokens", "10"], "must be at least 1000"),
        (["--config", "a", "--store", "b"], "give one of them"),
    ],
)
def test_wrong_options_are_told_with_the_usage(arguments: list[str], said: str) -> None:
    ran = subprocess.run(command(*arguments), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert ran.returncode == 2
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""


def test_a_missing_library_is_told_with_what_to_install(tmp_path: Path) -> None:
    program = "import sys; sys.modules['mcp'] = None; import alma.mcp.server as server; server.main([])"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, input=json.dumps(initialize())
    )
    assert ran.returncode == 2
    assert ran.stderr == "alma mcp: mcp is not installed: run  pip install 'alma-agent-memory[server]'\n"
    assert ran.stdout == ""


# ---------------------------------------------------------------------- nonsense


def _nonsense(seed: int) -> list[bytes]:
    """Lines that no client sends."""
    chance = random.Random(seed)
    arguments: list[Any] = ["x", {"agent": {"a": [1]}, "task": None}, {"cursor": {}}, {"a" * 9_999: 1}]
    params: list[Any] = [None, [], "x", 5, {"name": 5}, {"name": None}, {"uri": 7}, {"_meta": 5}]
    params += [{"name": "alma_learn", "arguments": each} for each in arguments]
    methods = ["tools/call", "tools/list", "resources/read", "prompts/get", "initialize", "no/such", "", "ping"]
    ids = [5, "5", None, 1.5, [], {}]
    messages = [
        {"jsonrpc": "2.0", "id": chance.choice(ids), "method": chance.choice(methods), "params": chance.choice(params)}
        for _ in range(60)
    ]
    lines = [json.dumps(message).encode() for message in messages]
    lines += [chance.randbytes(chance.randrange(1, 200)).replace(b"\n", b"") for _ in range(40)]
    lines += [line[: chance.randrange(len(line) + 1)] for line in lines[:40]]
    lines += [b"[]", b"null", b"5", b'"x"', b"{}", b"\xff\xfe\x00", b"\x00", b"[" * 100_000, b'{"a":' * 50_000]
    lines += [b'{"jsonrpc":"2.0","id":1,"result":{}}', json.dumps([initialize(5), PING]).encode()]
    lines += [b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}']
    chance.shuffle(lines)
    return lines


@pytest.mark.parametrize("first", [True, False], ids=["before the greeting", "after the greeting"])
def test_nonsense_never_ends_it(config: str, first: bool) -> None:
    with StdioServer("--config", config, "--toolset", "full") as server:
        if not first:
            server.greet()
        server.send(*_nonsense(1 if first else 2))
        server.send(tool_call(7_001, "alma_health") if not first else PING | {"id": 7_001})
        assert "result" in server.answer(7_001)
        assert server.process.poll() is None
    assert server.process.returncode == 0


def test_a_message_that_is_far_too_long_is_refused_and_the_next_one_answered(config: str) -> None:
    with StdioServer("--config", config, "--toolset", "full") as server:
        server.greet()
        server.send(b'{"x":"' + b"y" * (17 << 20) + b'"}')
        assert "at most" in server.receive()["error"]["message"]
        server.send(tool_call(2, "alma_add_knowledge", agent="a", domain="d", fact="z" * ((1 << 20) + 1)))
        result = server.answer(2)["result"]
        assert result["isError"]
        assert len(result["content"][0]["text"]) < 500


def test_a_call_that_is_given_up_is_not_answered_and_others_are(config: str) -> None:
    with StdioServer("--config", config, "--toolset", "full") as server:
        server.greet()
        server.send(tool_call(2, "alma_learn", **LEARNED))
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})
        server.send(tool_call(3, "alma_health"))
        started = time.monotonic()
        assert server.answer(3)["result"]["isError"] is False
        assert time.monotonic() - started < SECONDS

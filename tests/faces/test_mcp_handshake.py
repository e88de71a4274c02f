"""The handshake answered before the library is loaded equals the answer of the library."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from alma.mcp.handshake import HANDSHAKES, WITHOUT_HANDSHAKE, handshake_response
from alma.mcp.server import Options
from alma.mcp.service import Service
from tests.support.mcp import initialize
from tests.support.unmeasured import unmeasured

META = "io.modelcontextprotocol/"
INTRODUCED = {
    META + "protocolVersion": WITHOUT_HANDSHAKE,
    META + "clientInfo": {"name": "tests", "version": "1"},
    META + "clientCapabilities": {"roots": {"listChanged": True}},
}


def of_library(message: dict[str, Any]) -> dict[str, Any]:
    """What the library answers."""

    async def conversation() -> dict[str, Any]:
        server = Service(Options()).server()
        to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](1)
        to_client, from_server = anyio.create_memory_object_stream[SessionMessage](1)
        async with anyio.create_task_group() as tasks, from_server:
            tasks.start_soon(server.run, from_client, to_client, server.create_initialization_options())
            await to_server.send(SessionMessage(jsonrpc_message_adapter.validate_python(message)))
            answer = await from_server.receive()
            await to_server.aclose()
        said: dict[str, Any] = json.loads(answer.message.model_dump_json(by_alias=True, exclude_unset=True))
        return said

    return anyio.run(conversation)


def of_greeting(message: Any) -> dict[str, Any] | None:
    opening = handshake_response(json.dumps(message).encode())
    return None if opening is None else json.loads(opening.response)


def test_the_versions_are_those_of_the_library() -> None:
    assert HANDSHAKES == HANDSHAKE_PROTOCOL_VERSIONS
    assert (WITHOUT_HANDSHAKE,) == MODERN_PROTOCOL_VERSIONS


@pytest.mark.parametrize("version", HANDSHAKES)
def test_an_initialization_is_answered_as_the_library_does(version: str) -> None:
    message = initialize(7, version)
    assert of_greeting(message) == of_library(message)


def test_a_discovery_is_answered_as_the_library_does() -> None:
    message = {"jsonrpc": "2.0", "id": "one", "method": "server/discover", "params": {"_meta": INTRODUCED}}
    assert of_greeting(message) == of_library(message)


@pytest.mark.parametrize(
    "changed",
    [
        {"protocolVersion": "1999-01-01"},
        {"protocolVersion": 5},
        {"capabilities": None},
        {"capabilities": {"roots": {"listChanged": "yes"}}},
        {"clientInfo": {"name": "tests"}},
        {"clientInfo": {"name": 5, "version": "1"}},
        {"_meta": {"progressToken": 1}},
    ],
)
def test_a_handshake_that_is_not_quite_right_is_left_to_the_library(changed: dict[str, Any]) -> None:
    message = initialize()
    assert of_greeting({**message, "params": {**message["params"], **changed}}) is None


@pytest.mark.parametrize("changed", [{"id": None}, {"id": 1.5}, {"id": True}, {"jsonrpc": "1.0"}, {"params": []}])
def test_an_envelope_that_is_not_quite_right_is_left_to_the_library(changed: dict[str, Any]) -> None:
    assert of_greeting({**initialize(), **changed}) is None


@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps).map(str.encode)
)
def test_whatever_else_comes_first_is_left_to_the_library(line: bytes) -> None:
    assert handshake_response(line) is None


def test_nothing_heavy_is_loaded_for_the_handshake() -> None:
    program = "import sys, alma.mcp.server; print(*sorted(m.partition('.')[0] for m in sys.modules))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=unmeasured())
    loaded = run.stdout.split()
    assert not {"mcp", "mcp_types", "pydantic", "anyio", "numpy", "yaml", "sqlite3", "asyncio"} & set(loaded)

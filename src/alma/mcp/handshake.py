"""The greeting: what the server says of itself, and the answer to a first request that needs nothing loaded for it.

The library that speaks the protocol takes most of a second to load. What it would answer to a proper greeting is known
beforehand, so that is said at once, and the library is handed the same request later, to be in the same state; a
greeting that is anything but proper waits for the library.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from alma import __version__

NAME = "alma"
TITLE = "ALMA memory"
INSTRUCTIONS = (
    "ALMA is the memory of the agents you work as. Before a task call alma_retrieve with the task and your agent name, "
    "and follow what it says. After the task call alma_learn with how it went, success or failure alike: that is how "
    "strategies are trusted or avoided next time. Lasting facts go to alma_add_knowledge, a user's wishes to "
    "alma_add_preference. Where an answer has a continuation, alma_continue gives the rest of it."
)
CAPABILITIES: dict[str, dict[str, bool]] = {
    "completions": {},
    "prompts": {"listChanged": False},
    "resources": {"listChanged": False, "subscribe": False},
    "tools": {"listChanged": False},
}

HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The versions of the protocol that begin with `initialize`."""
WITHOUT_HANDSHAKE = "2026-07-28"
"""The version in which every request introduces its client, and the first one usually asks what the server can."""

_SERVER = {"name": NAME, "title": TITLE, "version": __version__}
_META = "io.modelcontextprotocol/"


@dataclass(frozen=True, slots=True)
class Greeted:
    """A first request that has its answer."""

    id: str | int
    answer: bytes


def greeted(line: bytes) -> Greeted | None:
    """The answer to a proper greeting; None for whatever else."""
    try:
        asked = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(asked, dict) or set(asked) != {"jsonrpc", "id", "method", "params"} or asked["jsonrpc"] != "2.0":
        return None
    result = _result(asked["method"], asked["params"])
    if result is None or type(asked["id"]) not in (int, str):
        return None
    answer = {"jsonrpc": "2.0", "id": asked["id"], "result": result}
    return Greeted(asked["id"], json.dumps(answer, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")


def _result(method: object, params: object) -> dict[str, Any] | None:
    if not isinstance(params, dict):
        return None
    if method == "initialize" and set(params) == {"protocolVersion", "capabilities", "clientInfo"}:
        return _initialized(params)
    if method == "server/discover" and set(params) == {"_meta"}:
        return _discovered(params["_meta"])
    return None


def _initialized(params: dict[str, Any]) -> dict[str, Any] | None:
    version = params["protocolVersion"]
    if version not in HANDSHAKES or not _introduces(params["clientInfo"], params["capabilities"]):
        return None
    return {
        "capabilities": CAPABILITIES,
        "instructions": INSTRUCTIONS,
        "protocolVersion": version,
        "serverInfo": _SERVER,
    }


def _discovered(meta: object) -> dict[str, Any] | None:
    keys = {_META + name for name in ("protocolVersion", "clientInfo", "clientCapabilities")}
    if not isinstance(meta, dict) or set(meta) != keys or meta[_META + "protocolVersion"] != WITHOUT_HANDSHAKE:
        return None
    if not _introduces(meta[_META + "clientInfo"], meta[_META + "clientCapabilities"]):
        return None
    return {
        "cacheScope": "private",
        "capabilities": CAPABILITIES,
        "instructions": INSTRUCTIONS,
        "resultType": "complete",
        "supportedVersions": [WITHOUT_HANDSHAKE],
        "ttlMs": 0,
        "_meta": {_META + "serverInfo": _SERVER},
    }


def _introduces(client: object, capabilities: object) -> bool:
    """Whether a client introduces itself in a way that every version of the protocol takes."""
    return (
        isinstance(client, dict)
        and {"name", "version"} <= set(client) <= {"name", "version", "title"}
        and all(isinstance(value, str) for value in client.values())
        and _is_plain(capabilities)
    )


def _is_plain(capabilities: object) -> bool:
    """Whether capabilities are objects all the way down, with nothing but listChanged in them."""
    return isinstance(capabilities, dict) and all(
        isinstance(value, bool) if name == "listChanged" else _is_plain(value) for name, value in capabilities.items()
    )

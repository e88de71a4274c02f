"""Assemble a result of the MCP server from its first part and the pieces of its continuation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from alma.mcp.continuation import Piece


def assemble(value: Any, pieces: Sequence[Piece]) -> Any:
    """The whole result: the first part with all pieces in their places."""
    whole = json.loads(json.dumps(value))
    for piece in pieces:
        *path, last = [part.replace("~1", "/").replace("~0", "~") for part in piece.at.split("/")[1:]]
        parent = whole
        for part in path:
            parent = parent[int(part)] if isinstance(parent, list) else parent[part]
        _put(parent, last, piece.value)
    return whole


def _put(parent: Any, last: str, value: Any) -> None:
    if isinstance(parent, list):
        number = int(last)
        if number == len(parent):
            parent.append(value)
        else:
            parent[number] += value
    elif isinstance(parent.get(last), str):
        parent[last] += value
    else:
        parent[last] = value

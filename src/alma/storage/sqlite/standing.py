"""Where an SQLite store stands: what nearly every write has to know of it, in one question."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from alma.storage.chain import ChainHead

Rows = Callable[[str, Mapping[str, Any]], list[Any]]

POSITION = "SELECT seq FROM sqlite_sequence WHERE name = 'embeddings'"
_REGISTERED = "SELECT json_group_array(json_array(projection, kind)) FROM (SELECT * FROM projections ORDER BY 1)"
_STANDING = (
    f"SELECT ({POSITION}), ({_REGISTERED}), chain, length, hash, unchained FROM audit_chains ORDER BY chain LIMIT 1"
)


class Standing(NamedTuple):
    """How far the vectors are numbered, who wants to hear of changes, and where the first audit chain ends."""

    position: int
    projections: list[tuple[str, str]]
    head: ChainHead


def standing(rows: Rows) -> Standing | None:
    """How it stands, unless nothing was ever written."""
    found = rows(_STANDING, {})
    if not found:
        return None
    position, registered, *head = found[0]
    projections = [] if registered == "[]" else [(name, kind) for name, kind in json.loads(registered)]
    return Standing(position or 0, projections, ChainHead(*head))

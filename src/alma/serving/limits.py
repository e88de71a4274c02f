"""Limits: how much of a server one client may have."""

from __future__ import annotations

from dataclasses import dataclass, fields

from alma.errors import ValidationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many connections and MCP sessions there may be, and how long and how large what comes over them.

    `max_connections` is lowered where the process may not open so many files. At a limit the connection that has
    waited longest for its client is closed: half-open ones first, then idle ones, then those with an unfinished body.
    A body must arrive within `body_seconds` and, after `body_grace_seconds`, at `body_bytes_per_second` on average.
    """

    max_connections: int = 1_024
    max_connections_per_address: int = 256
    max_head_bytes: int = 64 * 1024
    head_seconds: float = 10.0
    body_seconds: float = 120.0
    body_bytes_per_second: int = 1_024
    body_grace_seconds: float = 10.0
    keep_alive_seconds: float = 30.0
    write_seconds: float = 60.0
    max_sessions_per_key: int = 100
    session_idle_seconds: float = 1_800.0

    def __post_init__(self) -> None:
        for each in fields(Limits):
            value = getattr(self, each.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise ValidationError("service", each.name, value, "must be above zero")

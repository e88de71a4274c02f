"""Options of the REST service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from alma.errors import ValidationError
from alma.serving.limits import Limits, is_loopback

_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class ServiceOptions(Limits):
    """Where the service listens, authentication, and rate and size limits, besides `Limits`.

    On a loopback address every caller has full access until the first API key exists, unless `require_key` is set; on
    other addresses an API key is always required. `allowed_hosts` are additional Host names, `allowed_origins` the web
    origins that may call the service from a browser (CORS).
    """

    host: str = "127.0.0.1"
    port: int = 8080
    require_key: bool = False
    allowed_hosts: Sequence[str] = ()
    allowed_origins: Sequence[str] = ()
    requests_per_second: float = 1_000.0
    burst: int = 2_000
    max_body_bytes: int = 2 * 1024 * 1024
    threads: int = 8
    max_streams: int = 64
    heartbeat_seconds: float = 15.0
    poll_seconds: float = 0.5
    answers_kept_hours: float = 24.0
    shutdown_seconds: float = 30.0
    mcp: bool = True

    def __post_init__(self) -> None:
        Limits.__post_init__(self)
        if isinstance(self.port, bool) or not isinstance(self.port, int) or not 0 <= self.port <= 65535:
            raise ValidationError("service", "port", self.port, "must be a number from 0 to 65535")
        for name in ("requests_per_second", "burst", "max_body_bytes", "threads", "heartbeat_seconds", "poll_seconds"):
            if not getattr(self, name) > 0:
                raise ValidationError("service", name, getattr(self, name), "must be above zero")
        for origin in self.allowed_origins:
            if origin != "*" and not origin.startswith(("http://", "https://")):
                raise ValidationError("service", "allowed_origins", origin, "must be like https://app.example.com")

    @property
    def is_local(self) -> bool:
        """Whether the service listens on a loopback address only."""
        return is_loopback(self.host)

    @property
    def needs_key(self) -> bool:
        """Whether an API key is required even before the first one exists."""
        return self.require_key or not self.is_local

    def knows_host(self, name: str) -> bool:
        """Whether the Host header is allowed, which protects a loopback service against DNS rebinding."""
        return not self.is_local or name in (*_LOOPBACK_NAMES, self.host, *self.allowed_hosts)

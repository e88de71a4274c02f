"""Options: how a service is to run."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from alma.errors import ValidationError
from alma.serving.limits import Limits

_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class ServiceOptions(Limits):
    """Where the service listens, whom it lets in, and how much of it one caller may have, besides `Limits`.

    Without `require_key`, whoever reaches a service on this machine's loopback address has all of the store until the
    first key is made; beyond loopback a key is always needed. `allowed_hosts` are further names that it is reached by,
    `allowed_origins` the web pages that may call it from a browser.
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
        """Whether only this machine reaches the service."""
        return is_loopback(self.host)

    @property
    def needs_key(self) -> bool:
        """Whether a key is needed even before the first one was made."""
        return self.require_key or not self.is_local

    def knows_host(self, name: str) -> bool:
        """Whether a request that was sent to this name is meant for this service.

        A page on the web can give a name of its own this machine's address, and so reach what listens here.
        """
        return not self.is_local or name in (*_LOOPBACK_NAMES, self.host, *self.allowed_hosts)


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False

"""Webhook configuration and delivery statistics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from alma.errors import ConfigurationError, shown
from alma.events.delivery import DELIVERY_HEADER, EVENT_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, is_forbidden
from alma.events.event import MemoryEvent, MemoryEventType, checked_types
from alma.model.common import checked_name
from alma.model.kinds import kind_named
from alma.model.secret import Secret

_OUR_HEADERS = frozenset(
    name.lower() for name in (SIGNATURE_HEADER, TIMESTAMP_HEADER, EVENT_HEADER, DELIVERY_HEADER, "Content-Type")
)
_LONGEST_NAME = 100
_HEADER_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\xa0-\xff]*")


@dataclass(frozen=True)
class WebhookConfig:
    """Where to send which events, and how.

    `events`, `memory_types` and `project_id` filter events; by default all are sent. With a `secret` requests are
    signed. A transient failure is retried `retry_count` times with exponential backoff from `backoff_seconds`. `name`
    tells webhooks with the same address apart when events are kept in a store. Requests to link-local addresses, where
    clouds serve credentials, are refused unless `allow_link_local`.
    """

    # The path of a webhook URL often contains a password.
    url: str = field(repr=False)
    events: Sequence[MemoryEventType | str] = ()
    secret: str | Secret | None = None
    memory_types: Sequence[str] = ()
    project_id: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_seconds: float = 10.0
    retry_count: int = 3
    backoff_seconds: float = 1.0
    name: str | None = None
    allow_link_local: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", _checked_url(self.url, self.allow_link_local))
        object.__setattr__(self, "events", checked_types(self.events))
        object.__setattr__(self, "memory_types", _checked_kinds(self.memory_types))
        object.__setattr__(self, "secret", _checked_secret(self.secret))
        object.__setattr__(self, "headers", _checked_headers(self.headers))
        if self.name is not None:
            checked_name("webhook", "name", self.name, _LONGEST_NAME)
        if not isinstance(self.retry_count, int):
            raise ConfigurationError(f"a webhook's retry_count must be a whole number, not {shown(self.retry_count)}")
        for name, least in (("timeout_seconds", 0.001), ("retry_count", 0), ("backoff_seconds", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
                raise ConfigurationError(f"a webhook's {name} must be a number of at least {least}, not {shown(value)}")

    def wants(self, event: MemoryEvent) -> bool:
        """Whether the webhook wants this event."""
        return (
            (not self.events or event.event_type in self.events)
            and (not self.memory_types or event.memory_type in self.memory_types)
            and (self.project_id is None or event.project_id == self.project_id)
        )


@dataclass(frozen=True, slots=True)
class WebhookStats:
    """The number of events delivered, failed after the last retry, and dropped because the queue was full."""

    delivered: int = 0
    failed: int = 0
    dropped: int = 0

    def plus(self, delivered: int = 0, failed: int = 0, dropped: int = 0) -> WebhookStats:
        """The statistics plus these numbers."""
        return WebhookStats(self.delivered + delivered, self.failed + failed, self.dropped + dropped)


def _checked_kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    """The kinds of memories; empty for all."""
    if isinstance(kinds, str) or not isinstance(kinds, Iterable):
        raise ConfigurationError(
            f"a webhook's memory_types must be a list of kinds, as ['heuristic'], not {shown(kinds)}"
        )
    return tuple(kind_named(kind).spec.kind for kind in kinds)


def _checked_url(url: str, allow_link_local: bool) -> str:
    host = _host_of(url)
    if host is None:
        raise ConfigurationError("a webhook's url must begin with https:// or http:// and name a host")
    if "@" in urlsplit(url).netloc:
        raise ConfigurationError(
            "a webhook's url must have no user and password in it; give headers={'Authorization': 'Basic …'} instead"
        )
    if not allow_link_local and is_forbidden(host):
        raise ConfigurationError(
            f"a webhook's url must not name the link-local or disguised internal address {host}, where clouds hand out "
            "credentials; "
            "give allow_link_local=True if it is meant"
        )
    return url


def _host_of(url: object) -> str | None:
    if not isinstance(url, str):
        return None
    try:
        parts = urlsplit(url)
        # Reading the port validates it.
        return parts.hostname if parts.scheme in ("http", "https") and parts.port != 0 else None
    except ValueError:
        return None


def _checked_secret(secret: str | Secret | None) -> Secret | None:
    if secret is None:
        return None
    if not isinstance(secret, str | Secret) or not Secret(secret):
        raise ConfigurationError("a webhook's secret must be a text that is not empty; leave it out to send unsigned")
    return Secret(secret)


def _checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(headers, Mapping):
        raise ConfigurationError(
            f"a webhook's headers must be a dictionary, as {{'X-Team': 'shop'}}, not {shown(headers)}"
        )
    for name, value in headers.items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            raise ConfigurationError(f"{shown(name)} is not a valid header name; give one like X-Team")
        if not isinstance(value, str) or not _HEADER_VALUE.fullmatch(value):
            raise ConfigurationError(f"the header {name} of a webhook must be one line of letters that HTTP can send")
        if name.lower() in _OUR_HEADERS:
            raise ConfigurationError(f"the header {name} of a webhook is written by ALMA and cannot be given")
    return dict(headers)

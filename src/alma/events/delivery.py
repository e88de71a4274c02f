"""Webhook settings and delivery: one signed HTTP request, protected against server-side request forgery (SSRF)."""

from __future__ import annotations

import hashlib
import hmac
import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import quote, urlsplit, urlunsplit

from alma.clock import now
from alma.errors import ConfigurationError, shown
from alma.events.emitter import MemoryEvent, MemoryEventType, checked_types
from alma.lazy import lazy_regex
from alma.model.common import checked_name
from alma.model.kinds import kind_named
from alma.model.secret import Secret
from alma.retry import Failure, retry_after_seconds

SIGNATURE_HEADER = "X-ALMA-Signature"
TIMESTAMP_HEADER = "X-ALMA-Timestamp"
EVENT_HEADER = "X-ALMA-Event"
DELIVERY_HEADER = "X-ALMA-Delivery"
_OUR_HEADERS = frozenset(
    name.lower() for name in (SIGNATURE_HEADER, TIMESTAMP_HEADER, EVENT_HEADER, DELIVERY_HEADER, "Content-Type")
)
_LONGEST_NAME = 100
_HEADER_NAME = lazy_regex(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_HEADER_VALUE = lazy_regex(r"[\t\x20-\x7e\xa0-\xff]*")


@dataclass(frozen=True)
class WebhookConfig:
    """Where to send which events, and how.

    `events`, `memory_types` and `project_id` filter events; by default all are sent. With a `secret` requests are
    signed. A transient failure is retried `retry_count` times with exponential backoff from `backoff_seconds`. `name`
    distinguishes webhooks with the same address when events are kept in a store. Requests to link-local addresses,
    where clouds serve credentials, are refused unless `allow_link_local`.
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

    @property
    def projection(self) -> str:
        """The name under which the outbox of a store keeps the changes for this webhook."""
        return f"webhook.{self.name or hashlib.sha256(self.url.encode()).hexdigest()[:24]}"

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


_MAY_PASS = frozenset({408, 425, 429})
# Characters that stay unescaped; "%" as well, so that escapes are not escaped again.
_AS_IT_IS = "/?:@!$&'()*+,;=%~"


def send(
    url: str, body: bytes, headers: Mapping[str, str], timeout_seconds: float, *, allow_link_local: bool = False
) -> Failure | None:
    """Post a body; None on success. Redirects are not followed, because the signature is for this address.

    Proxies are not used, because the resolved address could not be checked behind one.
    """
    import http.client
    import urllib.error
    import urllib.request

    from alma.http_client import open_url

    request = urllib.request.Request(_escaped(url), data=body, headers=dict(headers), method="POST")
    try:
        check = None if allow_link_local else require_allowed
        with open_url(request, timeout_seconds, check, use_proxies=False):
            return None
    except urllib.error.HTTPError as exc:
        with exc:
            transient = exc.code in _MAY_PASS or exc.code >= 500
            return Failure(f"answered {exc.code}", transient, retry_after_seconds(exc.headers.get("Retry-After")))
    except (OSError, http.client.HTTPException) as exc:
        reason = getattr(exc, "reason", exc)
        if isinstance(reason, ForbiddenAddress):
            return Failure(str(reason), transient=False)
        late = isinstance(reason, TimeoutError)
        said = f"did not answer within {timeout_seconds:g} seconds" if late else f"cannot be reached: {reason}"
        return Failure(said, True)


def _escaped(url: str) -> str:
    """The URL with spaces and non-ASCII characters escaped."""
    parts = urlsplit(url)
    path, query = quote(parts.path, safe=_AS_IT_IS), quote(parts.query, safe=_AS_IT_IS)
    return urlunsplit((parts.scheme, parts.netloc, path, query, ""))


_IP = IPv4Address | IPv6Address
# Metadata services of clouds that are not on link-local addresses.
_ALSO_METADATA = frozenset(map(ip_address, ("fd00:ec2::254", "100.100.100.200")))


_COMPATIBLE = ip_network("::/96")
_NAT64 = ip_network("64:ff9b::/96")
# Networks choose where they put the IPv4 address in these prefixes, so all are refused.
_LOCAL_NAT64 = ip_network("64:ff9b:1::/48")
_LAST_32_BITS = (1 << 32) - 1


class ForbiddenAddress(OSError):
    """The host resolved to a forbidden address."""


def is_forbidden(host: str) -> bool:
    """Whether the host is a forbidden address in any spelling; host names are only known when connected."""
    found = _address(host)
    return found is not None and _is_forbidden(found)


def require_allowed(peer: str) -> None:
    """Refuse a connection to a forbidden address."""
    if is_forbidden(peer):
        raise ForbiddenAddress(
            f"{peer} is a link-local address or a disguised internal one, and those are refused; see allow_link_local"
        )


def _address(host: str) -> _IP | None:
    try:
        return ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        pass
    try:
        # 2852039166 and 0xA9FEA9FE are IP addresses as well.
        return ip_address(socket.inet_aton(host))
    except (OSError, ValueError):
        return None


def _is_forbidden(address: _IP) -> bool:
    if address.is_link_local or address in _ALSO_METADATA:
        return True
    if not isinstance(address, IPv6Address):
        return False
    if address in _LOCAL_NAT64:
        return True
    meant = _embedded(address)
    return meant is not None and (not meant.is_global or _is_forbidden(meant))


def _embedded(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address embedded in an IPv6 address."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64 or (address in _COMPATIBLE and not (address.is_loopback or address.is_unspecified)):
        return IPv4Address(int(address) & _LAST_32_BITS)
    if address.sixtofour is not None:
        return address.sixtofour
    return None if address.teredo is None else address.teredo[1]


_PREFIX = "sha256="


def sign(secret: str | Secret, timestamp: int | str, body: bytes | str) -> str:
    """The signature of a body and timestamp: HMAC-SHA256 over `<timestamp>.<body>`, as `sha256=<hex>`."""
    content = body.encode() if isinstance(body, str) else bytes(body)
    key = Secret(secret).reveal().encode()
    return _PREFIX + hmac.new(key, f"{timestamp}.".encode() + content, hashlib.sha256).hexdigest()


def verify_signature(
    secret: str | Secret,
    body: bytes | str,
    signature: str | None,
    timestamp: int | str | None,
    tolerance_seconds: float = 300.0,
) -> bool:
    """Whether a webhook request was signed with this secret within the last few minutes.

    `signature` and `timestamp` are the headers X-ALMA-Signature and X-ALMA-Timestamp, `body` the raw bytes. Missing or
    invalid values are False, and so is a timestamp outside of the tolerance, which prevents replay attacks.
    """
    sent_at = _seconds(timestamp)
    if not signature or sent_at is None or not Secret(secret):
        return False
    is_ours = hmac.compare_digest(sign(secret, str(timestamp).strip(), body).encode(), signature.strip().encode())
    return is_ours and abs(now().timestamp() - sent_at) <= tolerance_seconds


def _seconds(timestamp: int | str | None) -> int | None:
    try:
        return None if timestamp is None else int(timestamp)
    except (ValueError, OverflowError):
        return None

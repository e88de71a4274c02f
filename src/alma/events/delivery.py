"""Webhook delivery: one signed HTTP request, and protection against server-side request forgery (SSRF)."""

from __future__ import annotations

import hashlib
import hmac
import socket
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import quote, urlsplit, urlunsplit

from alma.clock import now
from alma.model.secret import Secret
from alma.retry import Failure, retry_after_seconds

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


SIGNATURE_HEADER = "X-ALMA-Signature"
TIMESTAMP_HEADER = "X-ALMA-Timestamp"
EVENT_HEADER = "X-ALMA-Event"
DELIVERY_HEADER = "X-ALMA-Delivery"

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

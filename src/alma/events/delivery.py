"""Sending: one HTTP request, and what is known when it fails."""

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
# What an address may have as it is; "%" too, as what was escaped already is not escaped again.
_AS_IT_IS = "/?:@!$&'()*+,;=%~"


def send(
    url: str, body: bytes, headers: Mapping[str, str], timeout_seconds: float, *, allow_link_local: bool = False
) -> Failure | None:
    """Post a body; None when it was accepted. Redirects are not followed: what is signed is for this address.

    Proxies of the environment are not used: behind one, the address that a name leads to could not be checked.
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
    """The address as it is sent, where a path has spaces or letters of any script."""
    parts = urlsplit(url)
    path, query = quote(parts.path, safe=_AS_IT_IS), quote(parts.query, safe=_AS_IT_IS)
    return urlunsplit((parts.scheme, parts.netloc, path, query, ""))


_IP = IPv4Address | IPv6Address
# Where a cloud answers under another address than a link-local one.
_ALSO_METADATA = frozenset(map(ip_address, ("fd00:ec2::254", "100.100.100.200")))


_COMPATIBLE = ip_network("::/96")
_NAT64 = ip_network("64:ff9b::/96")
# A network chooses where in these it puts the IPv4 address, so all of them are refused.
_LOCAL_NAT64 = ip_network("64:ff9b:1::/48")
_LAST_32_BITS = (1 << 32) - 1


class ForbiddenAddress(OSError):
    """A host that turned out to be at an address that nothing is sent to."""


def is_forbidden(host: str) -> bool:
    """Whether this is such an address in any of its spellings; of a name only a connection can tell."""
    found = _address(host)
    return found is not None and _is_forbidden(found)


def require_allowed(peer: str) -> None:
    """Refuse to go on with a connection to such an address, whatever name led there."""
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
        # 2852039166 and 0xA9FEA9FE are addresses as well.
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
    """The IPv4 address that an IPv6 address stands for."""
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
    """The signature of a body sent at this time: HMAC-SHA256 over `<timestamp>.<body>`, as `sha256=<hex>`."""
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
    """Whether a webhook's body was signed with this secret, and within the last few minutes.

    `signature` and `timestamp` are what the headers X-ALMA-Signature and X-ALMA-Timestamp say, `body` is what came,
    byte for byte. What is missing or no signature at all is False, as is a timestamp further from now than the
    tolerance, which keeps a recorded request from being sent again later.
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

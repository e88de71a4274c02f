"""Addresses that events are not sent to: those of the machine's own network card, where clouds hand out credentials."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address

_IP = IPv4Address | IPv6Address
# Where a cloud answers under another address than a link-local one.
_ALSO_METADATA = frozenset(map(ip_address, ("fd00:ec2::254", "100.100.100.200")))


class ForbiddenAddress(OSError):
    """A host that turned out to be at an address that nothing is sent to."""


def is_forbidden(host: str) -> bool:
    """Whether this is such an address in any of its spellings; of a name only a connection can tell."""
    found = _address(host)
    return found is not None and _is_forbidden(found)


def require_allowed(peer: str) -> None:
    """Refuse to go on with a connection to such an address, whatever name led there."""
    if is_forbidden(peer):
        raise ForbiddenAddress(f"{peer} is a link-local address, and those are refused; see allow_link_local")


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
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address.is_link_local or address in _ALSO_METADATA or (mapped is not None and _is_forbidden(mapped))

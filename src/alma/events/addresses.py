"""Addresses that events are not sent to: link-local ones, where clouds hand out credentials, and disguised ones.

An IPv6 address can stand for an IPv4 one (mapped, compatible, NAT64, 6to4, Teredo). Internal IPv4 addresses are refused
in these forms: no receiver is configured that way on purpose, and a filter of IPv4 addresses does not see them.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

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

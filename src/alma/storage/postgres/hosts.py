"""The hosts of a server and its standbys, as the host and port of a configuration name them."""

from __future__ import annotations


def hosts_of(host: str, port: int) -> list[tuple[str, int]]:
    """Each host with its port: `db1,db2` or `db1:5432,db2:5433`; one without a port has the common one."""
    return [_host_and_port(each.strip(), port) for each in host.split(",")]


def _host_and_port(host: str, port: int) -> tuple[str, int]:
    name, colon, number = host.rpartition(":")
    # An IPv6 address has several colons, and no port unless it is in brackets.
    if host.startswith("/") or not colon or not number.isdecimal() or (":" in name and not name.endswith("]")):
        return host.strip("[]"), port
    return name.strip("[]"), int(number)

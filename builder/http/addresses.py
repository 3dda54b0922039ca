"""Addresses that may be connected to, looked up and checked when a connection is opened.

The connection goes to the address that was checked. A name that resolves to another address the
next time (DNS rebinding) therefore cannot lead into our own network.
"""

import ipaddress
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Protocol

from builder.http.errors import FetchError

Network = IPv4Network | IPv6Network
SocketAddress = tuple[str, int] | tuple[str, int, int, int]

_SPECIAL: tuple[Network, ...] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
        "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24",
        "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24",
        "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        "::/3", "2001::/23", "2001:db8::/32", "3fff::/20", "4000::/2", "8000::/1",
    )
)  # fmt: skip
"""The registries of special-purpose addresses (RFC 6890 and later), and reserved networks.

Of IPv6 only 2000::/3 belongs to the public internet (RFC 4291, 2.4).
"""

_NAT64 = IPv6Network("64:ff9b::/96")
_6TO4 = IPv6Network("2002::/16")


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Parse networks such as 127.0.0.0/8. Raises ValueError."""
    return tuple(ipaddress.ip_network(text) for text in texts)


def is_public(address: str, allowed: Sequence[Network] = ()) -> bool:
    """Return whether an address is public, or lies in an `allowed` network.

    An IPv6 address that embeds an IPv4 address is public if that one is.
    """
    return _is_ip_public(ipaddress.ip_address(address.partition("%")[0]), allowed)


def _is_ip_public(ip: IPv4Address | IPv6Address, allowed: Sequence[Network]) -> bool:
    if any(ip in network for network in allowed):
        return True
    if isinstance(ip, IPv6Address):
        inner = _embedded_ipv4(ip)
        if inner is not None:
            return _is_ip_public(inner, allowed)
    return ip.is_global and not ip.is_multicast and not any(ip in n for n in _SPECIAL)


def _embedded_ipv4(ip: IPv6Address) -> IPv4Address | None:
    if ip.ipv4_mapped is not None:
        return ip.ipv4_mapped
    if ip in _NAT64:
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.sixtofour if ip in _6TO4 else None


class Addresses(Protocol):
    """Resolves a host to the addresses that may be connected to."""

    def addresses(self, host: str, port: int) -> list[tuple[socket.AddressFamily, SocketAddress]]:
        """Return the addresses in order of preference. Raises FetchError if there are none."""
        ...


@dataclass(frozen=True, slots=True)
class Guard:
    """Allows some ports of public addresses, and also the networks in `allowed`."""

    ports: frozenset[int]
    allowed: tuple[Network, ...] = ()

    def addresses(self, host: str, port: int) -> list[tuple[socket.AddressFamily, SocketAddress]]:
        """Return the allowed addresses of a host, in order of preference.

        Raises FetchError if there are none, or if the port is not allowed.
        """
        if port not in self.ports:
            raise FetchError("port-refused", f"{host}:{port}")
        every = _resolve(host, port)
        good = [(f, a) for f, a in every if is_public(str(a[0]), self.allowed)]
        if not good:
            listed = ", ".join(sorted({str(a[0]) for _, a in every}))
            raise FetchError("address-refused", host if host == listed else f"{host} is {listed}")
        return good


@dataclass(frozen=True, slots=True)
class Anywhere:
    """Allows all addresses: for hosts that the operator names, never for those in documents."""

    def addresses(self, host: str, port: int) -> list[tuple[socket.AddressFamily, SocketAddress]]:
        """Return the addresses of a host. Raises FetchError if there are none."""
        found = _resolve(host, port)
        if not found:
            raise FetchError("dns", f"{host}: no address")
        return found


def _resolve(host: str, port: int) -> list[tuple[socket.AddressFamily, SocketAddress]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise FetchError("dns", f"{host}: {reason or error}") from error
    every = [
        (family, address)
        for family, _, _, _, address in found
        if family in {socket.AF_INET, socket.AF_INET6}
    ]
    return list(dict.fromkeys(every))  # type: ignore[arg-type]

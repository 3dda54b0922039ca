"""Addresses that may be connected to, and the sockets of the HTTP client to them.

Addresses are looked up and checked when a connection is opened. The connection goes to the address
that was checked. A name that resolves to another address the next time (DNS rebinding) therefore
cannot lead into our own network. A proxy of the environment resolves names itself: then only the
proxy is checked. `AnyAddresses` is for hosts that the operator names, `PublicAddresses` for all
others, or for both.
"""

import ipaddress
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Protocol

from builder.http.errors import FetchError
from builder.http.limits import Budget

Network = IPv4Network | IPv6Network
SocketAddress = tuple[str, int] | tuple[str, int, int, int]


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Parse networks such as 127.0.0.0/8. Raises ValueError."""
    return tuple(ipaddress.ip_network(text) for text in texts)


_SPECIAL = networks(("192.0.0.0/24", "192.88.99.0/24", "::/3", "3fff::/20", "4000::/2", "8000::/1"))
"""What `is_global` does not refuse, or not in each Python: special addresses (RFC 6890 and later).

Of IPv6 only 2000::/3 belongs to the public internet (RFC 4291, 2.4).
"""
_NAT64 = IPv6Network("64:ff9b::/96")


def is_public(address: str, allowed: Sequence[Network] = ()) -> bool:
    """Return whether an address is public, or lies in an `allowed` network.

    An IPv6 address that embeds an IPv4 address is public if that one is.
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if any(ip in network for network in allowed):
        return True
    if isinstance(ip, IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour
        if ip in _NAT64:
            inner = IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner), allowed)
    return ip.is_global and not ip.is_multicast and not any(ip in n for n in _SPECIAL)


class AddressPolicy(Protocol):
    """Resolves a host to the addresses that may be connected to."""

    def addresses(self, host: str, port: int) -> list[tuple[socket.AddressFamily, SocketAddress]]:
        """Return the addresses in order of preference. Raises FetchError if there are none."""
        ...


@dataclass(frozen=True, slots=True)
class PublicAddresses:
    """Allows some ports of public addresses, and also the networks in `allowed`.

    Of the hosts in `named` it allows all addresses: a server that the operator names may be
    private. Its redirects lead to public addresses only.
    """

    ports: frozenset[int]
    allowed: tuple[Network, ...] = ()
    named: set[str] = field(default_factory=set)

    def addresses(self, host: str, port: int) -> list[tuple[socket.AddressFamily, SocketAddress]]:
        """Return the allowed addresses of a host, in order of preference.

        Raises FetchError if there are none, or if the port is not allowed.
        """
        if host.lower() in self.named:
            return AnyAddresses().addresses(host, port)
        if port not in self.ports:
            raise FetchError("port-refused", f"{host}:{port}")
        every = _resolve(host, port)
        good = [(f, a) for f, a in every if is_public(str(a[0]), self.allowed)]
        if not good:
            listed = ", ".join(sorted({str(a[0]) for _, a in every}))
            raise FetchError("address-refused", host if host == listed else f"{host} is {listed}")
        return good


@dataclass(frozen=True, slots=True)
class AnyAddresses:
    """Allows all addresses: for hosts that the operator names, never for those in documents."""

    def addresses(self, host: str, port: int) -> list[tuple[socket.AddressFamily, SocketAddress]]:
        """Return the addresses of a host. Raises FetchError if there are none."""
        addresses = _resolve(host, port)
        if not addresses:
            raise FetchError("dns", f"{host}: no address")
        return addresses


def _resolve(host: str, port: int) -> list[tuple[socket.AddressFamily, SocketAddress]]:
    # Names below localhost are this machine (RFC 6761, 6.3), which many resolvers do not know.
    is_local = host.lower().removesuffix(".").endswith(".localhost")
    try:
        listed = socket.getaddrinfo(
            "localhost" if is_local else host, port, type=socket.SOCK_STREAM
        )
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise FetchError("dns", f"{host}: {reason or error}") from error
    every = [
        (family, address)
        for family, _, _, _, address in listed
        if family in {socket.AF_INET, socket.AF_INET6}
    ]
    return list(dict.fromkeys(every))  # type: ignore[arg-type]


def open_socket(policy: AddressPolicy, host: str, port: int, budget: Budget) -> socket.socket:
    """Connect to the first checked address that answers. Raises FetchError, Deferred."""
    budget.dial()
    addresses = policy.addresses(host, port)
    failure: OSError | None = None
    for left, (family, address) in zip(range(len(addresses), 0, -1), addresses, strict=True):
        opened = socket.socket(family, socket.SOCK_STREAM)
        try:
            opened.settimeout(budget.remaining() / left)
            opened.connect(address)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            opened.settimeout(budget.remaining())  # for TLS
        except OSError as error:
            opened.close()
            failure = error
        except BaseException:
            opened.close()
            raise
        else:
            return opened
    code = "connect-timeout" if isinstance(failure, TimeoutError) else "connect"
    reason = (failure and failure.strerror) or failure
    raise FetchError(code, f"{host}:{port}: {reason}") from failure

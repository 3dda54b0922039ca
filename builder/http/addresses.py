"""Addresses that may be connected to, and the sockets of the HTTP client to them.

Addresses are looked up and checked when a connection is opened. The connection goes to the address
that was checked. A name that resolves to another address the next time (DNS rebinding) therefore
cannot lead into our own network. A proxy of the environment resolves names itself: then only the
proxy is checked. `AnyAddresses` is for hosts that the operator names, `PublicAddresses` for all
others, `NamedAddresses` for both.

The budget of a request arrives as its timeout, which httpcore2 passes on unchanged.
"""

import contextlib
import ipaddress
import re
import select
import socket
import ssl
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any, Protocol

import httpcore2

from builder.http.errors import FetchError
from builder.http.limits import Budget

Network = IPv4Network | IPv6Network
SocketAddress = tuple[str, int] | tuple[str, int, int, int]

_SPECIAL: tuple[Network, ...] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::/3",
        "2001::/23",
        "2001:db8::/32",
        "3fff::/20",
        "4000::/2",
        "8000::/1",
    )
)
"""The registries of special-purpose addresses (RFC 6890 and later), and reserved networks.

Of IPv6 only 2000::/3 belongs to the public internet (RFC 4291, 2.4).
"""

_NAT64 = IPv6Network("64:ff9b::/96")
_6TO4 = IPv6Network("2002::/16")
_STEP = 1.0
"""Seconds between two checks of the stop event during a wait."""
_BLANKS = re.compile(r"\s+")


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


class AddressPolicy(Protocol):
    """Resolves a host to the addresses that may be connected to."""

    def addresses(self, host: str, port: int) -> list[tuple[socket.AddressFamily, SocketAddress]]:
        """Return the addresses in order of preference. Raises FetchError if there are none."""
        ...


@dataclass(frozen=True, slots=True)
class PublicAddresses:
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
class AnyAddresses:
    """Allows all addresses: for hosts that the operator names, never for those in documents."""

    def addresses(self, host: str, port: int) -> list[tuple[socket.AddressFamily, SocketAddress]]:
        """Return the addresses of a host. Raises FetchError if there are none."""
        found = _resolve(host, port)
        if not found:
            raise FetchError("dns", f"{host}: no address")
        return found


@dataclass(frozen=True, slots=True)
class NamedAddresses:
    """Allows all addresses of the hosts in `named`, and of others those that `others` allows.

    A server that the operator names may be private. Its redirects lead to public addresses only.
    """

    others: AddressPolicy
    named: set[str] = field(default_factory=set)

    def addresses(self, host: str, port: int) -> list[tuple[socket.AddressFamily, SocketAddress]]:
        """Return the allowed addresses of a host. Raises FetchError if there are none."""
        policy = AnyAddresses() if host.lower() in self.named else self.others
        return policy.addresses(host, port)


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


def one_line(error: BaseException) -> str:
    """Return the message of an error in one line."""
    return _BLANKS.sub(" ", str(error)).strip()[:200] or type(error).__name__


class AddressBackend(httpcore2.NetworkBackend):
    """Connects only to addresses that pass the check."""

    def __init__(self, addresses: AddressPolicy) -> None:
        self._addresses = addresses

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: Any = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        """Connect to the first checked address that answers. Raises FetchError, Deferred."""
        budget: Budget = timeout
        budget.dial()
        addresses = self._addresses.addresses(host, port)
        failed: OSError | None = None
        for left, (family, address) in zip(range(len(addresses), 0, -1), addresses, strict=True):
            plain = socket.socket(family, socket.SOCK_STREAM)
            try:
                plain.settimeout(budget.remaining() / left)
                plain.connect(address)
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as error:
                plain.close()
                failed = error
            except BaseException:
                plain.close()
                raise
            else:
                return _BoundStream(plain)
        code = "connect-timeout" if isinstance(failed, TimeoutError) else "connect"
        reason = (failed and failed.strerror) or failed
        raise FetchError(code, f"{host}:{port}: {reason}") from failed


class _BoundStream(httpcore2.NetworkStream):
    """A connection whose waits end with the budget of the current request."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    def read(self, max_bytes: int, timeout: Any = None) -> bytes:
        budget: Budget = timeout
        while True:
            self._socket.settimeout(min(budget.remaining(), _STEP))
            try:
                return self._socket.recv(max_bytes)
            except TimeoutError:
                continue
            except ssl.SSLEOFError:
                return b""
            except OSError as error:
                raise httpcore2.ReadError(error) from error

    def write(self, buffer: bytes, timeout: Any = None) -> None:
        budget: Budget = timeout
        budget.send()
        view = memoryview(buffer)
        while view:
            self._socket.settimeout(min(budget.remaining(), _STEP))
            try:
                view = view[self._socket.send(view) :]
            except TimeoutError:
                continue
            except OSError as error:
                raise httpcore2.WriteError(error) from error

    def close(self) -> None:
        self._socket.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: Any = None,
    ) -> httpcore2.NetworkStream:
        budget: Budget = timeout
        self._socket.settimeout(budget.remaining())
        try:
            secured = ssl_context.wrap_socket(self._socket, server_hostname=server_hostname)
        except TimeoutError as error:
            self.close()
            raise FetchError("connect-timeout", f"{server_hostname}: TLS") from error
        except (OSError, ValueError) as error:
            self.close()
            raise FetchError("tls", f"{server_hostname}: {one_line(error)}") from error
        return _BoundStream(secured)

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":  # an idle connection is readable when the server closed it
            return bool(select.select([self._socket], [], [], 0)[0])
        if info == "server_addr":
            with contextlib.suppress(OSError):  # the server has hung up
                return self._socket.getpeername()
        return None

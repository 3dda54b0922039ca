"""Names of hosts for tests: those of the fake server lead to it, whatever the port; no look-ups."""

import re
import socket
from dataclasses import dataclass, field

from builder.http.addresses import PublicAddresses, SocketAddress, is_public
from builder.http.errors import FetchError
from tests.builder.sources.datasets.server import Server

_LITERAL = re.compile(r"[0-9a-fx.:]+|localhost")


@dataclass
class Names:
    """Where hosts are: at the fake server, or, for those in `elsewhere`, at an address.

    Addresses are refused as in earnest; the fake server's own address by its number is one.
    """

    server: Server
    elsewhere: dict[str, str] = field(default_factory=dict)
    guard: PublicAddresses = field(default_factory=lambda: PublicAddresses(frozenset({80, 443})))

    def addresses(self, host: str, port: int) -> list[tuple[socket.AddressFamily, SocketAddress]]:
        if _LITERAL.fullmatch(host):
            return self.guard.addresses(host, port)
        if port not in self.guard.ports:
            raise FetchError("port-refused", f"{host}:{port}")
        if (address := self.elsewhere.get(host)) is not None and not is_public(address):
            raise FetchError("address-refused", f"{host} is {address}")
        if host not in self.server.hosts():
            raise FetchError("dns", f"{host}: no such name in this test")
        return [(socket.AF_INET, ("127.0.0.1", self.server.port))]

"""The endpoint of a server: a scheme, a host, and an optional port."""

import ipaddress
import re

EXPECTED = "an http or https URL of a server"

_ENDPOINT = re.compile(
    r"https?://([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?/?"
)
_NUMBER = re.compile(
    r"[0-9]+|0[Xx][0-9A-Fa-f]*"
)  # a host that ends like this is read as an IPv4 address


def is_valid(text: str) -> bool:
    """Return whether `text` is the URL of a server, without user, path and query."""
    found = _ENDPOINT.fullmatch(text)
    if found is None or not 0 < int(found[2] or 80) < 65536:
        return False
    host = found[1]
    try:
        if host.startswith("["):
            ipaddress.IPv6Address(host[1:-1])
        elif _NUMBER.fullmatch(host.rpartition(".")[2]):
            ipaddress.IPv4Address(host)
    except ValueError:
        return False
    return True

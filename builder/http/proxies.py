"""Proxies: the server by which a request goes, as the environment of a process names it.

HTTP_PROXY, HTTPS_PROXY and ALL_PROXY name one for what begins with http, with https and with
either; NO_PROXY names hosts that are asked without one: a name stands for all that ends in it, and
a network of addresses for what is asked by an address of it. Small letters come before capitals.
This machine itself is asked without one always.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from builder.errors import UsageError

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy that speaks HTTP, by TLS where `scheme` is https; `user` is a name and a password."""

    scheme: str
    host: str
    port: int
    user: tuple[str, str] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        """Return where it is, without a password."""
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Proxies:
    """Which proxy stands between this machine and a host, by the scheme of a URL; none for most."""

    by_scheme: Mapping[str, tuple[str, str]] = field(default_factory=dict, repr=False)
    """The variable that names it and what that says, which is looked at where it is used."""
    besides: tuple[str, ...] = ()
    """Hosts that are asked without one: names, addresses, networks, each with a port if it has one;
    an asterisk is all of them."""

    def of(self, scheme: str, host: str, port: int) -> Proxy | None:
        """Return by which proxy a host is asked, if it is by one; an IPv6 host has no brackets.

        Raises UsageError where it would be by one that cannot be used.
        """
        named = self.by_scheme.get(scheme)
        if named is None or _is_here(host):
            return None
        return None if any(_means(one, host, port) for one in self.besides) else _proxy(*named)

    def of_url(self, url: str) -> Proxy | None:
        """Return by which proxy a URL of http or https is asked, as `of` does."""
        parts = urlsplit(url)
        return self.of(parts.scheme, parts.hostname or "", parts.port or _PORTS[parts.scheme])


def proxies(environment: Mapping[str, str]) -> Proxies:
    """Return the proxies of an environment."""
    found = {}
    for scheme in ("http", "https"):
        for name in (f"{scheme}_proxy", "all_proxy"):
            called = name if name in environment else name.upper()
            if called in environment:
                if environment[called].strip():
                    found[scheme] = called, environment[called].strip()
                break
    besides = environment.get("no_proxy", environment.get("NO_PROXY", "")).lower()
    return Proxies(found, tuple(one.strip() for one in besides.split(",") if one.strip()))


def _proxy(name: str, text: str) -> Proxy:
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname or "", parts.port
        host.encode("ascii")
    except ValueError as error:
        raise UsageError(_no_proxy(name)) from error
    if parts.scheme not in _PORTS or not host or port == 0 or parts.path.strip("/"):
        raise UsageError(_no_proxy(name))
    user = None
    if parts.username is not None:
        user = unquote(parts.username), unquote(parts.password or "")
    return Proxy(parts.scheme, host, port or _PORTS[parts.scheme], user)


def _no_proxy(name: str) -> str:
    return f"{name} names no proxy that can be used: expected http[s]://[user:password@]host[:port]"


def _means(one: str, host: str, port: int) -> bool:
    """Tell whether an entry of NO_PROXY means a host."""
    if one == "*":
        return True
    name, colon, own = one.rpartition(":")
    if colon and own.isdecimal() and (":" not in name or name.endswith("]")):
        if int(own) != port:
            return False
        one = name
    one = one.strip("[]")
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(one, strict=False)
    except ValueError:
        return f".{host.lower()}".endswith(f".{one.removeprefix('*').lstrip('.')}")


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")

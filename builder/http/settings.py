"""Settings of HTTP: pace and limits from the configuration, proxies from the environment.

HTTP_PROXY, HTTPS_PROXY and ALL_PROXY name the proxy of http URLs, of https URLs, and of both.
NO_PROXY lists hosts that are reached directly: by the rules of urllib.request, names with all their
subdomains, optionally with a port. It may also list networks. Lower-case variables come first. This
machine itself is always reached directly.
"""

import base64
import ipaddress
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

from builder.errors import UsageError
from builder.http.limits import Limits, RetryPolicy
from builder.http.politeness import HostPolicy
from functions.config.http import AUTO, DEFAULTS

PORTS = {"http": 80, "https": 443}
"""The default port of each scheme."""


class Settings(Protocol):
    """The configuration, from which the keys http.* are read."""

    def __getitem__(self, name: str) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """The values of `http.*` for one command; times in seconds, rates in bytes a second.

    A key that the command does not use has the default of its field here.
    """

    robots: bool = False
    concurrent: int = 1
    host_concurrent: int = 1
    host_seconds: float = 0
    backoff_seconds: float = 0
    wait_seconds: float = 0
    tries: int = 1
    ports: tuple[int, ...] = ()
    allow_networks: tuple[str, ...] = ()
    connect_seconds: float
    first_byte_seconds: float
    total_seconds: float
    least_rate: float
    max_bytes: int = 1 << 62

    def limits(self) -> Limits:
        """Return the limits of one response."""
        return Limits(
            connect=self.connect_seconds,
            first_byte=self.first_byte_seconds,
            total=self.total_seconds,
            rate=self.least_rate,
            bytes=self.max_bytes,
        )

    def policy(self) -> HostPolicy:
        """Return the policy for each host."""
        return HostPolicy(self.host_seconds, self.host_concurrent, self.backoff_seconds)

    def retry_policy(self) -> RetryPolicy:
        """Return the policy for retries of one request."""
        return RetryPolicy(self.tries - 1, self.backoff_seconds, self.wait_seconds)


def http_settings(configuration: Settings, command: str) -> HttpSettings:
    """Return the settings of a command in `DEFAULTS`.

    A value in the command's table in `http.commands` comes first, then the value for all commands,
    then the default.
    """
    own: Mapping[str, Any] = configuration["http.commands"].get(command, {})
    values: dict[str, Any] = {}
    for name, default in DEFAULTS[command].items():
        shared = configuration[f"http.{name}"]
        value = own.get(name, default if shared == AUTO else shared)
        values[name] = tuple(value) if isinstance(value, list) else value
    return HttpSettings(**values)


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy, over TLS if `scheme` is https; `user` is a name and a password."""

    scheme: str
    host: str
    port: int
    user: tuple[str, str] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        """Return its host and port, without the password."""
        return f"{self.host}:{self.port}"

    def authorization(self) -> dict[str, str]:
        """Return the header field that names the user, if there is one."""
        if self.user is None:
            return {}
        pair = base64.b64encode(":".join(self.user).encode()).decode()
        return {"Proxy-Authorization": f"Basic {pair}"}


@dataclass(frozen=True, slots=True)
class Proxies:
    """The proxy of each scheme, and the hosts that are reached without a proxy."""

    by_scheme: Mapping[str, tuple[str, str]] = field(default_factory=dict, repr=False)
    """The variable that names the proxy, and its value, which is parsed when it is used."""
    direct: str = ""
    """The value of NO_PROXY."""

    def of(self, scheme: str, host: str, port: int) -> Proxy | None:
        """Return the proxy of a host, or None; an IPv6 host has no brackets.

        Raises UsageError for a proxy that cannot be used.
        """
        named = self.by_scheme.get(scheme)
        return None if named is None or self._is_direct(host, port) else _proxy(*named)

    def of_url(self, url: str) -> Proxy | None:
        """Return the proxy of an http or https URL, as `of` does."""
        parts = urlsplit(url)
        return self.of(parts.scheme, parts.hostname or "", parts.port or PORTS[parts.scheme])

    def _is_direct(self, host: str, port: int) -> bool:
        name = f"[{host}]" if ":" in host else host
        if proxy_bypass_environment(f"{name}:{port}", {"no": self.direct}):
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return host == "localhost" or host.endswith(".localhost")
        for entry in self.direct.split(","):
            with suppress(ValueError):  # it is a name
                if address in ipaddress.ip_network(entry.strip(), strict=False):
                    return True
        return address.is_loopback


def proxies(environment: Mapping[str, str]) -> Proxies:
    """Return the proxies of an environment."""
    named = {}
    for scheme in ("http", "https"):
        for name in (f"{scheme}_proxy", "all_proxy"):
            spelled = name if name in environment else name.upper()
            if spelled in environment:
                if environment[spelled].strip():
                    named[scheme] = spelled, environment[spelled].strip()
                break
    direct = environment.get("no_proxy", environment.get("NO_PROXY", ""))
    return Proxies(named, direct.replace("*.", "."))


def _proxy(name: str, text: str) -> Proxy:
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname or "", parts.port
        host.encode("ascii")
    except ValueError as error:
        raise UsageError(_fault(name)) from error
    if parts.scheme not in PORTS or not host or port == 0 or parts.path.strip("/"):
        raise UsageError(_fault(name))
    user = None
    if parts.username is not None:
        user = unquote(parts.username), unquote(parts.password or "")
    return Proxy(parts.scheme, host, port or PORTS[parts.scheme], user)


def _fault(name: str) -> str:
    return f"{name} is not a usable proxy: expected http[s]://[user:password@]host[:port]"

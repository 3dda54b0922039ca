"""Settings of HTTP: the pace and the limits of one command, from the configuration."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from builder.http.limits import Limits
from builder.http.politeness import HostPolicy
from builder.http.retry import RetryPolicy
from functions.config.http import AUTO, DEFAULTS


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

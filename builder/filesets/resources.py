"""HTTP access to platforms for a whole run, as configured."""

import math
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from builder.filesets.download.api import PlatformApi
from builder.filesets.download.download import FileDownloader
from builder.http import connections
from builder.http.addresses import Addresses
from builder.http.client import HttpClient
from builder.http.limits import Limits
from builder.http.politeness import HostQueue
from builder.http.settings import http_settings
from functions.config.configuration import Configuration

_FORGIVES = 600.0
"""Seconds before an unreachable host is tried again; a worker runs for days."""


@dataclass(frozen=True, slots=True)
class HostTokens:
    """Configured tokens by host and port. Each is sent to its own host only."""

    tokens: Mapping[str, str]

    def headers(self, url: str) -> dict[str, str]:
        """Return the authorization header for a URL's host; only for https.

        A token with a space contains its own scheme.
        """
        parts = urlsplit(url)
        token = self.tokens.get(parts.netloc) if parts.scheme == "https" else None
        if token is None:
            return {}
        return {"Authorization": token if " " in token else f"Bearer {token}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """Access to platforms; all threads share the state of hosts.

    `scratch` is a folder for temporary files. The download of one file may take `seconds`.
    """

    client: HttpClient
    tokens: Mapping[str, str]
    scratch: Path
    tries: int
    seconds: float
    obey: bool
    limits: Limits = field(default_factory=Limits)

    def api(self, until: float = math.inf) -> PlatformApi:
        """Return a client for documents that works until `until`, on the client's clock."""
        return PlatformApi(
            client=self.client, tries=self.tries, until=until, obey=self.obey,
            limits=self.limits, tokens=self.tokens,
        )  # fmt: skip

    def downloader(self, until: float = math.inf) -> FileDownloader:
        """Return a downloader that works until `until`, on the client's clock."""
        return FileDownloader(
            client=self.client, tries=self.tries, seconds=self.seconds, until=until,
            limits=self.limits,
        )  # fmt: skip


def means(
    settings: Configuration,
    agent: str,
    guard: Addresses,
    stop: threading.Event,
    scratch: Path,
    wall: Callable[[], float] = time.time,
    *,
    clock: Callable[[], float] = time.monotonic,
    tls: ssl.SSLContext | None = None,
) -> Ways:
    """Create the access to platforms that the configuration allows.

    `stop` ends all requests. `wall` counts seconds since 1970, `clock` from any moment.
    """
    http = http_settings(settings, "fileset")
    policy = replace(http.policy(), forgives=_FORGIVES)
    tokens: Mapping[str, str] = settings["fileset.tokens"]
    client = HttpClient(
        agent=agent, addresses=guard, hosts=HostQueue(policy, stop, clock), stop=stop, wall=wall,
        credentials=HostTokens(tokens).headers, tls=tls or connections.tls_context(), clock=clock,
    )  # fmt: skip
    return Ways(
        client=client, tokens=tokens, scratch=scratch, tries=http.tries,
        seconds=http.total_seconds, obey=http.robots, limits=http.limits(),
    )  # fmt: skip

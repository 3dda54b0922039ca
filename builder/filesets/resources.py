"""Means: what fetching takes, of the configuration and of what is around, for a whole run."""

import math
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from builder.filesets.download.api import PlatformApi
from builder.filesets.download.client import Line, Pace
from builder.filesets.download.download import FileDownloader
from builder.http import wire
from builder.http.addresses import Addresses
from builder.http.politeness import Hosts
from builder.http.robots import Robots
from builder.http.settings import http_settings
from functions.config.configuration import Configuration

_FORGIVES = 600.0
"""Seconds behind which a host that was not to be reached is tried again: a worker goes on for days.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """The ways to platforms: what is known of their hosts is shared by all threads.

    `scratch` is a folder for what need not last. `seconds` is how long one file may take.
    """

    line: Line
    scratch: Path
    tries: int
    seconds: float
    obey: bool
    pace: Pace = field(default_factory=Pace)
    robots: Robots = field(default_factory=Robots)

    def api(self, until: float = math.inf) -> PlatformApi:
        """Return what asks platforms for documents, and nothing after `until` (the clock's)."""
        return PlatformApi(
            line=self.line, tries=self.tries, until=until, obey=self.obey, pace=self.pace,
            robots=self.robots,
        )  # fmt: skip

    def downloader(self, until: float = math.inf) -> FileDownloader:
        """Return what fetches files, and nothing after `until` (the clock's)."""
        return FileDownloader(
            line=self.line, tries=self.tries, seconds=self.seconds, until=until, pace=self.pace
        )


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
    """Return the ways that the configuration allows.

    `stop` ends all that goes on. `wall` counts seconds since 1970, `clock` those since whenever.
    """
    http = http_settings(settings, "fileset")
    manners = replace(http.manners(), forgives=_FORGIVES)
    line = Line(
        agent=agent, guard=guard, hosts=Hosts(manners, stop, clock), stop=stop, wall=wall,
        tokens=settings["fileset.tokens"], tls=tls or wire.context(), clock=clock,
    )  # fmt: skip
    return Ways(
        line=line, scratch=scratch, tries=http.tries, seconds=http.total_seconds,
        obey=http.robots,
        pace=Pace(http.connect_seconds, http.first_byte_seconds, http.least_rate),
    )  # fmt: skip

"""Wiring: creates the parts of the fileset ingest from the configuration."""

import math
import threading
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

from builder.filesets.detect.detect import Detected, detect
from builder.filesets.ingest import Ingest
from builder.filesets.item import IngestRequest
from builder.filesets.protocols import Api
from builder.filesets.resources import Ways, means
from builder.filesets.strategies.table import Materials, strategy
from builder.http.addresses import Guard, networks
from builder.http.client import check_contact, user_agent
from builder.http.settings import http_settings
from functions.config.configuration import Configuration


def ways(
    settings: Configuration, stop: threading.Event, scratch: Path, clock: Callable[[], datetime]
) -> Ways:
    """Create the access to platforms as configured; `stop` ends all requests.

    Raises ConfigurationError without a contact, because hosts must be able to see who sends
    requests.
    """
    check_contact(settings)
    http = http_settings(settings, "fileset")
    guard = Guard(frozenset(http.ports), networks(http.allow_networks))
    return means(settings, user_agent(settings), guard, stop, scratch, lambda: clock().timestamp())


def ingest(
    materials: Materials, stop: threading.Event, seconds: float, until: float = math.inf
) -> Ingest:
    """Create the ingest; each request takes at most `seconds`, and `stop` ends all.

    No request continues after `until`, on time.monotonic, whenever it began.
    """
    settings = materials.settings

    def detect_platform(request: IngestRequest, api: Api) -> Detected:
        return detect(request, api, materials.clock, settings["fileset.block"])

    return Ingest(
        detect=detect_platform,
        api=materials.ways.api,
        strategy=partial(strategy, materials),
        settings=settings,
        clock=materials.clock,
        seconds=seconds,
        stop=stop,
        until=until,
    )

"""Wiring: creates the parts of the fileset ingest from the configuration.

The parts are the access to platforms over HTTP for a whole run, the strategies by name, and the
ingest itself. A dataset is held so that two processes fetch it once.
"""

import hashlib
import math
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from builder.http import connections
from builder.http.addresses import AddressPolicy, PublicAddresses, networks
from builder.http.client import HttpClient, check_contact, user_agent
from builder.http.limits import Limits
from builder.http.politeness import HostQueue
from builder.http.settings import HttpSettings, http_settings
from builder.runtime import Advance, Progress
from builder.sources.datasets.download.api import PlatformApi
from builder.sources.datasets.download.download import FileDownloader
from builder.sources.datasets.ingest import Ingest
from builder.sources.datasets.item import ArchiveStrategyResult, FilesetPlatformItem
from builder.sources.datasets.manifest_file import wrap_store_errors
from builder.sources.datasets.platforms.detect import detect
from builder.sources.datasets.protocols import FilesetError
from builder.sources.datasets.strategies import record
from builder.sources.datasets.strategies.archiveorg import ArchiveClient, Items
from builder.sources.datasets.strategies.bundle import Bundled
from builder.sources.datasets.strategies.choice import STRATEGIES
from builder.sources.datasets.strategies.keys import LEASES
from builder.sources.datasets.strategies.s3 import ObjectStrategy
from builder.sources.datasets.strategies.strategy import ArchivingStrategy
from builder.sources.datasets.strategies.web import Captured
from builder.store.lease import Leases
from functions.config.configuration import Configuration
from functions.snapshot.store import Writer

_FORGIVES = 600.0
"""Seconds before an unreachable host is tried again; a worker runs for days."""


def authorize(tokens: Mapping[str, str], url: str) -> dict[str, str]:
    """Return the authorization header of the token for a URL's host and port; only for https.

    A token with a space contains its own scheme.
    """
    parts = urlsplit(url)
    token = tokens.get(parts.netloc) if parts.scheme == "https" else None
    return {} if token is None else {"Authorization": token if " " in token else f"Bearer {token}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """Access to platforms as configured; all threads share the state of hosts."""

    client: HttpClient
    tokens: Mapping[str, str]
    http: HttpSettings
    limits: Limits

    def api(self, until: float = math.inf) -> PlatformApi:
        """Return a client for documents that works until `until`, on the client's clock."""
        return PlatformApi(
            client=self.client,
            tries=self.http.tries,
            until=until,
            obey=self.http.robots,
            limits=self.limits,
            tokens=self.tokens,
        )

    def downloader(
        self, until: float = math.inf, advance: Advance = lambda count: None
    ) -> FileDownloader:
        """Return a downloader that works until `until`, on the client's clock."""
        return FileDownloader(
            client=self.client,
            tries=self.http.tries,
            seconds=self.http.total_seconds,
            until=until,
            limits=self.limits,
            advance=advance,
        )


def make_ways(
    settings: Configuration,
    agent: str,
    guard: AddressPolicy,
    stop: threading.Event,
    wall: Callable[[], float] = time.time,
    *,
    clock: Callable[[], float] = time.monotonic,
    tls: ssl.SSLContext | None = None,
) -> Ways:
    """Create the access to platforms that the configuration allows.

    `stop` ends all requests. `wall` counts seconds since 1970, `clock` from any moment.
    """
    http = http_settings(settings, "fileset")
    tokens: Mapping[str, str] = settings["fileset.tokens"]
    client = HttpClient(
        agent=agent,
        addresses=guard,
        hosts=HostQueue(replace(http.policy(), forgives=_FORGIVES), stop, clock),
        stop=stop,
        wall=wall,
        credentials=partial(authorize, tokens),
        tls=tls or connections.tls_context(),
        clock=clock,
    )
    return Ways(client=client, tokens=tokens, http=http, limits=http.limits())


@dataclass(frozen=True, slots=True, kw_only=True)
class Materials:
    """Dependencies of strategies.

    `scratch` is a folder on this machine for temporary files. `environment` may have the keys for
    archive.org (IA_ACCESS_KEY, IA_SECRET_KEY). With `sleep`, which waits for seconds, two processes
    fetch a dataset once. `watch` opens the progress of a dataset, by the bytes of its files.
    """

    store: Writer
    settings: Configuration
    ways: Ways
    environment: Mapping[str, str]
    clock: Callable[[], datetime]
    scratch: Path
    sleep: Callable[[float], None] | None = None
    watch: Progress = lambda declared: nullcontext(lambda count: None)

    def wall(self) -> float:
        """Return the seconds since 1970."""
        return self.clock().timestamp()


def make_strategy(
    materials: Materials,
    name: str,
    until: float,
    go_on: Callable[[], None],
    advance: Advance = lambda count: None,
) -> ArchivingStrategy:
    """Create a strategy by name; it downloads nothing after `until` (the clock of `ways`).

    `go_on` is called now and then, and raises FilesetError to end a request. Raises FilesetError
    (not-implemented) for a name that is none.
    """
    if name not in STRATEGIES:
        raise FilesetError("not-implemented", f"there is no strategy {name}")
    ways, scratch = materials.ways, materials.scratch
    common = (materials.store, ways.downloader(until, advance), materials.settings)
    if name.startswith("web-"):
        return Captured(name, *common, scratch, materials.wall, go_on=go_on)
    if name.startswith("archiveorg-"):
        client = ArchiveClient.of(materials.environment, ways.api(until), ways.http.total_seconds)
        return Items(name, *common, client, scratch, go_on=go_on)
    if name.endswith("-bundled"):
        return Bundled(*common, go_on=go_on)
    return ObjectStrategy(name, *common, go_on=go_on)


def archive(
    materials: Materials,
    item: FilesetPlatformItem,
    name: str,
    until: float,
    go_on: Callable[[], None],
) -> ArchiveStrategyResult:
    """Archive an item by the strategy `name`, or by the one that has archived other files of it.

    The other parameters are as for `make_strategy`. With `sleep` of the materials, a lease in the
    store holds the dataset meanwhile. Raises FilesetError.
    """
    strategy = make_strategy(materials, name, until, go_on)
    if (existing := strategy.check_existing(item)) is not None:
        return existing
    store = materials.store
    with wrap_store_errors():
        base = record.locate(store, item)
        name = record.begun_by(store, base) or name
    with materials.watch(sum(file.size or 0 for file in item.files)) as advance:
        strategy = make_strategy(materials, name, until, go_on, advance)
        if materials.sleep is None:
            return strategy.process(item)
        leases = Leases(store, materials.wall, materials.sleep)
        digest = hashlib.sha256(base.encode()).hexdigest()[:32]
        with wrap_store_errors(), leases.hold(f"{LEASES}{digest}.json", go_on):
            # Another process may have archived it since it was looked for.
            return strategy.check_existing(item) or strategy.process(item)


def ways(settings: Configuration, stop: threading.Event, clock: Callable[[], datetime]) -> Ways:
    """Create the access to platforms as configured; `stop` ends all requests.

    Raises ConfigurationError without a contact, because hosts must be able to see who sends
    requests.
    """
    check_contact(settings)
    http = http_settings(settings, "fileset")
    guard = PublicAddresses(frozenset(http.ports), networks(http.allow_networks))
    return make_ways(settings, user_agent(settings), guard, stop, lambda: clock().timestamp())


def ingest(
    materials: Materials, stop: threading.Event, seconds: float, until: float = math.inf
) -> Ingest:
    """Create the ingest; each request takes at most `seconds`, and `stop` ends all.

    No request continues after `until`, on time.monotonic, whenever it began.
    """
    settings = materials.settings
    return Ingest(
        detect=partial(detect, clock=materials.clock, block=settings["fileset.block"]),
        api=materials.ways.api,
        archive=partial(archive, materials),
        settings=settings,
        clock=materials.clock,
        seconds=seconds,
        stop=stop,
        until=until,
    )

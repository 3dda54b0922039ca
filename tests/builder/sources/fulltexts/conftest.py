"""Stores with templates that refer to files of a web server of this machine."""

import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from builder.http import url
from builder.http.addresses import PublicAddresses, networks
from builder.http.client import HttpClient
from builder.http.limits import Limits
from builder.http.politeness import HostPolicy, HostQueue
from builder.obi import log, replay
from builder.obi.content import TEMPLATE, ExchangeRow, Incidence, Refipo, Row
from builder.obi.run import ObiRun, ObiRuntime, Purpose, claim, history
from builder.sources.fulltexts.choice import DAY, FileChoice
from builder.sources.fulltexts.fetch_file import FileFetcher
from builder.sources.fulltexts.gather_report import GatherReport
from builder.sources.fulltexts.hold import hold_store
from builder.sources.fulltexts.session import GatherJob, GatherSession
from builder.store.folder import FolderStore
from builder.store.s3 import S3Store
from functions.store import engine
from tests.bucket import fresh
from tests.builder.conftest import Clock
from tests.builder.http import site as web
from tests.builder.http.site import Site
from tests.builder.obi.logs import describe, put

Store = FolderStore | S3Store
HANDLE = "RePEc:aaa:wpaper:1"


@dataclass
class World:
    """A store, a site and a clock, which moves only when it is told to."""

    store: Store
    site: Site
    folder: Path
    clock: Clock = field(default_factory=lambda: Clock(datetime(2026, 1, 1, tzinfo=UTC)))
    said: list[str] = field(default_factory=list)
    ports: set[int] = field(default_factory=set)
    policy: HostPolicy = field(default_factory=HostPolicy)
    order: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=lambda: Limits(10, 10, 30, 10, 10_000_000))
    wanted: dict[str, list[Refipo]] = field(default_factory=dict)

    @property
    def runtime(self) -> ObiRuntime:
        return ObiRuntime(self.clock, self.clock.sleep, self.said.append)

    def refer(self, urls: Sequence[str], format_: str | None = None, handle: str = HANDLE) -> int:
        """Ingest a template that refers to these URLs, and to no others."""
        run = claim(self.store, Purpose("ingest", "test", f"{self.clock.now}"), self.runtime)
        run.turn()
        done = run.commit(self.referring(run, urls, format_, handle))
        self.clock.sleep(1)
        return done.tist

    def remove(self, handle: str) -> None:
        """Record the loss of a template."""
        run = claim(self.store, Purpose("ingest", "test", f"{self.clock.now}"), self.runtime)
        run.turn()
        ((where,),) = self.ask(f"SELECT key FROM obi WHERE id = '{handle}'")
        run.commit([Incidence(id=handle, kind=TEMPLATE, what="deletion", key=where)])
        self.clock.sleep(1)

    def referring(
        self, run: ObiRun, urls: Sequence[str], format_: str | None = None, handle: str = HANDLE
    ) -> list[Row]:
        """Store a template that refers to these URLs, and return the rows that tell of it."""
        data = f"Template-Type: ReDIF-Paper 1.0\n{urls}\nHandle: {handle}\n".encode()
        where = put(run, handle, data)
        digest = hashlib.sha256(data).hexdigest()
        rows: list[Row] = [
            describe(where, data, handle, text_sha256=digest),
            Incidence(id=handle, kind=TEMPLATE, what="appearance", key=where),
        ]
        for number, written in enumerate(urls):
            found = url.normalise(written).id
            rows.append(
                Refipo(handle=handle, position=number, url=written, id=found, format=format_)
            )
        return rows

    def session(self, again: bool = False, **more: Any) -> GatherSession:
        given = {
            "limit": None,
            "seconds": 60,
            "files": 100,
            "threads": 8,
            "megabytes": 1024,
            **self.order,
            **more,
        }
        choice = given.pop("choice", {})
        stop = threading.Event()
        ports = frozenset({self.site.port, *self.ports})
        self._hold = hold_store(self.folder / "work", self.store.address)
        hold = self._hold.__enter__()
        client = HttpClient(
            agent="Sheaf/test",
            addresses=PublicAddresses(ports, networks(["127.0.0.0/8"])),
            hosts=HostQueue(self.policy, stop),
            stop=stop,
        )
        fetcher = FileFetcher(client=client, limits=self.limits, scratch=hold.journal.files)
        order = GatherJob(FileChoice(30 * DAY, DAY, again=again, **choice), "test", **given)
        return GatherSession(self.store, hold, self.runtime, fetcher, order)

    def end(self) -> None:
        """Let go of the hold that a session has."""
        self._hold.__exit__(None, None, None)

    def gather(self, again: bool = False, **more: Any) -> GatherReport:
        session = self.session(again, **more)
        try:
            session.due()
            account = session.gather()
        finally:
            self.end()
        self.clock.sleep(1)
        if session.interrupted:
            raise session.interrupted
        return account

    def rows(self, run: int = -1) -> list[Row]:
        """Return the rows of a run, without those that tell of headers."""
        found = log.read_rows(self.store, history(self.store)[run])
        return [row for row in found if not isinstance(row, ExchangeRow)]

    def ask(self, sql: str) -> list[Any]:
        """Ask the tables that the logs come to."""
        (self.folder / "fold").mkdir(exist_ok=True)
        with closing(engine.connect()) as connection:
            replay.fold(connection, self.store, history(self.store), self.folder / "fold")
            return connection.execute(sql).fetchall()

    def days(self, many: float) -> None:
        self.clock.sleep(many * DAY)


@pytest.fixture
def site() -> Iterator[Site]:
    with web.serving() as site:
        yield site


@pytest.fixture
def world(site: Site, tmp_path: Path) -> World:
    return World(FolderStore(tmp_path / "store"), site, tmp_path)


@pytest.fixture(params=["folder", "moto", "weed"])
def anywhere(request: pytest.FixtureRequest, site: Site, tmp_path: Path) -> Iterator[World]:
    """The same with each kind of store."""
    if request.param == "folder":
        yield World(FolderStore(tmp_path / "store"), site, tmp_path)
        return
    with closing(fresh(request.getfixturevalue(f"{request.param}_server"))) as bucket:
        yield World(bucket, site, tmp_path)


def until(true: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)

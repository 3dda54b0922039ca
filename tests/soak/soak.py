"""One soak test of one store: actors work for some time, then all promises are checked."""

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.bucket import free_ports
from tests.soak.actors import Actor, Expirer, Habit, Server, SoakHarvester, SoakWriter
from tests.soak.faults import FaultyRequests
from tests.soak.plan import Fault, generator
from tests.soak.promises import (
    Copy,
    check_copies,
    check_items,
    check_lists,
    check_store,
    check_walker,
    read_copy,
)
from tests.soak.report import Report
from tests.soak.shell import Ended, Shell, Site
from tests.soak.stores import Place
from tests.soak.walker import Walker, formats

_FORMATS = ("oai_dc", "capture", "redif", "amf", "mods")
_END = 1200.0
"""Seconds for which actors may take to end what they do."""
_START = 600.0
"""Seconds within which the first publish must be served."""
_POINTER_SECONDS = 3.0
"""Seconds after which a server has seen the pointer anew: serve.pointer_seconds and one more."""


def soak(place: Place, folder: Path, seconds: float, seed: int) -> Report:
    """Let the actors work for that long over an empty store, and check all promises."""
    report, began = Report(), time.monotonic()
    site = Site(place.address, place.environment, folder, report)
    faults = FaultyRequests(generator(seed, "s3"), report)
    if place.proxy is not None:
        place.proxy.fault = faults
    server = Server(site, seed, free_ports(1)[0])
    writers = [SoakWriter(site, f"writer{n}", seed) for n in range(2)]
    harvesters = [
        SoakHarvester(site, "harvester0", seed, server.url, Habit(("oai_dc",), 0)),
        SoakHarvester(site, "harvester1", seed, server.url, Habit(_FORMATS)),
    ]
    walker = Walker(site, "walker", seed, server.url, "oai_dc")
    try:
        _work(site, server, [*writers, Expirer(site, "expiry", seed), *harvesters, walker], seconds)
        faults.ended = True
        _check(site, server, writers, harvesters, walker)
    except AssertionError as error:
        report.fail(str(error))
    finally:
        site.stop.set()
        server.end()
    report.seconds = time.monotonic() - began
    return report


def _work(site: Site, server: Server, actors: Sequence[Actor], seconds: float) -> None:
    """Let all work until the time is over and each has ended what it was doing."""
    writers = [actor for actor in actors if isinstance(actor, SoakWriter)]
    for actor in (server, *writers):
        actor.start()
    assert server.ready.wait(_START), "nothing was published and served in time"
    end = time.monotonic() + seconds
    for actor in actors:
        if actor not in writers:
            actor.start()
    while time.monotonic() < end and any(actor.is_alive() for actor in actors):
        time.sleep(0.2)
    # The server goes on while harvesters end what they do, so it is stopped last.
    site.stop.set()
    late = time.monotonic() + _END
    for actor in actors:
        actor.join(max(0.0, late - time.monotonic()))
        assert not actor.is_alive(), f"{actor.name} did not end"
    server.join(max(0.0, late - time.monotonic()))


def _check(
    site: Site,
    server: Server,
    writers: Sequence[SoakWriter],
    harvesters: Sequence[SoakHarvester],
    walker: Walker,
) -> None:
    """Publish what is left, harvest for the last time without faults, and compare everything."""
    report, shell = site.report, Shell(site, "end")
    published = shell.finish(["publish", "--json"], Fault())
    _await_effect(published)
    if server.process is None or server.process.poll() is not None:
        server.begin()
    server.shell.set_clock(0)
    for harvester in harvesters:
        harvester.shell.set_clock(0)
        harvester.harvest(Fault())
    walker.take()
    prefixes = formats(server.url)
    anew = SoakHarvester(site, "anew", 0, server.url, Habit(tuple(prefixes)))
    anew.harvest(Fault())
    fresh: dict[str, Copy] = {name: {} for name in prefixes}
    fresh.update(read_copy(anew.copy, report))
    expected = {name: item for writer in writers for name, item in writer.expected.items()}
    check_items(expected, fresh["oai_dc"], report)
    for harvester in harvesters:
        check_copies(harvester, fresh, report)
    check_walker(walker, fresh["oai_dc"], report)
    check_lists(server.url, prefixes, fresh, report)
    check_store(shell, report)
    report.records = len(fresh["oai_dc"])


def _await_effect(published: Ended) -> None:
    """Wait until the last publish is in effect and seen by every worker of the server."""
    effective = json.loads(published.out).get("effective")
    if effective:
        left = (datetime.fromisoformat(effective) - datetime.now(UTC)).total_seconds()
        time.sleep(max(0.0, left) + _POINTER_SECONDS)

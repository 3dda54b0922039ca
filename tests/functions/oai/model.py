"""A model of the whole: readers with clocks of their own, a publisher, and a harvester.

Everything that can happen between two requests of a harvest may: time goes by, something is
published, snapshots are retired; and between it and the readers there may be a cache. In the end
the harvester must have the repository's state.
"""

import math
import random
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from functions.snapshot import instant
from tests.functions.oai.client import START, Client, Clock, Page, SharedCache
from tests.functions.oai.validity import valid
from tests.functions.reading.memory import MemoryRepository, capture

SETS = ("mime:text:html", "mime:text:plain", "mime:image:png")
ALLOWANCE = 6
_MOST = 60
"""Pages of a list after which nothing happens any more: it might grow as fast as it is read."""


class Run:
    """One run by a seed. `skew` bounds how far any clock is off, `allowance` is what is served.

    `remade` tells whether the format is now and then made otherwise, too.
    """

    def __init__(
        self,
        seed: int,
        allowance: float = ALLOWANCE,
        skew: float = ALLOWANCE / 2 - 0.1,
        cached: bool = False,
        remade: bool = False,
    ):
        self.remade = remade
        self.random = random.Random(seed)
        pick = self.random
        self.now = START
        factor = pick.choice([0.0, 0.5, 1.0, 2.0])
        self.repository = MemoryRepository(estimate=lambda size: int(size * factor))
        self.publisher = pick.uniform(-skew, skew)
        self.set = pick.choice([None, None, "mime", "mime:text", SETS[2]])
        self.verb = pick.choice(["ListRecords", "ListIdentifiers"])
        size = pick.randint(1, 6)
        self.readers = [
            Client(
                self.repository,
                Clock(START, pick.uniform(-skew, skew)),
                pages_records=size,
                pages_identifiers=size,
                serve_pointer_seconds=pick.choice([0, 2, 10]),
                serve_clock_allowance=allowance,
            )
            for _ in range(3)
        ]
        self.cache = SharedCache() if cached else None
        self.held: dict[str, tuple[str, bool]] = {}
        self.dates: list[str] = []
        self.publish(12)
        self.wait(3 * ALLOWANCE)

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        for reader in self.readers:
            reader.clock.now = self.now

    def publish(self, most: int) -> None:
        """Publish as a publisher does that goes by its own clock: a little ahead of it."""
        pick = self.random
        own = self.now + timedelta(seconds=self.publisher)
        later = (own + timedelta(seconds=pick.uniform(0.1, 2))).timestamp()
        effective = datetime.fromtimestamp(math.ceil(later), UTC)
        newest = self.repository.current.newest()
        if newest is not None and newest.effective >= effective:
            effective = newest.effective + timedelta(seconds=1)
        if self.remade and newest is not None and pick.random() < 0.4:
            self.repository.remake("oai_dc", effective, own)
            return
        changes = {}
        for n in pick.sample(range(20), pick.randint(1, most)):
            page = capture(f"http://{n}/{pick.random()}", pick.choice(SETS))
            changes[f"oai:example.org:{n:02}"] = None if pick.random() < 0.3 else page
        self.repository.publish(changes, effective, own)

    def meanwhile(self) -> None:
        pick = self.random
        for _ in range(pick.randint(0, 2)):
            event = pick.random()
            if event < 0.5:
                self.wait(pick.choice([0.0, 0.3, 1.0, 3.0]))
            elif event < 0.85:
                self.publish(4)
            else:
                named = {entry.snapshot for entry in self.repository.current.entries}
                older = self.repository.snapshots.keys() - named
                self.repository.retire(*(n for n in older if pick.random() < 0.8))

    def harvest(self, quiet: bool = False) -> None:
        """Harvest once from any date that was told before; a first time from the beginning."""
        arguments = {"metadataPrefix": "oai_dc"}
        if self.dates:
            arguments["from"] = self.random.choice(self.dates)
        if self.set:
            arguments["set"] = self.set
        told: list[str] = []
        page = self.ask(arguments)
        while True:
            told.append(page.response_date)
            # A publish that only deletes what never was makes a snapshot without sets.
            assert set(page.codes) <= {"noRecordsMatch", "noSetHierarchy"}, page.codes
            dates = page.text("datestamp")
            for (name, deleted), date in zip(page.headers, dates, strict=True):
                self.held[name] = (date, deleted)
            if not page.next:
                break
            if not quiet and len(told) < _MOST:
                self.others(page.next)
                self.meanwhile()
            page = self.ask({"resumptionToken": page.next})
        # The latest are the dangerous ones: what they miss is asked for by nobody again.
        self.dates = (self.dates + told)[-6:]

    def others(self, token: str) -> None:
        """Let somebody else harvest the same list to its end, so that the cache has its pages.

        Of what it keeps a cache may forget anything at any time.
        """
        if self.cache is None or self.random.random() < 0.5:
            return
        while token:
            token = self.ask({"resumptionToken": token}).next
        for query in [*self.cache.stored]:
            if self.random.random() < 0.4:
                del self.cache.stored[query]
        if self.random.random() < 0.5:  # it was a good while ago
            self.publish(4)
            self.wait(3 * ALLOWANCE)

    def ask(self, arguments: dict[str, str]) -> Page:
        reader = self.random.choice(self.readers)
        pairs = [("verb", self.verb), *arguments.items()]
        if self.cache is None:
            return reader.ask(pairs)
        return Page(valid(self.cache.get(reader, urlencode(pairs), self.now)))

    def right(self) -> bool:
        """Harvest at random, then once in peace, and tell whether everything is as it should be."""
        for _ in range(self.random.randint(1, 6)):
            self.harvest()
            for _ in range(self.random.randint(0, 3)):
                self.meanwhile()
        self.wait(10 * ALLOWANCE)
        self.harvest(quiet=True)
        return self.held == self.expected()

    def wrong(self) -> bool:
        """Tell whether something was lost, or a token refused that was given."""
        try:
            return not self.right()
        except AssertionError:
            return True

    def expected(self) -> dict[str, tuple[str, bool]]:
        newest = self.repository.snapshots[max(self.repository.snapshots)]
        listed = newest.records if self.set is None else newest.members.get(self.set, ())
        since = newest.manifest.since("oai_dc")
        return {
            r.identifier: (instant.to_text(max(r.datestamp, since or r.datestamp)), r.deleted)
            for r in listed
        }

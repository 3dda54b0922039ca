"""The demo's crop: what its harvests bring in, by the very code of `sheaf harvest`."""

import threading
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

from builder.harvest import folder
from builder.harvest.client import Exchange, Means
from builder.harvest.errors import HarvestError
from builder.harvest.run import Order, Session
from builder.harvest.window import Asked
from builder.http.limits import Limits
from builder.http.politeness import Hosts, Manners
from builder.runtime import Clock

_PREFIX = "oai_dc"
_LIMITS = Limits(connect=5, first_byte=60, total=600, rate=1, bytes=64 << 20)


@dataclass(frozen=True, slots=True)
class Crop:
    """What a run brought in: items, the deleted ones among them, answers, and how long it took.

    `since` is what it asked from, None for everything.
    """

    records: int
    deleted: int
    pages: int
    seconds: float
    since: str | None


class Field:
    """A repository that is harvested into a folder, time and again."""

    def __init__(self, base_url: str, home: Path, clock: Clock) -> None:
        """`base_url` is that of a server on this machine."""
        self.base_url = base_url
        self.home = home
        self._clock = clock
        self._stop = threading.Event()

    def harvest(self) -> Crop:
        """Harvest what is new since the last time. Raises HarvestError where anything is missing.

        One machine has one clock, so that nothing has to be asked for twice.
        """
        order = Order(self.base_url, _PREFIX, None)
        began = time.monotonic()
        with closing(self._exchange()) as exchange:
            session = Session(
                order, self.home, Asked(None, None, False), exchange.ask, self._clock,
                time.monotonic, _unheard, lambda many, size: None, overlap=0.0,
            )  # fmt: skip
            outcome = session.carry_out()
        if not outcome.is_whole:
            raise HarvestError(f"{self.base_url}: {outcome.error or outcome.status}")
        state = folder.read(outcome.folder)
        since = state.runs[-1].since if state else None
        counts, seconds = outcome.counts, time.monotonic() - began
        return Crop(counts.distinct, counts.deleted, counts.pages, seconds, since)

    def record(self, identifier: str, prefix: str) -> ElementTree.Element:
        """Return the record of an item in the format `prefix`. Raises HarvestError."""
        asked: Mapping[str, str] = {
            "verb": "GetRecord", "metadataPrefix": prefix, "identifier": identifier,
        }  # fmt: skip
        with closing(self._exchange()) as exchange:
            page = exchange.ask(asked)
        for entry in page.entries:
            if entry.identifier == identifier:
                return ElementTree.fromstring(entry.text)
        raise HarvestError(f"{self.base_url} answered no record of {identifier}")

    def _exchange(self) -> Exchange:
        agent = f"Sheaf/{metadata.version('sheaf')} (demonstration)"
        hosts = Hosts(Manners(0.0, 1, rest=0.0), self._stop)
        return Exchange(self.base_url, Means(agent, _LIMITS, hosts, self._stop, _unheard))


def _unheard(text: str) -> None:
    """Tell nobody: what goes wrong is raised."""

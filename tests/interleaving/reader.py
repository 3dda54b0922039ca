"""Readers: applications with clocks and kept pointers of their own, and what may be their truth."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from functions.reading.as_of import STALE, AsOf, PointerReading
from functions.reading.duck_repository import DuckRepository
from functions.snapshot import instant
from functions.snapshot.errors import StoreUnavailable
from functions.snapshot.pointer import Pointer
from functions.snapshot.store import Reader as StoreReader
from tests.functions.oai.client import Client, Page, content
from tests.functions.oai.validity import valid
from tests.interleaving.chronicle import Chronicle, Row
from tests.interleaving.held import held, records
from tests.interleaving.hours import ALLOWANCE, Hours
from tests.protocol.recorder import Recording

_SECOND = timedelta(seconds=1)


class Slow(DuckRepository):
    """A repository whose store may take its time to give the pointer."""

    meanwhile: Callable[[], None] = staticmethod(lambda: None)
    look: Callable[[], None] = staticmethod(lambda: None)
    """Is called when the pointer was just read."""

    def pointer(self) -> Pointer:
        self.meanwhile()
        pointer = super().pointer()
        self.look()
        self.meanwhile()
        return pointer


def _sets(rows: Iterable[Row]) -> list[str]:
    """Return the sets of a snapshot's rows: first those with a live record."""
    live: dict[str, bool] = {}
    for row in rows:
        for spec in row.item.listings():
            live[spec] = live.get(spec, False) or not row.item.shown(spec).deleted
    return sorted(live, key=lambda spec: (not live[spec], spec))


@dataclass(frozen=True)
class Answered:
    """An answer: its bytes, the page, and the snapshots that may have been in effect as of it.

    `anew` tells that the pointer was read for it, not kept.
    """

    data: bytes
    page: Page
    current: frozenset[int]
    anew: bool


class Reader:
    """One application, `skew` seconds ahead, that keeps the pointer for `keep` seconds.

    It is number `number` of the readers of a recording.
    """

    def __init__(
        self,
        store: StoreReader,
        hours: Hours,
        skew: float,
        keep: int,
        page: int,
        recording: Recording,
        number: int,
    ) -> None:
        self._skew = timedelta(seconds=skew)
        self._clock = hours.clock(skew)
        self._keep = timedelta(seconds=keep)
        self._repository = Slow(store)
        self._repository.look = lambda: recording.look(number, self._clock())
        self._recording, self._number = recording, number
        self._failed = False
        self._client = Client(
            self._repository,
            self._clock,  # type: ignore[arg-type]
            pages_records=page,
            pages_identifiers=page,
            serve_pointer_seconds=keep,
            serve_clock_allowance=ALLOWANCE,
        )
        self._record(self._client.application._present)

    def close(self) -> None:
        self._repository.close()

    def _record(self, present: AsOf) -> None:
        """Record from now on what the application reads."""
        read = present.reading

        def reading(*, fresh: bool = False) -> PointerReading:
            found = read(fresh=fresh)
            keep = timedelta(0) if fresh else STALE if self._failed else self._keep
            self._recording.reading(self._number, self._clock(), found, keep)
            return found

        present.reading = reading  # type: ignore[method-assign]
        # A change may be made while the pointer is read, however long a loaded machine takes.
        present.patience = 600.0

    def ask(
        self,
        chronicle: Chronicle,
        arguments: dict[str, str],
        meanwhile: Callable[[], None] = lambda: None,
    ) -> Answered | None:
        """Ask; None where nothing is published yet, or the store fails. Nothing else may go wrong.

        `meanwhile` is called whenever the pointer is being read; it may raise StoreUnavailable.
        """
        self._failed = False

        def watched() -> None:
            try:
                meanwhile()
            except StoreUnavailable:
                self._failed = True
                raise

        began = self._clock()
        self._repository.meanwhile = watched
        reply = self._client.raw(urlencode(list(arguments.items())))
        ended = self._clock()
        oldest = began - (STALE if self._failed else self._keep)
        if reply["statusCode"] == 503 and self._failed:
            return None
        if reply["statusCode"] == 503:
            assert "Nothing is published" in reply["body"], reply
            assert 0 in self._current(chronicle, oldest, ended)
            return None
        assert reply["statusCode"] == 200, reply
        data = content(reply)
        page = Page(valid(data))
        told = instant.from_text(page.response_date) + timedelta(seconds=ALLOWANCE)
        assert oldest - _SECOND < told <= ended
        for text in chronicle.purged:
            assert text.encode() not in data, f"{text} was purged"
        for stamp in page.text("datestamp"):
            # A token may name a snapshot that is not in effect yet by this reader's clock.
            assert instant.from_text(stamp) <= told + _SECOND + timedelta(seconds=ALLOWANCE)
        current = self._current(chronicle, told, told + _SECOND)
        return Answered(data, page, current, told > began - _SECOND)

    def get(self, chronicle: Chronicle, name: str) -> None:
        """Ask for a record, and check that it is what some snapshot in effect has of it."""
        arguments = {"verb": "GetRecord", "identifier": name, "metadataPrefix": "oai_dc"}
        answered = self.ask(chronicle, arguments)
        if answered is not None:
            expected = []
            for number in answered.current:
                rows = [r for r in chronicle.snapshots[number].rows if r.name == name]
                expected.append([(r.name, held(r, "ListRecords")) for r in rows])
            assert records(answered.page) in expected
            assert answered.page.codes == ([] if records(answered.page) else ["idDoesNotExist"])

    def sets(self, chronicle: Chronicle) -> None:
        """Ask for the sets, and check that they are those of some snapshot in effect."""
        answered = self.ask(chronicle, {"verb": "ListSets"})
        if answered is not None:
            expected = [_sets(chronicle.snapshots[n].rows) for n in answered.current if n]
            if 0 in answered.current and answered.page.codes == ["noSetHierarchy"]:
                return
            assert answered.page.text("setSpec") in expected

    def _current(self, chronicle: Chronicle, began: datetime, ended: datetime) -> frozenset[int]:
        """Return what may be in effect at some instant of a span, by this clock; 0 is nothing.

        A pointer that came late is followed by those who read it after it came; who reads it at
        the very instant may be before or behind it.
        """
        found = {0}
        for number in sorted(chronicle.snapshots):
            snapshot = chronicle.snapshots[number]
            if snapshot.effective <= began and snapshot.written + self._skew < began:
                found = {number}
            elif snapshot.effective <= ended:
                found.add(number)
        return frozenset(found)

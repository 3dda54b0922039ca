"""Writes the records of a page, or of its headers, to a sink, and counts lost ones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from builder.harvest.errors import Unanswered
from builder.harvest.page import ListPage, PageEntry
from builder.harvest.row import HarvestedRow
from builder.harvest.seen import Sight
from builder.harvest.state import HarvestState, RunState
from builder.harvest.window import is_before, is_outside, moment

NO_STAMP = "its datestamp is not valid in OAI-PMH"
Ask = Callable[[Mapping[str, str]], ListPage]
"""Sends a request and returns the response; raises Unanswered, and Deferred to stop everything."""


class RecordSink(Protocol):
    """Store of records; builder.harvest.folder.HarvestFolder implements it."""

    state: HarvestState

    def add(self, row: HarvestedRow) -> Sight:
        """Store a row, unless it was seen before."""
        ...

    def has(self, identifier: str, stamp: str) -> bool:
        """Return whether this is the latest version of an item."""
        ...


@dataclass(slots=True)
class RecordWriter:
    """Writer of a run's records; `date` is the responseDate of their page."""

    ask: Ask
    kept: RecordSink
    going: RunState
    date: str = ""

    def take(self, entry: PageEntry) -> None:
        """Store a record, or request the record of a header."""
        going = self.going
        if moment(entry.datestamp) is not None:
            if going.last and is_before(entry.datestamp, going.last):
                going.ordered = False
            going.rises += going.last not in ("", entry.datestamp)
            going.last = entry.datestamp
        if going.verb == "ListRecords":
            if self._keep(entry):
                self._place(entry)
        elif not self._is_had(entry):
            going.bad = max(going.bad, entry.datestamp)
        if not going.high or is_before(going.high, going.last):
            going.high = going.last

    def _place(self, entry: PageEntry) -> None:
        """Count a listed record whose datestamp lies outside the request."""
        going = self.going
        if moment(entry.datestamp) is None:
            return
        if moment(going.dated) is not None and is_before(going.dated, entry.datestamp):
            going.counts.later += 1
        elif (going.begin or going.until) and is_outside(entry.datestamp, going):
            going.counts.outside += 1

    def _is_had(self, entry: PageEntry) -> bool:
        """Return whether the record of a header is stored, and request it if not."""
        known = self.kept.has(entry.identifier, entry.datestamp)
        return known or self.fetch(entry.identifier, "")

    def _keep(self, entry: PageEntry) -> bool:
        """Store a record. Return whether this version is new in the run."""
        going, counts = self.going, self.going.counts
        if not entry.identifier:
            going.lose("", "it has no identifier")
            return False
        fault = entry.fault
        if moment(entry.datestamp) is None:
            fault = NO_STAMP if fault is None else f"{fault}; {NO_STAMP}"
        row = HarvestedRow(
            entry.identifier, entry.datestamp, entry.deleted, entry.sets, entry.dc, entry.text,
            self.date, going.number, fault,
        )  # fmt: skip
        sight = self.kept.add(row)
        going.find(entry.identifier)
        setattr(counts, sight.value, getattr(counts, sight.value) + 1)
        if sight is Sight.AGAIN:
            return False
        going.gained += sight is not Sight.ANOTHER
        if sight is not Sight.SAME:
            counts.deleted += entry.deleted
            counts.mended += fault is not None
        return True

    def fetch(self, identifier: str, why: str, listed: bool = False) -> bool:
        """Request one record and store it, or count it as lost. Return whether it is not lost.

        A record that does not exist is deleted, unless it was `listed` just now.
        """
        if not identifier:
            self.going.lose("", why)
            return False
        prefix = self.kept.state.prefix
        asked = {"verb": "GetRecord", "metadataPrefix": prefix, "identifier": identifier}
        try:
            page = self.ask(asked)
        except Unanswered as error:
            if error.later:
                raise
            self.going.lose(identifier, why or str(error))
            return False
        if page.errors and page.errors[0][0] == "idDoesNotExist" and not listed:
            self.going.find(identifier)
            return True
        came = next((one for one in page.entries if one.identifier == identifier), None)
        if came is not None:
            self.date = page.date or self.date
            self._keep(came)
            return True
        said = ": ".join(page.errors[0]) if page.errors else "a response without that record"
        self.going.lose(identifier, why or said)
        return False

"""Sample of the records that a visit saw."""

from collections.abc import Sequence
from dataclasses import dataclass

from builder.sources.harvest.errors import Broken
from builder.sources.harvest.fragment import cut_fragments
from builder.sources.harvest.page import PageEntry


@dataclass(frozen=True, slots=True)
class SampledRecord:
    """A record; `metadata` is an element as a document of its own, or b"".

    `request` is the exchange that had it.
    """

    identifier: str
    datestamp: str
    deleted: bool
    sets: tuple[str, ...]
    prefix: str
    metadata: bytes
    request: int


class RecordSample:
    """At most twice `most` records, evenly spread over what was added."""

    def __init__(self, most: int) -> None:
        self._most = max(1, most)
        self._step = 1
        self._seen = 0
        self._records: list[SampledRecord] = []

    def add(self, entry: PageEntry, prefix: str, number: int) -> None:
        """Take a record if it is its turn."""
        self._seen += 1
        if (self._seen - 1) % self._step:
            return
        try:
            pieces = cut_fragments(entry.text)
        except Broken:
            return
        self._records.append(
            SampledRecord(
                entry.identifier,
                entry.datestamp,
                entry.deleted,
                entry.sets,
                prefix,
                pieces.metadata.text.encode() if pieces.metadata else b"",
                number,
            )
        )
        if len(self._records) > 2 * self._most:
            self._records = self._records[::2]
            self._step *= 2

    def records(self) -> Sequence[SampledRecord]:
        """Return at most `most` records."""
        step = -(-len(self._records) // self._most)
        return self._records[:: max(1, step)]

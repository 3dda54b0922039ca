"""Filling of pages: records are read in batches, only as many as are likely to fit."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from functions.oai.answer import RecordList
from functions.oai.render.sheet import Room
from functions.oai.repository import PublishedRecord, RecordSelection, Repository
from functions.oai.repository_duckdb.rows import join_pages
from functions.snapshot import schema
from functions.snapshot.manifest import Manifest

_HEADERS, _READ, _DOCUMENTS = 8000, 2000, 128
"""Headers, records and records with documents in a page's first batch, when their size is unknown.
Few documents, because they may be large; many headers, because each batch may cost a request."""
_GROWTH = 4
"""A batch has at most this many times the records so far: the next ones may be larger."""


@dataclass(frozen=True, slots=True)
class Filler:
    """Reads the records of a page from one snapshot.

    `fields` are the required columns (None: all); with `headers` no fields are read.
    """

    repository: Repository
    manifest: Manifest
    fields: Collection[str] | None
    headers: bool

    def fill(
        self, empty: RecordList, selection: RecordSelection, limit: int, room: Room
    ) -> tuple[RecordList, bool]:
        """Return `empty` with the first records of the selection, and whether more follow.

        Takes up to `limit` records, as far as `room` has space. Raises StoreError.
        """
        parts: list[Sequence[PublishedRecord]] = []
        wanted, count, more = self._first(selection), 0, not selection.is_empty
        while more and count < limit:
            wanted = min(wanted, limit - count)
            # One extra record shows whether more follow. The size of the list cannot: if the list
            # outlived its snapshot, the size is an estimate.
            found = self.repository.page(
                self.manifest, selection, wanted + 1, headers=self.headers, fields=self.fields
            )
            if not found:
                break
            given = found[:wanted]
            taken = room.take(replace(empty, records=given))
            parts.append(given[:taken])
            count, more = count + taken, len(found) > taken
            if taken < len(given):
                break
            selection = selection.behind(given[-1].position)
            likely = room.likely()
            wanted = limit if likely is None else min(_GROWTH * count, likely * 9 // 8 + 1)
        return replace(empty, records=join_pages(parts) if parts else ()), more

    def _first(self, selection: RecordSelection) -> int:
        if self.headers:
            return _HEADERS
        documented = schema.DOCUMENTED & {*selection.kinds} & {*self.manifest.kinds()}
        return _DOCUMENTS if documented else _READ

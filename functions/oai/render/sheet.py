"""Sheets: the records of one page as XML, as many as fit.

A page ends before its limit if the next record would exceed a number of bytes. The cut depends only
on the records, not on how many are written at once. So every server cuts a page at the same record,
and a token always gives the same page. Records are read in batches, only as many as are likely to
fit.
"""

import logging
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from functions.oai.answer import RecordList
from functions.reading.record_rows import join_pages
from functions.reading.repository import PublishedRecord, RecordSelection, Repository
from functions.snapshot import schema
from functions.snapshot.manifest import Manifest

_LOG = logging.getLogger("sheaf")

_MOST = 1024
"""Maximum number of records written at once; work on those that do not fit is lost."""
_SAMPLES = 4
"""Number of records sampled to estimate the size of the first records."""
_HEADER, _MARKUP = 512, 2
"""Bytes of XML per record without its fields, and per character of the fields."""
_SAFE = 0.9
"""Share of the estimated capacity that is written next, because records differ in size."""
_HEADERS, _READ, _DOCUMENTS = 8000, 2000, 128
"""Headers, records and records with documents in a page's first batch, when their size is unknown.
Few documents, because they may be large; many headers, because each batch may cost a request."""
_GROWTH = 4
"""A batch has at most this many times the records so far: the next ones may be larger."""


@dataclass(slots=True)
class UnrenderedRecords:
    """Records that a crosswalk could not render: the first fault, and their number."""

    first: str = ""
    count: int = 0

    def add(self, problem: str, count: int = 1) -> None:
        """Count one more failure, or `count` failures that begin with this fault."""
        self.first = self.first or problem
        self.count += count


class Sheet:
    """Writes the records of a page by `write`, up to `largest` bytes.

    The first record is taken whatever its size: an empty page would end its list.
    """

    def __init__(
        self, write: Callable[[RecordList], tuple[bytes, UnrenderedRecords]], largest: int | None
    ) -> None:
        """`write` returns the XML of records; the XML of a batch is that of each record, joined."""
        self._write = write
        self._largest = math.inf if largest is None else largest
        self._bodies: list[bytes] = []
        self._missed = UnrenderedRecords()
        self._size = self._count = 0

    def take(self, part: RecordList) -> int:
        """Write the next records; return how many fit, on an empty sheet at least one."""
        taken, most = 0, _MOST
        while taken < part.count:
            rest = part.records[taken:]
            batch = rest[: min(most, self._next(rest))]
            body, missed = self._write(replace(part, records=batch))
            count, left = len(batch), self._largest - self._size
            if len(body) <= left or (count == 1 and not self._count):
                taken += count
                self._bodies.append(body)
                self._size += len(body)
                self._count += count
                self._missed.add(missed.first, missed.count)
            elif count == 1:
                break
            else:
                # Fewer each time, so that it ends with the single record that does not fit.
                most = max(1, min(count // 2, int(count * left / len(body) * _SAFE)))
        return taken

    def likely(self) -> int | None:
        """Return about how many more records fit; None if that is unlimited or unknown."""
        if not self._size or self._largest == math.inf:
            return None
        return max(0, int((self._largest - self._size) * self._count / self._size))

    def finish(self) -> tuple[bytes, ...]:
        """Return the XML of the records that fit; log those that were left out."""
        if self._missed.count:
            # One line a page: a crosswalk that fails for all records fails alike for each.
            more = self._missed.count - 1
            _LOG.error("%s%s", self._missed.first, f" (and {more} more)" if more else "")
        return tuple(self._bodies)

    @property
    def missed(self) -> int:
        """The number of records taken that could not be rendered."""
        return self._missed.count

    def _next(self, rest: Sequence[PublishedRecord]) -> int:
        if self._largest == math.inf:
            return len(rest)
        likely = self.likely()
        if likely is None:
            samples = rest[:: max(1, len(rest) // _SAMPLES)]
            characters = sum(len(str(record.fields)) for record in samples) // len(samples)
            likely = int(self._largest) // (_HEADER + _MARKUP * characters)
        return max(1, int(likely * _SAFE))


def fill_page(
    repository: Repository,
    manifest: Manifest,
    empty: RecordList,
    selection: RecordSelection,
    limit: int,
    sheet: Sheet | None,
    *,
    fields: Collection[str] | None,
    headers: bool,
) -> tuple[RecordList, bool]:
    """Return `empty` with the first records of the selection, and whether more follow.

    Takes up to `limit` records, as far as they fit on the sheet, if there is one. `fields` are the
    required columns (None: all); with `headers` no fields are read. Raises StoreError.
    """
    parts: list[Sequence[PublishedRecord]] = []
    wanted = _HEADERS
    if not headers:
        documented = schema.DOCUMENTED & {*selection.kinds} & {*manifest.kinds()}
        wanted = _DOCUMENTS if documented else _READ
    count, more = 0, not selection.is_empty
    while more and count < limit:
        wanted = min(wanted, limit - count)
        # One extra record shows whether more follow. The size of the list cannot: if the list
        # outlived its snapshot, the size is an estimate.
        records = repository.page(manifest, selection, wanted + 1, headers=headers, fields=fields)
        if not records:
            break
        batch = records[:wanted]
        taken = sheet.take(replace(empty, records=batch)) if sheet else len(batch)
        parts.append(batch[:taken])
        count, more = count + taken, len(records) > taken
        if taken < len(batch):
            break
        selection = selection.behind(batch[-1].position)
        likely = sheet.likely() if sheet else None
        wanted = limit if likely is None else min(_GROWTH * count, likely * 9 // 8 + 1)
    return replace(empty, records=join_pages(parts) if parts else ()), more

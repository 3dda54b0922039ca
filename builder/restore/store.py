"""A store as the source of a restore: its captures and their bytes, read in this process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from builder.restore.errors import MissingError
from builder.restore.protocols import CaptureBytes, CaptureFilter, ListedCapture
from builder.restore.scope import ranges, request_url
from functions.content import scope
from functions.content.capture import FIELDS, CaptureRow
from functions.content.errors import ContentError
from functions.content.protocols import BytePlace, Contents, Searching
from functions.content.scope import Range
from functions.oai.repository import PublishedRecord, RecordSelection, Repository
from functions.snapshot.manifest import Manifest, Span

_PAGE = 2000
_KINDS = ("capture",)


class StoreSource:
    """Implements CaptureSource over one snapshot of a store."""

    def __init__(
        self,
        address: str,
        manifest: Manifest,
        repository: Repository,
        search: Searching,
        contents: Contents,
        closing: Callable[[], None] = lambda: None,
    ) -> None:
        """Read through these objects; `closing` closes them."""
        self.address = address
        self._manifest = manifest
        self._repository = repository
        self._search = search
        self._contents = contents
        self.close = closing

    def captures(self, choice: CaptureFilter) -> Iterator[ListedCapture]:
        """Yield the captures of the choice: of a set in the order of the log, else by SURT."""
        wanted = ranges(choice.urls)
        if choice.set is None and wanted is not None:
            for some in wanted:
                yield from self._search_captures(some, choice.until)
            return
        for record in self._list_set(choice.set):
            held = held_of(_capture(record))
            within = wanted is None or any(first <= held.surt < last for first, last in wanted)
            if within and held.stamp <= choice.until:
                yield held

    def of_url(self, url: str, until: str) -> Iterator[ListedCapture]:
        """Yield the captures of one URL."""
        for some in scope.parse(url, "exact").ranges:
            yield from self._search_captures(some, until)

    @contextmanager
    def open(self, identifier: str, digest: str = "") -> Iterator[CaptureBytes]:
        """Open the bytes of a capture, with codings decoded and its record's digest verified."""
        try:
            record = self._repository.record(self._manifest, identifier, fields=FIELDS)
            content = self._contents.find(self._manifest, record)
            headers: dict[str, str] = {}
            for name, value in content.headers:
                headers.setdefault(name.lower(), value)
            with self._contents.open_content(content) as stream:
                yield CaptureBytes(stream, content.size, headers)
        except ContentError as error:
            raise MissingError(error.code, str(error)) from error

    def _search_captures(self, some: Range, until: str) -> Iterator[ListedCapture]:
        after: BytePlace | None = None
        while True:
            found = self._search.page(self._manifest, *some, after, _PAGE, until=int(until))
            yield from map(held_of, found.captures)
            after = found.after
            if after is None:
                return

    def _list_set(self, spec: str | None) -> Iterator[PublishedRecord]:
        last, first = self._manifest.last_position, 1
        while first <= last:
            selection = RecordSelection(_KINDS, Span(first, last), spec)
            records = self._repository.page(
                self._manifest, selection, _PAGE, headers=False, fields=FIELDS
            )
            for record in records:
                if not record.deleted:
                    yield record
            if len(records) < _PAGE:
                return
            first = records[-1].position + 1


def _capture(record: PublishedRecord) -> CaptureRow:
    return CaptureRow.of(record.identifier, record.position, record.sets, record.fields)


def held_of(capture: CaptureRow) -> ListedCapture:
    """Return a capture as needed for a plan."""
    return ListedCapture(
        identifier=capture.identifier,
        url=request_url(capture.url, capture.method, capture.body),
        surt=capture.surt,
        stamp=capture.stamp,
        status=capture.status,
        redirect=capture.redirect,
        digest=capture.digest or "",
        media_type=capture.mime or capture.detected or "",
        length=None if capture.is_revisit else capture.length,
        revisit=capture.is_revisit,
        method=capture.method,
    )

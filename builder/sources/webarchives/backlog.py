"""Events that wait: for the damage of their gzip member, and for their request.

A gzip member shows its damage only at its end. If it has several records, their captures and
requests wait in the Backlog until the section ends, on disk if they are many.

In a WARC file, a document and its request are two records. One names the other (WARC-Concurrent-To;
ISO 28500, section 5.7), and they are neighbours or nearly so. Exchanges holds back the last
documents until no request can follow. It joins only requests other than GET: a page without one of
these is a page of its URL.
"""

import contextlib
import errno
import pickle
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import BinaryIO, cast

from builder.intake.captures import Capture, Fault
from builder.sources.webarchives.capture import CaptureDraft, Captures, action_if_damaged
from builder.sources.webarchives.events import Event, Skipped
from builder.sources.webarchives.side_records import CaptureRequest, Crawl
from functions.archive.stream import RecordStream
from functions.snapshot import surt
from functions.snapshot.errors import NO_SPACE, StoreError

_IN_MEMORY = 1 << 22  # bytes


@dataclass(slots=True)
class PendingCapture:
    """A draft, the faults of its record, and its first and last gzip member."""

    draft: CaptureDraft
    faults: list[Fault]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """The event of a record with its named fields, and the request of a request record.

    `first` and `last` are the gzip members of a request record that waits in a backlog.
    """

    event: Event | PendingCapture
    fields: Mapping[bytes, bytes]
    request: CaptureRequest | None
    first: int = 0
    last: int = 0


class Backlog:
    """Keeps events in order and in bounded memory until they are released."""

    def __init__(self) -> None:
        self._file: BinaryIO | None = None
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, event: Event | PendingCapture | RecordEvent) -> None:
        """Add an event. Raises StoreError."""
        with _wrap_scratch_errors():
            if self._file is None:
                spool = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 (release closes it)
                self._file = cast(BinaryIO, spool)
            pickle.dump(event, self._file, pickle.HIGHEST_PROTOCOL)
        self._count += 1

    def release(self, stream: RecordStream, captures: Captures) -> Iterator[Event | RecordEvent]:
        """Yield and forget the events; captures in a damaged gzip member are marked.

        Requests in a damaged gzip member are dropped. Raises StoreError.
        """
        file, count = self._file, self._count
        self._file, self._count = None, 0
        if file is None:
            return
        with file:
            with _wrap_scratch_errors():
                file.seek(0)
            for _ in range(count):
                with _wrap_scratch_errors():
                    item = pickle.load(file)
                event = item.event if isinstance(item, RecordEvent) else item
                if event is not item and item.request and stream.damage(item.first, item.last):
                    item = event
                if not isinstance(event, PendingCapture):
                    yield item
                    continue
                damage = stream.damage(event.first, event.last)
                capture = captures.finish(event.draft, damage)
                yield replace(item, event=capture) if isinstance(item, RecordEvent) else capture
                for fault in event.faults:
                    done = action_if_damaged(fault.code, fault.done) if damage else fault.done
                    yield replace(fault, done=done)


@contextlib.contextmanager
def _wrap_scratch_errors() -> Iterator[None]:
    """Raise errors of the scratch file as StoreError: they are no fault of the archive."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(f"{NO_SPACE} ({tempfile.gettempdir()})") from error
        raise StoreError(f"scratch files cannot be used: {error.strerror}") from error


NEAR = 16
"""The most records from a request to its document, in file order."""

_ID, _NAMED, _URL = b"warc-record-id", b"warc-concurrent-to", b"warc-target-uri"
_READ = (_ID, _NAMED, _URL)
_NONE: Mapping[bytes, bytes] = {}


def apply_request(capture: Capture, request: CaptureRequest) -> Capture:
    """Return the capture with its request."""
    raw = capture.url_bytes or capture.url.encode("ascii")
    return replace(
        capture,
        fetch_method=request.method,
        fetch_body=request.query or None,
        url_surtkey=surt.of_request(raw, request.method, request.query),
        warc_request_offset=request.offset,
    )


class Exchanges:
    """Joins the documents of a file, or of a range of it, to their requests.

    `is_open_before` and `is_open_behind` are known at the end of the events. They tell whether a
    request near the range's start or end has no document: it may lie outside the range.
    """

    def __init__(self) -> None:
        self._recent: deque[tuple[int, Event, Mapping[bytes, bytes]]] = deque()
        self._waiting: list[tuple[int, CaptureRequest, Mapping[bytes, bytes]]] = []
        self._count = 0  # records
        self._fields = _NONE  # of the record in hand
        self._request: CaptureRequest | None = None
        self.is_open_before = False
        self.is_open_behind = False

    def note_document(self, fields: Mapping[bytes, bytes]) -> None:
        """Note that the next record is a document with these named fields."""
        self._fields = fields

    def note_request(self, fields: Mapping[bytes, bytes], request: CaptureRequest | None) -> None:
        """Note that the next record is a request with these named fields; None for a GET."""
        if request is not None:
            self._fields, self._request = fields, request

    def drop_request(self) -> None:
        """Drop the current record's request: its bytes are damaged."""
        if self._request is not None:
            self._fields, self._request = _NONE, None

    def attach(self, event: Event | PendingCapture) -> RecordEvent | None:
        """Return the current record's event with its noted fields; None without any."""
        fields, request = self._fields, self._request
        if isinstance(event, Fault | Crawl) or not fields:
            return None
        self._fields, self._request = _NONE, None
        return RecordEvent(event, {name: fields[name] for name in _READ if name in fields}, request)

    def join(self, events: Iterator[Event | RecordEvent]) -> Iterator[Event]:
        """Yield the events in order, each capture with its request if it has one."""
        recent = self._recent
        for item in events:
            fields, request = _NONE, None
            event: Event | PendingCapture
            if isinstance(item, RecordEvent):
                event, fields, request = item.event, item.fields, item.request
            else:
                event = item
            assert not isinstance(event, PendingCapture)  # the backlog finishes them
            if isinstance(event, Capture | Skipped):
                self._count += 1
                if request is not None:
                    self._match_request(request, fields)
                    fields = _NONE
                elif self._waiting:
                    event = self._match_document(event, fields)
                while recent and recent[0][0] <= self._count - NEAR:
                    yield recent.popleft()[1]
            recent.append((self._count, event, fields))
        self._forget(self._count + NEAR + 1)
        while recent:
            yield recent.popleft()[1]

    def _match_request(self, request: CaptureRequest, fields: Mapping[bytes, bytes]) -> None:
        """Join a request to the last document that belongs to it, or make it wait."""
        for at in range(len(self._recent) - 1, -1, -1):
            number, event, others = self._recent[at]
            if number >= self._count - NEAR and _belong(others, fields):
                if isinstance(event, Capture) and event.fetch_method is None:
                    self._recent[at] = (number, apply_request(event, request), others)
                return
        self._waiting.append((self._count, request, fields))

    def _match_document(self, event: Event, fields: Mapping[bytes, bytes]) -> Event:
        """Join a document to the last waiting request that belongs to it."""
        self._forget(self._count)
        for at in range(len(self._waiting) - 1, -1, -1):
            _, request, others = self._waiting[at]
            if _belong(fields, others):
                del self._waiting[at]
                return apply_request(event, request) if isinstance(event, Capture) else event
        return event

    def _forget(self, count: int) -> None:
        """Drop the waiting requests that are too far before record number `count`."""
        for number, _, _ in self._waiting:
            if number < count - NEAR:
                self.is_open_before |= number <= NEAR
                self.is_open_behind |= number > self._count - NEAR
        self._waiting = [waiting for waiting in self._waiting if waiting[0] >= count - NEAR]


def _belong(document: Mapping[bytes, bytes], request: Mapping[bytes, bytes]) -> bool:
    """Tell whether one of two records names the other, and both have the same URL."""
    if not document or document.get(_URL) != request.get(_URL):
        return False
    own, other = document.get(_ID), request.get(_ID)
    named, naming = document.get(_NAMED), request.get(_NAMED)
    return (own is not None and own == naming) or (other is not None and other == named)

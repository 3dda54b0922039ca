"""Events that wait: for the damage of their gzip member, and for their request.

A gzip member shows its damage only at its end. If it has several records, their captures and
requests wait in the Backlog until the section ends, on disk if they are many.

In a WARC file, a document and its request are two records. One names the other (WARC-Concurrent-To;
ISO 28500, section 5.7), and they are neighbours or nearly so. Exchanges holds back the last
documents until no request can follow. It joins only requests other than GET: a page without one of
these is a page of its URL. A range of a file ends between any two records, so each range tells what
is near its borders, and join_borders joins the ranges.
"""

import contextlib
import errno
import pickle
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, AnyStr, BinaryIO, NamedTuple, cast

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
    """A draft, and the faults of its record."""

    draft: CaptureDraft
    faults: list[Fault]


Names = tuple[bytes | None, ...]
"""Values of a record's fields in _NAMES."""


class Backlog:
    """Keeps events in order and in bounded memory until they are released."""

    def __init__(self) -> None:
        self._file: BinaryIO | None = None
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(
        self, event: Event | PendingCapture, noted: "NotedRecord | None", first: int, last: int
    ) -> None:
        """Add an event, with what was noted of its record and its first and last gzip member.

        Raises StoreError.
        """
        with _wrap_scratch_errors():
            if self._file is None:
                spool = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 (release closes it)
                self._file = cast(BinaryIO, spool)
            pickle.dump((event, noted, first, last), self._file, pickle.HIGHEST_PROTOCOL)
        self._count += 1

    def release(
        self, stream: RecordStream, captures: Captures, exchanges: "Exchanges"
    ) -> Iterator[Event]:
        """Yield and forget the events; captures in a damaged gzip member are marked.

        `exchanges` is told of their records, but not of requests in a damaged gzip member. Raises
        StoreError.
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
                    event, noted, first, last = pickle.load(file)
                damage = stream.damage(first, last)
                exchanges.noted = None if damage and noted and noted.request else noted
                if not isinstance(event, PendingCapture):
                    yield event
                    continue
                yield captures.finish(event.draft, damage)
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

_NAMES = (b"warc-record-id", b"warc-concurrent-to", b"warc-target-uri")
_COUNTED = (Capture, Skipped)


def apply_request(capture: Capture, request: CaptureRequest) -> Capture:
    """Return the capture with its request."""
    raw = capture.url_bytes or capture.url.encode("ascii")
    return replace(capture, **request_columns(raw, request))


def request_columns(raw: bytes, request: CaptureRequest) -> dict[str, Any]:
    """Return the columns of a capture that its request decides; `raw` are its URL's bytes."""
    return {
        "fetch_method": request.method,
        "fetch_body": request.query or None,
        "url_surtkey": surt.of_request(raw, request.method, request.query),
        "warc_request_offset": request.offset,
    }


class NotedRecord(NamedTuple):
    """The names of a document, or of a request other than GET."""

    names: Names
    request: CaptureRequest | None


@dataclass(slots=True)
class ExchangeRecord:
    """A document or a request near the start or the end of a range of a file.

    `number` counts the range's records from 1, and `capture` its captures from 0: it is None for
    what is not one. `joined`: another record of the range belongs to it.
    """

    number: int
    names: tuple[str | None, ...]
    request: CaptureRequest | None = None
    capture: int | None = None
    joined: bool = False


class Exchanges:
    """Joins the documents of a file, or of a range of it, to their requests.

    At the end of the events, `near` has the records NEAR the range's borders, in order: documents,
    and those requests that no document before them in the range belongs to.
    """

    def __init__(self) -> None:
        self._recent: deque[tuple[int, Event, Names]] = deque()
        self._waiting: list[ExchangeRecord] = []
        self._count = 0  # records
        self._captured = 0  # captures that were yielded
        self._joined: set[int] = set()  # numbers of recent documents
        self.near: list[ExchangeRecord] = []
        self.noted: NotedRecord | None = None
        """The record of the next capture or skipped record, None if it does not matter."""

    def note(self, fields: Mapping[bytes, bytes], request: CaptureRequest | None = None) -> None:
        """Note that the next record has these named fields; only documents have no `request`."""
        self.noted = NotedRecord(tuple(map(fields.get, _NAMES)), request) if fields else None

    def take_noted(self, event: Event | PendingCapture) -> NotedRecord | None:
        """Return what was noted of an event's record, once; None for faults and crawls."""
        if self.noted is None or isinstance(event, Fault | Crawl):
            return None
        noted, self.noted = self.noted, None
        return noted

    def join(self, events: Iterator[Event]) -> Iterator[Event]:
        """Yield the events in order, each capture with its request if it has one."""
        recent = self._recent
        for event in events:
            names, request = self.take_noted(event) or ((), None)
            if isinstance(event, _COUNTED):
                self._count += 1
                if request is not None:
                    self._match_request(request, names)
                    names = ()
                elif self._waiting:
                    event = self._match_document(event, names)
                while recent and recent[0][0] <= self._count - NEAR:
                    yield self._release()
            recent.append((self._count, event, names))
        while recent:
            yield self._release()
        end = max(NEAR, self._count - NEAR)
        self.near += [request for request in self._waiting if request.number > end]
        self.near.sort(key=lambda record: record.number)

    def _release(self) -> Event:
        """Return the first recent event; remember a document near a border of the range."""
        number, event, names = self._recent.popleft()
        is_capture = isinstance(event, Capture)
        if names and (number <= NEAR or number > self._count - NEAR):
            capture, joined = self._captured if is_capture else None, number in self._joined
            self.near.append(ExchangeRecord(number, _decode(names), None, capture, joined))
        self._captured += is_capture
        self._joined.discard(number)
        return event

    def _match_request(self, request: CaptureRequest, names: Names) -> None:
        """Join a request to the last document that belongs to it, or make it wait."""
        for at in range(len(self._recent) - 1, -1, -1):
            number, event, others = self._recent[at]
            if number >= self._count - NEAR and _belong(others, names):
                if isinstance(event, Capture) and event.fetch_method is None:
                    self._recent[at] = (number, apply_request(event, request), others)
                self._joined.add(number)
                return
        self._waiting.append(ExchangeRecord(self._count, _decode(names), request))
        if self._count <= NEAR:
            self.near.append(self._waiting[-1])

    def _match_document(self, event: Capture | Skipped, names: Names) -> Capture | Skipped:
        """Join a document to the last waiting request that belongs to it."""
        self._waiting = [each for each in self._waiting if each.number >= self._count - NEAR]
        own = _decode(names)
        for at in range(len(self._waiting) - 1, -1, -1):
            waiting = self._waiting[at]
            if waiting.request is not None and _belong(own, waiting.names):
                del self._waiting[at]
                waiting.joined = True
                self._joined.add(self._count)
                return (
                    apply_request(event, waiting.request) if isinstance(event, Capture) else event
                )
        return event


def _decode(names: Names) -> tuple[str | None, ...]:
    return tuple(None if name is None else name.decode("latin-1") for name in names)


def _belong(document: tuple[AnyStr | None, ...], request: tuple[AnyStr | None, ...]) -> bool:
    """Tell whether one of two records names the other, and both have the same URL."""
    if not document or document[2] != request[2]:
        return False
    (own, named, _), (other, naming, _) = document, request
    return (own is not None and own == naming) or (other is not None and other == named)


def join_borders(
    ranges: Sequence[tuple[int, Sequence[ExchangeRecord]]],
) -> dict[tuple[int, int], dict[str, Any]] | None:
    """Return the columns that change in captures whose request lies in another range of a file.

    `ranges` are the numbers of their records, and Exchanges.near. A capture is named by the numbers
    of its range and of the capture in it. None if several records belong to one, so that its range
    alone may have joined another than the file does.
    """
    joined: dict[tuple[int, int], dict[str, Any]] = {}
    earlier: list[tuple[int, int, ExchangeRecord]] = []  # of ranges before: place, range, record
    end = 0  # records of these
    for number, (records, exchanges) in enumerate(ranges):
        near = [(end + record.number, number, replace(record)) for record in exchanges]
        for place, _, record in near:
            for before, its_range, other in reversed(earlier):
                asks = record.request is not None
                document, request = (other, record) if asks else (record, other)
                if (
                    place - before > NEAR
                    or document.request is not None
                    or request.request is None
                    or (request is other and other.joined)
                    or not _belong(document.names, request.names)
                ):
                    continue
                if record.joined:
                    return None
                if document.capture is not None and not document.joined:
                    url = (document.names[2] or "").encode("latin-1")
                    raw = url[1:-1] if url[:1] == b"<" and url[-1:] == b">" else url
                    key = (its_range if asks else number, document.capture)
                    joined[key] = request_columns(raw, request.request)
                document.joined = request.joined = True
                break
        end += records
        earlier = [each for each in earlier + near if each[0] > end - NEAR]
    return joined

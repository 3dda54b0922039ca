"""Responses of captures: what fetching the URL would have given at the time of the capture.

A record is read again at its place. Its payload is stored as gathering stores a body: without
transfer coding. A content coding is undone too, unless it is the file's own (x.ps.gz), because
Sheaf would have asked for none.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from builder.gather.results import (
    FileContent,
    Moved,
    Result,
    Unchanged,
    exchange_row,
    file_coding,
    store_body,
)
from builder.gather.vaults.archives import VaultArchives, read_dictionary
from builder.gather.vaults.capture_plan import PlannedCapture
from builder.http.errors import FetchError, outcome_of_status
from builder.http.responses import REDIRECTS, Fields, Response, field_text, fields_by_name
from builder.http.url import normalise
from builder.obi.content import ExchangeRow
from functions.archive import record_header
from functions.archive.coding import ContentCodingError, Pieces, decode_codings
from functions.archive.record import RecordBlock
from functions.archive.record_reader import (
    Document,
    NoDocumentError,
    UnreadableRecordError,
    open_record,
    read_fields,
    read_record,
)
from functions.url import authority

_REQUEST = 1 << 16  # bytes of a request's head


class LostCaptureError(Exception):
    """A capture cannot be read again; `code` is that of a fault."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


@dataclass(frozen=True, slots=True)
class CapturedResponse:
    """The result of a capture, and its headers with the time of the capture."""

    result: Result
    exchange: ExchangeRow


@dataclass(slots=True)
class CaptureReader:
    """Reads captures again. Bodies go to temporary files in `scratch`, which the caller deletes."""

    archives: VaultArchives
    scratch: Path

    def read(self, capture: PlannedCapture) -> CapturedResponse:
        """Return the response of a capture. Raises LostCaptureError and StoreError."""
        try:
            with self.archives.open(capture.archive) as stream:
                sent = _find_request(stream, capture)
                document = _open(stream, capture.place)
                _check(document, capture.url)
                response = _respond(document, capture, sent)
                if capture.kind != "revisit":
                    return self._finish(response, document, capture)
            if capture.status not in (None, 200):
                return self._finish(response, None, capture)
            if capture.original is None:
                raise LostCaptureError("no-original", f"{capture.url}: {capture.digest}")
            with self.archives.open(capture.original[0]) as stream:
                document = _open(stream, capture.original[1])
                if not response.raw:
                    response = _respond(document, capture, sent)
                return self._finish(response, document, capture)
        except (OSError, NoDocumentError, UnreadableRecordError) as error:
            raise _lose(capture.url, error) from error

    def _finish(
        self, response: Response, document: Document | None, capture: PlannedCapture
    ) -> CapturedResponse:
        exchange = exchange_row(response, capture.at)
        try:
            result = self._result(response, document, capture, exchange)
        except FetchError as failure:
            result = failure.copy()
        return CapturedResponse(result, exchange)

    def _result(
        self,
        response: Response,
        document: Document | None,
        capture: PlannedCapture,
        exchange: ExchangeRow,
    ) -> Result:
        status, said = response.status, response.headers
        if status in REDIRECTS:
            if response.location is None:
                raise FetchError("bad-redirect", "no Location", status)
            return Moved(response.location, status, exchange)
        if status == 304:
            return Unchanged(said.get("etag"), said.get("last-modified"))
        if status != 200 or document is None:
            raise FetchError(outcome_of_status(status), f"HTTP status {status}", status)
        if capture.flaw:
            raise FetchError("cut-short", f"the capture is incomplete ({capture.flaw})", 200)
        return self._store(response, document, exchange)

    def _store(self, response: Response, document: Document, exchange: ExchangeRow) -> FileContent:
        message = document.message
        chunked = message is not None and "chunked" in message.tokens(b"transfer-encoding")
        codings, own = message.codings() if message else [], None
        if codings:
            own = _own_coding(response)
            codings = [] if own else codings
        try:
            pieces = decode_codings(_payload(document), codings, chunked=chunked)
            found = store_body(replace(response, body=pieces), own, self.scratch, exchange)
        except ContentCodingError as error:
            raise FetchError("content-coding", str(error), 200) from error
        length = response.headers.get("content-length", "")
        whole = chunked or codings or not (length.isascii() and length.isdigit())
        if not whole and found.size < int(length):
            found.path.unlink(missing_ok=True)
            raise FetchError("cut-short", f"{found.size:,} of {int(length):,} bytes", 200)
        return found


def _payload(document: Document) -> Pieces:
    """Yield the payload. Its errors must not count as those of the file that is written."""
    try:
        yield from document.payload()
    except OSError as error:
        raise _lose(authority.text(document.record.url), error) from error


def _lose(url: str, error: Exception) -> LostCaptureError:
    detail = getattr(error, "strerror", None) or str(error)
    return LostCaptureError("not-as-indexed", f"{url}: {detail}")


def _own_coding(response: Response) -> str | None:
    try:
        return file_coding(response.url, response.headers)
    except FetchError:
        return None


def _open(stream: BinaryIO, place: int) -> Document:
    stream.seek(place)
    return read_record(stream, place, lambda: read_dictionary(stream))


def _check(document: Document, url: str) -> None:
    found = authority.text(document.record.url)
    if normalise(found).id != url:
        raise NoDocumentError(f"the record there has the URL {found}")


def _respond(document: Document, capture: PlannedCapture, sent: Fields) -> Response:
    """Return the head of the response, without a body."""
    record, fields = document.record, _decode(document.fields)
    headers = fields_by_name(fields)
    if record.mime and (record.is_arc or record.type == "resource"):
        headers.setdefault("content-type", field_text(record.mime))
    words = document.head.partition(b"\n")[0].split(None, 2)
    nothing: Pieces = iter(())
    return Response(
        url=capture.url,
        status=capture.status or 200,
        headers=headers,
        body=nothing,
        reason=field_text(words[2]) if len(words) > 2 else "",
        raw=fields,
        sent=sent,
        address=_address(record.fields),
    )


def _address(fields: Mapping[bytes, bytes]) -> str | None:
    return field_text(fields.get(b"warc-ip-address", b"")) or None


def _find_request(stream: BinaryIO, capture: PlannedCapture) -> Fields:
    """Return the fields of the request of a capture; none if its record is not there."""
    for place in capture.requests:
        stream.seek(place)
        try:
            records, _ = open_record(stream, lambda: read_dictionary(stream))
        except (NoDocumentError, UnreadableRecordError):
            continue
        record, _ = record_header.read_warc(records)
        if record is None or record.type != "request" or record.length is None:
            continue
        if normalise(authority.text(record.url)).id == capture.url:
            head = b"".join(_read_head(RecordBlock(records, record.length)))
            return _decode(read_fields(head.partition(b"\r\n\r\n")[0]))
    return ()


def _read_head(block: RecordBlock) -> Iterator[bytes]:
    left = _REQUEST
    while left > 0 and (piece := block.take(left)):
        left -= len(piece)
        yield piece


def _decode(fields: Fields) -> Fields:
    return tuple((name, field_text(value.encode("latin-1"))) for name, value in fields)

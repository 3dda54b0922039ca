"""Index of an import: a line for each capture, as the ingest's reader finds it in the archives.

Payloads are read again only for the captures that are imported.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from builder.gather.vaults.archives import VaultArchive, VaultArchives
from builder.gather.vaults.faults import FaultList
from builder.http.errors import FetchError
from builder.http.responses import REDIRECTS
from builder.http.url import Redirects, normalise
from builder.intake.intake import writing
from builder.sources.events import HARMLESS_CODES, Capture, Fault, Skipped
from builder.sources.rules import DocumentRules
from builder.sources.webarchive import read_archive

COLUMNS: Mapping[str, str] = {
    "number": "BIGINT",
    "archive": "BIGINT",
    "place": "BIGINT",
    "requests": "BIGINT[]",
    "url": "VARCHAR",
    "second": "BIGINT",
    "status": "BIGINT",
    "kind": "VARCHAR",
    "digest": "VARCHAR",
    "declared": "VARCHAR",
    "target": "VARCHAR",
    "refers_url": "VARCHAR",
    "refers_at": "BIGINT",
    "flaw": "VARCHAR",
    "faults": "VARCHAR[]",
}
"""Columns of a line, and DuckDB's types.

`number` counts all captures, `archive` is the archive's number and `place` the record's offset. At
`requests` may be the record of the request. `url`, `target` of a redirect and `refers_url` are in
normal form, `second` and `refers_at` in seconds since 1970. `kind` is the type of the record.
`digest` is that of the payload, `declared` the declared one, if it differs. `flaw` says what its
bytes lack.
"""

_RULES = DocumentRules(
    redirects=True, errors=True, titles=False, domain_sets=False, mime_sets=False, head_bytes=0
)
_FETCHED = "GET"
_SHARED = "-not-per-record"
_TELL = 1 << 10  # events
_FIRST = "0000-01-01T00:00:00"


@dataclass(slots=True)
class CaptureIndex:
    """Writes the lines of all captures to the file `path`.

    `captures` and `read_archives` count what was read. `advance` is called with the number of bytes
    read since its last call.
    """

    path: Path
    archives: VaultArchives
    faults: FaultList
    advance: Callable[[int], None]
    captures: int = field(init=False, default=0)
    read_archives: int = field(init=False, default=0)

    def read(self, archive: VaultArchive) -> None:
        """Add the captures of an archive.

        One that cannot be read to its end is a fault, and adds none. Raises StoreError.
        """
        try:
            if not self._read(archive):
                self.archives.unpack(archive.number)
                self._read(archive)
        except OSError as error:
            self.archives.fail(archive.name, error)

    def _read(self, archive: VaultArchive) -> bool:
        """Add the captures of an archive; False, and none, if they have no offset."""
        number, name = archive.number, archive.name
        with writing(self.path.parent):
            lines_file = self.path.open("ab")
        with lines_file as out, self.archives.open(number, whole=True) as stream:
            begin = out.tell()
            lines = _CaptureLines(out, self.path.parent, number, name, self.captures)
            told = 0
            likely = archive.file.is_likely
            reader = read_archive(stream, name, _RULES, further=likely)
            try:
                for many, event in enumerate(reader):
                    if isinstance(event, Fault) and event.code.endswith(_SHARED):
                        out.truncate(begin)
                        return False
                    lines.add(event)
                    if many % _TELL == 0:
                        self.advance(stream.tell() - told)
                        told = stream.tell()
            except OSError:
                out.truncate(begin)  # the next archive numbers its captures from there
                raise
            lines.end()
            self.advance(max(0, stream.tell() - told))
        if not (reader.form or archive.file.is_expected):
            return True  # another file beside the archives
        self.read_archives += 1
        self.archives.failed += bool(lines.faults) and lines.number == self.captures
        self.captures = lines.number
        for fault in lines.faults:
            self.faults.add(name, fault.place, fault.code, fault.detail, _action(fault))
        return True


class _CaptureLines:
    """The lines of one archive. A line waits for the next record, which may be its request."""

    def __init__(self, out: BinaryIO, folder: Path, archive: int, name: str, number: int) -> None:
        self._folder = folder
        self._out, self._archive, self._name = out, archive, name
        self.number = number
        self.faults: list[Fault] = []
        self._line: dict[str, Any] | None = None
        self._request: int | None = None

    def add(self, event: object) -> None:
        """Add an event of the reader."""
        if isinstance(event, Capture):
            before = self._request
            self.end()
            self._line = self._describe(event, [] if before is None else [before])
            self.number += 1
        elif isinstance(event, Skipped):
            request = event.offset if event.reason == "request" else None
            if self._line is not None and request is not None:
                self._line["requests"].append(request)
            self.end()
            self._request = request
        elif isinstance(event, Fault):
            line = self._line
            if event.code not in HARMLESS_CODES:
                self.faults.append(event)
            elif line is not None and line["place"] == event.place:
                line["faults"].append(f"{event.code} {event.detail}")

    def end(self) -> None:
        """Write the line that waits."""
        line, self._line, self._request = self._line, None, None
        if line is not None:
            with writing(self._folder):
                self._out.write(json.dumps(line).encode() + b"\n")

    def _describe(self, capture: Capture, requests: list[int]) -> dict[str, Any] | None:
        """Return the line of a capture; None if it is not of a request that Sheaf would make."""
        url, at = normalise(capture.url).id, _seconds(capture.fetch_time, capture.fetch_date)
        if url is None or capture.fetch_method not in (None, _FETCHED):
            return None
        place, kind = capture.warc_record_offset, capture.warc_record_type
        status = capture.fetch_status or (None if kind == "revisit" else 200)
        flaw = capture.content_damaged or capture.content_truncated
        if at is None:
            detail = f"{url}: {capture.fetch_date or 'no date'}"
            self.faults.append(Fault(self._name, place, "undated", None, detail, "left out"))
            return None
        return {
            "number": self.number,
            "archive": self._archive,
            "place": place,
            "requests": requests,
            "url": url,
            "second": at,
            "status": status,
            "kind": kind,
            "digest": capture.content_digest,
            "declared": capture.content_digest_declared,
            "target": _target(url, capture.fetch_redirect, status),
            "refers_url": normalise(capture.refers_to_url or "").id,
            "refers_at": _seconds(None, capture.refers_to_date),
            "flaw": flaw if kind != "revisit" and status == 200 else None,
            "faults": [],
        }


def _target(url: str, location: str | None, status: int | None) -> str | None:
    """Return the normal form of a redirect's target; None without a valid one."""
    if not location or status not in REDIRECTS:
        return None
    try:
        return Redirects(url).follow(location, status)
    except FetchError:
        return None


def _seconds(time: datetime | None, text: str | None) -> int | None:
    """Return a time in seconds since 1970; the first one that an inexact date can mean."""
    if time is None and text:
        digits = text.removesuffix("Z")[: len(_FIRST)]
        time = datetime.fromisoformat(digits + _FIRST[len(digits) :]).replace(tzinfo=UTC)
    return None if time is None else int(time.timestamp())


def _action(fault: Fault) -> str:
    """Return what an import does about a fault, in place of what an ingest does."""
    return fault.done.replace("published", "imported")

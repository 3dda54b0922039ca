"""Reads the records of an archive file; functions.archive.gzip_members passes over damage."""

from collections.abc import Iterator
from itertools import chain

from builder.intake.captures import Fault
from builder.sources.webarchives import side_records
from builder.sources.webarchives.backlog import Backlog, Exchanges, PendingCapture
from builder.sources.webarchives.capture import Captures, DocumentRecord, trim_to_next_record
from builder.sources.webarchives.events import Edge, Event, Skipped
from builder.sources.webarchives.payload import Payload, read_declared, read_payload
from builder.sources.webarchives.rules import DocumentRules, http_status, refusal_reason
from builder.sources.webarchives.side_records import Crawl
from functions.archive import record_header
from functions.archive.message import HttpHead, prove_length, read_message
from functions.archive.record import (
    BufferedBlock,
    RecordBlock,
    RecordFault,
    RecordHeader,
    show,
    skip_reason,
)
from functions.archive.stream import RecordStream

_READ_ON = "skipped; reading continues after them"
_TYPE_WITHIN = 1 << 14  # bytes of a payload that are read for its type alone


class RecordReader:
    """Reads one file's records. Its state serves later records of the file."""

    def __init__(
        self,
        stream: RecordStream,
        name: str,
        rules: DocumentRules,
        version: int = 1,
    ) -> None:
        """`version` is the announced version of the ARC records, for a later range of a file."""
        self._stream = stream
        self._name = name
        self._rules = rules
        self._captures = Captures(name, rules)
        self._exchanges = Exchanges()
        self.near = self._exchanges.near
        self._head_bytes = rules.head_bytes if rules.titles else min(rules.head_bytes, _TYPE_WITHIN)
        self._arc_version = version
        self._shared = False  # whether a member has several records
        self._records = 0
        self._crawl: Crawl | None = None
        self._faults: list[RecordFault] = []  # of the current single record
        self._backlog = Backlog()
        self._garbage_first: list[Fault] = []
        self.form = ""
        """The first record's format, "arc" or "warc"; empty before it was read."""
        self.first: Edge | None = None
        self.next: Edge | None = None

    def events(
        self, kind: str | None, start: int = 0, end: int | None = None, detail: str = ""
    ) -> Iterator[Event]:
        """Read the records that begin in [start, end), and the bytes behind each of them.

        The stream is at the first of them. A file without records is no archive, unless `kind` says
        that it was recognised; `detail` describes such a file.
        """
        yield from self._exchanges.join(self._events(kind, start, end, detail))

    def _events(
        self, kind: str | None, start: int, end: int | None, detail: str
    ) -> Iterator[Event]:
        stream = self._stream
        while stream.next_section():
            opened = self.first is None
            if opened:
                self.first = self._current_edge()
            if end is None or not self._is_behind(end):
                if opened and start:
                    yield from self._file_faults(end)
                data = stream.section_bytes()
                event = self._read_single(data) if data else None
                if event is not None:
                    if self._garbage_first:
                        yield from self._take_garbage()
                    yield event
                    if self._crawl or self._faults or stream.faults:
                        if self._crawl is not None:
                            yield self._crawl
                            self._crawl = None
                        faults, self._faults = self._faults, []
                        yield from self._captures.faults(self._stream.place(), faults)
                        yield from self._file_faults(end)
                    continue
                yield from self._read_section(end, is_archive=bool(kind))
            if end is not None and self._is_behind(end):
                self.next = self._current_edge()
                break
        self.next = self.next or Edge(None, self._arc_version)
        self.first = self.first or self.next
        if not (self._records or kind or start or self.next.offset):
            # A file without its dictionary may be an archive.
            stream.faults = [
                fault for fault in stream.faults if fault[1] == "zstd-dictionary-missing"
            ]
            self._garbage_first = []
            if not stream.faults:
                detail = detail or "damaged " + stream.shared_code.partition("-")[0]
                yield Fault(self._name, None, "not-an-archive", None, detail, "not read")
        yield from self._take_garbage()
        yield from self._file_faults(end)

    def _read_section(self, end: int | None, is_archive: bool) -> Iterator[Event]:
        stream = self._stream
        self._garbage_first += self._garbage(stream.place(), stream.skip_garbage())
        if is_archive or not stream.at_end():
            yield from self._take_garbage()
        first = True
        while not stream.at_end() and (end is None or not self._is_behind(end)):
            member = stream.member()
            for event in chain(self._read_record(first), self._file_faults(end)):
                noted = self._exchanges.noted
                asks = stream.has_members and noted is not None and noted.request is not None
                if isinstance(event, PendingCapture) or asks or self._backlog:
                    noted = self._exchanges.take_noted(event)
                    self._backlog.append(event, noted, member, stream.last_member)
                else:
                    yield event
            first = False
        yield from self._backlog.release(stream, self._captures, self._exchanges)

    def _is_behind(self, end: int) -> bool:
        return self._stream.place() >= end

    def _current_edge(self) -> Edge:
        stream = self._stream
        return Edge(None if stream.at_end() else stream.place(), self._arc_version)

    def _read_single(self, data: bytes) -> Event | None:
        """Read a section of one record; None if it must be read like other sections."""
        end, fields = (
            record_header.parse_plain_head(data) if data.startswith(b"WARC/") else (-1, None)
        )
        if fields is None or record_header.holds_another(data, end):
            return None
        place = self._stream.place()
        passed = record_header.skippable_type(fields, data, end)
        if passed:
            self.form = self.form or "warc"
            self._records += 1
            if passed == "request" and not data.startswith(b"GET ", end + 4):
                block = BufferedBlock(data, end + 4, len(data) - end - 8)
                if request := side_records.read_request(block, place):
                    self._exchanges.note(fields, request)
            return Skipped(passed, place, self._close_single(data, place)[0])
        mended: list[RecordFault] = []
        whole = record_header.parse_whole_record(fields, data, end)
        size = whole[0].length if whole else None
        if size is None or len(data) != end + 8 + size:
            proven = prove_length(fields, data, end + 4)
            if proven is not None and proven != size:
                declared = show(fields.get(b"content-length", b""))
                fields = {**fields, b"content-length": b"%d" % proven}
                whole = record_header.parse_whole_record(fields, data[: end + 4 + proven], end)
                done = f"{proven} bytes were read, to the end of its member"
                mended = [("length-invalid", "Content-Length", declared, done)]
        if whole is None:
            return None
        self.form = self.form or "warc"
        self._records += 1
        record, more, block = whole
        self._faults = mended + more
        reason, document = self._read_body(record, block, self._faults, place)
        length, damage = self._close_single(data, place)
        if document is None:
            return Skipped(reason or "damaged", place, length)
        return self._captures.build(document, length, self._faults, damage)

    def _close_single(self, data: bytes, place: int) -> tuple[int | None, str | None]:
        """Go behind the one record `data`; return its stored length and its damage."""
        length = self._stream.close_section()
        damage = self._stream.damage(place, place)
        noted = self._exchanges.noted
        if damage and noted and noted.request:
            self._exchanges.noted = None
        return length, damage

    def _read_record(self, first: bool) -> Iterator[Event | PendingCapture]:
        stream = self._stream
        self._records += 1
        offset = stream.record_offset(first)
        place = stream.place()
        member = stream.member()
        if stream.peek(5).upper() == b"WARC/":
            self.form = self.form or "warc"
            record, faults = record_header.read_warc(stream)
        else:
            self.form = self.form or "arc"
            record, faults = record_header.read_arc(stream, self._arc_version)
        if offset is None and not self._shared:
            self._shared = True
            done = "published without offset, like the file's other such records"
            yield Fault(self._name, place, stream.shared_code, None, "", done)
        declared_length = record.length if record else None
        block = None if declared_length is None else RecordBlock(stream, declared_length)
        reason, document = self._read_body(record, block, faults, offset)
        end = stream.place()
        length, garbage = stream.close_record(offset, block is not None and block.missing > 0)
        if document and any(code == "digest-mismatch" for code, *_ in faults):
            document.missing = document.missing or garbage  # the declared length was too small
        if stream.swallowed and block:
            trim_to_next_record(stream.swallowed, block, document, faults)
        if document is None or reason is not None:
            yield Skipped(reason or "damaged", offset, length)
        elif stream.has_members and (self._backlog or not stream.at_end()):
            draft = self._captures.draft(document, length, faults)
            record_faults, faults = list(self._captures.faults(place, faults)), []
            yield PendingCapture(draft, record_faults)
        else:
            damage = stream.damage(member, stream.last_member)
            yield self._captures.build(document, length, faults, damage)
        if self._crawl is not None:
            yield self._crawl
            self._crawl = None
        yield from self._captures.faults(place, faults)
        yield from self._garbage(end, garbage)

    def _read_body(
        self,
        record: RecordHeader | None,
        block: RecordBlock | None,
        faults: list[RecordFault],
        offset: int | None,
    ) -> tuple[str | None, DocumentRecord | None]:
        """Read a record's block; return why it is skipped, or the document."""
        if record is None:
            return "damaged", None
        reason = skip_reason(record)
        if block is None:
            return reason or "damaged", None
        document: DocumentRecord | None = None
        if reason == "filedesc" and record.is_arc:
            head = side_records.read_bytes(block, side_records.CRAWL_BYTES)
            self._arc_version = record_header.parse_arc_version(
                head[: record_header.ARC_ANNOUNCEMENT]
            )
            self._crawl = side_records.parse_crawl(head)
        elif reason == "warcinfo":
            head = side_records.read_bytes(block, side_records.CRAWL_BYTES)
            self._crawl = side_records.parse_crawl(head)
        elif reason == "request":
            if request := side_records.read_request(block, offset):
                self._exchanges.note(record.fields, request)
        elif reason is None:
            reason, document = self._read_document(record, block, faults, offset)
        block.drain()
        if block.missing:
            if document:
                document.missing = block.missing
            detail = f"declared {block.length} bytes, found {block.length - block.missing}"
            done = "left out" if reason else "published as truncated"
            faults.append(("payload-short", None, detail, done))
        return reason, document

    def _read_document(
        self,
        record: RecordHeader,
        block: RecordBlock,
        faults: list[RecordFault],
        offset: int | None,
    ) -> tuple[str | None, DocumentRecord | None]:
        if not record.url:
            return "no-target-uri", None
        self._exchanges.note(record.fields)
        message: HttpHead | None = None
        first = b""
        if record.type != "resource" or record.mime[:16].lower() == b"application/http":
            message, first, more = read_message(block)
            faults += more
        reason = refusal_reason(record, http_status(record, message), self._rules)
        if reason:
            return reason, None
        declared = read_declared(record, faults, message)
        payload: Payload | None = None
        if record.type != "revisit":
            whole = None if b"warc-segment-number" in record.fields else declared
            payload = read_payload(block, first, message, whole, self._head_bytes)
            faults += payload.faults
        return None, DocumentRecord(record, message, payload, declared, offset)

    def _take_garbage(self) -> list[Fault]:
        garbage, self._garbage_first = self._garbage_first, []
        return garbage

    def _garbage(self, place: int, size: int) -> Iterator[Fault]:
        if size:
            yield Fault(self._name, place, "garbage", None, f"{size} bytes", _READ_ON)

    def _file_faults(self, end: int | None) -> Iterator[Fault]:
        faults, self._stream.faults = self._stream.faults, []
        ahead = self.next.offset if self.next else self._stream.next_offset()
        is_next = end is not None and ahead is not None and ahead >= end
        for place, code, detail, done in faults:
            if not is_next or ahead is None or place < ahead:
                yield Fault(self._name, place, code, None, detail, done)

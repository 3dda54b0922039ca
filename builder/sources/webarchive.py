"""Reading a web archive: bytes in; captures, records left out and faults out.

The reader is our own. The library at hand, warcio, gives dates that the file does not have (it
pads short ones and puts bad ones into the year 2999), drops the media type of ARC headers, returns
short payloads without a word, prints warnings to standard error, and ends at the first bad record.
Here each record ends in exactly one capture or one record left out; faults come in addition.
"""

from collections.abc import Generator, Iterator
from io import BytesIO
from typing import BinaryIO, cast

from builder.sources.event import DocumentRules, Edge, Event, Fault
from builder.sources.ordinal import Ordinals
from builder.sources.recognise import (
    describe_unknown,
    is_zip,
    packing,
    read_head,
    recognise,
    unpack_head,
)
from builder.sources.records import RecordReader
from builder.sources.search import ArchiveStart, find_start
from builder.sources.wacz import open_archives
from functions.archive import arc
from functions.archive.gzip_members import GzipMembers
from functions.archive.record import RecordBlock, skip_reason
from functions.archive.stream import RecordStream
from functions.archive.zstd_frames import ZstdFrames

_STREAMS = {"": RecordStream, "gz": GzipMembers, "zst": ZstdFrames}
_NO_EDGE = Edge(None, 1)


class ArchiveReader(Iterator[Event]):
    """The events of a file, or of a range of one, as they are read.

    `first` is the edge at the first record that begins in the range or behind it, `next` that at
    the first one behind the range. Both are known once the events have come to their end. Where a
    range's `first` is not the `next` of the one before, something in the file looked like a
    record's beginning, or did not; the two are then to be read as one.

    `ordinals` are the captures that the range was given and those that it found. Where those of
    two ranges of a file meet, the later one has to be read again, given those of the earlier. The
    fault `gzip-not-per-record`, or `zstd-`, is told once a file, so of several ranges' the first
    one counts.

    `form` is what `recognise` returns for the archive that was found; it is known at the end.
    """

    def __init__(
        self,
        stream: BinaryIO,
        name: str,
        rules: DocumentRules,
        start: int,
        end: int | None,
        ordinals: Ordinals,
        further: bool,
    ) -> None:
        self.form = ""
        self.first: Edge | None = None
        self.next: Edge | None = None
        self.ordinals = ordinals
        self._name = name
        self._rules = rules
        self._further = further
        self._events = self._read(stream, start, end)

    def __iter__(self) -> Iterator[Event]:
        return self._events

    def __next__(self) -> Event:
        return next(self._events)

    def _read(self, stream: BinaryIO, start: int, end: int | None) -> Iterator[Event]:
        if start:
            stream.seek(0)
        head = read_head(stream)
        kind = recognise(head)
        if kind == "wacz" or (kind is None and is_zip(head) and stream.seekable()):
            if not start and (yield from _read_wacz(stream, self._name, self._rules, kind)):
                self.form = "wacz"
        elif found := find_start(head, stream, self._further):
            yield from self._read_records(head, found, stream, start, end)
            return
        elif not start:
            code, detail = describe_unknown(head)
            yield Fault(self._name, None, code, None, detail, "not read")
        self.first = self.next = _NO_EDGE

    def _read_records(
        self, head: bytes, found: ArchiveStart, stream: BinaryIO, start: int, end: int | None
    ) -> Iterator[Event]:
        """Read the archive that was found in a file with the first bytes `head`."""
        is_later = start > found.offset
        tape = _STREAMS[found.packing](found.head, stream, start if is_later else 0, found.offset)
        if found.offset and not start:
            code = tape.shared_code.partition("-")[0] + "-garbage" if found.packing else "garbage"
            done = "left out; read on behind them"
            tape.faults.append((0, code, f"{found.offset} bytes", done))
        if is_later:
            tape.find_record()
        version = _read_version(found.head) if is_later else 1
        file = RecordReader(tape, self._name, self._rules, version, self.ordinals)
        kind = recognise(found.head)
        detail = describe_unknown(head)[1] if packing(head) is None else ""
        yield from file.events(kind, start, end, detail)
        packed = "." + found.packing if found.packing else ""
        self.form = kind or (file.form and file.form + packed)
        self.first, self.next = file.first, file.next


def read_archive(
    stream: BinaryIO,
    name: str,
    rules: DocumentRules,
    start: int = 0,
    end: int | None = None,
    ordinals: Ordinals | None = None,
    *,
    further: bool = False,
) -> ArchiveReader:
    """Read an ARC, WARC or WACZ file, compressed or not: all of it, or a range.

    `name` is the file's, without its folder. `start` and `end` are offsets in the file: read are
    the records that begin at `start` or behind it and before `end`, with what is wrong between one
    and the next. A WACZ is read whole, by the range that begins at 0. A WACZ's stream must seek, as
    must that of a range with a `start`; others are read forward. `ordinals` are the captures of
    the file's earlier ranges. `further`: something suggests an archive, so that it is also sought
    behind the file's first 16 KB. Nothing in the data raises; an OSError of the stream does,
    and StoreError where scratch files cannot be written.
    """
    ordinals = Ordinals() if ordinals is None else ordinals
    return ArchiveReader(stream, name, rules, start, end, ordinals, further)


def _read_version(head: bytes) -> int:
    """Return the version that an ARC file announces, by its first bytes."""
    tape = RecordStream(unpack_head(head), BytesIO())
    tape.next_section()
    tape.skip_garbage()
    if tape.peek(5).upper() == b"WARC/":
        return 1
    record, _ = arc.read_header(tape, 1)
    if record is None or record.length is None or skip_reason(record) != "filedesc":
        return 1
    return arc.parse_version(RecordBlock(tape, record.length).take(arc.ANNOUNCEMENT))


def _read_wacz(
    stream: BinaryIO, name: str, rules: DocumentRules, kind: str | None
) -> Generator[Event, None, bool]:
    """Yield the events of the archives within, and return whether the file is a WACZ."""
    if not stream.seekable():
        detail = "a WACZ is read only where the stream can seek"
        yield Fault(name, None, "wacz-damaged", None, detail, "not read")
        return True
    known = kind is not None
    untold: list[Fault] = []  # of what may be no WACZ
    for item in open_archives(stream, name):
        if isinstance(item, Fault) and not known:
            untold.append(item)
            continue
        yield from untold
        known, untold = True, []
        if isinstance(item, Fault):
            yield item
        else:
            inner, opened = item
            yield from read_archive(cast(BinaryIO, opened), f"{name}/{inner}", rules, further=True)
    if not known:
        yield Fault(name, None, "not-an-archive", None, "a zip file that is no WACZ", "not read")
    return known

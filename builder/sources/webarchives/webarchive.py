"""Reader of web archives: bytes in; captures, skipped records and faults out.

The reader is our own. warcio gives dates that the file does not have: it pads short ones and puts
bad ones into the year 2999. It drops the media type of ARC headers, returns short payloads
silently, prints warnings to standard error, and stops at the first bad record. Here each record
gives exactly one capture or one skipped record, and faults besides.

WACZ files (Webrecorder, WACZ 1.1.1) are zip files with web archives in their archive folder. A
wrong checksum of the zip is a fault, and reading continues. So damage loses no more captures than
outside a WACZ. What its manifest, `datapackage.json`, lists is compared with what is there. A
package of several WACZ files (`multi-wacz-package`) holds them uncompressed: they are read in turn.
"""

import hashlib
import io
import json
import posixpath
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from io import BytesIO
from typing import BinaryIO, cast

from builder.intake.captures import Fault
from builder.sources.webarchives.backlog import ExchangeRecord
from builder.sources.webarchives.events import Edge, Event
from builder.sources.webarchives.recognise import (
    describe_unknown,
    is_zip,
    packing,
    read_head,
    recognise,
    unpack_head,
)
from builder.sources.webarchives.records import RecordReader
from builder.sources.webarchives.rules import DocumentRules
from builder.sources.webarchives.search import ArchiveStart, find_start
from functions.archive import record_header
from functions.archive.gzip_members import GzipMembers
from functions.archive.record import RecordBlock, skip_reason
from functions.archive.stream import RecordStream
from functions.archive.zip_directory import (
    STORED,
    UnpackedEntry,
    ZipEntry,
    read_entries,
    read_range,
)
from functions.archive.zstd_frames import ZstdFrames
from functions.store.window_stream import PieceStream, RangeFile

_STEP = 1 << 17
_MANIFEST = "datapackage.json"
_MANIFEST_BYTES = 1 << 24
_LISTED = 100  # faults of one kind in a manifest
_ELSEWHERE = re.compile(r"\.(?:w?arc(?:\.gz|\.zst)?|wacz)", re.IGNORECASE)


class WaczArchive(PieceStream):
    """A file within a zip file; it ends where its bytes become unreadable."""

    def __init__(self, stream: BinaryIO, entry: ZipEntry) -> None:
        self.sha256 = hashlib.sha256()
        self._unpacked = UnpackedEntry(
            read_range(stream, entry.start, entry.packed), entry.method, entry.packed, entry.crc
        )
        super().__init__(map(self._hash, self._unpacked.pieces()))

    def _hash(self, piece: bytes) -> bytes:
        self.sha256.update(piece)
        return piece

    @property
    def damage(self) -> str:
        """The damage, known once the file is read to its end."""
        return self._unpacked.damage


def open_archives(stream: BinaryIO, name: str) -> Iterator[tuple[str, BinaryIO] | Fault]:
    """Yield the archives in a WACZ with their names in it, and faults.

    Other WACZ files in it are among the archives, unless `name` is itself that of one in another.
    """
    size = stream.seek(0, io.SEEK_END)
    is_inner = "/" in name

    def is_archive(entry: ZipEntry) -> bool:
        return entry.is_archive or (_is_wacz(entry) and not is_inner)

    def is_wanted(entry: ZipEntry) -> bool:
        return is_archive(entry) or entry.name == _MANIFEST or bool(_ELSEWHERE.search(entry.name))

    listing = read_entries(stream, size, is_wanted)
    entries = [entry for entry in listing.entries if is_archive(entry)]
    if listing.problem:
        done = "read by the headers of its files" if entries else "not read"
        yield Fault(name, None, "wacz-damaged", None, f"directory: {listing.problem}", done)
    elif not entries:
        yield Fault(name, None, "wacz-empty", None, "", "nothing to read")
    manifest = _read_manifest(stream, listing.entries)
    present = {_normalise(entry.name) for entry in listing.entries}
    missing = [] if listing.problem else [path for path in manifest if path not in present]
    for path in missing[:_LISTED]:
        yield Fault(name, None, "wacz-member", None, f"{path} is missing", "passed over")
    outside = [e for e in listing.entries if e not in entries and _ELSEWHERE.search(e.name[-9:])]
    for entry in outside[:_LISTED]:
        detail = f"{entry.name} is not in the archive folder"
        yield Fault(name, entry.header, "wacz-member", None, detail, "not read: unzip it first")
    for entry in entries:
        yield from _open_archive(stream, entry, name, manifest.get(_normalise(entry.name), ""))


def _is_wacz(entry: ZipEntry) -> bool:
    return entry.name.lower().endswith(".wacz") and entry.is_readable and entry.method == STORED


def _normalise(path: str) -> str:
    return posixpath.normpath(path.replace("\\", "/")).lstrip("/")


def _read_manifest(stream: BinaryIO, entries: Sequence[ZipEntry]) -> dict[str, str]:
    """Return the paths that a WACZ lists and their digests as written; empty if unreadable."""
    entry = next((e for e in entries if e.name == _MANIFEST and e.is_readable), None)
    if entry is None:
        return {}
    member = WaczArchive(stream, entry)
    data = b""
    while len(data) < _MANIFEST_BYTES and (piece := member.read(_STEP)):
        data += piece
    try:
        resources = json.loads(data)["resources"]
        rows = [(row["path"], row.get("hash")) for row in resources]
        return {
            _normalise(path): digest if isinstance(digest, str) else "" for path, digest in rows
        }
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}


def _open_archive(
    stream: BinaryIO, entry: ZipEntry, name: str, digest: str
) -> Iterator[tuple[str, BinaryIO] | Fault]:
    if entry.encrypted:
        detail = f"{entry.name} is encrypted"
        yield Fault(name, entry.header, "wacz-damaged", None, detail, "not read")
        return
    if not entry.is_readable:
        detail = f"{entry.name} by zip method {entry.method}"
        yield Fault(name, entry.header, "unsupported-compression", None, detail, "not read")
        return
    inner = WaczArchive(stream, entry)
    is_wacz = _is_wacz(entry)
    yield entry.name, _open_stored(stream, entry) if is_wacz else cast(BinaryIO, inner)
    while inner.read(_STEP):  # its reader may stop before the end
        pass
    if inner.damage:
        detail, done = f"{entry.name}: {inner.damage}", "read as far as possible"
        yield Fault(name, entry.header, "wacz-damaged", None, detail, done)
    elif digest.startswith("sha256:") and digest.lower() != f"sha256:{inner.sha256.hexdigest()}":
        detail = f"{entry.name} has another digest than {_MANIFEST} says"
        yield Fault(name, entry.header, "wacz-member", None, detail, "read as it is")


def _open_stored(stream: BinaryIO, entry: ZipEntry) -> BinaryIO:
    def read(start: int, length: int) -> bytes:
        stream.seek(entry.start + start)
        return stream.read(length)

    # No range is read ahead (`end`): another thread must not move the stream.
    return io.BufferedReader(RangeFile(read, entry.packed, end=0, least=_STEP))


_STREAMS = {"": RecordStream, "gz": GzipMembers, "zst": ZstdFrames}


class ArchiveReader(Iterable[Event]):
    """The events of an ARC, WARC or WACZ file, compressed or not, or of a range of it.

    `name` is the file's name without its folder. `start` and `end` are offsets in the file: the
    records that begin in [start, end) are read, with the faults behind each of them. The range that
    begins at 0 reads a whole WACZ. The stream must be seekable for a WACZ and for a `start` above
    0; otherwise it is read forward. `further`: something suggests an archive, so it is searched
    beyond the file's first 16 KB.

    `first` is the edge at the first record after the range's start, `next` the edge at the first
    record after its end. Both are known at the end of the events. If a range's `first` differs
    from the `next` of the range before, false or missed record starts are likely: read the two
    ranges as one. `near` is that of its Exchanges. `form` is what `recognise` returns for the
    archive; it is known at the end.

    Equal captures are counted within the range. The fault `gzip-not-per-record` (or `zstd-`) is
    reported once a file: of several ranges, the first reports it.

    No data raises. The stream's OSError does, and StoreError if scratch files cannot be written.
    """

    def __init__(
        self,
        stream: BinaryIO,
        name: str,
        rules: DocumentRules,
        start: int = 0,
        end: int | None = None,
        *,
        further: bool = False,
    ) -> None:
        self.form = ""
        self.first: Edge | None = None
        self.next: Edge | None = None
        self.near: list[ExchangeRecord] = []
        self._name = name
        self._rules = rules
        self._further = further
        self._events = self._read(stream, start, end)

    def __iter__(self) -> Iterator[Event]:
        return self._events

    def _read(self, stream: BinaryIO, start: int, end: int | None) -> Iterator[Event]:
        if start:
            stream.seek(0)
        head = read_head(stream)
        kind = recognise(head)
        if kind == "wacz" or (kind is None and is_zip(head) and stream.seekable()):
            if not start and (yield from _read_wacz(stream, self._name, self._rules, kind)):
                self.form = "wacz"
        elif kind is None and recognise(unpack_head(head)):
            if not start:
                done = "not read: decompress it once"
                code = "unsupported-compression"
                yield Fault(self._name, None, code, None, "compressed twice", done)
        elif archive := find_start(head, stream, self._further):
            yield from self._read_records(head, archive, stream, start, end)
            return
        elif not start:
            code, detail = describe_unknown(head)
            yield Fault(self._name, None, code, None, detail, "not read")
        self.first = self.next = Edge(None, 1)

    def _read_records(
        self, head: bytes, archive: ArchiveStart, stream: BinaryIO, start: int, end: int | None
    ) -> Iterator[Event]:
        """Read the archive `archive` in a file with the first bytes `head`."""
        is_later = start > archive.offset
        records = _STREAMS[archive.packing](
            archive.head, stream, start if is_later else 0, archive.offset
        )
        if archive.offset and not start:
            code = (
                records.shared_code.partition("-")[0] + "-garbage" if archive.packing else "garbage"
            )
            done = "skipped; reading continues after them"
            records.faults.append((0, code, f"{archive.offset} bytes", done))
        if is_later:
            records.find_record()
        version = _read_version(archive.head) if is_later else 1
        file = RecordReader(records, self._name, self._rules, version)
        kind = recognise(archive.head)
        detail = describe_unknown(head)[1] if packing(head) is None else ""
        yield from file.events(kind, start, end, detail)
        packed = "." + archive.packing if archive.packing else ""
        self.form = kind or (file.form and file.form + packed)
        self.first, self.next, self.near = file.first, file.next, file.near


def _read_version(head: bytes) -> int:
    """Return the version that an ARC file announces in its first bytes."""
    records = RecordStream(unpack_head(head), BytesIO())
    records.next_section()
    records.skip_garbage()
    if records.peek(5).upper() == b"WARC/":
        return 1
    record, _ = record_header.read_arc(records, 1)
    if record is None or record.length is None or skip_reason(record) != "filedesc":
        return 1
    return record_header.parse_arc_version(
        RecordBlock(records, record.length).take(record_header.ARC_ANNOUNCEMENT)
    )


def _read_wacz(
    stream: BinaryIO, name: str, rules: DocumentRules, kind: str | None
) -> Generator[Event, None, bool]:
    """Yield the events of the archives within; return whether the file is a WACZ."""
    if not stream.seekable():
        detail = "a WACZ is read only where the stream can seek"
        yield Fault(name, None, "wacz-damaged", None, detail, "not read")
        return True
    is_wacz = kind is not None
    held_faults: list[Fault] = []  # until it is known to be a WACZ
    for item in open_archives(stream, name):
        if isinstance(item, Fault) and not is_wacz:
            held_faults.append(item)
            continue
        yield from held_faults
        is_wacz, held_faults = True, []
        if isinstance(item, Fault):
            yield item
        else:
            inner, opened = item
            yield from ArchiveReader(opened, f"{name}/{inner}", rules, further=True)
    if not is_wacz:
        yield Fault(name, None, "not-an-archive", None, "a zip file that is not a WACZ", "not read")
    return is_wacz

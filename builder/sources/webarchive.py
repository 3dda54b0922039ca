"""Reading a web archive: bytes in; captures, records left out and faults out.

The reader is our own. The library at hand, warcio, gives dates that the file does not have (it
pads short ones and puts bad ones into the year 2999), drops the media type of ARC headers, returns
short payloads without a word, prints warnings to standard error, and ends at the first bad record.
Here each record ends in exactly one capture or one record left out; faults come in addition.
"""

from collections.abc import Iterator
from typing import BinaryIO, cast

from builder.sources import arc, crawl, warc
from builder.sources.capture import Captures, Found, refused, status_of
from builder.sources.digest import Declared, parse
from builder.sources.event import Crawl, Event, Fault, Rules, Skipped
from builder.sources.member import Members
from builder.sources.message import Message, read_message
from builder.sources.payload import Payload, read_payload
from builder.sources.recognise import HEAD, is_broken_gzip, is_gzip, is_zip, recognise, unread
from builder.sources.record import Block, Flaw, Record, left_out
from builder.sources.tape import Tape
from builder.sources.wacz import inner_files


def read(stream: BinaryIO, name: str, rules: Rules) -> Iterator[Event]:
    """Read an ARC, WARC or WACZ file, compressed or not, from its beginning.

    `name` is the file's, without its folder. A WACZ's stream must seek; others are read forward.
    Nothing in the data raises; an OSError of the stream does.
    """
    head = _head(stream)
    kind = recognise(head)
    if kind == "wacz" or (kind is None and is_zip(head) and stream.seekable()):
        yield from _read_wacz(stream, name, rules, kind)
    elif kind is not None or is_broken_gzip(head):
        tape = Members(head, stream) if is_gzip(head) else Tape(head, stream)
        yield from _File(tape, name, rules).events(kind)
    else:
        code, detail = unread(head)
        yield Fault(name, None, code, None, detail, "not read")


def _head(stream: BinaryIO) -> bytes:
    head = b""
    while len(head) < HEAD:
        piece = stream.read(HEAD - len(head))
        if not piece:
            break
        head += piece
    return head


def _start(block: Block) -> bytes:
    """Return the first bytes of a block, as many as are looked at for what it says of a crawl."""
    data = b""
    while len(data) < crawl.MOST and (piece := block.take(crawl.MOST - len(data))):
        data += piece
    return data


def _read_wacz(stream: BinaryIO, name: str, rules: Rules, kind: str | None) -> Iterator[Event]:
    if not stream.seekable():
        detail = "a WACZ is read only where the stream can seek"
        yield Fault(name, None, "wacz-damaged", None, detail, "not read")
        return
    stream.seek(0)
    for item in inner_files(stream, name):
        if not isinstance(item, Fault):
            inner, opened = item
            yield from read(cast(BinaryIO, opened), f"{name}/{inner}", rules)
        elif kind is None:
            yield Fault(
                name, None, "not-an-archive", None, "a zip file that is no WACZ", "not read"
            )
        else:
            yield item


class _File:
    """One file's reading: its tape, and what has to be remembered from record to record."""

    def __init__(self, tape: Tape, name: str, rules: Rules) -> None:
        self._tape = tape
        self._name = name
        self._rules = rules
        self._captures = Captures(name, rules)
        self._arc_version = 1
        self._shared = False  # whether a member was found to hold several records
        self._records = 0
        self._crawl: Crawl | None = None

    def events(self, kind: str | None) -> Iterator[Event]:
        """Read all records; a file without any, which was not recognised either, is no archive."""
        tape = self._tape
        while tape.next_section():
            first = True
            yield from self._garbage(tape.place(), tape.settle())
            while not tape.ended():
                yield from self._record(first)
                yield from self._file_faults()
                first = False
        if not self._records and kind is None:
            tape.faults.clear()
            yield Fault(self._name, None, "not-an-archive", None, "damaged gzip", "not read")
        yield from self._file_faults()

    def _record(self, first: bool) -> Iterator[Event]:
        tape = self._tape
        self._records += 1
        offset = tape.offset(first)
        place = tape.place()
        if tape.peek(5).upper() == b"WARC/":
            record, flaws = warc.read_header(tape)
        else:
            record, flaws = arc.read_header(tape, self._arc_version)
        if offset is None and not self._shared:
            self._shared = True
            done = "published without offset; the file's other such records too"
            yield Fault(self._name, place, "gzip-not-per-record", None, "", done)
        reason, found = self._body(record, flaws, offset)
        end = tape.place()
        length, garbage = tape.close_record(offset)
        if found and reason is None:
            capture, more = self._captures.made(found, length)
            flaws += more
            yield capture
        else:
            yield Skipped(reason or "damaged")
        if self._crawl is not None:
            yield self._crawl
            self._crawl = None
        yield from self._captures.faults(place, flaws)
        yield from self._garbage(end, garbage)

    def _body(
        self, record: Record | None, flaws: list[Flaw], offset: int | None
    ) -> tuple[str | None, Found | None]:
        """Read a record's block; return why it is left out, or what was found."""
        if record is None:
            return "damaged", None
        reason = left_out(record)
        if record.length is None:
            return reason or "damaged", None
        block = Block(self._tape, record.length)
        found: Found | None = None
        if reason == "filedesc" and record.is_arc:
            head = _start(block)
            self._arc_version = arc.announced_version(head[: 1 << 12])
            self._crawl = crawl.read(head)
        elif reason == "warcinfo":
            self._crawl = crawl.read(_start(block))
        elif reason is None:
            reason, found = self._document(record, block, flaws, offset)
        block.drain()
        if block.missing:
            detail = f"declared {block.length} bytes, found {block.length - block.missing}"
            done = "left out" if reason else "published as truncated"
            flaws.append(("payload-short", None, detail, done))
        return reason, found

    def _document(
        self, record: Record, block: Block, flaws: list[Flaw], offset: int | None
    ) -> tuple[str | None, Found | None]:
        if not record.url:
            return "no-target-uri", None
        message: Message | None = None
        first = b""
        if record.type != "resource" or record.mime[:16].lower() == b"application/http":
            message, first, more = read_message(block)
            flaws += more
        reason = refused(record, status_of(record, message), self._rules)
        if reason:
            return reason, None
        declared = self._declared(record, flaws)
        payload: Payload | None = None
        if record.type != "revisit":
            whole = None if b"warc-segment-number" in record.fields else declared
            payload = read_payload(block, first, message, whole, self._rules.head_bytes)
            flaws += payload.flaws
        return None, Found(record, message, payload, declared, offset, block.missing)

    def _declared(self, record: Record, flaws: list[Flaw]) -> Declared | None:
        text = record.fields.get(b"warc-payload-digest")
        if not text:
            return None
        declared = parse(text)
        if declared is None:
            detail = text[:100].decode("latin-1").encode("unicode_escape").decode("ascii")
            done = "published without it" if record.type == "revisit" else "not compared"
            flaws.append(("digest-unreadable", "WARC-Payload-Digest", detail, done))
        return declared

    def _garbage(self, place: int, size: int) -> Iterator[Fault]:
        if size:
            detail = f"{size} bytes"
            yield Fault(self._name, place, "garbage", None, detail, "left out; read on behind them")

    def _file_faults(self) -> Iterator[Fault]:
        faults, self._tape.faults = self._tape.faults, []
        for place, code, detail, done in faults:
            yield Fault(self._name, place, code, None, detail, done)

"""Writes the zip of a WACZ file (WACZ 1.1.1) in one pass, with index and metadata.

Size and digest of each file are recorded for the package metadata (section 5).

The index is ZipNum: gzip members of some lines each, and a secondary index of the members. With
it, a reader finds a URL by two range requests. After a header line, the secondary index has a
line for each member: key and time of its first line, offset, length and digest.
"""

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain, islice
from typing import BinaryIO

from builder.exports.chosen_captures import (
    PAGES_HEADING,
    Chosen,
    SortedLines,
    in_order,
    index_line,
    is_page,
    page_date,
    page_line,
)
from builder.exports.warcinfo import About, software, warcinfo
from builder.obi.history import write_json
from builder.zip import Bundle, Open, ZipSink
from functions.snapshot import instant
from functions.store import engine

NAME, DIGEST_NAME = "datapackage.json", "datapackage-digest.json"
_LABEL = "sha256:"
LINES = 1024
"""Lines of a member."""
LARGEST = 1 << 30
"""Maximum bytes of a WARC file before the next one begins, as is usual in archives."""
HEADING = b'!meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}\n'
"""The first line of the secondary index."""

_INDEX, _SECOND, _PAGES = "indexes/index.cdx.gz", "indexes/index.idx", "pages/pages.jsonl"


def pack_index(lines: Iterable[bytes], many: int = LINES) -> Iterator[tuple[bytes, bytes]]:
    """Yield the members of sorted CDXJ lines, each after its line of the secondary index."""
    left, offset = iter(lines), 0
    while batch := list(islice(left, many)):
        block = gzip.compress(b"".join(batch), mtime=0)
        digest = _LABEL + hashlib.sha256(block).hexdigest()
        place = {"offset": offset, "length": len(block), "digest": digest}
        key = b" ".join(batch[0].split(b" ", 2)[:2])
        yield b"%b %b\n" % (key, json.dumps(place).encode("ascii")), block
        offset += len(block)


class _File:
    """Writes a file of the zip, and counts and hashes its bytes."""

    def __init__(self, to: Open) -> None:
        self._to = to
        self.sha256 = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> None:
        """Write more bytes."""
        self._to.write(data)
        self.sha256.update(data)
        self.size += len(data)


class Parcel:
    """Writes a WACZ file to a sink: the records one by one, and then `end`.

    The database of `connection` sorts the index. A WARC file ends when it has `largest` bytes.
    """

    def __init__(
        self, sink: ZipSink, connection: engine.Connection, about: About, largest: int = LARGEST
    ) -> None:
        self._bundle = Bundle(sink)
        self._about = about
        self._largest = largest
        self._resources: list[dict[str, object]] = []
        self._open = ExitStack()
        self._file: _File | None = None
        self._archives = 0
        self._index = SortedLines(connection, "index_lines")
        self._pages = SortedLines(connection, "page_lines")
        self._main: str | None = None
        self.pages = 0

    def add(self, chosen: Chosen, record: BinaryIO, request: BinaryIO | None = None) -> None:
        """Write the record of a capture: a gzip member from the stream's position to its end.

        The `request` of the capture is written directly before or after it, in the original order.
        So a reader of this file alone can pair them.
        """
        file = self._archive()
        for stream in in_order(chosen, record, request):
            offset, digest = file.size, hashlib.sha256()
            while piece := stream.read(1 << 18):
                file.write(piece)
                digest.update(piece)
            if stream is record:
                label = _LABEL + digest.hexdigest()
                length = file.size - offset
                self._index.add(index_line(chosen, _name(self._archives), offset, length, label))
        if is_page(chosen):
            # Sorted by the key of its index line, which is removed again.
            key = f"{chosen.capture.surt} {chosen.capture.stamp}\t".encode("ascii")
            self._pages.add(key + page_line(chosen))
            self.pages += 1
            if chosen.capture.url == self._about.main:
                self._main = max(self._main or "", page_date(chosen.capture))

    def end(self) -> None:
        """Write the index and metadata, and the end of the zip."""
        if self._file is None:
            self._archive()  # a WACZ file has at least one
        self._open.close()
        second = [HEADING]
        with self._member(_INDEX) as out:
            for line, block in pack_index(self._index):
                second.append(line)
                out.write(block)
        self._write(_SECOND, second)
        pages = (line.partition(b"\t")[2] for line in self._pages)
        self._write(_PAGES, chain((PAGES_HEADING,), pages))
        package = write_json(self._describe())
        digest = {"path": NAME, "hash": _LABEL + hashlib.sha256(package).hexdigest()}
        self._write(NAME, [package])
        self._write(DIGEST_NAME, [write_json(digest)])
        self._bundle.end()

    @property
    def size(self) -> int:
        """Number of bytes written."""
        return self._bundle.size

    def _describe(self) -> dict[str, object]:
        """Return the package metadata, which is a Frictionless data package as well."""
        document: dict[str, object] = {
            "profile": "data-package",
            "resources": self._resources,
            "wacz_version": "1.1.1",
            "title": self._about.title,
            "description": self._about.description,
            "software": software(),
            "created": instant.to_text(self._about.created),
        }
        if self._main is not None:
            document |= {"mainPageUrl": self._about.main, "mainPageDate": self._main}
        return document

    def _archive(self) -> _File:
        """Return the WARC file for the next record."""
        if self._file is None or self._file.size >= self._largest:
            self._open.close()
            self._archives += 1
            name = _name(self._archives)
            self._file = self._open.enter_context(self._member(f"archive/{name}"))
            for piece in warcinfo(name, self._about):
                self._file.write(piece)
        return self._file

    def _write(self, path: str, pieces: Iterable[bytes]) -> None:
        with self._member(path) as out:
            for piece in pieces:
                out.write(piece)

    @contextmanager
    def _member(self, path: str) -> Iterator[_File]:
        with self._bundle.member(path) as taking:
            file = _File(taking)
            yield file
        self._resources.append(
            {
                "name": path.rpartition("/")[2],
                "path": path,
                "hash": _LABEL + file.sha256.hexdigest(),
                "bytes": file.size,
            }
        )


def _name(number: int) -> str:
    return f"data-{number:05}.warc.gz"

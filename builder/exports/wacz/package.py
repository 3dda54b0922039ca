"""Writes the zip of a WACZ file (WACZ 1.1.1) in one pass, with index and metadata.

Size and digest of each file are recorded for the package metadata (section 5).

The index is ZipNum: gzip members of some lines each, and a secondary index of the members. With
it, a reader finds a URL by two range requests. After a header line, the secondary index has a
line for each member: key and time of its first line, offset, length and digest.
"""

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

from builder.exports import chosen_captures
from builder.exports.chosen_captures import Chosen, SortedLines, index_line
from builder.exports.warcinfo import About, warcinfo
from builder.zip import Bundle, Open, ZipSink
from functions.snapshot import instant

NAME, DIGEST_NAME = "datapackage.json", "datapackage-digest.json"
_VERSION = "1.1.1"
_LABEL = "sha256:"
LINES = 1024
"""Lines of a member."""
LARGEST = 1 << 30
"""Maximum bytes of a WARC file before the next one begins, as is usual in archives."""

_INDEX, _SECOND, _PAGES = "indexes/index.cdx.gz", "indexes/index.idx", "pages/pages.jsonl"
_STEP = 1 << 18


@dataclass(frozen=True, slots=True)
class PackageResource:
    """A file of the package: its path, SHA-256 in hexadecimal digits, and size."""

    path: str
    sha256: str
    bytes: int


def package_json(
    about: About, resources: Sequence[PackageResource], main: str | None = None
) -> bytes:
    """Return datapackage.json, which is a Frictionless data package as well.

    `main` is the date (RFC 3339) of the page with the URL About.main, if it is in the package.
    """
    document: dict[str, object] = {
        "profile": "data-package",
        "resources": [
            {
                "name": resource.path.rpartition("/")[2],
                "path": resource.path,
                "hash": _LABEL + resource.sha256,
                "bytes": resource.bytes,
            }
            for resource in resources
        ],
        "wacz_version": _VERSION,
        "title": about.title,
        "description": about.description,
        "software": about.software,
        "created": instant.to_text(about.created),
    }
    if main is not None:
        document["mainPageUrl"], document["mainPageDate"] = about.main, main
    return json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n"


def zipnum_blocks(lines: Iterable[bytes], many: int = LINES) -> Iterator[tuple[bytes, bytes]]:
    """Yield the members of sorted CDXJ lines, each with the first two fields of its first line."""
    left = iter(lines)
    while batch := list(islice(left, many)):
        key = b" ".join(batch[0].split(b" ", 2)[:2])
        yield key, gzip.compress(b"".join(batch), mtime=0)


def zipnum_heading(name: str) -> bytes:
    """Return the header line of the secondary index for the file `name`."""
    return _line(b"!meta 0", {"format": "cdxj-gzip-1.0", "filename": name})


def zipnum_entry(key: bytes, offset: int, block: bytes) -> bytes:
    """Return the secondary index's line for a member at `offset` of the index."""
    digest = f"sha256:{hashlib.sha256(block).hexdigest()}"
    return _line(key, {"offset": offset, "length": len(block), "digest": digest})


def _line(key: bytes, fields: dict[str, object]) -> bytes:
    return b"%b %b\n" % (key, json.dumps(fields).encode("ascii"))


class _File:
    """Writes a file of the zip, and counts and hashes its bytes."""

    def __init__(self, to: Open) -> None:
        self._to = to
        self._sha256 = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> None:
        """Write more bytes."""
        self._to.write(data)
        self._sha256.update(data)
        self.size += len(data)

    def resource(self, path: str) -> PackageResource:
        """Return the entry of the file in the package metadata."""
        return PackageResource(path, self._sha256.hexdigest(), self.size)


class Parcel:
    """Writes a WACZ file to a sink: the records one by one, and then `end`.

    `folder` must have no other user; it holds the part of the index that exceeds memory. A WARC
    file ends when it has `largest` bytes.
    """

    def __init__(self, sink: ZipSink, folder: Path, about: About, largest: int = LARGEST) -> None:
        self._bundle = Bundle(sink)
        self._about = about
        self._largest = largest
        self._resources: list[PackageResource] = []
        self._open = ExitStack()
        self._file: _File | None = None
        self._archives = 0
        self._index = SortedLines(_make_folder(folder / "index"))
        self._pages = SortedLines(_make_folder(folder / "pages"))
        self._main: str | None = None
        self.pages = 0

    def add(self, chosen: Chosen, record: BinaryIO, request: BinaryIO | None = None) -> None:
        """Write the record of a capture: a gzip member from the stream's position to its end.

        The `request` of the capture is written directly before or after it, in the original order.
        So a reader of this file alone can pair them.
        """
        file = self._archive()
        if request is not None and chosen_captures.precedes(chosen):
            _copy(request, file)
        offset = file.size
        digest = hashlib.sha256()
        while piece := record.read(_STEP):
            file.write(piece)
            digest.update(piece)
        label = f"sha256:{digest.hexdigest()}"
        length = file.size - offset
        if request is not None and not chosen_captures.precedes(chosen):
            _copy(request, file)
        self._index.add(index_line(chosen, _name(self._archives), offset, length, label))
        if chosen_captures.is_page(chosen):
            # Sorted by the key of its index line, which is removed again.
            key = f"{chosen.capture.surt} {chosen.capture.stamp}\t".encode("ascii")
            self._pages.add(key + chosen_captures.page_line(chosen))
            self.pages += 1
            if chosen.capture.url == self._about.main:
                self._main = max(self._main or "", chosen_captures.page_date(chosen.capture))

    def end(self) -> None:
        """Write the index and metadata, and the end of the zip."""
        if self._file is None:
            self._archive()  # a WACZ file has at least one
        self._open.close()
        second = [zipnum_heading(_INDEX.rpartition("/")[2])]
        with self._member(_INDEX) as out:
            for key, block in zipnum_blocks(self._index):
                second.append(zipnum_entry(key, out.size, block))
                out.write(block)
        self._write(_SECOND, second)
        pages = (line.partition(b"\t")[2] for line in self._pages)
        self._write(_PAGES, chain((chosen_captures.PAGES_HEADING,), pages))
        document = package_json(self._about, self._resources, self._main)
        digest = {"path": NAME, "hash": _LABEL + hashlib.sha256(document).hexdigest()}
        ends = json.dumps(digest, indent=1).encode() + b"\n"
        for path, data in ((NAME, document), (DIGEST_NAME, ends)):
            with self._bundle.member(path) as out_:
                out_.write(data)
        self._bundle.end()

    @property
    def size(self) -> int:
        """Number of bytes written."""
        return self._bundle.size

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
            self._resources.append(file.resource(path))


def _copy(record: BinaryIO, file: _File) -> None:
    while piece := record.read(_STEP):
        file.write(piece)


def _make_folder(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _name(number: int) -> str:
    return f"data-{number:05}.warc.gz"

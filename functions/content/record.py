"""Finds the record of a capture in the archive files and opens its payload."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

from functions.archive import record_reader
from functions.archive.record_reader import Document, NoDocumentError, UnreadableRecordError
from functions.content.capture import CaptureRow
from functions.content.errors import ContentError
from functions.content.protocols import Archives
from functions.url import authority

_SKIPPABLE = b"\x5d\x2a\x4d\x18"  # frame of a zstd file's dictionary (iipc, WARC-zstd 1.0)
_DICTIONARY = 1 << 23  # bytes


@dataclass(frozen=True, slots=True)
class ArchivedRecord:
    """A capture's record, read up to its payload, and the address of its file."""

    address: str
    document: Document


@contextmanager
def open_record(archives: Archives, capture: CaptureRow) -> Iterator[ArchivedRecord]:
    """Open the record of a capture; its payload is readable inside the block.

    The candidate files are tried in order. Raises ContentError, StoreError.
    """
    if capture.offset is None or not capture.filename:
        raise ContentError(
            "unplaced", f"{capture.identifier}: its offset in the archive file is unknown"
        )
    failures: list[ContentError] = []
    for address in archives.candidates(capture.filename):
        try:
            stream = archives.open(address, capture.offset, capture.stored)
        except ContentError as error:
            failures.append(error)
            continue
        with stream:
            try:
                found = _read(archives, stream, address, capture)
            except ContentError as error:
                failures.append(error)
                continue
            yield ArchivedRecord(address, found)
            return
    raise worst(failures, capture)


def where(capture: CaptureRow) -> str:
    """Return a record's file and offset without the folder, which must not be disclosed."""
    return f"{capture.filename}, byte {capture.offset}"


def _read(archives: Archives, stream: BinaryIO, address: str, capture: CaptureRow) -> Document:
    try:
        found = record_reader.read_record(
            stream, capture.offset or 0, lambda: dictionary(archives, address)
        )
    except NoDocumentError as error:
        raise ContentError("damaged", f"{where(capture)}: {error}") from error
    except UnreadableRecordError as error:
        raise ContentError("undecodable", f"{where(capture)}: {error}") from error
    url = found.record.url
    if url and authority.text(url) != capture.url:
        raise ContentError("damaged", f"{where(capture)}: the record there has another URL")
    return found


def dictionary(archives: Archives, address: str) -> bytes:
    """Return the first frame of a zstd file if it is a dictionary, else b""."""
    with archives.open(address, 0, 8) as stream:
        head = stream.read(8)
    size = 8 + int.from_bytes(head[4:], "little")
    if not head.startswith(_SKIPPABLE) or size > _DICTIONARY + 8:
        return b""
    with archives.open(address, 0, size) as stream:
        data = b""
        while piece := stream.read(size - len(data)):
            data += piece
        return data


def worst(failures: Sequence[ContentError], capture: CaptureRow) -> ContentError:
    """Return the error to raise: a fault in a file is more useful than a missing file."""
    for error in failures:
        if error.code != "not-at-hand":
            return error
    if failures:
        return failures[0]
    return ContentError("not-at-hand", f"{capture.filename} is not in any known place")

"""Export of chosen captures to one WACZ file, or to one CDXJ index."""

import gzip
import shutil
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from builder.export.wacz.package import About, Parcel, warcinfo
from builder.export.wacz.record_copy import cut, cut_request
from builder.export.wacz.selection import (
    Chosen,
    SortedLines,
    index_line,
    position_of,
    precedes,
    read_chosen,
)
from builder.runtime import Advance
from functions.content.archived_payload import open_record
from functions.content.archives import WITHIN
from functions.content.capture_row import CaptureRow
from functions.content.protocols import Archives, ContentError
from functions.database import engine

_LEVEL = 6


@dataclass(frozen=True, slots=True)
class MissingCapture:
    """A chosen capture that could not be exported: the code of its ContentError, and the text.

    The code may also be `undated`: an index line needs a date.
    """

    identifier: str
    url: str
    code: str
    detail: str


Tell = Callable[[MissingCapture], None]
"""Called for each missing capture as it is found."""


@dataclass(slots=True)
class ExportResult:
    """Result: captures chosen, additional originals, pages, bytes, and missing captures."""

    captures: int = 0
    originals: int = 0
    pages: int = 0
    bytes: int = 0
    missing: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class ExportRuntime:
    """Dependencies: the archive files, a folder for large data, and callbacks for reports."""

    archives: Archives
    scratch: Path
    tell: Tell
    advance: Advance


def wacz(
    connection: engine.Connection, out: BinaryIO, about: About, means: ExportRuntime
) -> ExportResult:
    """Write the captures in table `chosen` as a WACZ file. Raises StoreError and OSError."""
    parcel = Parcel(out, means.scratch, about)
    done = _copy_records(connection, means, parcel.add)
    parcel.end()
    done.pages, done.bytes = parcel.pages, parcel.size
    return done


def warc(
    connection: engine.Connection, out: BinaryIO, about: About, means: ExportRuntime, name: str
) -> ExportResult:
    """Write the captures in table `chosen` as a WARC file `name` of gzip members.

    Raises StoreError and OSError.
    """
    out.writelines(warcinfo(name, about))

    def add(one: Chosen, record: BinaryIO, request: BinaryIO | None) -> None:
        pair = [record] if request is None else [record, request]
        for stream in pair[::-1] if precedes(one) else pair:
            shutil.copyfileobj(stream, out)

    done = _copy_records(connection, means, add)
    done.bytes = out.tell()
    return done


def _copy_records(
    connection: engine.Connection,
    means: ExportRuntime,
    add: Callable[[Chosen, BinaryIO, BinaryIO | None], None],
) -> ExportResult:
    """Give the records of the captures in table `chosen`, with their requests, to `add`."""
    done = ExportResult()
    for one in read_chosen(connection):
        means.advance(1)
        if not _is_dated(one.capture, done, means.tell):
            continue
        try:
            with (
                cut(means.archives, one.capture, means.scratch) as record,
                cut_request(means.archives, one.capture, means.scratch) as request,
            ):
                add(one, record, request)
        except ContentError as error:
            _miss(one.capture, error.code, str(error), done, means.tell)
        else:
            done.originals += one.besides
            done.captures += not one.besides
    return done


def cdxj(
    connection: engine.Connection,
    out: BinaryIO,
    means: ExportRuntime,
    twins: Collection[str] = (),
    *,
    packed: bool = False,
) -> ExportResult:
    """Write the captures in table `chosen` as an index of the archive's own files, sorted by bytes.

    `packed` compresses it with gzip. Archive files are read only if their names are in `twins`,
    those of several files: such names get the folders that tell them apart. Raises StoreError and
    OSError.
    """
    done = ExportResult()
    folder = means.scratch / "lines"
    folder.mkdir()
    lines = SortedLines(folder)
    for one in read_chosen(connection):
        means.advance(1)
        if _is_dated(one.capture, done, means.tell):
            place = position_of(one.capture)
            if (one.capture.filename or "").partition("/")[0] in twins:
                place = replace(place, filename=_name_apart(means.archives, one.capture))
            lines.add(index_line(one, place))
            done.captures += 1
    if packed:
        with gzip.GzipFile("", "wb", _LEVEL, out, 0) as packer:
            packer.writelines(lines)
    else:
        out.writelines(lines)
    done.bytes = out.tell()
    return done


def _name_apart(archives: Archives, capture: CaptureRow) -> str | None:
    """Return the name of a capture's file with its folders below those of all files of the name."""
    there = []
    for address in archives.candidates(capture.filename or ""):
        with suppress(ContentError):
            archives.open(address, 0, 1).close()
            there.append(address)
    levels = enumerate(zip(*(address.split("/") for address in there), strict=False))
    first = next((number for number, names in levels if len({*names}) > 1), -1)
    with suppress(ContentError), open_record(archives, capture) as record:
        return "/".join(record.address.split("/")[first:]).replace(WITHIN, "/")
    return capture.filename


def _is_dated(capture: CaptureRow, done: ExportResult, tell: Tell) -> bool:
    """Return whether a capture has a date, and report it as missing if not."""
    if not capture.stamp:
        detail = f"{capture.identifier} ({capture.url}) has no date"
        _miss(capture, "undated", detail, done, tell)
    return bool(capture.stamp)


def _miss(capture: CaptureRow, code: str, detail: str, done: ExportResult, tell: Tell) -> None:
    done.missing[code] += 1
    tell(MissingCapture(capture.identifier, capture.url, code, detail))

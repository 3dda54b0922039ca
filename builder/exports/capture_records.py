"""Records of chosen captures, read from their archive files for an export."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from builder.exports.chosen_captures import Chosen, read_chosen
from builder.exports.record_copy import cut, cut_request
from builder.runtime import Advance
from functions.content.capture_row import CaptureRow
from functions.content.protocols import Archives, ContentError
from functions.store import engine

_LISTED = 1000
"""Maximum number of missing captures that are listed, with --json."""


@dataclass(frozen=True, slots=True)
class MissingCapture:
    """A chosen capture that could not be exported: the code of its ContentError, and the text.

    The code may also be `undated`: an index line needs a date.
    """

    identifier: str
    url: str
    code: str
    detail: str


@dataclass(slots=True)
class ExportResult:
    """Result: captures chosen, additional originals, pages, bytes, and missing captures.

    `missing` counts all by code, and `examples` has the first of them.
    """

    captures: int = 0
    originals: int = 0
    pages: int = 0
    bytes: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    examples: list[MissingCapture] = field(default_factory=list)

    def miss(self, capture: CaptureRow, code: str, detail: str) -> None:
        """Add a capture that could not be exported."""
        self.missing[code] += 1
        if len(self.examples) < _LISTED:
            self.examples.append(MissingCapture(capture.identifier, capture.url, code, detail))


@dataclass(frozen=True, slots=True)
class ExportRuntime:
    """Dependencies: the archive files, a folder for large data, and the progress."""

    archives: Archives
    scratch: Path
    advance: Advance


def copy_records(
    connection: engine.Connection,
    runtime: ExportRuntime,
    add: Callable[[Chosen, BinaryIO, BinaryIO | None], None],
) -> ExportResult:
    """Give the records of the captures in table `chosen`, with their requests, to `add`."""
    done = ExportResult()
    for chosen in read_chosen(connection):
        runtime.advance(1)
        if not is_dated(chosen.capture, done):
            continue
        try:
            with (
                cut(runtime.archives, chosen.capture, runtime.scratch) as record,
                cut_request(runtime.archives, chosen.capture, runtime.scratch) as request,
            ):
                add(chosen, record, request)
        except ContentError as error:
            done.miss(chosen.capture, error.code, str(error))
        else:
            done.originals += chosen.besides
            done.captures += not chosen.besides
    return done


def is_dated(capture: CaptureRow, done: ExportResult) -> bool:
    """Return whether a capture has a date, and report it as missing if not."""
    if not capture.stamp:
        done.miss(capture, "undated", f"{capture.identifier} ({capture.url}) has no date")
    return bool(capture.stamp)

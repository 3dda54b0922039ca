"""`sheaf export dedupe`: the CDX that `wget --warc-dedup` reads.

wget writes a revisit where a URL and the SHA-1 of its payload are in the file. The revisit names
the record by its id. Snapshots have no ids, so they are read from the archive files.
"""

import argparse
from typing import BinaryIO

from builder.arguments import declare
from builder.exports.capture_files import (
    ExportResult,
    ExportRuntime,
    add_selection,
    write_file,
)
from builder.store.context import Context
from functions.content.archived_payload import open_record
from functions.content.capture_row import UNKNOWN, CaptureRow, plain_value
from functions.content.protocols import ContentError

_HEAD = b" CDX a b a m s k r M V g u\n"
_FIELDS = ("url", "timestamp", "url", "mime", "status", "digest", "redirect")
_PLACE = ("offset", "filename")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare(parser, {"file FILE": "file to create"})
    add_selection(parser)


def run(context: Context) -> int:
    """Write what a crawl by wget need not store again.

    The file is for its option `--warc-dedup`. The captures are those of the newest snapshot, either
    all or those that the options select. Revisits, and payloads that are damaged, incomplete or
    without a SHA-1, are passed over.
    """

    def write(out: BinaryIO, runtime: ExportRuntime) -> ExportResult:
        done = ExportResult()
        out.write(_HEAD)
        for chosen in runtime.read(done):
            capture = chosen.capture
            if not _is_original(capture):
                continue
            try:
                with open_record(runtime.archives, capture) as record:
                    name = record.document.record.fields.get(b"warc-record-id", b"").strip()
            except ContentError as error:
                done.miss(capture, error.code, str(error))
                continue
            if not name or b" " in name:
                done.miss(capture, "unnamed", f"{capture.identifier}: its record has no id")
                continue
            texts = (plain_value(capture, field) for field in _FIELDS)
            place = (plain_value(capture, field) for field in _PLACE)
            line = " ".join((*texts, UNKNOWN, *place))
            out.write(line.encode() + b" " + name + b"\n")
            done.captures += 1
        done.bytes = out.tell()
        return done

    return write_file(context, write, originals=False, pages=False)


def _is_original(capture: CaptureRow) -> bool:
    """Return whether a crawl can refer to a capture: a whole payload with a SHA-1, got by GET."""
    is_whole = not (capture.is_revisit or capture.truncated or capture.damaged)
    return is_whole and capture.method is None and ":" not in (capture.digest or ":")

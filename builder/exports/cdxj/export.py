"""`sheaf export cdxj`: an index of the archive's own files, sorted by bytes."""

import argparse
import gzip
from contextlib import suppress
from typing import BinaryIO

from builder.arguments import declare
from builder.exports.capture_files import (
    ExportResult,
    ExportRuntime,
    add_selection,
    write_file,
)
from builder.exports.chosen_captures import SortedLines, index_line
from builder.snapshot import query
from builder.snapshot.sql import Statements
from builder.store.context import Context
from functions.content.archived_payload import open_record
from functions.content.archives import WITHIN
from functions.content.capture_row import CaptureRow
from functions.content.protocols import Archives, ContentError
from functions.store import engine

# Files of the same name: an index has names without folders.
_TWINS = (
    "SELECT source FROM sources WHERE captures > 0 "
    "GROUP BY source HAVING count(DISTINCT digest) > 1"
)
_SQL = Statements(__file__)
_HOST = r"^https?://(?:[Ww]{3}\d*\.)?((?:[0-9A-Za-z_-]+\.)*[A-Za-z]+)"
_LEAVE_ODD = "DELETE FROM chosen WHERE position IN (SELECT position FROM plain_lines)"
_LEVEL = 6


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    file = "file to create; compressed with gzip if the name ends with .gz"
    declare(parser, {"file FILE": file})
    add_selection(parser)


def run(context: Context) -> int:
    """Write an index of captures as CDXJ.

    The captures are those of the newest snapshot, either all or those that the options select.
    """

    def write(out: BinaryIO, runtime: ExportRuntime) -> ExportResult:
        query.prepare_view(runtime.connection, context.store, "sources")
        twins = {name for (name,) in runtime.connection.execute(_TWINS).fetchall()}
        done, lines = ExportResult(), SortedLines(runtime.connection, "index_lines")
        if not twins:
            with engine.reading("the selected captures"):
                runtime.connection.execute(_SQL.get("plain_lines", host=engine.quote(_HOST)))
                runtime.connection.execute("INSERT INTO index_lines SELECT line FROM plain_lines")
                ((done.captures,),) = runtime.connection.execute(_LEAVE_ODD).fetchall()
                runtime.connection.execute("DROP TABLE plain_lines")
            runtime.advance(done.captures)
        for chosen in runtime.read(done):
            capture = chosen.capture
            name = capture.filename
            # Archive files are read only where their name alone does not tell them apart.
            if (name or "").partition("/")[0] in twins:
                name = _name_apart(runtime.archives, capture)
            lines.add(index_line(chosen, name, capture.offset, capture.stored))
            done.captures += 1
        if context.arguments.file.endswith(".gz"):
            with gzip.GzipFile("", "wb", _LEVEL, out, 0) as packer:
                packer.writelines(lines)
        else:
            out.writelines(lines)
        done.bytes = out.tell()
        return done

    return write_file(context, write, originals=False, pages=False)


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

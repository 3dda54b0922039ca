"""`sheaf export wacz`."""

import argparse
from typing import BinaryIO

from builder.arguments import declare
from builder.exports.capture_files import (
    ExportResult,
    ExportRuntime,
    add_selection,
    write_file,
)
from builder.exports.wacz.package import Parcel
from builder.store.context import Context


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare(parser, {"file FILE": "file to create", "--title TEXT": "title of the file"})
    add_selection(parser)


def run(context: Context) -> int:
    """Write captures as one WACZ file, for replay.

    The captures are those of the newest snapshot, either all or those that the options select.
    """

    def write(out: BinaryIO, runtime: ExportRuntime) -> ExportResult:
        parcel = Parcel(out, runtime.connection, runtime.about)
        done = runtime.copy_records(parcel.add)
        parcel.end()
        done.pages, done.bytes = parcel.pages, parcel.size
        return done

    return write_file(context, write, originals=True, pages=True)

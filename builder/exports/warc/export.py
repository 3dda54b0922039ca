"""`sheaf export warc`: gathered files, or chosen captures."""

import argparse
import shutil
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import BinaryIO

from builder.arguments import declare
from builder.errors import UsageError
from builder.exports import obi_source
from builder.exports.capture_files import (
    ExportResult,
    ExportRuntime,
    add_selection,
    is_selected,
    write_file,
)
from builder.exports.chosen_captures import Chosen, in_order
from builder.exports.obi_source import RUNS, choose_runs, open_runs
from builder.exports.staging import target_path
from builder.exports.warc import gathered_files
from builder.exports.warcinfo import warcinfo
from builder.obi.history import history
from builder.progress import ProgressBar
from builder.store.context import Context
from builder.text import tally
from functions.snapshot.errors import NothingPublished


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    file = "one file (FILE.warc or FILE.warc.gz), or a folder with one file per run"
    declare(parser, {"file FILE|DIR": file, **RUNS})
    add_selection(parser)


def run(context: Context) -> int:
    """Write gathered files as WARC/1.1.

    A repeated run adds what is new to a folder. Each object's content is verified. If an option
    selects captures, or the store has nothing else, these are written, to one FILE.warc.gz;
    `--where true` selects all.
    """
    arguments = context.arguments
    if is_selected(arguments) or not history(context.store):
        return _export_captures(context)
    with open_runs(context) as (runs, connection):
        chosen = choose_runs(runs, arguments.runs)
        target = target_path(context.store, arguments.file)
        gathered = obi_source.gather_runs(connection)
        files = [
            gathered_files.FetchedFile(
                each.tist,
                partial(obi_source.sightings, connection, each.tist),
                partial(obi_source.list_exchanges, context.store, each),
                each.is_import,
            )
            for each in chosen
            if each.tist in gathered
        ]
        if not files:
            raise NothingPublished(
                f"{context.store.address}: these runs have no files behind URLs: run `sheaf gather`"
            )
        with ProgressBar("exporting", len(files), " runs") as advance:
            done = gathered_files.export(context.store, files, target, advance)
    text = (
        f"{target}: {tally(done.files, 'WARC file')} written with "
        f"{tally(done.responses, 'response')}, {tally(done.resources, 'resource')} and "
        f"{tally(done.revisits, 'revisit')}; "
        f"{tally(done.there, 'was there', 'were there')}"
    )
    context.result(text, {"store": context.store.address, "warc": str(target), **asdict(done)})
    return 0


def _export_captures(context: Context) -> int:
    name = context.arguments.file
    if name != "-" and (not name.endswith(".gz") or context.arguments.runs):
        raise UsageError("captures are written to a FILE.warc.gz, and without --run")

    def write(out: BinaryIO, runtime: ExportRuntime) -> ExportResult:
        out.writelines(warcinfo(Path(name).name, runtime.about))

        def append(chosen: Chosen, record: BinaryIO, request: BinaryIO | None) -> None:
            for stream in in_order(chosen, record, request):
                shutil.copyfileobj(stream, out)

        done = runtime.copy_records(append)
        done.bytes = out.tell()
        return done

    return write_file(context, write, originals=True, pages=False)

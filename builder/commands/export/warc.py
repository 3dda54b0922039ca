"""`sheaf export warc`."""

import argparse
from dataclasses import asdict
from functools import partial

from builder.commands.export.bagit import add_runs
from builder.context import Context
from builder.export import obi_source, warc
from builder.export.obi_source import choose_runs, open_runs, target_path
from builder.progress import Phase
from builder.text import tally
from functions.snapshot.errors import NothingPublished


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "target", metavar="FILE|DIR",
        help="one file (FILE.warc or FILE.warc.gz), or a folder with one file per run",
    )  # fmt: skip
    add_runs(parser)


def run(context: Context) -> int:
    """Write the files behind URLs as WARC/1.1.

    A repeated run adds what is new to a folder. Each object's content is verified.
    """
    arguments = context.arguments
    with open_runs(context) as (runs, connection):
        chosen = choose_runs(runs, arguments.runs)
        target = target_path(context.store, arguments.target)
        gathered = obi_source.gather_runs(connection)
        found = [
            warc.FetchedFile(run.tist, partial(obi_source.sightings, connection, run.tist))
            for run in chosen
            if run.tist in gathered
        ]
        if not found:
            raise NothingPublished(
                f"{context.store.address}: these runs have no files behind URLs: run `sheaf gather`"
            )
        with Phase("exporting", len(found), " runs") as advance:
            done = warc.export(context.store, found, target, advance)
    text = (
        f"{target}: {tally(done.files, 'WARC file')} written with "
        f"{tally(done.resources, 'resource')} and {tally(done.revisits, 'revisit')}; "
        f"{tally(done.there, 'was there', 'were there')}"
    )
    context.result(text, {"store": context.store.address, "warc": str(target), **asdict(done)})
    return 0

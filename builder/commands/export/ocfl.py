"""`sheaf export ocfl`."""

import argparse
from dataclasses import asdict

from builder.context import Context
from builder.export import obi_source, ocfl_root
from builder.export.obi_source import open_runs, target_path
from builder.progress import Phase
from builder.text import tally


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("dir", metavar="DIR", help="the OCFL storage root")


def run(context: Context) -> int:
    """Write templates and files with all their versions as OCFL 1.1 objects.

    A repeated run adds what is new. Each object's content is verified.
    """
    with open_runs(context) as (_, connection):
        target = target_path(context.store, context.arguments.dir)
        mail = context.configuration["repository.admin_emails"][0]
        user = {"name": "sheaf", "address": f"mailto:{mail}"}
        with Phase("exporting", obi_source.count_objects(connection), " objects") as advance:
            done = ocfl_root.export(
                context.store, obi_source.list_objects(connection), target, user, advance
            )
    text = (
        f"{target}: {tally(done.objects, 'object')} and {tally(done.versions, 'version')} added "
        f"({tally(done.bytes, 'byte')}); {tally(done.there, 'was there', 'were there')}"
    )
    context.result(text, {"store": context.store.address, "ocfl": str(target), **asdict(done)})
    return 0

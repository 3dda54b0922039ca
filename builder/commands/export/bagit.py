"""`sheaf export bagit`."""

import argparse
from dataclasses import asdict

from builder.context import Context
from builder.export import bagit
from builder.export.bagit import bag_of_run
from builder.export.obi_source import choose_runs, open_runs, target_path
from builder.progress import Phase
from builder.text import tally


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("dir", metavar="DIR", help="folder for the bags")
    add_runs(parser)


def add_runs(parser: argparse.ArgumentParser) -> None:
    """Declare the option that selects runs."""
    parser.add_argument(
        "--run", type=int, action="append", dest="runs", metavar="TIST",
        help="only this run; may be repeated",
    )  # fmt: skip


def run(context: Context) -> int:
    """Write a BagIt bag for each run of ingest and gather.

    A repeated run adds the bags that are missing. Each object's content is verified.
    """
    settings, arguments = context.configuration, context.arguments
    with open_runs(context) as (runs, connection):
        chosen = choose_runs(runs, arguments.runs)
        target = target_path(context.store, arguments.dir)
        sender = {
            "Source-Organization": settings["repository.name"],
            "Contact-Email": str(settings["repository.admin_emails"][0]),
        }
        bags = [bag_of_run(context.store, connection, run, sender) for run in chosen]
        with Phase("exporting", len(bags), " bags") as advance:
            done = bagit.export(bags, target, context.now().date(), advance)
    text = (
        f"{target}: {tally(done.bags, 'bag')} added with {tally(done.files, 'file')} "
        f"({tally(done.bytes, 'byte')}); {tally(done.there, 'was there', 'were there')}"
    )
    context.result(text, {"store": context.store.address, "bagit": str(target), **asdict(done)})
    return 0

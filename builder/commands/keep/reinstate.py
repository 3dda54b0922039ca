"""`sheaf reinstate`."""

import argparse
from functools import partial

from builder.commands.keep.withdraw import add_selection, print_preview, selection
from builder.context import Context
from builder.withdraw import reinstate, report


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_selection(parser)


def run(context: Context) -> int:
    """Undo a withdrawal: bring items back.

    Metadata comes from the newest kept snapshot that has it, else from the next
    `sheaf ingest --again` of the items' archive.
    """
    arguments = context.arguments
    chosen = selection(arguments, context.configuration)
    store, settings, runtime = context.store, context.configuration, context.runtime()
    if arguments.dry_run:
        find = partial(reinstate.preview_selection, store, settings, runtime, chosen)
        return print_preview(context, find)
    done = reinstate.reinstate(store, settings, runtime, chosen)
    context.result(report.text(done), report.document(done))
    return 0

"""`sheaf reinstate`."""

import argparse

from builder.commands.withdraw import add_selection, selection
from builder.context import Context
from builder.withdraw import reinstate, report


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_selection(parser)


def run(context: Context) -> int:
    """Undo a withdrawal: bring items back.

    Metadata comes from the newest kept snapshot that has it, else from the next ingest of the
    items' archive.
    """
    arguments = context.arguments
    chosen = selection(arguments, context.configuration)
    store, settings, outside = context.store, context.configuration, context.surroundings()
    if arguments.dry_run:
        most = None if arguments.json else report.SHOWN
        found = reinstate.preview_selection(store, settings, outside, chosen, most)
        context.result(report.preview_text(found), report.preview_document(found))
        return 0
    done = reinstate.restore(store, settings, outside, chosen)
    context.result(report.text(done), report.document(done))
    return 0

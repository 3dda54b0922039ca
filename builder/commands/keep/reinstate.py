"""`sheaf reinstate`."""

import argparse

from builder.commands.keep.withdraw import add_selection, selection
from builder.publish import reinstate
from builder.publish import withdrawal_report as report
from builder.store.context import Context


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
        most = None if arguments.json else report.SHOWN
        preview = reinstate.preview_selection(store, settings, runtime, chosen, most)
        context.result(report.preview_text(preview), report.preview_document(preview))
        return 0
    done = reinstate.reinstate(store, settings, runtime, chosen)
    context.result(report.text(done), report.document(done))
    return 0

"""`sheaf publish`."""

import argparse

from builder.arguments import declare
from builder.publish.rebuild import publish_formats
from builder.publish.report import report_document, report_text
from builder.snapshot.transaction import ChangeResult
from builder.store.context import Context
from functions.snapshot import layout
from functions.store.catalog import Catalogue


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare(
        parser,
        {
            "--redate": "accept another repository.name or content.address than the store was "
            "published with: all records that show it get new datestamps"
        },
    )


def run(context: Context) -> int:
    """Publish the ingested data as the next snapshot."""
    built = publish(context)
    context.result(report_text(built), report_document(built))
    return 0


def publish(context: Context) -> ChangeResult:
    """Publish, and complete purges that an interruption left."""
    store, settings, runtime = context.store, context.configuration, context.runtime()
    newest = Catalogue(store).pointer().newest()
    if newest is not None and Catalogue(store).manifest(newest.snapshot).recipes:
        from builder.sources.records.renewal import renew_records  # it loads lxml

        renew_records(context)
    built = publish_formats(store, settings, runtime, redate=context.arguments.redate)
    if any(store.keys(layout.PURGES)):  # seldom: it loads what makes a snapshot
        from builder.publish.purge import complete_purges

        complete_purges(store, settings, runtime)
    return built

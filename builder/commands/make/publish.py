"""`sheaf publish`."""

import argparse

from builder.arguments import declare
from builder.publish.publish import publish
from builder.publish.purge import complete_purges
from builder.publish.rebuild import rebuild
from builder.publish.report import report_document, report_text
from builder.store.context import Context
from functions.oai.render import check


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
    digests = check.digests(context.configuration)
    store, settings, runtime = context.store, context.configuration, context.runtime()
    rebuild(store, settings, runtime, digests)
    built = publish(store, settings, runtime, digests, redate=context.arguments.redate)
    complete_purges(store, settings, runtime)
    context.result(report_text(built), report_document(built))
    return 0

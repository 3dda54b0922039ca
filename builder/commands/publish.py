"""`sheaf publish`."""

import argparse

from builder import account
from builder.context import Context
from builder.publish import publish
from functions.oai import trial


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments: there are none of its own."""


def run(context: Context) -> int:
    """Publish what was ingested as the next snapshot."""
    digests = trial.digests(context.configuration)
    built = publish(context.store, context.configuration, context.surroundings(), digests)
    context.result(account.text(built), account.document(built))
    return 0

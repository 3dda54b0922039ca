"""`sheaf export cdxj`."""

import argparse

from builder.commands.export.wacz import add_selection
from builder.context import Context
from builder.export import captures


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "file", metavar="FILE",
        help="file to create; compressed with gzip if the name ends with .gz",
    )  # fmt: skip
    add_selection(parser)


def run(context: Context) -> int:
    """Write an index of captures as CDXJ.

    The captures are those of the newest snapshot, either all or those that the options select.
    """
    return captures.export_cdxj(context, captures.excerpt(context.arguments))

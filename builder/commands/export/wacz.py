"""`sheaf export wacz`."""

import argparse

from builder.context import Context
from builder.export import captures


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("file", metavar="FILE", help="file to create")
    add_selection(parser)
    parser.add_argument("--title", metavar="TEXT", help="title of the file")


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Declare the options that select captures."""
    which = parser.add_argument_group("selection of captures (all conditions must hold)")
    which.add_argument("--set", metavar="SPEC", help="captures of this set and its subsets")
    which.add_argument(
        "--url", metavar="PREFIX", help="captures whose URL has this prefix, including http://"
    )
    which.add_argument(
        "--as-of",
        metavar="DATE",
        help="the last capture of each URL up to this date, such as 2007-11-05",
    )
    which.add_argument(
        "--where", metavar="SQL", help="captures that meet a condition over the view `captures`"
    )


def run(context: Context) -> int:
    """Write captures as one WACZ file, which replays.

    The captures are those of the newest snapshot, either all or those that the options select.
    """
    return captures.export_wacz(context, captures.excerpt(context.arguments))
